"""Operation logs, checked from the first line to the last."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import InputError
from agelab.data.history import operations
from tests.fuzz._files import PROJECT, directory

EVERY = b"""agelab-operations 1
# each operation
mkdir a
mkdir a/b\\040c
create a/f
write a/f 0 4096
append a/f 100
overwrite a/f 10 20
truncate a/f 50
fsync a/f
point 1
rename a/f a/b\\040c/g
unlink a/b\\040c/g
rmdir a/b\\040c
"""


def one(data: bytes) -> None:
    """Check it as a user's log."""
    path = directory() / "log"
    path.write_bytes(data)
    with suppress(InputError):
        operations.check_log(path)


def seeds() -> Iterator[bytes]:
    """Every operation, and what the documentation shows."""
    yield EVERY
    yield from (block.encode() for block in (PROJECT / "docs" / "operations.md").read_text().split("```")[1::2])
