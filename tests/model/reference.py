"""The modelled disk a second time, in Python: what the C files must agree with, to the nanosecond.

Written from docs/design.md ("Drives and machines") and the words of harness/drive/drive.h. Rounding is part of
the description: a sector begins at a whole nanosecond of its track, rounded down.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from tests.model.native import STATISTICS, Pass
from tests.model.reference_geometry import Geometry

SECOND, SECTOR, UNIT, PIECE, BATCH, EXTENTS, NEAR = 10**9, 512, 8, 256, 8, 256, 4
WRITES_MOST = 16 << 20
_OPTIONAL = (
    *("hit_overhead_ns", "write_overhead_ns", "bus_after_percent", "write_after_percent", "any_order"),
    *("read_ahead_tracks", "write_segments"),
)


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
    round: int = 0
    in_a_row: int = 0
    stream: Stream | None = None
    head: int = 0
    free: int = 0
    begins: int = 0
    idle: int = 0
    following: int = 0

    def __post_init__(self) -> None:
        words = dict(word.split("=", 1) for word in self.text.split())
        self.place = Geometry(words)
        given = {name: int(words.get(name, 0)) for name in _OPTIONAL}
        self.overhead, self.interface = int(words["overhead_ns"]), int(words["interface"])
        self.hit_overhead = given["hit_overhead_ns"] or self.overhead
        self.write_overhead = given["write_overhead_ns"] or self.overhead
        self.bus_after, self.write_after = given["bus_after_percent"], given["write_after_percent"]
        self.any_order, self.ahead_tracks = given["any_order"], given["read_ahead_tracks"]
        cache, segments = int(words["cache_bytes"]), int(words["segments"])
        self.ahead = int(words["read_ahead_bytes"]) // SECTOR
        self.segment = cache // segments // SECTOR
        self.segments = [Segment() for _ in range(segments)]
        self.back = words["write_back"] == "1"
        room = cache - cache // segments if segments > 1 else cache
        if given["write_segments"]:
            room = cache // segments * given["write_segments"]
        self.room = min(room, WRITES_MOST) // SECTOR // UNIT * UNIT if self.back else 0

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

    def _movement(self, first: int, start: int, *, write: bool, ready: int = 0) -> tuple[int, int, int, int]:
        """Cylinders, seek, rotation, and when the first sector begins to pass."""
        at = self.position(start)
        (here, _), (there, _) = self.place.place(at), self.place.place(first)
        distance = abs(there // self.place.heads - here // self.place.heads)
        along = self.place.turn(first) - self.place.behind(at)
        goes_on = not self.stream and start == self.free and start >= ready and at <= first
        if goes_on and along < self.place.revolution:
            return distance, 0, along, start + along
        seek = 0
        if here != there:
            seek = (self.place.seek(distance) or self.place.switch) + (self.place.settle if write else 0)
        may = max(ready, start + seek)
        begins = may + self.place.wait(first, may)
        return distance, seek, begins - start - seek, begins

    def _pass(self, first: int, end: int, start: int, *, write: bool, ready: int = 0) -> int:
        distance, seek, wait, begins = self._movement(first, start, write=write, ready=ready)
        transfer = self.place.behind(end) - self.place.turn(first)
        self.head = end
        if self.any_order and not write and self.place.place(first)[0] == self.place.place(end - 1)[0]:
            # The head stands at some point of the track: it begins with the next sector that is wanted.
            stands = self.place.turn(first) - wait % self.place.revolution + self.place.revolution
            entered = next((s for s in range(first + 1, end) if self.place.turn(s) >= stands), None)
            if wait and entered:
                begins = begins - wait + self.place.turn(entered) - stands
                wait, transfer, self.head = self.place.turn(entered) - stands, self.place.revolution, entered
        head = self.head
        self._stop(start)
        self.head, self.begins, self.free = head, begins, begins + transfer
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

    def _next(self, when: int) -> Extent:
        """The quickest to reach of this round's near the head whose data has come; else the one that comes first."""
        oldest = min(self.dirty, key=lambda extent: extent.ready)
        until = self.round if oldest.ready <= self.round else when
        of_round = [extent for extent in self.dirty if extent.ready <= until]
        ahead = bisect_left(of_round, self.position(when), key=lambda extent: extent.first)
        near = [one for one in of_round[max(0, ahead - NEAR) : ahead + NEAR] if one.ready <= when]
        return min(near, key=lambda one: self._movement(one.first, when, write=True)[3], default=oldest)

    def _begins(self) -> int:
        if not self.draining:
            return max(self.free, self.idle + self.place.revolution)
        when = max(self.free, self.draining.since)
        return max(when, self._next(when).ready)

    def _begin(self, start: int) -> None:
        extent = self._next(start)
        self.piece = extent.first, min(extent.end, extent.first + PIECE)
        if extent.ready > self.round:
            self.round = start
        self.in_a_row = self.piece[1] - self.piece[0] + (self.in_a_row if extent.first == self.head else 0)
        extent.first = self.piece[1]
        if self.in_a_row > self.room // 2:
            extent.ready, self.in_a_row = start + 1, 0
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

    def _yielded(self, start: int) -> int:
        """When a command of its own may have the arm: after its piece and, of a cache that was filling, a batch."""
        if self.piece:
            start = self._one(start)
        while self.draining and self.draining.batch and not self._eased:
            start = self._one(start)
        self.draining = None
        return max(start, self.free)

    def _arm_back(self, now: int) -> None:
        if self._filling:
            self.draining = Draining(now)

    # ---- commands

    def _moved(self, sectors: int) -> int:
        return sectors * SECTOR * SECOND // self.interface

    def _taken(self, kind: str, first: int, sectors: int, now: int) -> None:
        """Count a command."""
        sequential = first == self.following
        self.advance(now)
        self.following = first + sectors
        self.count.update(requests=1, sequential=int(sequential), blocks=-(-sectors // 8))
        self.count.update({f"{kind}s": 1, f"sectors_{'read' if kind == 'read' else 'written'}": sectors})

    def _thought(self, now: int, overhead: int) -> int:
        self.count.update(busy_overhead_ns=overhead)
        return now + overhead

    def _over_the_bus(self, sectors: int, start: int, came: int, behind: int) -> int:
        """When the host has a read of which enough for the bus had come, and all of it."""
        bus = self._moved(sectors)
        return max(max(start, came) + bus, behind + bus // sectors)

    def _wanted(self, first: int, end: int) -> int:
        """The point of the spiral at which enough for the bus has passed."""
        return self.place.behind(first + max(1, (end - first) * self.bus_after // 100))

    def read(self, first: int, sectors: int, now: int) -> int:
        """When a read sent then completes."""
        self._taken("read", first, sectors, now)
        self.idle = self._read(first, first + sectors, now)
        return self.idle

    def _read(self, first: int, end: int, now: int) -> int:
        if self._cached(first, end, now):
            self.count.update(cache_hits=1, busy_transfer_ns=self._moved(end - first))
            return self._thought(now, self.hit_overhead) + self._moved(end - first)
        soon = self._comes_to(first, now)
        start = self._thought(now, self.hit_overhead if soon else self.overhead)
        if self.stream and self._comes_to(first, start):
            return self._read_on(self.stream, first, end, self.position(start), start)
        start = self._yielded(start)
        behind = self._pass(first, end, start, write=False)
        begins, turned = self.begins, self.head
        oldest = min(self.segments, key=lambda segment: segment.used)
        oldest.first, oldest.end, oldest.used = max(first, end - self.segment), end, behind
        passed = self.place.behind(end) if turned == end else self.place.turn(turned)
        self.stream = Stream(oldest, end, behind + self.place.turn(end) - passed, 0)
        self._promise(self.stream, end)
        self._arm_back(behind)
        if turned == end:
            came = begins + self._wanted(first, end) - self.place.turn(first)
        else:
            came = behind - max(0, self.place.turn(turned) - self._wanted(first, end))
        return self._over_the_bus(end - first, start, came, behind)

    def _comes_to(self, first: int, now: int) -> bool:
        """The head, reading on, has read that sector or comes to it within a revolution."""
        if not self.stream or first < self.stream.segment.first:
            return False
        here = self.position(now)
        return first <= here or self.place.turn(first) <= self.place.turn(here) + self.place.revolution

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
        ahead = min(end + self.ahead, self.place.sectors)
        if self.ahead_tracks == 1:
            ahead = min(ahead, self.place.track_end(end - 1))
        if self.ahead_tracks == 2:
            begun_before = self.place.place(stream.segment.first)[0] < self.place.place(end)[0]
            border = self.place.track_end(end)
            ahead = min(ahead, self.place.track_end(border) if begun_before else border)
        stream.limit = max(stream.limit, ahead)
        stream.segment.first = max(stream.segment.first, stream.limit - self.segment)

    def _read_on(self, stream: Stream, first: int, end: int, here: int, start: int) -> int:
        stream.segment.used = start
        hit, wait = end <= here, 0
        if here == stream.limit:
            wait = self.place.wait(here, start)
            stream.sector, stream.since = here, start + wait
        self._promise(stream, end)
        if hit:
            moved = self._moved(end - first)
            self.count.update(cache_hits=1, busy_transfer_ns=moved)
            return start + moved
        since = stream.since - self.place.turn(stream.sector)
        behind = since + self.place.behind(end)
        wanted = self._wanted(first, end)
        came = since + wanted if wanted > self.place.turn(stream.sector) else 0
        done = self._over_the_bus(end - first, start, came, behind)
        self.count.update(busy_rotation_ns=wait, busy_transfer_ns=done - start - wait)
        return done

    def write(self, first: int, sectors: int, now: int, *, through: bool = False) -> int:
        """When a write sent then completes."""
        end = first + sectors
        self._taken("write", first, sectors, now)
        start = self._thought(now, self.write_overhead)
        stream = self.stream
        if stream and first < stream.limit and stream.segment.first < end:
            self._stop(start)
        for segment in self.segments:
            if first < segment.end and segment.first < end:
                segment.end = segment.first
        low, high = first // UNIT * UNIT, -(-end // UNIT) * UNIT
        if through or high - low > self.room:
            done = self._write_through(first, end, now, start, flushed=self.back and not through)
        else:
            high = min(high, self.place.sectors)
            while self.waiting + high - low > self.room or len(self.dirty) >= EXTENTS - 1:
                start = self._one(start)
            done = start + self._moved(sectors)
            self.count.update(busy_transfer_ns=self._moved(sectors))
            self._add(low, high, done)
        self.idle = done
        return done

    def _write_through(self, first: int, end: int, now: int, start: int, *, flushed: bool) -> int:
        """The bus brings the data while the arm moves: so much of it as is wanted, and never less than is needed."""
        while flushed and (self.dirty or self.piece):
            start = self._one(start)
        bus, passing = self._moved(end - first), self.place.behind(end) - self.place.turn(first)
        begun = now + min(self.hit_overhead, self.write_overhead)
        ready = begun + max(bus * self.write_after // 100, bus - passing)
        done = self._pass(first, end, self._yielded(start), write=True, ready=ready)
        self._arm_back(done)
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
