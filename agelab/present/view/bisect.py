"""The answer of a bisect, and its log while it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path

import click
from rich.live import Live
from rich.text import Text

from agelab.analysis.profiles import StepStacks
from agelab.base import atomic
from agelab.base.errors import silent
from agelab.base.sanitize import escape_controls
from agelab.base.verbs import as_called
from agelab.bisect.answer import BisectAnswer, ValueFormat
from agelab.bisect.bisect_directory import DETAIL, BisectDirectory
from agelab.bisect.measurements import Decision
from agelab.evaluate.stacks import flame
from agelab.present.view.profile import changes_blocks
from agelab.present.view.terminal import can_redraw, open_console, print_blocks

FLAME_GRAPH = "difference.svg"
"""Differential flame graph of the two sides of the change, in the bisect's directory."""


def answer_lines(answer: BisectAnswer) -> list[str]:
    if answer.found:
        lines = [f"first bad: {answer.names[0]}"]
        lines += [f"  {name:<8} {value}" for name, value in answer.details.items()]
    else:
        lines = [f"the first bad is one of {len(answer.possible)}; those before the last could not be judged:"]
        lines += [f"  {name}" for name in answer.names]
    lines.append(f"  {answer.what}:")
    points = {name: getattr(answer, name) for name in ("before", "after", "good", "bad")}
    figures = ValueFormat.of(list(points.values()), answer.floor)
    for name, point in points.items():
        lines.append(f"  {name:<8} {figures.format_point(point):<28} {point.name}")
    if answer.floor is not None:
        lines.append(f"  {'floor':<8} {figures.format_value(Fraction(str(answer.floor)))}")
    skipped = f", {answer.skipped} of them skipped" if answer.skipped else ""
    undecided = f" ({answer.undecided} undecided)" if answer.undecided else ""
    steps = f"{answer.steps} step{'' if answer.steps == 1 else 's'}"
    lines.append(f"  {steps} between the ends{skipped}{undecided}")
    for judged in answer.judged:
        if judged.decision is Decision.UNDECIDED:
            lines.append(f"    skipped {judged.name}: {judged.reason}")
    if answer.error is not None:
        lines.append(f"  probability of a wrong answer: at most {100 * answer.error:.2g} %")
    lines += [f"  {remark}" for remark in answer.remarks]
    lines.append(f"run both neighbours again: sh {answer.script}")
    return lines


def show_profiles(path: Path, profiles: tuple[StepStacks, StepStacks], *, quiet: bool) -> None:
    """Print the functions that differ, unless ``quiet``, and draw their differential flame graph into ``path``."""
    before, after = profiles
    if not quiet:
        print_blocks(changes_blocks(after, before))
    label = f"{after.step}: {after.name}, against {before.name}"
    atomic.write(path, flame.document(after.stacks, before.stacks, label=label).encode())
    click.echo(f"flame graph  {path}", err=True)


@contextmanager
def follow_log(directory: BisectDirectory) -> Iterator[None]:
    """Show each line that comes into the log on standard error.

    On a terminal the newest detail stands below them until the next one comes.
    """
    console = open_console(stderr=True)
    status = Live(console=console, transient=True) if can_redraw(console) else None

    def show(lines: str) -> None:
        for line in lines.splitlines():
            if not line.startswith(DETAIL):
                console.print(as_called(escape_controls(line)), soft_wrap=True)
            elif status:
                status.update(Text(escape_controls(line), no_wrap=True, overflow="ellipsis"))

    directory.show = show
    try:
        with status or nullcontext():
            yield
    finally:
        directory.show = silent
