"""Print a sweep over kernels as tables, plots and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agelab.analysis import vega
from agelab.analysis.sweep import Row, Sweep
from agelab.base.gathered import gathered
from agelab.present.report.blocks import Block, Column, Line, Table, Text
from agelab.present.report.command import settling_command
from agelab.present.view.ratio_table import MARKS, general_json
from agelab.results.measure import ALL_STEPS, Measure
from agelab.stats.formatting import UnitScale, format_median, json_number, unit_scale
from agelab.stats.verdict import ComparedSeries, about_files

SCHEMA = 1
UNKNOWN = "?"
STEM = 60
"""Characters of a plot's file name: few enough for any file name, even of four bytes each."""


LEGEND = (
    "in %: the change of the median since the kernel before; * a difference: p <= 0.05 in a rank test corrected for "
    "all changes of that step and metric; = the same, within 5 %; ? not known; ~ below the floor of the host"
)


def sweep_blocks(grid: Sweep, measures: Sequence[Measure]) -> Iterator[Block]:
    """Yield a table for each metric, of several times one for each variant; below all of them the reasons for gaps."""
    rows = list(grid.entries)
    heads = [Column(""), *(Column(f" {name}", "right") for name in grid.names)]
    changes = {measure: grid.changes(measure) for measure in measures}

    def metric_blocks(title: str, named: Sequence[tuple[str, Row, Measure]]) -> Iterator[Block]:
        unit = _scale(grid, named[0][2]).name
        yield Text(f"\n{title}{unit and f', {unit}'}")
        columns = range(len(grid.kernels))
        cells = [
            [name, *(_cell(grid, row, column, measure, changes[measure]) for column in columns)]
            for name, row, measure in named
        ]
        yield Table(heads, cells)

    times = [measure for measure in measures if measure.metric == ALL_STEPS.metric]
    for measure in measures:
        if measure not in times or len(times) == 1:
            yield from metric_blocks(_title(grid, measure), [(grid.label(row), row, measure) for row in rows])
    for row in rows if len(times) > 1 else ():
        named = [(grid.title(measure), row, measure) for measure in times]
        yield from metric_blocks(f"{grid.label(row)}, {ALL_STEPS.metric}", named)
    judged = [change for measure in measures for change in changes[measure].values()]
    yield Text(f"\n{LEGEND}")
    if about := about_files(judged):
        yield Text(about)
    if command := _deciding_command(grid, judged):
        yield Text(f"for a verdict in place of ?: {command}", 2)
    for line in grid.host.labels(judged):
        yield Line(line, bold=True)
    for row in rows:
        on = gathered(
            (entry.why_left_out, kernel)
            for kernel, entry in zip(grid.names, grid.entries[row], strict=True)
            if entry and entry.why_left_out
        )
        for why, kernels in on.items():
            yield Line(f"{grid.label(row)} on {', '.join(kernels)}: {why}")
        if last := grid.last_seen(row):
            yield Line(f"{grid.label(row)} was last seen in {last}")


def _deciding_command(grid: Sweep, judged: Sequence[ComparedSeries]) -> str:
    """Return the command that runs as many seeds as verdicts take; empty where all have one or nobody knows."""
    unknown = [change for change in judged if _mark(change) == UNKNOWN]
    more = [change.more_seeds for change in unknown if change.more_seeds]
    plans = [group.run.plan for group in grid.groups]
    if not more:
        return ""
    most = max(change.left.n for change in unknown if change.left)
    kernels = [kernel.spec for kernel in grid.kernels]
    return settling_command(plans[0], least=most + min(more), kernels=kernels)


def _title(grid: Sweep, measure: Measure) -> str:
    return f"{grid.title(measure)}, {measure.metric}"


def _scale(grid: Sweep, measure: Measure) -> UnitScale:
    """Return the scale of the metric's unit, without a name where it has none."""
    columns = range(len(grid.kernels))
    units = (series.unit for row in grid.entries for at in columns if (series := grid.series(row, at, measure)))
    unit = unit_scale(next(units, "1"))
    return replace(unit, name="") if unit.name == "1" else unit


def _cell(
    grid: Sweep, row: Row, column: int, measure: Measure, changes: Mapping[tuple[Row, int], ComparedSeries]
) -> str:
    """Format the median and its change since the kernel before."""
    entry, series = grid.entries[row][column], grid.series(row, column, measure)
    if series is None or series.summary is None:
        return "" if entry is None else "unsupported" if entry.unsupported else "-"
    text = format_median(series.summary, series.unit, min(4, unit_scale(series.unit).decimals))
    change = changes.get((row, column))
    return f"{text} {_change(change)}" if change else text


def _change(change: ComparedSeries) -> str:
    mark = _mark(change)
    before, apart = change.left, change.difference
    if not before or not before.median or not apart:
        return mark
    return f"{float(100 * apart / abs(before.median)):+.1f}%{mark}"


def _mark(change: ComparedSeries) -> str:
    return "*" if change.differs else MARKS.get(change.verdict, UNKNOWN)


def write_plots(grid: Sweep, measures: Sequence[Measure], directory: Path) -> list[Path]:
    """Draw a plot over the kernels for each metric, and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = []
    for measure in measures:
        unit = _scale(grid, measure)
        lines = {
            grid.label(row): [
                (column, float(series.summary.median / unit.divisor) if series and series.summary else None)
                for column in range(len(grid.kernels))
                for series in [grid.series(row, column, measure)]
            ]
            for row in grid.entries
        }
        title = _title(grid, measure)
        name = str(measure).replace(":", "-").replace("/", "-").replace(" ", "-")[:STEM]
        path = directory / f"{name}.svg"
        if path in drawn:
            path = directory / f"{name}-{len(drawn)}.svg"
        path.write_text(
            vega.plot(title, "kernel", f"{measure.metric}{unit.name and f', {unit.name}'}", lines, grid.names),
            encoding="utf-8",
        )
        drawn.append(path)
    return drawn


def sweep_json(grid: Sweep, measures: Sequence[Measure]) -> dict[str, Any]:
    rows = []
    changes = {measure: grid.changes(measure) for measure in measures}
    for row, entries in grid.entries.items():
        for column, entry in enumerate(entries):
            if entry is None:
                continue
            for measure in measures:
                series, change = grid.series(row, column, measure), changes[measure].get((row, column))
                summary, apart = series.summary if series else None, change.difference if change else None
                rows.append(
                    {
                        "variant": row[0],
                        "layout": row[1],
                        "kernel": grid.kernels[column].release,
                        "spec": grid.kernels[column].spec,
                        "step": measure.step,
                        "repetition": series.repetition if series else measure.repetition,
                        "metric": measure.metric,
                        "seeds": summary.n if summary else 0,
                        "median": json_number(summary.median) if summary else None,
                        "spread": json_number(summary.spread) if summary else None,
                        "change": None if apart is None else json_number(apart),
                        "verdict": change.verdict.value if change else None,
                        "word": change.word if change else None,
                        "p_corrected": change.test.p_corrected if change and change.test else None,
                        "general": general_json(change) if change else None,
                        "reason_of_verdict": change.reason if change else None,
                        "more_seeds": change.more_seeds if change else None,
                        "status": "unsupported" if entry.unsupported else "ok" if not entry.why_left_out else "not ok",
                        "reason": entry.why_left_out or None,
                    }
                )
    last = {grid.label(row): seen for row in grid.entries if (seen := grid.last_seen(row))}
    labels = grid.host.labels([change for table in changes.values() for change in table.values()])
    return {"schema": SCHEMA, "kernels": grid.kernels, "rows": rows, "last_seen": last, "labels": labels}
