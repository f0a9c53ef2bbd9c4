"""Scenario files: a frozen scenario, or an InputError with a line for each error."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import InputError
from agelab.scenario import selection
from tests.fuzz._files import PROJECT, directory


def one(data: bytes) -> None:
    """Read it as a user's scenario file."""
    path = directory() / "aging.toml"
    path.write_bytes(data)
    with suppress(InputError):
        selection.select(str(path))


def seeds() -> Iterator[bytes]:
    """The project's own scenarios, and its other files of that kind of text."""
    for place in (PROJECT / "scenarios", PROJECT / "scenarios" / "filesystems", PROJECT / "tests" / "vm"):
        yield from (path.read_bytes() for path in sorted(place.glob("*.toml")))
