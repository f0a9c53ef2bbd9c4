"""What a user sees while a run goes on: a moving line on a terminal, a few plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from agelab.model.result import Cell, End
from agelab.model.scenario import Cycle, Scenario
from agelab.run import runner


def repetitions(scenario: Scenario) -> int:
    """How many step repetitions a cell of that scenario has."""
    count = 0
    for step in scenario.steps:
        actions = step.cycle if isinstance(step, Cycle) else (step,)
        count += sum(action.repeat for action in actions) * (step.repeat if isinstance(step, Cycle) else 1)
    return count


@contextmanager
def shown(scenario: Scenario, cells: int) -> Iterator[runner.Progress]:
    """The callbacks of a run, drawn on standard error for as long as the body runs."""
    console = Console(stderr=True, highlight=False, markup=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=repetitions(scenario), visible=False)

        def stage(line: str) -> None:
            console.print(f"  {line}")

        def cell(cell: Cell, number: int) -> None:
            name = f"cell {number + 1}/{cells}: {cell.variant}, seed {cell.seed}"
            bar.reset(task, description=f"{name}: starting the guest", visible=True)
            bar.update(task, completed=0)
            if not console.is_terminal:
                console.print(f"  {name}")

        def step(said: str) -> None:
            advance = 0 if said == "ready" else 1
            description = bar.tasks[0].description.rsplit(": ", 1)[0]
            bar.update(task, advance=advance, description=f"{description}: {said}")

        def ended(cell: Cell, end: End) -> None:
            why = f": {end.reason}" if end.reason else ""
            console.print(
                f"  {cell.variant}, seed {cell.seed}: {end.status} in {end.host_seconds:.0f} s{why}"
            )

        yield runner.Progress(stage, cell, step, ended)
