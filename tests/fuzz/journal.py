"""Journals beside a control file: what has ended, or an error with its line; a note goes on a line of its own."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import InputError
from agelab.results.result import End, Status
from agelab.runner.prepare.control_journal import ControlJournal
from agelab.scenario.control_file import ControlLine
from tests.fuzz._files import directory

LINE = ControlLine(1, "ext4", "copy", 7)
ENDED = End(status=Status.FAILED, reason="said\x85so\n", host_seconds=1.0)


def one(data: bytes) -> None:
    """Read it, note the end of a test behind it, and read it again."""
    journal = ControlJournal(directory())
    journal.path.write_bytes(data)
    with suppress(InputError):
        with journal.opened(proceed=True) as before:
            journal.begin(LINE, 7)
            journal.end(LINE, 7, ENDED, [])
        with journal.opened(proceed=True) as after:
            assert after == {**before, ("ext4", "copy", 7): "failed"}


def seeds() -> Iterator[bytes]:
    """A journal that is whole, and one cut off within a line."""
    whole = b"xfs read1 1 begin\nxfs read1 1 perform\nxfs read1 1 end ok\nxfs read1 2 end hung: why\n"
    yield whole
    yield whole[:-9]
    yield "xfs read1 1 end failed: grün\n".encode()
