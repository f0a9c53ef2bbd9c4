"""Control files, and the names that they lead to."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import InputError
from agelab.scenario import control_file
from tests.fuzz._files import PROJECT, directory

SCRIPTS = ("filesystem-ext4.sh", "filesystem-ext4-journal.sh", "test-copy-prepare.sh", "test-copy-perform.sh")


def one(data: bytes) -> None:
    """Read it as a control file beside a few scripts, and make the scenario of each line."""
    path = directory() / "control"
    for name in SCRIPTS:
        (directory() / name).write_text("true\n")
    path.write_bytes(data)
    with suppress(InputError):
        found = control_file.read(path)
        for line in found.lines:
            found.scenario(line, "quick")


def seeds() -> Iterator[bytes]:
    """Examples of the documentation, and control files that work."""
    yield b"ext4 copy 3\next4-journal copy 5\n"
    yield b"# Filesystem Testname Repetitions\n\next4  copy\t 10\nreiserfs_notail read1 2\n"
    yield from (
        block.encode() for block in (PROJECT / "docs" / "howto" / "own-scenario.md").read_text().split("```")[1::2]
    )
