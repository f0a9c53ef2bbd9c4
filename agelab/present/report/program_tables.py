"""Table of what programs and a scenario's own metrics have measured, aged beside unaged."""

from collections.abc import Iterator

from agelab.analysis.cells import RunSet
from agelab.present.report.model import Table, TableCell, headings
from agelab.present.report.numbers import unit_name
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import AGED, CONTROL, StepId
from agelab.stats.formatting import unit_scale
from agelab.stats.series import Series

FIGURES = 5
"""Figures of a value to show."""
CAPTION = "What programs, and the scenario's own metrics, have measured: medians over the seeds"


def program_tables(group: RunSet, where: str) -> Iterator[Table]:
    """Return a row for each metric that the registry does not have, of each subject; nothing where there is none."""
    rows = []
    any_aged = False
    for subject in group.groups:
        for (step, repetition, metric), series in subject.series.items():
            found = StepId.parse(step)
            if metric in METRICS or found.disk == CONTROL:
                continue
            control = None
            if found.disk == AGED:
                any_aged = True
                control = subject.series.get((step.replace(AGED, CONTROL, 1), repetition, metric))
            name = found.name if found.disk else step
            values = (_cell(series), *((_cell(control), _ratio(series, control)) if control else ()))
            rows.append(
                (TableCell(subject.name), TableCell(name), TableCell(metric, code=True), series, values)
            )
    if not rows:
        return
    columns = [
        "filesystem",
        "step",
        "metric",
        "unit",
        *(("aged", "unaged", "aged / unaged") if any_aged else ("value",)),
    ]
    width = len(columns) - 4
    shown = tuple(
        (*names, TableCell(unit_name(series.unit)), *values, *[TableCell("–")] * (width - len(values)))
        for *names, series, values in rows
    )
    numbers = ("aged", "unaged", "aged / unaged", "value")
    yield Table(f"{where}-programs", CAPTION, headings(*columns, numbers=numbers), shown)


def _cell(series: Series) -> TableCell:
    if series.summary is None:
        return TableCell("?")
    value = float(series.summary.median / unit_scale(series.unit).divisor)
    return TableCell(f"{value:.{FIGURES}g}", value)


def _ratio(series: Series, control: Series) -> TableCell:
    aged, unaged = series.summary, control.summary
    if aged is None or unaged is None or not unaged.median:
        return TableCell("–")
    ratio = float(aged.median / unaged.median)
    return TableCell(f"{ratio:.3f}", ratio)
