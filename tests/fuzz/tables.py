"""A study's figures, and its claims: two files that somebody adds."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.analysis.published import claims
from agelab.analysis.published.claims import Claims
from agelab.base.errors import InputError
from agelab.scenario import toml_files
from tests.fuzz._files import PROJECT, directory

LONGEST = 16384
PUBLISHED = PROJECT / "scenarios" / "published"


def one(data: bytes) -> None:
    """Read it as a table, and as claims."""
    path = directory() / "tum-2005.csv"
    path.write_bytes(data)
    with suppress(InputError):
        claims.read_tables(path)
    with suppress(InputError):
        toml_files.read(path, Claims)


def seeds() -> Iterator[bytes]:
    """The studies' own, or their beginning."""
    for path in sorted(PUBLISHED.iterdir()):
        yield path.read_bytes()[:LONGEST].rpartition(b"\n")[0] + b"\n"
