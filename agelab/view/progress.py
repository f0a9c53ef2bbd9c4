"""What a user sees while a run goes on: moving lines on a terminal, a few plain lines elsewhere (docs/terminal.md)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from agelab.analysis.recent_durations import recent_cells
from agelab.model.result import Cell, End
from agelab.model.step import CONTROL_COPY, IMPLICIT, PREPARING, Cycle
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.view import cell_names, eta
from agelab.view.aging_table import AGED, CONTROL
from agelab.view.terminal import moves, open_console

REDRAWN = 2
"""Times a second that the moving lines are drawn."""
ROOM = 110
"""Characters of a line from which on a bar may be long."""


def repetitions(request: runner.RunRequest) -> dict[str, int] | None:
    """The steps of a cell of that request and how often each is done; None where a history decides it."""
    scenario = request.turns[0][0]
    found: dict[str, int] = {}
    if scenario.experiments:
        prepared = len({one.prepare for one in scenario.experiments} - {""})
        found = {f"prepared-{number + 1}/{PREPARING}": 1 for number in range(prepared)}
        for one in scenario.experiments:
            found |= {
                prefix + one.name: 1
                for prefix in ("", *(f"{trace.name}/" for trace in scenario.traces if one.traced))
            }
        return found
    if any(action.repeat == "parts" for action in scenario.actions()):
        return None
    for step in scenario.steps if request.disk is None else ():
        turns, actions = (step.repeat, step.cycle) if isinstance(step, Cycle) else (1, (step,))
        found |= {action.name: turns * int(action.repeat) for action in actions}
    phases = (AGED, *((CONTROL,) if scenario.control else ())) if request.measure else ()
    for phase in phases:
        found |= {phase + test.name: int(test.repeat) for test in scenario.tests}
    if CONTROL in phases:
        found[CONTROL + CONTROL_COPY] = 1
    return found


def worded(said: str, known: Mapping[str, int]) -> str:
    """A step that has ended (``copy 7``) as the tables name it: ``copy 7/12``; one that is done once has no number."""
    step = said.rpartition(" ")[0]
    often = known.get(step, 1 if step.rpartition("/")[2] in IMPLICIT else None)
    return said if often is None else step if often == 1 else f"{said}/{often}"


@dataclass
class Course:
    """How far the cells of runs have come."""

    jobs: int
    cells: list[Cell] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    """Numbers of the cells that have not begun, in their turn."""
    running: dict[int, float] = field(default_factory=dict)
    """Number to when the cell began."""
    took: list[tuple[Cell, End]] = field(default_factory=list)
    before: list[tuple[Cell, End]] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic

    def set_out(self, runs: Sequence[RunDirectory], waiting: Sequence[int]) -> None:
        """There are these runs' cells, of which those wait."""
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
        """Number and count of cells, and what the cell is, where cells differ in it."""
        cell = self.cells[number]
        kernel = f", {cell.kernel}" if len({one.kernel for one in self.cells}) > 1 else ""
        return f"cell {number + 1}/{len(self.cells)}: {cell_names.called(cell)}{kernel}, seed {cell.seed}"

    def __rich__(self) -> str:
        """Cells done, and the time that is left; nothing before it is known which cells there are."""
        if not self.cells:
            return ""
        now, running = self.clock(), list(self.running.items())
        waiting = [self.cells[number] for number in list(self.waiting)]
        begun = [(self.cells[number], now - since) for number, since in running]
        done = (
            f"{len(self.cells) - len(waiting) - len(running)} of {cell_names.counted(len(self.cells))} done"
        )
        if not waiting and not running:
            return done
        left = eta.left(waiting, begun, self.jobs, list(self.took), self.before)
        return f"{done}; time left: {eta.words(left)}"


@contextmanager
def shown(requests: Sequence[runner.RunRequest]) -> Iterator[runner.Progress]:
    """The callbacks of runs, told on standard error for as long as the body runs.

    On a terminal a line for each cell at work, with its step, and one for all cells, below what has been said.
    Elsewhere a line when a cell begins and one when it ends.
    """
    console = open_console(stderr=True)
    watched = moves(console)
    course = Course(requests[0].jobs)
    known = repetitions(requests[0])
    total = None if known is None else sum(known.values())
    bar = _bars(console)
    lines: dict[int, TaskID] = {}

    def say(line: str) -> None:
        console.print(f"  {line}", soft_wrap=True)

    def cell(cell: Cell, number: int) -> None:
        course.begin(number)
        if watched:
            lines[number] = bar.add_task(f"{course.name(number)}: starting the guest", total=total)
        else:
            say(course.name(number))

    def step(number: int, said: str) -> None:
        if watched:
            implied = said == "ready" or said.rpartition(" ")[0].rpartition("/")[2] == "mkfs"
            told = worded(said, known or {})
            bar.update(lines[number], advance=not implied, description=f"{course.name(number)}: {told}")

    def ended(cell: Cell, number: int, end: End) -> None:
        course.end(number, end)
        if watched:
            bar.remove_task(lines.pop(number))
        why = f": {' '.join(end.reason.split())}" if end.reason else ""
        say(f"{course.name(number)}: {end.status} in {end.host_seconds:.0f} s{why}")

    told = runner.Progress(say, cell, step, ended, course.set_out)
    if not watched:
        yield told
        return
    with Live(Group(bar, course), console=console, transient=True, refresh_per_second=REDRAWN):
        yield told


def _bars(console: Console) -> Progress:
    """A line for each cell at work, that fits."""
    said = TextColumn(
        "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )
    bar = BarColumn(bar_width=30 if console.width >= ROOM else 10)
    return Progress(said, bar, MofNCompleteColumn(), TimeElapsedColumn(), console=console, expand=True)
