"""``journal.log`` and ``results.log`` beside a control file: which of its tests have begun and ended, and how."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.sanitize import parse_digits
from agelab.results.result import End, Sample, Status
from agelab.scenario.control_file import MAX_REPETITIONS, ControlLine
from agelab.scenario.step import StepId

STAGES = {"mkfs": "filesystem", "prepare": "prepare"}
"""Last part of a step's name -> the stage that the journal names; the test itself is ``perform``."""
ENDED = frozenset(Status) - {Status.INTERRUPTED}
"""The statuses of tests that are not run again."""


@dataclass(frozen=True)
class ControlJournal:
    """The two files in a control file's directory."""

    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / "journal.log"

    @property
    def results(self) -> Path:
        return self.directory / "results.log"

    @contextmanager
    def opened(self, *, proceed: bool) -> Iterator[dict[tuple[str, str, int], str]]:
        """Lock the journal and yield what has ended already: filesystem, test and repetition, to its status.

        Raises InputError where a new journal would replace one, where there is none to continue, and while another
        run has it.
        """
        for path in (self.path, self.results):
            if path.is_symlink() or (path.exists() and not path.is_file()):
                what = "a link" if path.is_symlink() else "not a regular file"
                raise InputError(f"{path} is {what}: a run's notes cannot go there", hint="remove it, or rename it")
        if proceed and not self.path.exists():
            raise InputError(f"{self.path} is not there: nothing to continue")
        try:
            file = self.path.open("a+" if proceed else "x+", encoding="utf-8")
        except FileExistsError as error:
            raise InputError(
                f"{self.path} is there: a run has been started here",
                hint="continue it with --continue; or remove it, and results.log",
            ) from error
        with file:
            if not atomic.try_lock(file):
                raise InputError(f"{self.path}: a run is still going on here")
            try:
                yield self._ended()
            finally:
                if not self.path.stat().st_size:  # nothing has begun
                    self.path.unlink()

    def _ended(self) -> dict[tuple[str, str, int], str]:
        """Read what has ended, as far as the status is one: not of a line that was cut off within it.

        Raises InputError where the file is no journal.
        """
        try:
            lines = fileio.read_text(self.path).splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is no text") from error
        ended = {}
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if len(words) > 4 and words[3] == "end" and words[4].rstrip(":") in ENDED:
                repetition = parse_digits(words[2], MAX_REPETITIONS)
                if repetition is None:
                    raise InputError(f"{self.path}:{number}: {words[2][:20]!r} is no repetition")
                ended[words[0], words[1], repetition] = words[4].rstrip(":")
        return ended

    def nothing_left(self, ended: Mapping[tuple[str, str, int], str]) -> InputError:
        """Return the error for a journal in which every test has ended."""
        bad = sum(status != Status.OK for status in ended.values())
        return InputError(
            f"{self.path}: every test has ended: nothing is left to continue",
            hint=f"{bad} of {len(ended)} were not ok: to do one again, remove its lines" if bad else "",
        )

    def note(self, line: ControlLine, repetition: int, what: str) -> None:
        _append(self.path, f"{line.filesystem} {line.test} {repetition} {what}")

    def begin(self, line: ControlLine, repetition: int) -> None:
        self.note(line, repetition, "begin")

    def step(self, line: ControlLine, repetition: int, step: str) -> None:
        """Note that a step has ended; ``step`` is its name and repetition, as Progress.end_step has it."""
        name = step.rpartition(" ")[0]
        stage = STAGES.get(StepId.parse(name).name)
        if stage or name == line.test.lower():
            self.note(line, repetition, stage or "perform")

    def end(self, line: ControlLine, repetition: int, end: End, samples: list[Sample]) -> None:
        """Note that a cell has ended, and add the seconds of its test to the results."""
        took = [sample.value for sample in samples if (sample.step, sample.metric) == (line.test.lower(), "elapsed")]
        if end.status is Status.OK and took and took[0] is not None:
            _append(self.results, f"{line.test} {line.filesystem} {took[0]:.6f}")
        why = f": {end.why}" if end.why else ""
        self.note(line, repetition, f"end {end.status}{why}")


def _append(path: Path, line: str) -> None:
    """Add a line, of ASCII so that no character of it is cut in two; after a line that was cut off, one of its own."""
    with path.open("ab+") as file:
        torn = file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n"
        file.write(b"\n" * torn + line.encode("ascii", "backslashreplace") + b"\n")
