"""Show the progress of runs: moving lines on a terminal, plain lines elsewhere (docs/report.md)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from math import inf

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Column

from agelab.base.sanitize import escape_controls
from agelab.present.view import cell_names
from agelab.present.view.terminal import can_redraw, open_console
from agelab.results.result import Cell, End
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import TimeRange, Took, cell_time, recent_cells
from agelab.runner.progress import Progress
from agelab.runner.request.request import RunRequest
from agelab.scenario.step import AGED, CONTROL, CONTROL_COPY, IMPLICIT, PREPARED, PREPARING, Cycle, ForkName, StepId

UNITS = ((90, "s", 1, 10), (5400, "min", 60, 1), (inf, "h", 3600, 0.5))
"""Seconds below which a unit is used, the unit, its seconds, and the step it is rounded to."""


def time_left(
    waiting: Sequence[Cell], running: Sequence[tuple[Cell, float]], jobs: int, took: Took, before: Took = ()
) -> TimeRange | None:
    """Estimate the time until the last cell ends; None while nothing is known of some cell.

    ``waiting`` are the cells that have not begun, in their turn, so many ``jobs`` at a time; ``running`` are the
    others, with the seconds since each began. One that takes longer than any before it is taken to end at any moment.
    """
    to_come = [cell_time(cell, took, before) for cell in waiting]
    begun = [(cell_time(cell, took, before), since) for cell, since in running]
    whole = [span for span in to_come if span]
    rest = [(span, since) for span, since in begun if span]
    if len(whole) < len(to_come) or len(rest) < len(begun):
        return None
    return TimeRange(
        _until_the_last([span.low for span in whole], [span.low - since for span, since in rest], jobs),
        _until_the_last([span.high for span in whole], [span.high - since for span, since in rest], jobs),
    )


def _until_the_last(waiting: Sequence[float], running: Sequence[float], jobs: int) -> float:
    """Return when the last one ends if each free job takes the next."""
    free = [max(0.0, rest) for rest in running] + [0.0] * (jobs - len(running))
    heapify(free)
    for seconds in waiting:
        heapreplace(free, free[0] + seconds)
    return max(free)


def format_time_left(time: TimeRange | None) -> str:
    """Format ``about 4 min``, ``4-6 min``, or words where there is no figure or it is over."""
    if time is None:
        return "not known before a cell has ended"
    if time.high < 1:
        return "any moment now, by what cells took before"
    _, unit, size, step = next(row for row in UNITS if time.high < row[0])
    low, high = (max(step, step * round(seconds / size / step)) for seconds in (time.low, time.high))
    return f"about {high:g} {unit}" if low == high else f"{low:g}-{high:g} {unit}"


REDRAWS = 2
"""Redraws of the moving lines a second."""
WIDE_LINE = 110
"""Characters of a line from which a bar may be long."""


def steps_of_cell(request: RunRequest) -> dict[str, int] | None:
    """Return the steps of a cell and their repetitions; None where a history decides them."""
    scenario = request.seeded_variants[0][0]
    steps: dict[str, int] = {}
    if scenario.experiments:
        prepared = len({experiment.prepare for experiment in scenario.experiments} - {""})
        steps = {str(StepId(PREPARING, (str(ForkName(PREPARED, number + 1)),))): 1 for number in range(prepared)}
        for experiment in scenario.experiments:
            passes = [(), *((trace.name,) for trace in scenario.traces if experiment.traced)]
            steps |= {str(StepId(experiment.name, within)): 1 for within in passes}
        return steps
    if any(action.repeat == "parts" for action in scenario.actions()):
        return None
    for step in scenario.steps if request.options.disk is None else ():
        turns, actions = (step.repeat, step.cycle) if isinstance(step, Cycle) else (1, (step,))
        steps |= {action.name: turns * int(action.repeat) for action in actions}
    phases = (AGED, *((CONTROL,) if scenario.control else ())) if request.options.measure else ()
    for phase in phases:
        steps |= {str(StepId(test.name, (phase,))): int(test.repeat) for test in scenario.tests}
    if CONTROL in phases:
        steps[str(StepId(CONTROL_COPY, (CONTROL,)))] = 1
    return steps


def step_text(ended: str, known: Mapping[str, int]) -> str:
    """Name an ended step (``copy 7``) as tables do: ``copy 7/12``; one without repetitions has no number."""
    step = ended.rpartition(" ")[0]
    times = known.get(step, 1 if StepId.parse(step).name in IMPLICIT else None)
    return ended if times is None else step if times == 1 else f"{ended}/{times}"


@dataclass
class CellTracker:
    """Cells of runs by waiting, running and ended."""

    jobs: int = 1
    cells: list[Cell] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    """Numbers of the cells that have not begun, in order."""
    running: dict[int, float] = field(default_factory=dict)
    """Cell number to the time when it began."""
    took: list[tuple[Cell, End]] = field(default_factory=list)
    before: list[tuple[Cell, End]] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic

    def begin_runs(self, jobs: int, runs: Sequence[RunDirectory], waiting: Sequence[int]) -> None:
        """Track the cells of these runs, of which ``waiting`` have not begun."""
        self.jobs = jobs
        self.cells = [cell for run in runs for cell in run.plan().cells]
        self.waiting = list(waiting)
        self.before = list(recent_cells(runs[0]))

    def begin(self, number: int) -> None:
        self.waiting.remove(number)
        self.running[number] = self.clock()

    def end(self, number: int, end: End) -> None:
        del self.running[number]
        self.took.append((self.cells[number], end))

    def name(self, number: int) -> str:
        """Return the cell's number and its name; the kernel where cells differ in it."""
        cell = self.cells[number]
        kernel = f", {cell.kernel}" if len({tracked.kernel for tracked in self.cells}) > 1 else ""
        seeds = cell_names.name_seeds(cell, self.cells)
        return f"cell {number + 1}/{len(self.cells)}: {cell.short_label}{kernel}, {seeds}"

    def __rich__(self) -> str:
        """Return the cells done and the time left; nothing before the runs have begun."""
        if not self.cells:
            return ""
        now, running = self.clock(), list(self.running.items())
        waiting = [self.cells[number] for number in list(self.waiting)]
        begun = [(self.cells[number], now - since) for number, since in running]
        done = f"{len(self.cells) - len(waiting) - len(running)} of {cell_names.count_cells(len(self.cells))} done"
        if not waiting and not running:
            return done
        left = time_left(waiting, begun, self.jobs, list(self.took), self.before)
        return f"{done}; time left: {format_time_left(left)}"


class PlainProgress(Progress):
    """Prints a line for each thing made, and when a cell begins and ends."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.cells = CellTracker()

    def stage(self, line: str) -> None:
        self.console.print(f"  {escape_controls(line)}", soft_wrap=True)

    def begin_runs(self, request: RunRequest, runs: Sequence[RunDirectory], waiting: Sequence[int], jobs: int) -> None:
        self.cells.begin_runs(jobs, runs, waiting)

    def begin_cell(self, cell: Cell, number: int) -> None:
        self.cells.begin(number)
        self.stage(self.cells.name(number))

    def end_cell(self, cell: Cell, number: int, end: End) -> None:
        self.cells.end(number, end)
        why = f": {end.why}" if end.why else ""
        there = f" on {end.host}" if end.host else ""
        took = f" (reused from {end.reused.run})" if end.reused else f" in {end.host_seconds:.0f} s{there}"
        disputed = f"; its digest is not that of an earlier cell, {end.disputes}" if end.disputes else ""
        self.stage(f"{self.cells.name(number)}: {end.status}{took}{why}{disputed}")


class MovingProgress(PlainProgress):
    """Draws a bar for each running cell and a line for all cells, below the lines that have been printed."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.bars = _bars(console)
        self._known: dict[str, int] | None = None
        self._passes = 1
        """A profile goes through the steps once more."""
        self._tasks: dict[int, TaskID] = {}

    def begin_runs(self, request: RunRequest, runs: Sequence[RunDirectory], waiting: Sequence[int], jobs: int) -> None:
        super().begin_runs(request, runs, waiting, jobs)
        self._known = steps_of_cell(request)
        self._passes = 2 if request.options.profile else 1

    def begin_cell(self, cell: Cell, number: int) -> None:
        self.cells.begin(number)
        total = None if self._known is None else self._passes * sum(self._known.values())
        text = f"{self.cells.name(number)}: starting the guest"
        self._tasks[number] = self.bars.add_task(text, total=total)

    def end_step(self, number: int, step: str) -> None:
        implied = step == "ready" or StepId.parse(step.rpartition(" ")[0]).name == "mkfs"
        text = f"{self.cells.name(number)}: {step_text(step, self._known or {})}"
        self.bars.update(self._tasks[number], advance=not implied, description=text)

    def end_cell(self, cell: Cell, number: int, end: End) -> None:
        self.bars.remove_task(self._tasks.pop(number))
        super().end_cell(cell, number, end)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Follow runs on standard error while the body runs: with moving bars on a terminal, else in plain lines."""
    console = open_console(stderr=True)
    if not can_redraw(console):
        yield PlainProgress(console)
        return
    progress = MovingProgress(console)
    screen = Group(progress.bars, progress.cells)
    with Live(screen, console=console, transient=True, refresh_per_second=REDRAWS):
        yield progress


def _bars(console: Console) -> Bars:
    """Make a line for each running cell, cut to the width."""
    text = TextColumn(
        "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )
    bar = BarColumn(bar_width=30 if console.width >= WIDE_LINE else 10)
    return Bars(text, bar, MofNCompleteColumn(), TimeElapsedColumn(), console=console, expand=True)
