"""Judge two sides, A and B, by both floors: the spread of run seeds, and in the wall clock what hosts do by chance.

Every caller must hand over the hosts' noise, so that none forgets it; runs of the virtual clock have an empty one.
See docs/floor.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from agelab.stats.bootstrap import ratio_intervals
from agelab.stats.noise_floor import FloorVerdict, MedianDifference
from agelab.stats.order_statistics import Summary
from agelab.stats.rank_test import Test, rank_tests
from agelab.stats.series import Place, Series, SeriesPair, pair_series
from agelab.stats.verdict import ComparedSeries

HostFloor = Callable[[SeriesPair], Fraction | None]
"""How far values spread by chance on the hosts, as a share of their median; None where unknown (``HostNoise``)."""


def judge(pairs: Sequence[SeriesPair], host: HostFloor) -> list[ComparedSeries]:
    """Judge each pair: first against the floors, then by a rank test corrected for all pairs of the same metric."""
    families: dict[str, list[int]] = {}
    for at, pair in enumerate(pairs):
        families.setdefault(pair.left.metric, []).append(at)
    tests: dict[int, Test | None] = {}
    for members in families.values():
        tests.update(zip(members, rank_tests([pairs[at] for at in members]), strict=True))
    return [
        ComparedSeries(pair, difference(pair, host), interval, tests[at])
        for at, (pair, interval) in enumerate(zip(pairs, ratio_intervals(pairs), strict=True))
    ]


def judge_against(
    base: Mapping[Place, Series], others: Sequence[Mapping[Place, Series]], host: HostFloor
) -> list[list[ComparedSeries]]:
    """Judge each of the others, as B, against the base; the rows of a metric in all of them are one family."""
    tables = [pair_series(base, other) for other in others]
    found = iter(judge([row for table in tables for row in table], host))
    return [[next(found) for _ in table] for table in tables]


def difference(pair: SeriesPair, host: HostFloor) -> MedianDifference | None:
    """Return the pair's difference under both floors; None where a side was not measured."""
    return replace(pair.difference, host=host(pair)) if pair.difference else None


def order(one: Summary, other: Summary, host: Fraction | None) -> int:
    """Return 1 where the one is higher, -1 where it is lower, 0 where a floor hides the difference.

    Too few run seeds make no floor of their own: then the medians count as they are, but for the host's noise.
    """
    found = MedianDifference(one, other, host)
    if found.verdict is FloorVerdict.NO_FLOOR:
        hidden = abs(found.difference) <= found.host_floor
        return 0 if hidden else 1 if found.difference < 0 else -1
    return {FloorVerdict.A_HIGHER: 1, FloorVerdict.B_HIGHER: -1}.get(found.verdict, 0)
