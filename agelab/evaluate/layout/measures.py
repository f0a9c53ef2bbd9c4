"""Measures of an extent map (fragmentation, locality, what is unknown) and of free space.

docs/measures.md and docs/measures.md define each measure. All arithmetic uses integers and fractions; a measure is
rounded once, at the end, so that equal maps give equal digits.
"""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median

from agelab.evaluate.layout.mapping import Mapping, NotFollowed
from agelab.evaluate.layout.model import (
    DELALLOC,
    ENCODED,
    ENCRYPTED,
    INLINE,
    TAIL,
    UNKNOWN,
    UNWRITTEN,
    Extent,
    ExtentMap,
    FileMap,
    FreeSpace,
    LayoutMeasure,
)

PERCENTILES = (10, 50, 90)
DIGITS = 6
"""Decimals of a measure that is not a whole number."""
USABLE = 1 << 20
"""Shortest run of free space in bytes that a large file can use without significant fragmentation."""

TOTALS = ("extents", "tails")
EXTENT_LENGTHS = tuple(f"extent_length_p{percent}" for percent in PERCENTILES)
SHARES = (
    *("extents_per_file", "fragmented_files", "layout_score"),
    *EXTENT_LENGTHS,
    *("extent_length_mean", "locality_score", "locality_distance"),
)
DRIVE_METRICS = ("drive_extents", "drive_layout_score")
"""Metrics of ``drive_measures``, in this order."""
METRICS = ("files", "unmapped_files", *TOTALS, *SHARES)
"""Metrics of ``layout_measures``, in this order."""
FREE_LENGTHS = tuple(f"free_extent_p{percent}" for percent in PERCENTILES)
FREE_METRICS = ("free_bytes", "free_extents", *FREE_LENGTHS, "free_extent_largest", "free_usable_1mib")
"""Metrics of ``free_space_measures``, in this order."""


@dataclass(frozen=True)
class PlacedFile:
    """A file whose blocks all have a known place, as contiguous pieces on the disk."""

    pieces: tuple[int, ...]
    """Bytes of each piece, in whole blocks; empty for a file without a block."""
    blocks: int
    start: int
    """Start of the first block; meaningless without one."""
    end: int
    """End of the last block."""
    tails: int
    """Number of its parts in the filesystem's metadata."""


def layout_measures(extent_map: ExtentMap | None, why: str = "") -> list[LayoutMeasure]:
    """Return every measure of a map; for None, each as not measured, with the reason ``why``."""
    if extent_map is None:
        return [LayoutMeasure(metric, None, why) for metric in METRICS]
    files = list(without_hard_links(extent_map.files))
    placed = [locate(file, extent_map.block_size) for file in files]
    directories = [posixpath.dirname(file.path) for file in files]
    reasons = Counter(reason for reason in placed if isinstance(reason, str))
    known = [file for file in placed if isinstance(file, PlacedFile)]
    values: dict[str, Fraction | int | str] = {"files": len(files), "unmapped_files": sum(reasons.values())}
    if reasons:
        # The most common reason; of several, the first by name.
        reason = min(reasons, key=lambda reason: (-reasons[reason], reason))
        words = f"{sum(reasons.values())} of {len(files)} files could not be mapped ({reason})"
        values |= dict.fromkeys(TOTALS, words)
    else:
        values["extents"] = sum(len(file.pieces) for file in known)
        values["tails"] = sum(file.tails for file in known)
    if reasons and not known:
        values |= dict.fromkeys(SHARES, words)
    else:
        values |= {
            **fragmentation(known),
            **extent_lengths(known),
            **locality(zip(directories, placed, strict=True)),
        }
    return [_measure(metric, values[metric]) for metric in METRICS]


def drive_measures(extent_map: ExtentMap | None, mapping: Mapping | None, why: str = "") -> list[LayoutMeasure]:
    """Return the measures of a map on the drives that the disk is made of; not measured, with the reason, where files
    or the layout cannot be followed."""
    if extent_map is None or mapping is None:
        return [LayoutMeasure(metric, None, why) for metric in DRIVE_METRICS]
    extents = blocks = pairs = following = 0
    try:
        for file in without_hard_links(extent_map.files):
            located = located_extents(file, extent_map.block_size)
            if isinstance(located, str):
                continue
            length = sum(-(-extent.length // extent_map.block_size) for extent in located)
            runs = _runs_on_drives(located, mapping, extent_map.block_size)
            extents, blocks = extents + runs, blocks + length
            pairs += max(0, length - 1)
            following += max(0, length - runs)
    except NotFollowed as error:
        return [LayoutMeasure(metric, None, str(error)) for metric in DRIVE_METRICS]
    score = Fraction(following, pairs) if pairs else "no file has two blocks"
    return [_measure("drive_extents", extents), _measure("drive_layout_score", score)]


def _runs_on_drives(located: Sequence[Extent], mapping: Mapping, block_size: int) -> int:
    """Count the runs that lie together on one drive, of a file's extents in their order."""
    runs = 0
    before = (-1, -1)
    for extent in located:
        length = -(-extent.length // block_size) * block_size
        for member, start, size in mapping.follow(extent.physical, length):
            runs += (member, start) != before
            before = (member, start + size)
    return runs


def free_space_measures(space: FreeSpace | None, why: str = "") -> list[LayoutMeasure]:
    """Return every measure of the free space; for None, each as not measured, with the reason ``why``."""
    if space is None:
        return [LayoutMeasure(metric, None, why) for metric in FREE_METRICS]
    lengths = sorted(length for _, length in space.runs)
    free = sum(lengths)
    values: dict[str, Fraction | int | str] = dict.fromkeys(FREE_METRICS, "there is no free space")
    values |= {"free_bytes": free, "free_extents": len(lengths)}
    if lengths:
        usable = sum(length for length in lengths if length >= USABLE)
        values |= _percentiles(FREE_LENGTHS, lengths)
        values |= {"free_extent_largest": lengths[-1], "free_usable_1mib": Fraction(usable, free)}
    return [_measure(metric, value) for metric, value in values.items()]


def without_hard_links(files: Iterable[FileMap]) -> Iterator[FileMap]:
    """Yield each file once, where it is listed first: its other names share the blocks."""
    seen: set[int] = set()
    for file in files:
        if file.links > 1 and file.inode in seen:
            continue
        seen.add(file.inode)
        yield file


def located_extents(file: FileMap, block_size: int) -> list[Extent] | str:
    """Return the extents of a file that have a place on the disk, or why not all are known."""
    if file.unmapped is not None:
        return file.unmapped
    located: list[Extent] = []
    for extent in file.extents:
        if extent.flags & (INLINE | TAIL):
            continue
        if extent.flags & UNWRITTEN and extent.flags & UNKNOWN and not extent.flags & DELALLOC:
            continue  # preallocated: nothing was written and no place is known
        if extent.flags & (UNKNOWN | DELALLOC):
            return "an extent without a place"
        if extent.flags & ENCODED and not extent.flags & ENCRYPTED:
            return "compressed: how long an extent is on the disk is not known"
        if located and extent.logical % block_size and continues(located[-1], extent):
            # ntfs3 divides a block where what was written ends.
            located[-1] = replace(located[-1], length=located[-1].length + extent.length)
        else:
            located.append(extent)
    return located


def locate(file: FileMap, block_size: int) -> PlacedFile | str:
    """Locate a file's blocks, or return why that is impossible."""
    located = located_extents(file, block_size)
    if isinstance(located, str):
        return located
    tails = sum(bool(extent.flags & (INLINE | TAIL)) for extent in file.extents)
    pieces: list[int] = []
    end = 0
    for number, extent in enumerate(located):
        # With FIBMAP the last extent ends with the file's last sector.
        length = -(-extent.length // block_size) * block_size
        if number and continues(located[number - 1], extent):
            pieces[-1] += length
        else:
            pieces.append(length)
        end = extent.physical + length
    return PlacedFile(
        pieces=tuple(pieces),
        blocks=sum(pieces) // block_size,
        start=located[0].physical if located else 0,
        end=end,
        tails=tails,
    )


def continues(before: Extent, after: Extent) -> bool:
    """Return True if an extent directly follows the previous one, or leaves exactly the space of the hole between.

    filefrag (e2fsprogs 1.47) counts no new extent in these cases.
    """
    step = after.physical - before.physical
    return step in (before.length, after.logical - before.logical)


def fragmentation(files: Sequence[PlacedFile]) -> dict[str, Fraction | str]:
    """Return extents per file, the share of fragmented files, and the layout score."""
    filled = [file for file in files if file.pieces]
    if not filled:
        none = "no mapped file has a block"
        return dict.fromkeys(("extents_per_file", "fragmented_files", "layout_score"), none)
    pieces = sum(len(file.pieces) for file in filled)
    # A file's first block has no predecessor.
    followers = sum(file.blocks - 1 for file in filled)
    apart = pieces - len(filled)
    score = 1 - Fraction(apart, followers) if followers else "no mapped file has a second block"
    return {
        "extents_per_file": Fraction(pieces, len(filled)),
        "fragmented_files": Fraction(sum(len(file.pieces) > 1 for file in filled), len(filled)),
        "layout_score": score,
    }


def extent_lengths(files: Sequence[PlacedFile]) -> dict[str, Fraction | int | str]:
    """Return nearest-rank percentiles and the mean of extent lengths; each extent counts once."""
    ordered = sorted(length for file in files for length in file.pieces)
    if not ordered:
        return dict.fromkeys((*EXTENT_LENGTHS, "extent_length_mean"), "no mapped file has a block")
    mean = Fraction(sum(ordered), len(ordered))
    return {**_percentiles(EXTENT_LENGTHS, ordered), "extent_length_mean": mean}


def _percentiles(names: Sequence[str], ordered: Sequence[int]) -> dict[str, int]:
    """Return the nearest-rank PERCENTILES of some sorted numbers, one under each name."""
    ranks = (-(-percent * len(ordered) // 100) for percent in PERCENTILES)
    return {name: ordered[rank - 1] for name, rank in zip(names, ranks, strict=True)}


def locality(files: Iterable[tuple[str, PlacedFile | str]]) -> dict[str, Fraction | int | str]:
    """Return the locality of files listed one after the other in a directory; each comes with the directory's path."""
    gaps = list(distances(files))
    if not gaps:
        none = "no two files with blocks follow each other in a directory"
        return {"locality_score": none, "locality_distance": none}
    return {
        "locality_score": Fraction(sum(gap == 0 for gap in gaps), len(gaps)),
        "locality_distance": median([Fraction(gap) for gap in gaps]),
    }


def distances(files: Iterable[tuple[str, PlacedFile | str]]) -> Iterator[int]:
    """Yield the bytes between the end of each file and the start of the next in its directory, in either direction.

    Files without a block are skipped; a file that was not mapped gives no distance on either side.
    """
    before: dict[str, PlacedFile] = {}
    for directory, file in files:
        if isinstance(file, str):
            before.pop(directory, None)
        elif file.pieces:
            if directory in before:
                yield abs(file.start - before[directory].end)
            before[directory] = file


def _measure(metric: str, value: Fraction | int | str) -> LayoutMeasure:
    if isinstance(value, str):
        return LayoutMeasure(metric, None, value)
    if isinstance(value, int):
        return LayoutMeasure(metric, value)
    rounded = round(value, DIGITS)
    return LayoutMeasure(metric, int(rounded) if rounded.denominator == 1 else float(rounded))
