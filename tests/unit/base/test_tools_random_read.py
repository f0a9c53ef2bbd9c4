"""random-read reads just the pages that its seed says: the page cache tells."""

import ctypes
import mmap
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from agelab.base import process
from tests import capabilities
from tests.build.native_tools import compiled

PIECE = 4096
MASK = (1 << 64) - 1
SIZES = {"a": 40 * PIECE, "empty": 0, "b c": 3 * PIECE + 1, "large": 600 * PIECE + 17}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("random-read", tmp_path_factory.mktemp("tools"))


def splitmix(seed: int, count: int, below: int) -> list[int]:
    """The generator as published, in Python."""
    drawn: list[int] = []
    while len(drawn) < count:
        seed = seed + 0x9E3779B97F4A7C15 & MASK
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        if z >= (1 << 64) % below:
            drawn.append(z % below)
    return drawn


def expected(seed: int, count: int, sizes: dict[str, int]) -> dict[str, set[int]]:
    """Pages of each file."""
    pages = [(name, page) for name, size in sizes.items() for page in range(-(-size // PIECE))]
    read: dict[str, set[int]] = {name: set() for name in sizes}
    for place in splitmix(seed, count, len(pages)):
        name, page = pages[place]
        read[name].add(page)
    return read


def cached(path: Path) -> set[int]:
    """The file's pages that are in memory (mincore(2))."""
    size = path.stat().st_size
    if not size:
        return set()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as view:
        pages = -(-size // PIECE)
        told = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(view)
        status = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), told)
        del start
        assert status == 0
        return {page for page in range(pages) if told[page] & 1}


def forget(path: Path) -> None:
    """Take the file out of the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def call(program: Path, seed: object, count: object, listed: bytes, where: Path) -> process.Completed:
    names = where / "list"
    names.write_bytes(listed)
    return process.run([str(program), str(seed), str(count)], cwd=where, stdin=names, ok=range(256))


def listing(names: Sequence[str]) -> bytes:
    return b"".join(name.encode() + b"\0" for name in names)


@pytest.mark.parametrize(("seed", "count"), [(1, 200), (2**64 - 1, 50), (0, 0)])
def test_the_pages_read_are_those_of_the_seed_and_no_others(
    program: Path, tmp_path: Path, seed: int, count: int
) -> None:
    for name, size in SIZES.items():
        (tmp_path / name).write_bytes(os.urandom(size))
        forget(tmp_path / name)
    if any(cached(tmp_path / name) for name in SIZES):
        capabilities.skip("page cache")
    done = call(program, seed, count, listing(list(SIZES)), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {name: cached(tmp_path / name) for name in SIZES} == expected(seed, count, SIZES)


def test_every_page_is_as_likely_as_any_other() -> None:
    # What the test above compares the program with: 1000 draws a page, give or take five times their spread.
    drawn = Counter(splitmix(7, 645_000, 645))
    assert len(drawn) == 645
    assert min(drawn.values()) > 1000 - 5 * 32 and max(drawn.values()) < 1000 + 5 * 32


@pytest.mark.parametrize(
    ("seed", "count", "listed", "status", "said"),
    [
        (1, 1, b"a", 2, "does not end with a NUL"),
        (1, 1, b"", 2, "nothing to read"),
        (1, 1, b"empty\0", 2, "nothing to read"),
        (1, 0, b"", 0, ""),
        (1, 1, b"missing\0", 1, "asking about missing: No such file"),
        (1, 1, b"directory\0", 2, "directory is not a regular file"),
        ("x", 1, b"a\0", 2, "x is not a number"),
        (1, "-1", b"a\0", 2, "-1 is not a number"),
        (1, "1x", b"a\0", 2, "1x is not a number"),
        (str(2**64), 1, b"a\0", 2, "is not a number"),
    ],
)
def test_what_is_wrong_is_said(
    program: Path, tmp_path: Path, seed: object, count: object, listed: bytes, status: int, said: str
) -> None:
    (tmp_path / "a").write_bytes(bytes(5000))
    (tmp_path / "empty").touch()
    (tmp_path / "directory").mkdir()
    done = call(program, seed, count, listed, tmp_path)
    assert done.returncode == status and said in done.stderr
    assert bool(done.stderr) == bool(said)
