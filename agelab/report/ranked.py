"""Subjects by one metric, and which of them the floor does not tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.report.gather import Subject
from agelab.stats.floor import SEEDS_NEEDED, Difference, no_floor
from agelab.stats.order import Summary
from agelab.stats.series import Place


@dataclass(frozen=True)
class Ranked:
    """Subjects by one metric, the highest first (or the lowest)."""

    order: tuple[tuple[Subject, Summary], ...]

    @property
    def first(self) -> tuple[Subject, Summary]:
        return self.order[0]

    @property
    def floored(self) -> bool:
        """Whether each has run seeds enough for a floor."""
        return all(summary.n >= SEEDS_NEEDED for _, summary in self.order)

    @property
    def tied(self) -> list[tuple[Subject, Summary]]:
        """Those that the floor does not tell from the first one."""
        return [
            (subject, summary)
            for subject, summary in self.order[1:]
            if abs((apart := Difference(summary, self.first[1])).difference) <= (apart.floor or 0)
        ]

    def with_seeds(self) -> "tuple[Ranked, list[tuple[Subject, Summary]]]":
        """Those that have run seeds enough for a floor, and the others; all, where fewer than two have."""
        enough = [one for one in self.order if one[1].n >= SEEDS_NEEDED]
        if len(enough) < 2:
            return self, []
        return Ranked(tuple(enough)), [one for one in self.order if one not in enough]

    @property
    def why_no_floor(self) -> str:
        return no_floor(*(summary.n for _, summary in self.order))


def ranked(subjects: Sequence[Subject], place: Place, *, highest: bool = True) -> Ranked:
    """The subjects that have the place, by their medians."""
    return by_summary([(one, there.summary) for one in subjects if (there := one.series.get(place))], highest)


def by_summary(found: Sequence[tuple[Subject, Summary | None]], highest: bool) -> Ranked:
    """Those that have one, by their medians."""
    known = [(subject, summary) for subject, summary in found if summary]
    return Ranked(tuple(sorted(known, key=lambda one: one[1].median, reverse=highest)))
