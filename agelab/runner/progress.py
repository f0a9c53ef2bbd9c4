"""Reports of a run while it goes on."""

from collections.abc import Sequence

from agelab.results.result import Cell, End
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.request import RunRequest


class Progress:
    """Follows runs and reports nothing; a subclass overrides what it wants to know.

    Cells are numbered from 0 through all runs that go on together.
    """

    def stage(self, line: str) -> None:
        """Take a line about something that is being made or looked up."""

    def begin_runs(self, request: RunRequest, runs: Sequence[RunDirectory], waiting: Sequence[int], jobs: int) -> None:
        """Take note that the cells ``waiting`` are about to run, in this order, so many ``jobs`` at a time.

        ``request`` is the first run's.
        """

    def begin_cell(self, cell: Cell, number: int) -> None:
        """Take note that a cell's guest is about to start."""

    def end_step(self, number: int, step: str) -> None:
        """Take note that a step of a cell has ended; ``step`` is its name and repetition: ``copy 7``."""

    def end_cell(self, cell: Cell, number: int, end: End) -> None:
        """Take note that a cell has ended, and how."""
