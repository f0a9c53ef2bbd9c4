"""``journal.log`` and ``results.log`` of a control file's run: what has been begun and what has ended."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab.errors import InputError
from agelab.model.result import End, Sample, Status
from agelab.model.step_id import StepId
from agelab.scenario.control_file import ControlLine

STAGES = {"mkfs": "filesystem", "prepare": "prepare"}
"""The last part of a sample's step to what the journal calls it; the test itself is ``perform``."""


@dataclass(frozen=True)
class Journal:
    """The two files in a control file's directory."""

    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / "journal.log"

    @contextmanager
    def opened(self, *, proceed: bool) -> Iterator[dict[tuple[str, str, int], str]]:
        """Filesystem, test and repetition of what has ended already, and how; nobody else has the journal meanwhile.

        Raises InputError for a journal in the way, where there is none to go on with, and while another run has it.
        """
        if proceed and not self.path.exists():
            raise InputError(f"{self.path} is not there: nothing to continue")
        try:
            file = self.path.open("a+" if proceed else "x+")
        except FileExistsError as error:
            raise InputError(
                f"{self.path} is there: a run has been started here",
                hint="go on with it: --continue; or remove it, and results.log",
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(f"{self.path}: a run is still going on here") from error
            try:
                yield self._ended()
            finally:
                if not self.path.stat().st_size:  # nothing has begun
                    self.path.unlink()

    def _ended(self) -> dict[tuple[str, str, int], str]:
        """Raises InputError where the journal is none."""
        try:
            lines = self.path.read_text().splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is no text") from error
        found = {}
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if len(words) > 4 and words[3] == "end" and words[4].rstrip(":") != Status.INTERRUPTED:
                if not words[2].isdecimal():
                    raise InputError(f"{self.path}:{number}: {words[2]!r} is no repetition")
                found[words[0], words[1], int(words[2])] = words[4].rstrip(":")
        return found

    def note(self, line: ControlLine, repetition: int, what: str) -> None:
        """Add one line."""
        with self.path.open("a") as file:
            file.write(f"{line.filesystem} {line.test} {repetition} {what}\n")

    def begin(self, line: ControlLine, repetition: int) -> None:
        self.note(line, repetition, "begin")

    def step(self, line: ControlLine, repetition: int, step: str) -> None:
        """A step has ended: its name and its repetition, as progress tells it."""
        name = step.rpartition(" ")[0]
        stage = STAGES.get(StepId.parse(name).name)
        if stage or name == line.test.lower():
            self.note(line, repetition, stage or "perform")

    def end(self, line: ControlLine, repetition: int, end: End, samples: list[Sample]) -> None:
        """A cell has ended; what its test took goes to the results."""
        took = [one.value for one in samples if (one.step, one.metric) == (line.test.lower(), "elapsed")]
        if end.status is Status.OK and took and took[0] is not None:
            with (self.directory / "results.log").open("a") as file:
                file.write(f"{line.test} {line.filesystem} {took[0]:.6f}\n")
        why = f": {' '.join(end.reason.split())}" if end.reason else ""
        self.note(line, repetition, f"end {end.status}{why}")
