"""What a user sees while a run goes on: a moving line on a terminal, a few plain lines elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from agelab.model.result import Cell, End
from agelab.model.step import Cycle
from agelab.run import runner


def repetitions(request: runner.Request) -> int | None:
    """How many step repetitions a cell of that request has; None where a history decides it."""
    scenario = request.turns[0][0]
    if scenario.experiments:
        prepared = len({one.prepare for one in scenario.experiments} - {""})
        return prepared + sum(1 + one.traced * len(scenario.traces) for one in scenario.experiments)
    if any(action.repeat == "parts" for action in scenario.actions()):
        return None
    count = 0
    for step in scenario.steps if request.disk is None else ():
        actions = step.cycle if isinstance(step, Cycle) else (step,)
        count += sum(int(action.repeat) for action in actions) * (
            step.repeat if isinstance(step, Cycle) else 1
        )
    tests = sum(int(test.repeat) for test in scenario.tests)
    measured = tests + (tests + 1 if scenario.control else 0)
    return count + (measured if request.measure else 0)


def _label(cell: Cell, kernel: bool) -> str:
    layout = "" if cell.layout == "single" else f", {cell.layout}"
    return f"{cell.variant}{layout}, {f'{cell.kernel}, ' if kernel else ''}seed {cell.seed}"


@contextmanager
def shown(requests: Sequence[runner.Request]) -> Iterator[runner.Progress]:
    """The callbacks of runs, drawn on standard error for as long as the body runs: a line for each cell at work."""
    cells = sum(len(one.layouts(variant)) for one in requests for _, variant, _, _ in one.turns)
    total = repetitions(requests[0])
    several = len(requests) > 1
    console = Console(stderr=True, highlight=False, markup=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        lines: dict[int, TaskID] = {}

        def stage(line: str) -> None:
            console.print(f"  {line}")

        def cell(cell: Cell, number: int) -> None:
            name = f"cell {number + 1}/{cells}: {_label(cell, several)}"
            lines[number] = bar.add_task(f"{name}: starting the guest", total=total, name=name)
            if not console.is_terminal:
                console.print(f"  {name}")

        def step(number: int, said: str) -> None:
            name = bar.tasks[bar.task_ids.index(lines[number])].fields["name"]
            implied = said == "ready" or said.rpartition(" ")[0].rpartition("/")[2] == "mkfs"
            bar.update(lines[number], advance=not implied, description=f"{name}: {said}")

        def ended(cell: Cell, number: int, end: End) -> None:
            bar.remove_task(lines.pop(number))
            why = f": {' '.join(end.reason.split())}" if end.reason else ""
            console.print(f"  {_label(cell, several)}: {end.status} in {end.host_seconds:.0f} s{why}")

        yield runner.Progress(stage, cell, step, ended)
