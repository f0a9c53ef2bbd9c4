"""``journal.log`` and ``results.log`` of a control file's run: what has been begun and what has ended."""

from dataclasses import dataclass
from pathlib import Path

from agelab.errors import InputError
from agelab.model.result import End, Sample, Status
from agelab.scenario.control import Line

STAGES = {"mkfs": "filesystem", "prepare": "prepare"}
"""The last part of a sample's step to what the journal calls it; the test itself is ``perform``."""


@dataclass(frozen=True)
class Journal:
    """The two files in a control file's directory."""

    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / "journal.log"

    def open(self, *, proceed: bool) -> set[tuple[str, str, int]]:
        """Filesystem, test and repetition of what has ended already.

        Raises InputError for a journal in the way, and where there is none to go on with.
        """
        if not proceed:
            if self.path.exists():
                raise InputError(
                    f"{self.path} is there: a run has been started here",
                    hint="go on with it: --continue; or remove it, and results.log",
                )
            return set()
        if not self.path.exists():
            raise InputError(f"{self.path} is not there: nothing to continue")
        ended = (line.split() for line in self.path.read_text().splitlines())
        return {
            (words[0], words[1], int(words[2]))
            for words in ended
            if len(words) > 4 and words[3] == "end" and words[4].rstrip(":") != Status.INTERRUPTED
        }

    def note(self, line: Line, repetition: int, what: str) -> None:
        """Add one line."""
        with self.path.open("a") as file:
            file.write(f"{line.filesystem} {line.test} {repetition} {what}\n")

    def begin(self, line: Line, repetition: int) -> None:
        self.note(line, repetition, "begin")

    def step(self, line: Line, repetition: int, step: str) -> None:
        """A step has ended: its name and its repetition, as progress tells it."""
        name = step.rpartition(" ")[0]
        stage = STAGES.get(name.rpartition("/")[2])
        if stage or name == line.test.lower():
            self.note(line, repetition, stage or "perform")

    def end(self, line: Line, repetition: int, end: End, samples: list[Sample]) -> None:
        """A cell has ended; what its test took goes to the results."""
        took = [one.value for one in samples if (one.step, one.metric) == (line.test.lower(), "elapsed")]
        if end.status is Status.OK and took and took[0] is not None:
            with (self.directory / "results.log").open("a") as file:
                file.write(f"{line.test} {line.filesystem} {took[0]:.6f}\n")
        why = f": {' '.join(end.reason.split())}" if end.reason else ""
        self.note(line, repetition, f"end {end.status}{why}")
