"""Values in the places of a study's tables: printed by the study, or measured by us."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Literal, Protocol

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import CellResult
from agelab.analysis.judge import judge
from agelab.analysis.published.claims import Claims, Place, PublishedTables, Uncounted
from agelab.analysis.published.run_columns import Key, RunColumn
from agelab.results.measure import MEAN
from agelab.results.result import Sample
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import Seeds
from agelab.stats.rank_test import can_be_distinguishable
from agelab.stats.series import Number, Series, SeriesPair, exact, exact_sum
from agelab.stats.verdict import MARGIN, ComparedSeries, DifferenceVerdict

Reading = Literal["time", "speed"]
READINGS: tuple[Reading, ...] = ("time", "speed")
"""Two readings of "36 % slower": a time 1.36 times as long, or a speed of 0.64."""


ALONE = Seeds(1, 1)
"""Stands for the seeds of a printed figure, which has none."""


def printed_value(step: str, metric: str, figure: Fraction) -> Series:
    """Return a figure of a study as a series of one value."""
    return Series(step, MEAN, metric, "", ((ALONE, figure),), ())


def no_value(step: str, metric: str, why: str) -> Series:
    """Return a series without any value."""
    return Series(step, MEAN, metric, "", (), ((ALONE, why),))


class ValueSource(Protocol):
    @property
    def resolution(self) -> Fraction:
        """The resolution of the source's clock: values that differ by no more count as equal."""

    def why_uncounted(self, step: str, metric: str) -> Uncounted | None:
        """Return why a value of that step says nothing of the study's; None where it does."""

    def value(self, place: Place) -> Series:
        """Return the value of that place."""


def judge_values(first: Series, second: Series, margin: Fraction = MARGIN) -> ComparedSeries | None:
    """Judge the first, as B, against the second; None where they are printed, or too few for any verdict."""
    if not (can_be_distinguishable(first.seeds) and can_be_distinguishable(second.seeds)):
        return None
    [judged] = judge([SeriesPair(second, first)], _noise_of_pair, correct=False, margin=margin)
    return None if judged.too_few else judged


def _noise_of_pair(pair: SeriesPair) -> Fraction | None:
    """Return the larger noise of the hosts of both, as far as it is known."""
    return max((series.host for series in (pair.left, pair.right) if series.host is not None), default=None)


def compare_values(first: Series, second: Series) -> int | None:
    """Return 1 where the first is higher, -1 where it is lower, 0 where they are the same; None where it is not known.

    Too few seeds for any verdict count as they are, but for the host's noise, and from a lead on.
    """
    judged = judge_values(first, second)
    if judged:
        known = {DifferenceVerdict.HIGHER: 1, DifferenceVerdict.LOWER: -1, DifferenceVerdict.UNKNOWN: None}
        return known.get(judged.verdict, 0)
    noise = _noise_of_pair(SeriesPair(second, first))
    apart, larger = first.median - second.median, max(abs(first.median), abs(second.median))
    if noise is not None and abs(apart) <= noise * larger:
        return 0
    return None if too_close((first.median, second.median), first, second) else (apart > 0) - (apart < 0)


def why_not_known(first: Series, second: Series) -> str:
    """Return why nothing is known of the order of two values."""
    judged = judge_values(first, second)
    return (judged.reason or "") if judged else too_close((first.median, second.median), first, second)


def same_within(first: Series, second: Series, within: Fraction) -> bool | None:
    """Return whether two values are the same within a margin; None where that is not known.

    With seeds enough the whole interval must lie within it; with fewer the medians.
    """
    lower, higher = sorted((first.median, second.median))
    near = lower > 0 and higher <= lower * (1 + within)
    judged = judge_values(first, second, within)
    if judged is None:
        return near or None
    if judged.alike or judged.within_margin or judged.verdict is DifferenceVerdict.BELOW:
        return True
    return False if judged.differs and not near else None


def too_close(figures: tuple[Fraction, Fraction], *values: Series) -> str:
    """Return why nothing can be said of the order of two figures made of these values; empty where it can.

    With so few seeds that chance cannot be excluded, a difference may be one seed's: only a lead counts.
    """
    low, high = sorted(figures)
    needed = 1 + max(value.lead for value in values)
    enough = all(can_be_distinguishable(value.seeds) for value in values)
    if enough or needed == 1 or high >= needed * low > 0 or (high > 0 >= low):
        return ""
    fewest = min(len(value.values) for value in values)
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

    def why_uncounted(self, step: str, metric: str) -> None:
        """Nothing: these are the study's own values."""

    def value(self, place: Place) -> Series:
        """Return the figure, the sum of figures, or the factor of a percentage."""
        table, variant, layout, step, metric = place
        if figure := self.figures.by_place.get(place):
            return printed_value(step, metric, figure.exact)
        use = self.claims.table(table)
        if use.compares == metric:
            if variant == use.relative_to and any(figure.step == step for figure in self.figures.of(table)):
                return printed_value(step, metric, Fraction(1))
            for name in ("slower_percent", "more_percent"):
                if figure := self.figures.by_place.get((table, variant, layout, step, name)):
                    return printed_value(step, metric, _factor(name, figure.exact, self.reading))
        if parts := self.claims.sums.get(step):
            values = [self.value((table, variant, layout, part, metric)) for part in parts]
            return sum_values(step, metric, values)
        words = " ".join((variant, layout, step, metric))
        return no_value(step, metric, f"the study prints no figure for {words} in table {table}")


def _factor(name: str, percent: Fraction, reading: Reading) -> Fraction:
    if name == "slower_percent" and reading == "speed":
        return 1 / (1 - percent / 100)
    return 1 + percent / 100


def sum_values(step: str, metric: str, parts: Sequence[Series]) -> Series:
    """Return the sum of the medians of parts, or why there is none."""
    missing = [part.why_missing for part in parts if not part.values]
    if missing:
        return no_value(step, metric, missing[0])
    return printed_value(step, metric, sum((part.median for part in parts), Fraction()))


PERCENTAGES = {
    "cpu_percent": ("cpu_user", "cpu_system"),
    "cpu_user_percent": ("cpu_user",),
    "cpu_system_percent": ("cpu_system",),
    "cpu_idle_percent": ("cpu_idle",),
}
"""Metrics that are 100 times the sum of others over ``elapsed``."""
SHORTEST = Fraction("0.5")
"""Seconds from which a percentage is known: the kernel counts in ticks of 10 ms, one of which is 2 % of them."""
LEAD = Fraction("0.05")
"""The lead that a time, or a share of one, must have where the seeds are too few for a test: about the smallest spreads
that five run seeds have shown of steps that copy, read or delete. Seeds hardly move counts and bytes."""


class _NoValue(Exception):
    """The reason why a cell has no value in a place."""


@dataclass(frozen=True)
class OurValues:
    """The cells of a column in the places of a study's table."""

    figures: PublishedTables
    claims: Claims
    column: RunColumn
    stand_in: str = ""
    """The filesystem of ours in place of the study's own."""

    @property
    def resolution(self) -> Fraction:
        """Zero: a guest's clock has six decimals, so no two values are one for its coarseness."""
        return Fraction()

    def why_uncounted(self, step: str, metric: str) -> Uncounted | None:
        """Return why the study's figures there say nothing of ours; None where they do."""
        return self.claims.why_uncounted(step, metric)

    def value(self, place: Place) -> Series:
        """Return one number for each run seed whose cell ended ok and has it, or why there is none."""
        known, at = self.column.values, (self.claims.study, self.stand_in, *place)
        if at not in known:
            known[at] = self._measured(place)
        return known[at]

    def _measured(self, place: Place) -> Series:
        table, variant, layout, step, metric = place
        use = self.claims.table(table)
        if use.untestable:
            return no_value(step, metric, use.untestable)
        key = scenario, variant, layout = self.key(place)
        group = self.column.groups.get(key)
        if not group:
            return no_value(step, metric, f"{variant}, {layout} of scenario {scenario} is in none of the runs")
        if not group.counted:
            return no_value(step, metric, f"{group.name}: {group.results[-1].ended}")
        steps = self.claims.sums.get(step, (step,))
        values: list[tuple[Seeds, Fraction]] = []
        missing: list[tuple[Seeds, str]] = []
        for seeds, cell in group.counted.items():
            try:
                values.append((seeds, _value(cell, steps, metric, use.repetition)))
            except _NoValue as why:
                missing.append((seeds, str(why)))
        lead = LEAD if METRICS[metric].unit in ("s", "%") else Fraction()
        noise = _noise(group.host, steps, metric, use.repetition)
        return Series(step, MEAN, metric, "", tuple(values), tuple(missing), host=noise, lead=lead)

    def key(self, place: Place) -> Key:
        """Return which of our cells have the values of a place: scenario, variant and layout."""
        table, variant, layout, _, _ = place
        return self.claims.table(table).scenario or self.claims.study, self._variant(variant), layout

    def _variant(self, variant: str) -> str:
        """Return the variant that runs: a stand-in's, at the same row of the table."""
        if not self.stand_in:
            return variant
        return f"{self.stand_in}{variant.removeprefix(self.figures.filesystem(variant))}"


def _noise(host: HostNoise, steps: tuple[str, ...], metric: str, repetition: str) -> Fraction | None:
    """Return a bound of the noise: of a sum its widest part's, of a ratio that of both its sides together."""
    sides = [PERCENTAGES[metric], ("elapsed",)] if metric in PERCENTAGES else [(metric,)]
    if repetition == "growth":
        sides *= 2
    shares = [[host.share(step, name) for step in steps for name in side] for side in sides]
    known = [[share for share in side if share is not None] for side in shares]
    return sum(map(max, known), Fraction()) if known == shares else None


def _value(cell: CellResult, steps: tuple[str, ...], metric: str, repetition: str) -> Fraction:
    """Return the sum over the steps, or a percentage from such sums. Raises _NoValue."""
    if metric not in PERCENTAGES:
        return _sum(cell, steps, (metric,), repetition)
    busy = _sum(cell, steps, PERCENTAGES[metric], repetition)
    elapsed = _sum(cell, steps, ("elapsed",), repetition)
    if _seconds(cell, steps, repetition) < SHORTEST:
        raise _NoValue("too short for ticks of 10 ms")
    return 100 * busy / elapsed


def _seconds(cell: CellResult, steps: tuple[str, ...], repetition: str) -> Fraction:
    """Return the seconds that a percentage is made of: those of every repetition where it is of their mean."""
    chosen = {"first": slice(1), "last": slice(-1, None)}.get(repetition, slice(None))
    return sum((exact_sum(_repetitions(cell, step, "elapsed")[chosen]) for step in steps), Fraction())


def _sum(cell: CellResult, steps: tuple[str, ...], metrics: tuple[str, ...], repetition: str) -> Fraction:
    total = Fraction()
    for step in steps:
        for metric in metrics:
            values = _repetitions(cell, step, metric)
            part = _of_repetitions(values, repetition)
            if part is None:
                raise _NoValue(f"{step} has {len(values)} repetitions with {metric} that is not 0; two are needed")
            total += part
    return total


def _repetitions(cell: CellResult, step: str, metric: str) -> list[Number]:
    """Return the values of all repetitions in their order. Raises _NoValue where one is missing."""
    samples = cell.repetitions(step, metric)
    if not samples:
        raise _NoValue(f"{cell.cell.label} has no {metric} of step {step}")
    values: list[Number] = []
    for number, sample in sorted(samples.items(), key=itemgetter(0)):
        if isinstance(sample, Sample):
            raise _NoValue(f"{step} {number} {metric}: {sample.not_measured or 'not measured'}")
        values.append(sample)
    return values


def _of_repetitions(values: list[Number], which: str) -> Fraction | None:
    if which == "growth":
        return exact(values[-1]) / exact(values[0]) if len(values) > 1 and values[0] else None
    if which == "first":
        return exact(values[0])
    return exact(values[-1]) if which == "last" else exact_sum(values) / len(values)
