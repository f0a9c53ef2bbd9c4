"""Our value for a cell of a study's table: the median over run seeds of the mean over repetitions."""

from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.host_noise import HostNoise
from agelab.published.claims import Claims
from agelab.published.run_columns import RunColumn, StudyCell
from agelab.published.tables import Place, PublishedTables
from agelab.published.value_sources import Value

PERCENTAGES = {
    "cpu_percent": ("cpu_user", "cpu_system"),
    "cpu_user_percent": ("cpu_user",),
    "cpu_system_percent": ("cpu_system",),
    "cpu_idle_percent": ("cpu_idle",),
}
"""Metrics that are 100 times the sum of others over ``elapsed``."""
SHORTEST = Fraction("0.5")
"""Seconds of which a percentage is known: the kernel counts in ticks of 10 ms, of which one is 2 % of them."""


@dataclass(frozen=True)
class Ours:
    """A side's cells in the places of a study's table."""

    figures: PublishedTables
    claims: Claims
    side: RunColumn
    stand_in: str = ""
    """The filesystem of ours in place of the study's own."""

    @property
    def resolution(self) -> Fraction:
        """A guest's clock has six decimals: nothing is one by its coarseness."""
        return Fraction()

    def value(self, place: Place) -> Value:
        """One number for each run seed whose cell ended ok and has it, or why there is none."""
        table, variant, layout, step, metric = place
        use = self.claims.table(table)
        if use.untestable:
            return Value(why=use.untestable)
        variant = self._variant(variant)
        scenario = use.scenario or self.claims.study
        cells = self.side.cells.get((scenario, variant, layout))
        if not cells:
            return Value(why=f"{variant}, {layout} of scenario {scenario} is in none of the runs")
        ok = [ran for ran in cells if ran.ok]
        if not ok:
            return Value(why=f"{variant}, {layout}: {cells[-1].why}")
        parts = self.claims.sums.get(step, (step,))
        found = [_value(ran, parts, metric, use.repetition) for ran in ok]
        numbers = tuple(value for value in found if not isinstance(value, str))
        noise = _noise(self.side.hosts[scenario], parts, metric, use.repetition)
        return (
            Value(numbers, host=noise)
            if numbers
            else Value(why=next(why for why in found if isinstance(why, str)))
        )

    def _variant(self, variant: str) -> str:
        """The variant that runs: with stand-ins theirs, at the same row of the table."""
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


def _value(ran: StudyCell, steps: tuple[str, ...], metric: str, repetition: str) -> Fraction | str:
    """The sum over the steps; a percentage is that of the sums."""
    wanted = PERCENTAGES.get(metric)
    if wanted is None:
        return _sum(ran, steps, (metric,), repetition)
    busy, elapsed = (_sum(ran, steps, names, repetition) for names in (wanted, ("elapsed",)))
    if isinstance(busy, str) or isinstance(elapsed, str):
        return busy if isinstance(busy, str) else str(elapsed)
    if _counted(ran, steps, repetition) < SHORTEST:
        return "too short for ticks of 10 ms"
    return 100 * busy / elapsed


def _counted(ran: StudyCell, steps: tuple[str, ...], repetition: str) -> Fraction:
    """All the seconds whose ticks a percentage is made of: those of every repetition where it is of their mean."""
    series = [one for one in (ran.series(step, "elapsed") for step in steps) if not isinstance(one, str)]
    chosen = {"first": slice(1), "last": slice(-1, None)}.get(repetition, slice(None))
    return sum((value for one in series for value in one[chosen]), Fraction())


def _sum(ran: StudyCell, steps: tuple[str, ...], metrics: tuple[str, ...], repetition: str) -> Fraction | str:
    found = Fraction()
    for step in steps:
        for metric in metrics:
            series = ran.series(step, metric)
            if isinstance(series, str):
                return series
            one = _of_repetitions(series, repetition)
            if one is None:
                return f"{step} has {len(series)} repetitions with {metric} that is not 0; two are needed"
            found += one
    return found


def _of_repetitions(series: list[Fraction], which: str) -> Fraction | None:
    if which == "growth":
        return series[-1] / series[0] if len(series) > 1 and series[0] else None
    if which == "first":
        return series[0]
    return series[-1] if which == "last" else sum(series, Fraction()) / len(series)
