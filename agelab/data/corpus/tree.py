"""Write the planned files of a stand-in."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agelab.data.corpus.definition import Sizes
from agelab.data.corpus.random_content import ContentKind, SeededRandom, pieces

MD5_LIST = "md5sum.txt"
RESOLUTION = 10**9
_SUM_LINE = len("\n") + 32 + len("  ./")


class TreeFile(Protocol):
    """A file to write: its path in the tree, its bytes at most, and its content in pieces."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    def pieces(self, seed: int) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class PlannedFile:
    """A plain file to write: its path in the tree, its size in bytes and the kind of its content."""

    path: str
    size: int
    text: ContentKind

    def pieces(self, seed: int) -> Iterator[bytes]:
        """Yield the content."""
        return pieces(seed, self.path, self.size, self.text)


@dataclass(frozen=True)
class WrittenTree:
    """A tree that was written: the number of files, their bytes, and the sha256 of ``md5sum.txt``."""

    files: int
    bytes: int
    sums: str


def with_sizes(
    paths: Sequence[str], sizes: Sizes, goal: int, draws: SeededRandom, cap: int | None = None
) -> list[PlannedFile]:
    """Give the paths sizes from the distribution, scaled to the sum ``goal`` but none above ``cap``.

    The distribution is cut into as many equal slices as there are files, and one size is drawn from each slice. So
    40 MB have the shape of 650 MB, which independent draws from a distribution with a long tail would not give.
    """
    whole = len(paths) * RESOLUTION
    drawn = [sizes.at(slice_ * RESOLUTION + draws.below(RESOLUTION), whole) for slice_ in range(len(paths))]
    draws.shuffle(drawn)
    total = sum(drawn)
    fitted = (min(size * goal // total, cap or goal) for size in drawn)
    return [PlannedFile(path, size, sizes.text) for path, size in zip(paths, fitted, strict=True)]


def write(files: Sequence[TreeFile], seed: int, root: Path, *, listed: bool) -> WrittenTree:
    """Write the files below ``root`` and, with ``listed``, their ``md5sum.txt``.

    The list has the hash of every file, so its own hash stands for the whole tree.
    """
    lines = []
    written = 0
    for file in files:
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.md5(usedforsecurity=False)
        with path.open("wb") as out:
            for piece in file.pieces(seed):
                digest.update(piece)
                written += out.write(piece)
        lines.append(f"{digest.hexdigest()}  ./{file.path}\n")
    sums = "".join(lines).encode()
    if listed:
        written += (root / MD5_LIST).write_bytes(sums)
    return WrittenTree(len(files) + listed, written, hashlib.sha256(sums).hexdigest())


def md5_list_size(paths: Sequence[str]) -> int:
    """Return the bytes of ``md5sum.txt`` for these paths."""
    return sum(_SUM_LINE + len(path) for path in paths)
