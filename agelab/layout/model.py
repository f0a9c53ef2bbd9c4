"""What is known of a disk's layout. All places and lengths are bytes on the disk under test."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Extent:
    """A run of a file's data that lies together on the disk."""

    logical: int
    """Where it begins in the file."""
    physical: int
    """Where it begins on the disk; of no meaning where the flags say that the place is not known."""
    length: int
    flags: int
    """FIEMAP_EXTENT_* of linux/fiemap.h; 0 from FIBMAP."""


@dataclass(frozen=True, slots=True)
class FileMap:
    """One regular file, with its extents in the order of the file."""

    path: str
    inode: int
    size: int
    allocated: int
    """Bytes that stat(2) says it takes (512 * st_blocks)."""
    links: int
    extents: tuple[Extent, ...]
    unmapped: str | None = None
    """Why nothing is known of its extents, or None."""


@dataclass(frozen=True, slots=True)
class ExtentMap:
    """Every regular file of a filesystem, in directory order (readdir(3), depth first)."""

    block_size: int
    method: Literal["fiemap", "fibmap"]
    files: tuple[FileMap, ...]


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """The free space of a filesystem: disjoint runs in the order of the disk, neighbours joined."""

    size: int
    """Bytes of the filesystem that can be free or in use at all."""
    runs: tuple[tuple[int, int], ...]
    """Start and length of each free run."""
    metadata: tuple[tuple[int, int], ...] = ()
    """Start and length of what the tool names as the filesystem's own, where it does."""


@dataclass(frozen=True, slots=True)
class LayoutMeasure:
    """One figure that follows from a map; its metric is in agelab.model.metrics."""

    metric: str
    value: float | int | None
    not_measured: str | None = None
