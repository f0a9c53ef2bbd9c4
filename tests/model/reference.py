"""The modelled disk a second time, in Python: what the C files must agree with, to the nanosecond.

Written from docs/design.md ("Drives and machines") and the words of harness/drive/drive.h. Rounding is part of
the description: a sector begins at a whole nanosecond of its track, rounded down.
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from math import isqrt

from tests.model.native import STATISTICS, Pass

SECOND, SECTOR, UNIT, PIECE, BATCH, EXTENTS = 10**9, 512, 8, 256, 8, 256
WRITES_MOST = 16 << 20


class Geometry:
    """Where sectors are."""

    def __init__(self, words: dict[str, str]) -> None:
        number = {name: int(value) for name, value in words.items() if value.lstrip("-").isdigit()}
        self.sectors, self.revolution = number["sectors"], number["revolution_ns"]
        self.phase, self.heads, self.cylinders = number["phase_ns"], number["heads"], number["cylinders"]
        self.curve = number["seek_min_ns"], number["seek_sqrt_ns"], number["seek_linear_ns"]
        self.settle, self.switch = number["write_settle_ns"], number["head_switch_ns"]
        self.firsts: list[int] = []
        self.tracks: list[int] = []
        self.widths: list[int] = []
        for text in words["zones"].split(","):
            first, width = map(int, text.split(":"))
            whole = (first - self.firsts[-1]) // self.widths[-1] if self.firsts else 0
            self.tracks.append(self.tracks[-1] + whole if self.tracks else 0)
            self.firsts.append(first)
            self.widths.append(width)

    def place(self, sector: int) -> tuple[int, int]:
        """The track and the angle, in ns of a revolution, at which a sector begins."""
        zone = bisect_right(self.firsts, sector) - 1
        track, inside = divmod(sector - self.firsts[zone], self.widths[zone])
        return self.tracks[zone] + track, inside * self.revolution // self.widths[zone]

    def turn(self, sector: int) -> int:
        """The same as one number that grows with the sector."""
        track, angle = self.place(sector)
        return track * self.revolution + angle

    def at(self, turn: int) -> int:
        """The last sector that has begun by that point of the spiral."""
        track, angle = divmod(turn, self.revolution)
        zone = bisect_right(self.tracks, track) - 1
        width = self.widths[zone]
        begun = bisect_right(range(width), angle, key=lambda inside: inside * self.revolution // width) - 1
        return self.firsts[zone] + (track - self.tracks[zone]) * width + begun

    def seek(self, cylinders: int) -> int:
        """Lee and Katz's curve, the share of the full stroke in 32 bits and its root in 16."""
        if not cylinders:
            return 0
        least, root, linear = self.curve
        share = (cylinders - 1 << 32) // (self.cylinders - 2)
        return least + (root * isqrt(share) >> 16) + (linear * (share >> 8) >> 24)

    def wait(self, sector: int, now: int) -> int:
        """Until the sector comes round."""
        return (self.place(sector)[1] - now - self.phase) % self.revolution


@dataclass
class Segment:
    """Sectors that a read has left in the cache."""

    first: int = 0
    end: int = 0
    used: int = 0


@dataclass
class Stream:
    """The head reads on into a segment: it was before ``sector`` at ``since``, and stops before ``limit``."""

    segment: Segment
    sector: int
    since: int
    limit: int


@dataclass
class Extent:
    """Sectors that wait for the arm, and when the first of them had come."""

    first: int
    end: int
    ready: int


@dataclass
class Draining:
    """The arm writes back piece after piece since then, so many more of them before a read."""

    since: int
    batch: int = BATCH


@dataclass
class Reference:
    """One disk."""

    text: str
    count: Counter[str] = field(default_factory=Counter)
    passes: list[Pass] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)
    dirty: list[Extent] = field(default_factory=list)
    piece: tuple[int, int] | None = None
    draining: Draining | None = None
    stream: Stream | None = None
    head: int = 0
    free: int = 0
    idle: int = 0
    following: int = 0

    def __post_init__(self) -> None:
        words = dict(word.split("=", 1) for word in self.text.split())
        self.place = Geometry(words)
        self.overhead, self.interface = int(words["overhead_ns"]), int(words["interface"])
        cache, segments = int(words["cache_bytes"]), int(words["segments"])
        self.ahead = int(words["read_ahead_bytes"]) // SECTOR
        self.segment = cache // segments // SECTOR
        self.segments = [Segment() for _ in range(segments)]
        self.back = words["write_back"] == "1"
        room = min(cache - cache // segments, WRITES_MOST) // SECTOR // UNIT * UNIT
        self.room = room if self.back else 0

    def statistics(self) -> dict[str, int]:
        """All that both implementations count."""
        return {name: self.count[name] for name in STATISTICS}

    # ---- the arm

    def position(self, now: int) -> int:
        """The sector before which the head is."""
        if not self.stream:
            return self.head
        gone = max(0, now - self.stream.since)
        return min(self.stream.limit, self.place.at(self.place.turn(self.stream.sector) + gone))

    def _stop(self, now: int) -> None:
        if self.stream:
            self.head = self.stream.segment.end = self.position(now)
            self.stream = None

    def _pass(self, first: int, end: int, start: int, *, write: bool) -> int:
        at = self.position(start)
        seek = wait = distance = 0
        (here, _), (there, _) = self.place.place(at), self.place.place(first)
        distance = abs(there // self.place.heads - here // self.place.heads)
        along = self.place.turn(first) - self.place.turn(at)
        if not self.stream and start == self.free and 0 <= along < self.place.revolution:
            wait = along
        else:
            if here != there:
                seek = (self.place.seek(distance) or self.place.switch) + (self.place.settle if write else 0)
            wait = self.place.wait(first, start + seek)
        transfer = self.place.turn(end) - self.place.turn(first)
        self._stop(start)
        self.head, self.free = end, start + seek + wait + transfer
        self.count.update(
            seeks=int(distance > 0),
            seek_cylinders=distance,
            busy_seek_ns=seek,
            busy_rotation_ns=wait,
            busy_transfer_ns=transfer,
        )
        self.passes.append(Pass(start, self.free, first, end, write))
        return self.free

    # ---- writing back

    @property
    def waiting(self) -> int:
        """Sectors in the write cache, those under the head among them."""
        return sum(extent.end - extent.first for extent in self.dirty) + (
            self.piece[1] - self.piece[0] if self.piece else 0
        )

    @property
    def _filling(self) -> bool:
        return self.waiting > self.room // 2 or len(self.dirty) > EXTENTS // 2

    @property
    def _eased(self) -> bool:
        return self.waiting <= self.room // 4 and len(self.dirty) <= EXTENTS // 4

    def _next(self) -> Extent:
        ahead = self.stream.limit if self.stream else self.head
        return next((extent for extent in self.dirty if extent.first >= ahead), self.dirty[0])

    def _begins(self) -> int:
        if not self.draining:
            return max(self.free, self.idle + self.place.revolution)
        return max(self.free, self.draining.since, self._next().ready)

    def _begin(self, start: int) -> None:
        extent = self._next()
        self.piece = extent.first, min(extent.end, extent.first + PIECE)
        extent.first = self.piece[1]
        self.dirty = [extent for extent in self.dirty if extent.first < extent.end]
        if self.draining:
            self.draining.batch = max(0, self.draining.batch - 1)
        self._pass(*self.piece, start, write=True)

    def _finish(self) -> None:
        assert self.piece
        self.written.append(self.piece)
        self.piece = None
        if not self.dirty:
            self.draining = None

    def advance(self, now: int) -> None:
        """Let the drive work by itself until then."""
        while True:
            if self.piece and self.free <= now:
                self._finish()
            if self.piece or not self.dirty or self._begins() > now:
                return
            start = self._begins()
            self.draining = self.draining or Draining(start)
            self._begin(start)

    def _one(self, now: int) -> int:
        if not self.piece:
            self._begin(self._begins() if self.draining else max(now, self.free))
        self._finish()
        return max(now, self.free)

    def _add(self, first: int, end: int, ready: int) -> None:
        joined = [extent for extent in self.dirty if extent.first <= end and extent.end >= first]
        apart = [extent for extent in self.dirty if extent.first > end or extent.end < first]
        joined.append(Extent(first, end, ready))
        whole = Extent(
            min(extent.first for extent in joined),
            max(extent.end for extent in joined),
            min(extent.ready for extent in joined),
        )
        self.dirty = sorted([*apart, whole], key=lambda extent: extent.first)
        if not self.draining and self._filling:
            self.draining = Draining(ready)

    def _arm_for(self, first: int, end: int, start: int, *, write: bool) -> int:
        """A command of its own: what the arm is at ends first, and of a cache that was filling a batch of pieces."""
        if self.piece:
            start = self._one(start)
        while self.draining and self.draining.batch and not self._eased:
            start = self._one(start)
        self.draining = None
        return self._pass(first, end, max(start, self.free), write=write)

    def _arm_back(self, now: int) -> None:
        if self._filling:
            self.draining = Draining(now)

    # ---- commands

    def _moved(self, sectors: int) -> int:
        return sectors * SECTOR * SECOND // self.interface

    def _taken(self, kind: str, first: int, sectors: int, now: int) -> int:
        self.advance(now)
        sequential = int(first == self.following)
        self.following = first + sectors
        self.count.update(
            requests=1, busy_overhead_ns=self.overhead, sequential=sequential, blocks=-(-sectors // 8)
        )
        self.count.update({f"{kind}s": 1, f"sectors_{'read' if kind == 'read' else 'written'}": sectors})
        return now + self.overhead

    def read(self, first: int, sectors: int, now: int) -> int:
        """When a read sent then completes."""
        start = self._taken("read", first, sectors, now)
        self.idle = self._read(first, first + sectors, start)
        return self.idle

    def _read(self, first: int, end: int, start: int) -> int:
        moved = self._moved(end - first)
        if self._cached(first, end, start):
            self.count.update(cache_hits=1, busy_transfer_ns=moved)
            return start + moved
        stream = self.stream
        if stream and first >= stream.segment.first:
            here = self.position(start)
            if self.place.turn(first) <= self.place.turn(here) + self.place.revolution:
                return self._read_on(stream, end, here, start, moved)
        behind = self._arm_for(first, end, start, write=False)
        oldest = min(self.segments, key=lambda segment: segment.used)
        oldest.first, oldest.end, oldest.used = first, end, behind
        self.stream = Stream(oldest, end, behind, 0)
        self._promise(self.stream, end)
        self._arm_back(behind)
        return max(behind, start + moved)

    def _cached(self, first: int, end: int, now: int) -> bool:
        held = [(extent.first, extent.end) for extent in self.dirty] + ([self.piece] if self.piece else [])
        if any(start <= first and end <= stop for start, stop in held):
            return True
        for segment in self.segments:
            streaming = self.stream and segment is self.stream.segment
            if not streaming and segment.first <= first and end <= segment.end:
                segment.used = now
                return True
        return False

    def _promise(self, stream: Stream, end: int) -> None:
        """The host has had all before ``end``: the head may read so much further, and old sectors make room."""
        stream.limit = max(stream.limit, min(end + self.ahead, self.place.sectors))
        stream.segment.first = max(stream.segment.first, stream.limit - self.segment)

    def _read_on(self, stream: Stream, end: int, here: int, start: int, moved: int) -> int:
        stream.segment.used = start
        hit, wait = end <= here, 0
        if here == stream.limit:
            wait = self.place.wait(here, start)
            stream.sector, stream.since = here, start + wait
        self._promise(stream, end)
        if hit:
            self.count.update(cache_hits=1, busy_transfer_ns=moved)
            return start + moved
        behind = stream.since + self.place.turn(end) - self.place.turn(stream.sector)
        done = max(start + moved, behind)
        self.count.update(busy_rotation_ns=wait, busy_transfer_ns=done - start - wait)
        return done

    def write(self, first: int, sectors: int, now: int, *, through: bool = False) -> int:
        """When a write sent then completes."""
        end, start = first + sectors, self._taken("write", first, sectors, now)
        stream = self.stream
        if stream and first < stream.limit and stream.segment.first < end:
            self._stop(start)
        for segment in self.segments:
            if first < segment.end and segment.first < end:
                segment.end = segment.first
        moved = self._moved(sectors)
        if through or not self.back:
            done = max(start + moved, self._arm_for(first, end, start, write=True))
            self._arm_back(done)
        else:
            low, high = first // UNIT * UNIT, min(-(-end // UNIT) * UNIT, self.place.sectors)
            while self.waiting + high - low > self.room or len(self.dirty) >= EXTENTS - 1:
                start = self._one(start)
            done = start + moved
            self.count.update(busy_transfer_ns=moved)
            self._add(low, high, done)
        self.idle = done
        return done

    def flush(self, now: int) -> int:
        """When a flush sent then completes."""
        self.advance(now)
        self.count.update(busy_overhead_ns=self.overhead, flushes=1)
        now += self.overhead
        while self.dirty or self.piece:
            now = self._one(now)
        self.idle = now
        return now

    def settle(self) -> None:
        """All that waits is on the platters at once."""
        if self.piece:
            self._finish()
        while self.dirty:
            extent = self.dirty.pop(0)
            self.piece = extent.first, extent.end
            self._finish()
