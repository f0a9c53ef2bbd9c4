"""Judge two sides, A and B: within corpora by a rank test, over corpora by a t test, in the wall clock by the floor.

Every caller must hand over the hosts' noise, so that none forgets it; runs of the virtual clock have an empty one.
See docs/chance.md.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from agelab.stats.other_files import OtherFiles, other_files
from agelab.stats.rank_test import RankTest, rank_tests
from agelab.stats.series import Place, Series, SeriesPair, pair_series
from agelab.stats.shift import LEVEL, shift_of
from agelab.stats.verdict import MARGIN, ComparedSeries

HostFloor = Callable[[SeriesPair], Fraction | None]
"""How far values spread by chance on the hosts, as a share of their median; None where unknown (``HostNoise``)."""


def judge(
    pairs: Sequence[SeriesPair],
    host: HostFloor,
    *,
    correct: bool = True,
    margin: Fraction = MARGIN,
    level: Fraction = LEVEL,
) -> list[ComparedSeries]:
    """Judge each pair, corrected for all pairs of the same metric, unless the caller's question needs no correction.

    ``level`` is what a test may find of what is not there, and an interval leave out.
    """
    shifts = [shift_of(pair.blocks, level) for pair in pairs]
    families: dict[str, list[int]] = {}
    for at, pair in enumerate(pairs):
        families.setdefault(pair.left.metric, []).append(at)
    tests: dict[int, RankTest | None] = {}
    others: dict[int, OtherFiles | None] = {}
    for members in families.values():
        sides, moved = [pairs[at].blocks for at in members], [shifts[at] for at in members]
        tests.update(zip(members, rank_tests(sides, correct=correct, level=level), strict=True))
        others.update(zip(members, other_files(moved, correct=correct, level=level), strict=True))
    return [
        ComparedSeries(pair, shift, tests[at], others[at], host(pair), margin)
        for at, (pair, shift) in enumerate(zip(pairs, shifts, strict=True))
    ]


def judge_against(
    base: Mapping[Place, Series], others: Sequence[Mapping[Place, Series]], host: HostFloor
) -> list[list[ComparedSeries]]:
    """Judge each of the others, as B, against the base; the rows of a metric in all of them are one family."""
    tables = [pair_series(base, other) for other in others]
    found = iter(judge([row for table in tables for row in table], host))
    return [[next(found) for _ in table] for table in tables]
