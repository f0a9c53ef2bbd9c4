"""Values of one cell of a table: printed by the study, or measured by us."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol

from agelab.analysis.judge import order
from agelab.published.claims import Claims
from agelab.published.tables import Place, PublishedTables
from agelab.stats.noise_floor import SEEDS_NEEDED
from agelab.stats.order_statistics import Summary, summary

Reading = Literal["time", "speed"]
READINGS: tuple[Reading, ...] = ("time", "speed")
"""Two readings of "36 % slower": a time 1.36 times as long, or a speed of 0.64."""


@dataclass(frozen=True)
class Value:
    """A value: a number for each run seed (a printed one has one), or why there is none."""

    numbers: tuple[Fraction, ...] = ()
    why: str = ""
    host: Fraction | None = None
    """The noise of the host that measured it, as a share of its median, where that is known."""
    lead: Fraction = Fraction(0)
    """The share by which the higher of two must exceed the lower to be called so, where too few seeds make no floor."""

    @cached_property
    def summary(self) -> Summary:
        """Median and spread. Raises ValueError where nothing is known."""
        return summary(self.numbers)

    @property
    def median(self) -> Fraction:
        return self.summary.median


class ValueSource(Protocol):
    @property
    def resolution(self) -> Fraction:
        """The resolution of the source's clock: values that differ by no more count as equal."""

    def circle(self, step: str, metric: str) -> str:
        """Return why a value of that step says nothing of the study's; empty where it does."""

    def value(self, place: Place) -> Value:
        """Return the value of that place."""


def compare_values(one: Value, other: Value) -> int | None:
    """Return 1 where the one is higher, -1 where it is lower, 0 where a floor hides the difference.

    None where no floor is there, and the lead too small to count without.
    """
    noise = [value.host for value in (one, other) if value.host is not None]
    found = order(one.summary, other.summary, max(noise, default=None))
    hidden = not found and bool(noise)
    return None if not hidden and too_close((one.median, other.median), one, other) else found


def too_close(figures: tuple[Fraction, Fraction], *values: Value) -> str:
    """Return why nothing can be said of the order of two figures made of these values; empty where it can.

    With fewer run seeds than make a floor, a difference may be one seed's: only a lead counts.
    """
    low, high = sorted(figures)
    fewest = min(len(value.numbers) for value in values)
    needed = 1 + max(value.lead for value in values)
    if fewest >= SEEDS_NEEDED or needed == 1 or high >= needed * low > 0 or (high > 0 >= low):
        return ""
    seeds = "one run seed" if fewest == 1 else f"{fewest} run seeds"
    apart = f"differ by a factor of {float(high / low):.3f}" if low > 0 else "are both 0"
    return f"they {apart}, and with {seeds} less than {float(needed):.2f} says nothing"


@dataclass(frozen=True)
class PrintedValues:
    """A study's own table. Percentages become factors of the value that they compare to."""

    figures: PublishedTables
    claims: Claims
    reading: Reading = "time"

    @property
    def resolution(self) -> Fraction:
        return Fraction(str(self.claims.resolution))

    def circle(self, step: str, metric: str) -> str:
        """Nothing: these are the study's own values."""
        return ""

    def value(self, place: Place) -> Value:
        """Return the figure, the sum of figures, or the factor of a percentage."""
        table, variant, layout, step, metric = place
        if figure := self.figures.by_place.get(place):
            return Value((figure.exact,))
        use = self.claims.table(table)
        if use.compares == metric:
            if variant == use.relative_to and any(figure.step == step for figure in self.figures.of(table)):
                return Value((Fraction(1),))
            for name in ("slower_percent", "more_percent"):
                if figure := self.figures.by_place.get((table, variant, layout, step, name)):
                    return Value((_factor(name, figure.exact, self.reading),))
        if parts := self.claims.sums.get(step):
            return sum_values({part: self.value((table, variant, layout, part, metric)) for part in parts})
        words = " ".join((variant, layout, step, metric))
        return Value(why=f"the study prints no figure for {words} in table {table}")


def _factor(name: str, percent: Fraction, reading: Reading) -> Fraction:
    if name == "slower_percent" and reading == "speed":
        return 1 / (1 - percent / 100)
    return 1 + percent / 100


def sum_values(parts: Mapping[str, Value]) -> Value:
    """Return the sum of single numbers, or why there is none."""
    missing = [part.why for part in parts.values() if not part.numbers]
    return Value(why=missing[0]) if missing else Value((sum((p.median for p in parts.values()), Fraction()),))
