"""Our value for a cell of a study's table: the median over run seeds of the mean over repetitions."""

from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.cells import CellResult
from agelab.analysis.host_noise import HostNoise
from agelab.analysis.published.claims import Claims
from agelab.analysis.published.run_columns import Key, RunColumn
from agelab.analysis.published.tables import Place, PublishedTables
from agelab.analysis.published.value_sources import no_value
from agelab.results.measure import MEAN
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import Seeds
from agelab.stats.order_statistics import exact
from agelab.stats.series import Series

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

    def circle(self, step: str, metric: str) -> str:
        """Return what of ours was derived from the study's figures there; empty where nothing was."""
        return self.claims.circle(step, metric)

    def value(self, place: Place) -> Series:
        """Return one number for each run seed whose cell ended ok and has it, or why there is none."""
        table, variant, layout, step, metric = place
        use = self.claims.table(table)
        if use.untestable:
            return no_value(step, metric, use.untestable)
        key = scenario, variant, layout = self.key(place)
        group = self.column.groups.get(key)
        if not group:
            return no_value(
                step, metric, f"{variant}, {layout} of scenario {scenario} is in none of the runs"
            )
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
    known = [[one for one in side if one is not None] for side in shares]
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
    found = (value for step in steps for value in _repetitions(cell, step, "elapsed")[chosen])
    return sum(found, Fraction())


def _sum(cell: CellResult, steps: tuple[str, ...], metrics: tuple[str, ...], repetition: str) -> Fraction:
    found = Fraction()
    for step in steps:
        for metric in metrics:
            values = _repetitions(cell, step, metric)
            one = _of_repetitions(values, repetition)
            if one is None:
                raise _NoValue(
                    f"{step} has {len(values)} repetitions with {metric} that is not 0; two are needed"
                )
            found += one
    return found


def _repetitions(cell: CellResult, step: str, metric: str) -> list[Fraction]:
    """Return the values of all repetitions in their order. Raises _NoValue where one is missing."""
    samples = cell.by_step.get((step, metric))
    if not samples:
        raise _NoValue(f"{cell.cell.label} has no {metric} of step {step}")
    for number, sample in sorted(samples.items()):
        if sample.value is None:
            raise _NoValue(f"{step} {number} {metric}: {sample.not_measured or 'not measured'}")
    return [exact(sample.value or 0) for _, sample in sorted(samples.items())]


def _of_repetitions(values: list[Fraction], which: str) -> Fraction | None:
    if which == "growth":
        return values[-1] / values[0] if len(values) > 1 and values[0] else None
    if which == "first":
        return values[0]
    return values[-1] if which == "last" else sum(values, Fraction()) / len(values)
