"""Tables of a rotating disk that was measured: its seek curve and its zones. Both are optional in a drive's file."""

from collections.abc import Iterator
from itertools import pairwise

from pydantic import Field

from agelab.model.base import Sourced

MAX_SEEK_POINTS = 128
"""Maximum number of points of a seek curve in the kernel module (harness/drive)."""
MAX_ZONES = 64
"""Maximum number of zones in the kernel module."""


class SeekTable(Sourced):
    """Seek curve as a table; between two of its points the time rises evenly."""

    points: tuple[tuple[int, float], ...] = Field(
        description="cylinders and milliseconds of a read's seek, rising"
    )

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the points, each with its place."""
        if not 1 <= len(self.points) <= MAX_SEEK_POINTS:
            yield f"seek.points: {len(self.points)} points, and not 1 to {MAX_SEEK_POINTS}"
            return
        if self.points[0][0] != 1:
            yield f"seek.points[0]: is of {self.points[0][0]} cylinders: a curve begins at 1"
        for at, (_, ms) in enumerate(self.points):
            if not 0 < ms <= 1000:
                yield f"seek.points[{at}]: {ms:g} ms is not more than 0 and 1000 at most"
        for at, ((before, less), (cylinders, ms)) in enumerate(pairwise(self.points), 1):
            if cylinders <= before:
                yield f"seek.points[{at}]: {cylinders} cylinders come after {before}"
            if ms < less:
                yield f"seek.points[{at}]: the curve falls, from {less:g} ms to {ms:g} ms"


class ZoneTable(Sourced):
    """Zones of equal recording density, from the outer edge inwards."""

    table: tuple[tuple[int, int, int], ...] = Field(
        description="first cylinder, last cylinder and sectors per track of each zone"
    )

    @property
    def cylinders(self) -> int:
        """Number of cylinders."""
        return self.table[-1][1] + 1

    def capacity(self, heads: int) -> int:
        """Return the sectors that all tracks hold, spares among them."""
        return sum((last - first + 1) * heads * per_track for first, last, per_track in self.table)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the zones, each with its place."""
        if not 1 <= len(self.table) <= MAX_ZONES:
            yield f"zones.table: {len(self.table)} zones, and not 1 to {MAX_ZONES}"
            return
        if self.table[0][0] != 0:
            yield f"zones.table[0]: begins at cylinder {self.table[0][0]}, and not at 0"
        for at, (first, last, per_track) in enumerate(self.table):
            if last < first:
                yield f"zones.table[{at}]: ends at cylinder {last}, before its first, {first}"
            if per_track < 1:
                yield f"zones.table[{at}]: has {per_track} sectors per track"
        for at, ((_, before, _), (first, _, _)) in enumerate(pairwise(self.table), 1):
            if first <= before:
                yield f"zones.table[{at}]: overlaps the zone before: begins at cylinder {first}, that ends at {before}"
            elif first > before + 1:
                yield f"zones.table[{at}]: leaves a gap of cylinders {before + 1} to {first - 1} to the zone before"
