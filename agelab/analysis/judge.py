"""Judge two sides, A and B: within corpora by a rank test, over corpora by a t test, in the wall clock by the floor.

Every caller must hand over the hosts' noise, so that none forgets it; runs of the virtual clock have an empty one.
See docs/chance.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from agelab.analysis.cells import SeedGroup
from agelab.base.gathered import gathered
from agelab.results.cell_samples import Place
from agelab.stats import phrasing
from agelab.stats.rank_test import LEVEL, RankTest, can_be_distinguishable, rank_tests
from agelab.stats.series import Series, SeriesPair, Summary, pair_series
from agelab.stats.shift import OtherFiles, other_files, shift_of
from agelab.stats.verdict import MARGIN, ComparedSeries, DifferenceVerdict

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
    families = gathered((pair.left.metric, at) for at, pair in enumerate(pairs))
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
    judged = iter(judge([row for table in tables for row in table], host))
    return [[next(judged) for _ in table] for table in tables]


@dataclass(frozen=True)
class Ranked:
    """Groups by one metric, the highest first (or the lowest).

    The first is called so only if it is distinguishable from *each* of the others, each by a test at 5 % that is not
    corrected: all of them must be passed at once (an intersection-union test: R. L. Berger, Technometrics 24 (1982),
    295-300), and that the first was chosen by looking does not raise the error either (S. Gutmann and Z. Maymin, "Is
    the selected population the best?", Annals of Statistics 15 (1987), 456-461).
    """

    order: tuple[tuple[SeedGroup, Summary], ...]
    series: tuple[Series, ...]
    """Their series, in the same order."""
    level: Fraction = LEVEL
    """What a test may find of what is not there."""

    @property
    def first(self) -> tuple[SeedGroup, Summary]:
        return self.order[0]

    @cached_property
    def compared(self) -> list[ComparedSeries]:
        """The first, as B, judged against each of the others."""
        pairs = [SeriesPair(series, self.series[0]) for series in self.series[1:]]
        return judge(pairs, self.first[0].host, correct=False, level=self.level)

    @property
    def _others(self) -> list[tuple[tuple[SeedGroup, Summary], ComparedSeries]]:
        """Each of the others, with the first judged against it."""
        return list(zip(self.order[1:], self.compared, strict=True))

    @property
    def enough(self) -> bool:
        """True if each has seeds enough to be distinguished from another."""
        return all(can_be_distinguishable(series.seeds) for series in self.series)

    @property
    def lead(self) -> ComparedSeries:
        """The first, as B, against the next; there must be two."""
        return self.compared[0]

    @property
    def tied(self) -> list[tuple[SeedGroup, Summary]]:
        """The groups that the first is not distinguishable from; with too few seeds, those equal to it."""
        if not self.enough:
            return [entry for entry in self.order[1:] if entry[1].median == self.first[1].median]
        return [entry for entry, against in self._others if not self._is_distinguishable(entry[1], against)]

    def _is_distinguishable(self, of: Summary, against: ComparedSeries) -> bool:
        """Return whether the first is distinguishable from one other, in the order in which their medians stand."""
        return against.verdict is self._way(of)

    def _way(self, of: Summary) -> DifferenceVerdict:
        """Return the verdict on the first against another that agrees with their medians."""
        return DifferenceVerdict.HIGHER if self.first[1].median > of.median else DifferenceVerdict.LOWER

    @property
    def opposed(self) -> list[SeedGroup]:
        """The groups against which it depends on the files: corpora contradict each other."""
        return [group for (group, _), against in self._others if against.opposed]

    @property
    def all_the_same(self) -> bool:
        """True if each of the others is the same as the first."""
        return len(self.order) > 1 and self.enough and all(compared.alike for compared in self.compared)

    @property
    def why_tied(self) -> list[str]:
        """The reasons against them, one line each: a reason that several share is said once, after all their names."""
        by_reason = gathered(
            (against.word_and_reason, group.name)
            for (group, of), against in self._others
            if not self._is_distinguishable(of, against)
        )
        return [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]

    @property
    def clear(self) -> bool:
        """True if the first is distinguishable from all others."""
        return len(self.order) > 1 and self.enough and not self.tied

    @property
    def corpora(self) -> int:
        """The corpora over which the first is compared with the others: the fewest of any pair."""
        return min((len(compared.shift.corpora) for compared in self.compared if compared.shift), default=0)

    @property
    def on_these_files(self) -> str:
        """Which files a clear first place is about."""
        return phrasing.on_these_files(self.corpora, all(compared.on_each for compared in self.compared))

    @property
    def holds(self) -> bool:
        """True if the first comes first on other files, whatever it does on these: all pairs at once say so."""
        return len(self.order) > 1 and all(against.for_others is self._way(of) for (_, of), against in self._others)

    @property
    def on_other_files(self) -> str:
        """Whether the first place holds for other files."""
        if not self.holds:
            return phrasing.other_files(self.corpora)
        too = ", too" if self.clear else ""
        return f"on average over other files it comes first{too}: t intervals of {self.corpora} corpora"

    def split_by_seeds(self) -> "tuple[Ranked, list[tuple[SeedGroup, Summary]]]":
        """Split off the groups with too few seeds for a verdict, unless fewer than two have enough."""
        enough = [at for at, series in enumerate(self.series) if can_be_distinguishable(series.seeds)]
        if len(enough) < 2:
            return self, []
        left = [entry for at, entry in enumerate(self.order) if at not in enough]
        order, series = tuple(self.order[at] for at in enough), tuple(self.series[at] for at in enough)
        return Ranked(order, series, self.level), left

    @property
    def why_too_few(self) -> str:
        """Say how many seeds there are, and how many can exclude chance."""
        fewest = min(self.series, key=lambda series: len(series.values))
        return phrasing.too_few(len(fewest.values))


def rank_by_place(subjects: Sequence[SeedGroup], place: Place) -> Ranked:
    """Rank the groups that measured the place, the highest median first."""
    return rank_by_median([(subject, subject.series.get(place)) for subject in subjects])


def rank_by_median(
    measured: Sequence[tuple[SeedGroup, Series | None]], *, highest: bool = True, level: Fraction = LEVEL
) -> Ranked:
    """Rank the groups that have a value by their medians, without those whose values say less than their names."""
    known = [(group, series.summary, series) for group, series in measured if series and series.summary]
    if any(not series.caveat for *_, series in known):
        known = [entry for entry in known if not entry[2].caveat]
    known.sort(key=lambda entry: entry[1].median, reverse=highest)
    order = tuple((group, summary) for group, summary, _ in known)
    return Ranked(order, tuple(series for *_, series in known), level)
