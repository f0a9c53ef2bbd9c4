"""Types of a disk's layout. All places and lengths are bytes on the disk under test."""

from dataclasses import dataclass
from typing import Literal

# Flags of an extent: FIEMAP_EXTENT_* of linux/fiemap.h (Linux, filesystems/fiemap.rst).
UNKNOWN, DELALLOC, ENCODED, ENCRYPTED = 0x2, 0x4, 0x8, 0x80
NOT_ALIGNED, INLINE, TAIL, UNWRITTEN = 0x100, 0x200, 0x400, 0x800


@dataclass(frozen=True, slots=True)
class Extent:
    """A contiguous piece of a file's data on the disk."""

    logical: int
    """Offset in the file."""
    physical: int
    """Offset on the disk; meaningless where the flags say that the place is unknown."""
    length: int
    flags: int
    """FIEMAP_EXTENT_* of linux/fiemap.h; 0 from FIBMAP."""


@dataclass(frozen=True, slots=True)
class FileMap:
    """One regular file, with its extents in file order."""

    path: str
    inode: int
    size: int
    allocated: int
    """Allocated bytes by stat(2) (512 * st_blocks)."""
    links: int
    extents: tuple[Extent, ...]
    unmapped: str | None = None
    """Reason why its extents are unknown, or None."""


@dataclass(frozen=True, slots=True)
class ExtentMap:
    """Every regular file of a filesystem, in directory order (readdir(3), depth first)."""

    block_size: int
    method: Literal["fiemap", "fibmap"]
    files: tuple[FileMap, ...]


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """Free space of a filesystem: disjoint runs, sorted, neighbours joined."""

    size: int
    """Bytes of the filesystem that can be free or in use at all."""
    runs: tuple[tuple[int, int], ...]
    """Start and length of each free run."""
    metadata: tuple[tuple[int, int], ...] = ()
    """Start and length of the metadata named by the tool, if it names any."""


@dataclass(frozen=True, slots=True)
class LayoutMeasure:
    """A measure computed from a map; agelab.scenario.metrics defines the metric."""

    metric: str
    value: float | int | None
    not_measured: str | None = None
