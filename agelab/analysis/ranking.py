"""Rank groups by one metric, and find those that floor and rank test do not tell from the first."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from agelab.analysis.cells import SeedGroup
from agelab.analysis.judge import judge
from agelab.stats.noise_floor import SEEDS_NEEDED, MedianDifference, too_few_seeds
from agelab.stats.order_statistics import Summary
from agelab.stats.series import Place, Series, SeriesPair
from agelab.stats.verdict import ComparedSeries


@dataclass(frozen=True)
class Ranked:
    """Groups by one metric, the highest first (or the lowest)."""

    order: tuple[tuple[SeedGroup, Summary], ...]
    series: tuple[Series, ...]
    """Their series, in the same order."""

    @property
    def first(self) -> tuple[SeedGroup, Summary]:
        return self.order[0]

    @property
    def floored(self) -> bool:
        """True if each has run seeds enough for a floor."""
        return all(summary.n >= SEEDS_NEEDED for _, summary in self.order)

    @cached_property
    def compared(self) -> list[ComparedSeries]:
        """The first, as B, judged against each of the others."""
        rows = [SeriesPair(one, self.series[0]) for one in self.series[1:]]
        return judge(rows, self.first[0].host) if rows else []

    @property
    def lead(self) -> MedianDifference:
        """The difference from the next, as A, to the first; there must be two."""
        found = self.compared[0].difference
        assert found is not None  # whoever is in the order has values
        return found

    @property
    def tied(self) -> list[tuple[SeedGroup, Summary]]:
        """The groups that cannot be told from the first: below the floor, or possibly by chance.

        Without a floor, those equal to it.
        """
        floored = self.floored
        return [
            one
            for one, against in zip(self.order[1:], self.compared, strict=True)
            if (not against.differs if floored else one[1].median == self.first[1].median)
        ]

    @property
    def clear(self) -> bool:
        """True if the first is told from all others."""
        return len(self.order) > 1 and self.floored and not self.tied

    def split_by_seeds(self) -> "tuple[Ranked, list[tuple[SeedGroup, Summary]]]":
        """Split off the groups with too few run seeds for a floor, unless fewer than two have enough."""
        enough = [at for at, (_, summary) in enumerate(self.order) if summary.n >= SEEDS_NEEDED]
        if len(enough) < 2:
            return self, []
        left = [one for at, one in enumerate(self.order) if at not in enough]
        return Ranked(tuple(self.order[at] for at in enough), tuple(self.series[at] for at in enough)), left

    @property
    def why_no_floor(self) -> str:
        return too_few_seeds(*(summary.n for _, summary in self.order))


def rank_by_place(subjects: Sequence[SeedGroup], place: Place) -> Ranked:
    """Rank the groups that measured the place, the highest median first."""
    return rank_by_median([(one, one.series.get(place)) for one in subjects])


def rank_by_median(found: Sequence[tuple[SeedGroup, Series | None]], *, highest: bool = True) -> Ranked:
    """Rank the groups that have a value by their medians."""
    known = [(one, series.summary, series) for one, series in found if series and series.summary]
    known.sort(key=lambda one: one[1].median, reverse=highest)
    return Ranked(
        tuple((subject, summary) for subject, summary, _ in known), tuple(series for *_, series in known)
    )
