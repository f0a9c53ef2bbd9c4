"""Print results over kernels or dates: the change points on a terminal, every point as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from agelab.analysis.over_time import VARIES, JoinedRuns, OverTime
from agelab.present.report.over_time import change_points, count_words
from agelab.present.view.series_table import place_json, summary_json
from agelab.present.view.terminal import open_console, print_wrapped
from agelab.results.measure import Measure
from agelab.stats.formatting import json_number

SCHEMA = 1


def print_over_time(found: OverTime, measures: Sequence[Measure]) -> None:
    """Print the change points, how many pairs of neighbours are none, and what is on no line or apart."""
    console = open_console()
    click.echo(count_words(found, measures))
    lines = [f"* {line}" for line in change_points(found, measures)]
    lines += [f"apart: {line}" for line in found.apart]
    lines += [f"on no line: {line}" for one in found.joined for line in one.left_out]
    lines += [label for one in found.joined for label in one.grid.host.unknown]
    for line in dict.fromkeys(lines):
        print_wrapped(console, f"  {line}", 4)


def over_time_json(found: OverTime, measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "by": found.axis.value,
        "lines": [_joined_json(one, measures) for one in found.joined],
        "apart": [*found.apart],
    }


def _joined_json(joined: JoinedRuns, measures: Sequence[Measure]) -> dict[str, Any]:
    plan = joined.runs[0].plan
    return {
        "scenario": plan.scenario,
        "scale": plan.scale,
        "clock": plan.clock,
        "origin": joined.runs[0].origin or None,
        "runs": [run.name for run in joined.runs],
        "conditions": joined.runs[0].conditions[0].told(VARIES),
        "points": [*joined.grid.names],
        "rows": [*_rows(joined, measures)],
        "left_out": [*joined.left_out],
        "labels": [*joined.grid.host.unknown],
    }


def _rows(joined: JoinedRuns, measures: Sequence[Measure]) -> Iterator[dict[str, Any]]:
    grid = joined.grid
    for measure in measures:
        changes = joined.changes(measure)
        for row in grid.entries:
            for column, name in enumerate(grid.names):
                series, change = grid.series(row, column, measure), changes.get((row, column))
                if series is None:
                    continue
                yield {
                    "subject": row[0],
                    "point": name,
                    **place_json(series),
                    "summary": summary_json(series.summary),
                    "before": grid.names[joined.before(row, column, measure)] if change else None,
                    "change_point": change.differs if change else False,
                    "verdict": change.verdict.value if change else None,
                    "word": change.word if change else None,
                    "reason": change.reason if change else None,
                    "ratio": json_number(change.ratio) if change and change.ratio is not None else None,
                    "more_seeds": change.more_seeds if change else None,
                }
