"""Tables of the steps' times by variant, as the studies printed them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.cells import SeedGroup, load, seed_groups
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text
from agelab.stats.formatting import format_decimal

MISSING = "-"


@dataclass(frozen=True)
class StepTable:
    """Times of steps by variant."""

    title: str
    notes: tuple[str, ...]
    """Cells that are not ok, and why."""
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Fraction | None, ...]]
    """Step to seconds of guest time: the median over run seeds of the mean over repetitions."""


def step_table(run: RunDirectory) -> StepTable:
    """Make the table of a run from its cells that are ok."""
    loaded = load(run)
    plan, found = loaded.plan, seed_groups(loaded)
    taken = [_taken(group) for group in found]
    rows = {
        step: tuple(one.get(step) for one in taken) for step in dict.fromkeys(s for one in taken for s in one)
    }
    notes = [
        f"{group.cell.short_label}, {seeds_text([at], group.cells)}: {ran.ended}"
        for group in found
        for at, ran in group.cells.items()
        if not ran.ok
    ]
    title = f"{plan.run}: {plan.scenario}, scale {plan.scale}, {plan.clock} clock"
    if plan.kernel:
        title += f", kernel {plan.kernel.release}"
    return StepTable(title, tuple(notes), tuple(group.cell.short_label for group in found), rows)


def _taken(group: SeedGroup) -> dict[str, Fraction]:
    """Return seconds by step, whose name says how many repetitions are averaged."""
    times = [one for (_, metric), one in group.steps.items() if metric == "elapsed"]
    return {one.title: one.summary.median for one in times if one.summary}


def seconds(value: Fraction) -> str:
    """Format seconds: ``75.31``."""
    return format_decimal(value, 2)


def minutes(value: Fraction) -> str:
    """Format minutes and seconds: ``1:15.31``."""
    hundredths = round(value * 100)
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"


def text_lines(runs: Iterable[RunDirectory], form: Callable[[Fraction], str]) -> Iterator[str]:
    """Yield plain text in columns, a blank line between two runs."""
    for number, one in enumerate(map(step_table, runs)):
        lines = [("step", *one.columns), *((step, *_cells(row, form)) for step, row in one.rows.items())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        yield from ([""] if number else [])
        yield one.title
        for first, *others in lines:
            cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
            yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
        yield from one.notes


def markdown_lines(runs: Iterable[RunDirectory]) -> Iterator[str]:
    """Yield tables of GitHub's Markdown; names and reasons are escaped."""
    for number, one in enumerate(map(step_table, runs)):
        yield from ([""] if number else [])
        yield from (f"**{escape_markdown(one.title)}**, seconds of guest time", "")
        if one.rows:
            yield _row(["step", *one.columns])
            yield f"|---|{'---:|' * len(one.columns)}"
            yield from (_row([step, *_cells(row, seconds)]) for step, row in one.rows.items())
        yield from ([""] if one.notes else [])
        yield from (f"- {escape_markdown(note)}" for note in one.notes)


def _cells(row: Sequence[Fraction | None], form: Callable[[Fraction], str]) -> list[str]:
    return [MISSING if value is None else form(value) for value in row]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def escape_markdown(text: str) -> str:
    """Put a text on one line, with Markdown and HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))
