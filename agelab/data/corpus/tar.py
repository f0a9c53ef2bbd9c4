"""Tar archives as files of a corpus, streamed without a tree on the disk or the archive in memory.

The headers are written here, in the format that every tar reads (POSIX.1-1988, ustar): Python's tarfile
has changed its bytes between releases.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agelab.data.corpus.random_content import source
from agelab.data.corpus.tree import PlannedFile

BLOCK = 512
RECORD = 20 * BLOCK
_NAME = 100
"""Bytes of the name field; a longer path continues in the prefix field."""
_LEVEL = 6
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Tarball:
    """The archive ``path`` of files and their directories, all owned by root and with the same date."""

    path: str
    members: tuple[PlannedFile, ...]
    gzip: bool
    date: int

    @cached_property
    def directories(self) -> frozenset[str]:
        """The directories of the files, each with a slash at its end."""
        directories: set[str] = set()
        for member in self.members:
            place = member.path.rpartition("/")[0]
            while place and f"{place}/" not in directories:
                directories.add(f"{place}/")
                place = place.rpartition("/")[0]
        return frozenset(directories)

    @property
    def size(self) -> int:
        """The bytes of the uncompressed archive."""
        entries = len(self.members) + len(self.directories)
        blocks = entries + sum(-(-member.size // BLOCK) for member in self.members)
        return -(-(blocks + 2) * BLOCK // RECORD) * RECORD

    def pieces(self, seed: int) -> Iterator[bytes]:
        """Yield the archive, compressed if ``gzip`` is set."""
        blocks = _coalesce(self._blocks(seed))
        return _gzip(blocks) if self.gzip else blocks

    def _blocks(self, seed: int) -> Iterator[bytes]:
        files = {member.path: member for member in self.members}
        end = self.size
        for path in sorted((*files, *self.directories), key=str.encode):
            size = files[path].size if path in files else 0
            yield _header(path, size, self.date)
            if path in files:
                yield from files[path].pieces(seed)
            yield bytes(-size % BLOCK)
            end -= BLOCK + -(-size // BLOCK) * BLOCK
        yield bytes(end)


def compressor_identity() -> dict[str, str]:
    """Return the hash of a text that zlib compressed, as an input: builds of it may make other bytes."""
    made = b"".join(_gzip([source(0, "compressor", 1 << 20)]))
    return {"makes": hashlib.sha256(made).hexdigest()}


def _gzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Compress as gzip, with neither date nor name in the header."""
    engine = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for block in blocks:
        yield engine.compress(block)
    yield engine.flush()


def _coalesce(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Join blocks into fewer, longer chunks."""
    chunk: list[bytes] = []
    size = 0
    for block in blocks:
        chunk.append(block)
        size += len(block)
        if size >= _CHUNK:
            yield b"".join(chunk)
            chunk.clear()
            size = 0
    yield b"".join(chunk)


def _header(path: str, size: int, date: int) -> bytes:
    """Return the header block of a file or, for a path that ends with a slash, of a directory."""
    name, directory = path.encode(), path.endswith("/")
    prefix = b""
    if len(name) > _NAME:
        cut = name.index(b"/", len(name) - _NAME - 1)
        prefix, name = name[:cut], name[cut + 1 :]
    mode, kind = (0o755, b"5") if directory else (0o644, b"0")
    numbers = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, 0, 0, size, date)
    start = name.ljust(_NAME, b"\0") + numbers
    owner = b"root".ljust(32, b"\0") * 2
    rest = kind + bytes(100) + b"ustar\x0000" + owner + bytes(16) + prefix.ljust(155, b"\0") + bytes(12)
    total = sum(start) + sum(rest) + 8 * ord(" ")
    assert len(start) + 8 + len(rest) == BLOCK, f"{path} does not fit a header"
    return start + b"%06o\0 " % total + rest
