"""The solid-state drive again, as plainly as it can be said: no table, no ring, sets of units in lines.

Slow, and in one thing the same as the C files: what a drive does is decided in the same order.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

SECTOR, UNIT, SECOND = 512, 8, 10**9
IDLE = 10_000_000
CYCLES = 6
BY_PAGE = 1024
MASK = 2**64 - 1

Place = tuple[int, int]
"""A line's number, and a place in it."""


@dataclass
class Line:
    """What was written into a line since it was erased, and what of it is still valid."""

    size: int
    at_once: int
    fast: bool
    open: bool = False
    erased: int = 0
    units: list[int | None] = field(default_factory=list)
    valid: set[int] = field(default_factory=set)
    """Places whose units are nowhere newer."""

    @property
    def closed(self) -> bool:
        return len(self.units) == self.size

    @property
    def free(self) -> bool:
        return not self.units and not self.open


@dataclass
class Die:
    """Until when a die has to do, and for whom."""

    free: int = 0
    reads: Counter[int] = field(default_factory=Counter)
    """By plane, when its last read for the host ends."""
    collecting: int = 0


@dataclass
class Programmed:
    """Units on their way from the write buffer to the chips."""

    done: int
    collecting: int
    units: list[tuple[int, Place]]
    """Each with its place, in the order of writing."""


@dataclass
class Emptied:
    """A line that is being emptied."""

    line: int
    left: Iterator[int]
    pace: int
    page: int | None = None
    waiting: int | None = None


class ReferenceSsd:
    """One solid-state drive."""

    def __init__(self, text: str) -> None:
        words = dict(word.split("=", 1) for word in text.split())
        self.set = {name: int(value) for name, value in words.items() if value.isdigit()}
        get = self.set.get
        bits, lines, fast = self.set["cell_bits"], self.set["lines"], get("fast_lines", 0)
        size, at_once = self.set["line_units"], self.set["program_units"]
        self.lines = [
            Line(size // bits, at_once // bits, True) if number < fast else Line(size, at_once, False)
            for number in range(lines)
        ]
        self.normal, self.fast = range(fast, lines), range(fast)
        self.where: dict[int, Place] = {}
        self.dies = [Die() for _ in range(self.set["dies"])]
        self.channels = [0] * self.set["channels"]
        self.reads = [0] * self.set["channels"]
        self.link = self.latest = self.busy = self.idle = self.following = 0
        self.open: dict[str, int] = {}
        self.garbage: Emptied | None = None
        self.migrated: Emptied | None = None
        self.stripe: list[tuple[int, Place]] = []
        self.pending: deque[Programmed] = deque()
        self.held: dict[int, tuple[int, bool]] = {}
        self.count: Counter[str] = Counter()
        self.written: list[tuple[int, int]] = []
        self.erasures = 0
        if get("begin"):
            self._use()

    # ---- chips

    def _die(self, place: Place) -> int:
        line, at = place
        return at // self.lines[line].at_once % len(self.dies)

    def _transferred(self, die: int, units: int, now: int) -> int:
        return self._add(self.channels, die, units, now)

    def _fetched(self, die: int, now: int) -> int:
        self._add(self.channels, die, 1, now)
        return self._add(self.reads, die, 1, now)

    def _add(self, channels: list[int], die: int, units: int, now: int) -> int:
        channel = die % len(channels)
        ns = units * UNIT * SECTOR * SECOND // self.set["channel_rate"]
        channels[channel] = max(channels[channel], now) + ns
        return channels[channel]

    def _occupy(self, die: int, ns: int, now: int, *, collecting: bool) -> None:
        busy = self.dies[die]
        busy.free = max(busy.free, now, *busy.reads.values()) + ns
        if collecting:
            self.dies[die].collecting += ns

    def _read_page(self, number: int, plane: int, now: int) -> int:
        die = self.dies[number]
        suspended = min(max(die.free - now, 0), self.set["suspend_ns"])
        start = max(die.reads[plane], now + suspended)
        self.count.update(flash_reads=1, gc_wait_ns=min(suspended, die.collecting))
        if die.free > now:
            die.free += self.set["read_ns"]
        die.reads[plane] = start + self.set["read_ns"]
        return die.reads[plane]

    def _read_place(self, place: Place, now: int) -> int:
        line, at = place
        page = at % self.lines[line].at_once // self.set["page_units"]
        return self._read_page(self._die(place), page % self.set["planes"], now)

    def _program(self, place: Place, units: int, now: int, *, collecting: bool) -> int:
        line, die = self.lines[place[0]], self._die(place)
        self.count.update(units_programmed=line.at_once)
        moved = self._transferred(die, units, now)
        self._occupy(die, self.set["fast_program_ns" if line.fast else "program_ns"], moved, collecting=collecting)
        return self.dies[die].free

    # ---- lines

    @property
    def free_lines(self) -> int:
        return sum(self.lines[number].free for number in self.normal)

    def _forget(self, unit: int) -> None:
        if unit in self.where:
            line, at = self.where.pop(unit)
            self.lines[line].valid.remove(at)

    def _put(self, stream: str, unit: int | None) -> Place:
        number = self.open.get(stream)
        if number is None or self.lines[number].closed or not self.lines[number].open:
            fast = [n for n in self.fast if self.lines[n].free] if stream == "host" else []
            free = fast or [n for n in self.normal if self.lines[n].free]
            number = self.open[stream] = min(free, key=lambda n: self.lines[n].erased)
            self.lines[number].open = True
        line = self.lines[number]
        place = number, len(line.units)
        if unit is not None:
            self._forget(unit)
            self.where[unit] = place
            line.valid.add(place[1])
        line.units.append(unit)
        if line.closed:
            line.open = False
        return place

    def _ends_stripe(self, place: Place) -> bool:
        return (place[1] + 1) % self.lines[place[0]].at_once == 0

    def _choose(self, of: range) -> Emptied | None:
        closed = [n for n in of if self.lines[n].closed]
        if not closed:
            return None
        number = min(closed, key=lambda n: (len(self.lines[n].valid), self.lines[n].erased))
        valid, size = len(self.lines[number].valid), self.set["line_units"]
        return Emptied(
            number,
            iter(range(self.lines[number].size)),
            valid // (size - valid) + 1 if valid < size else size,
        )

    def _empty(self, emptied: Emptied, units: int, now: int) -> bool:
        """Return True when the line was erased."""
        line = self.lines[emptied.line]
        while line.valid:
            at = next(emptied.left) if emptied.waiting is None else emptied.waiting
            emptied.waiting = None
            if at not in line.valid:
                continue
            if not units:
                emptied.waiting = at
                return False
            units -= 1
            self._move((emptied.line, at), emptied, now)
        for die in range(len(self.dies)):
            self._occupy(die, self.set["erase_ns"], now, collecting=True)
        self.count.update(blocks_erased=len(self.dies) * self.set["planes"])
        self.erasures += 1
        line.erased += 1
        line.units = []
        return True

    def _move(self, place: Place, emptied: Emptied, now: int) -> None:
        die, page = self._die(place), place[1] // self.set["page_units"]
        if page != emptied.page:
            self.count.update(flash_reads=1)
            self._occupy(die, self.set["read_ns"], now, collecting=True)
            emptied.page = page
        self._transferred(die, 1, now)
        self.count.update(units_moved=1)
        new = self._put("moved", self.lines[place[0]].units[place[1]])
        if self._ends_stripe(new):
            self._program(new, self.lines[new[0]].at_once, now, collecting=True)

    def _make_room(self, lines: int, now: int) -> None:
        while self.free_lines < lines and (garbage := self.garbage or self._choose(self.normal)):
            self._empty(garbage, self.set["line_units"], now)
            self.garbage = None

    def _collect(self, now: int) -> None:
        if self.garbage is None and self.free_lines > self.set["reserve"]:
            return
        self.garbage = self.garbage or self._choose(self.normal)
        if self.garbage and self._empty(self.garbage, self.garbage.pace, now):
            self.garbage = None
        self._make_room(2, now)

    # ---- write buffer

    @property
    def buffered(self) -> int:
        return len(self.stripe) + sum(len(one.units) for one in self.pending)

    def _leave(self) -> None:
        for unit, place in self.pending[0].units:
            newest = self.where.get(unit, place)
            if newest == place or not self._is_buffered(newest):
                first = self.set["base"] + unit * UNIT
                self.written.append((first, first + UNIT))
        self.pending.popleft()

    def _await(self, start: int) -> int:
        oldest = self.pending[0]
        if oldest.done > start:
            self.count.update(gc_wait_ns=min(oldest.done - start, oldest.collecting))
        self._leave()
        return max(start, oldest.done)

    def _program_stripe(self, now: int) -> None:
        first = self.stripe[0][1]
        die = self.dies[self._die(first)]
        waits = min(die.collecting, max(die.free - now, 0))
        die.collecting = 0
        done = self._program(first, len(self.stripe), now, collecting=False)
        self.pending.append(Programmed(done, waits, self.stripe))
        self.latest = max(self.latest, done)
        self.stripe = []

    def _write_unit(self, unit: int, start: int) -> int:
        while self.pending and self.buffered >= self.set["buffer_units"]:
            start = self._await(start)
        place = self._put("host", unit)
        self.stripe.append((unit, place))
        if self._ends_stripe(place):
            self._program_stripe(start)
        if place[0] in self.normal:
            self._collect(start)
        return start

    def _close(self, now: int) -> None:
        if not self.stripe:
            return
        while not self._ends_stripe(self._put("host", None)):
            pass
        self._program_stripe(now)

    def _is_buffered(self, place: Place) -> bool:
        buffered = [self.stripe, *(one.units for one in self.pending)]
        return any(place == one for units in buffered for _, one in units)

    # ---- commands

    def advance(self, now: int) -> None:
        """Let the drive work by itself until then."""
        while self.pending and self.pending[0].done <= now:
            self._leave()
        if not self.fast:
            return
        self.idle = max(self.idle, self.busy + IDLE)
        while self.idle <= now:
            self.migrated = self.migrated or self._choose(self.fast)
            if not self.migrated:
                return
            self._make_room(self.set["reserve"], self.idle)
            if self._empty(self.migrated, self.set["program_units"], self.idle):
                self.migrated = None
            self.idle = max(self.idle, *(die.free for die in self.dies))

    def _look_up(self, unit: int, now: int, *, change: bool) -> int:
        room = self.set.get("map_pages", 0)
        if not room:
            return now
        page = unit // BY_PAGE
        die = page % len(self.dies)
        held, changed = self.held.get(page % room, (None, False))
        if held != page:
            if changed:
                self.count.update(units_programmed=self.set["page_units"])
                ns = self.set["fast_program_ns" if self.fast else "program_ns"]
                self._occupy(die, ns, now, collecting=False)
            now, changed = self._read_page(die, page % self.set["planes"], now), False
        self.held[page % room] = page, changed or change
        return now

    def _taken(self, now: int, overhead: str = "overhead_ns") -> int:
        self.advance(now)
        self.count.update(busy_overhead_ns=self.set[overhead])
        return now + self.set[overhead]

    def _counted(self, kind: str, first: int, sectors: int) -> None:
        self.count.update(requests=1, sequential=int(first == self.following), blocks=-(-sectors // 8))
        self.count.update({f"{kind}s": 1, f"sectors_{'read' if kind == 'read' else 'written'}": sectors})
        self.following = first + sectors

    def _linked(self, sectors: int, start: int) -> int:
        ns = sectors * SECTOR * SECOND // self.set["interface"] + self.set.get("link_ns", 0)
        self.count.update(busy_transfer_ns=ns)
        self.link = max(self.link, start) + ns
        return self.link

    def _finished(self, done: int) -> int:
        self.busy = max(self.busy, done)
        return done

    def _units(self, first: int, sectors: int) -> range:
        offset = first - self.set["base"]
        return range(offset // UNIT, -(-(offset + sectors) // UNIT))

    def read(self, first: int, sectors: int, now: int) -> int:
        """When a read sent then completes."""
        self._counted("read", first, sectors)
        start = done = self._taken(now)
        last, came = None, start
        for unit in self._units(first, sectors):
            known = self._look_up(unit, start, change=False)
            done = max(done, known)
            place = self.where.get(unit)
            if place is None or self._is_buffered(place):
                continue
            page = place[0], place[1] // self.set["page_units"]
            if page != last:
                came = self._read_place(place, known)
            last = page
            moving = UNIT * SECTOR * SECOND // self.set["channel_rate"]
            came = max(came + moving, self._fetched(self._die(place), known))
            done = max(done, came)
        self.count.update(cache_hits=int(last is None))
        return self._finished(self._linked(sectors, done))

    def write(self, first: int, sectors: int, now: int, *, through: bool = False) -> int:
        """When a write sent then completes."""
        self._counted("write", first, sectors)
        start = self._linked(sectors, self._taken(now, "write_overhead_ns"))
        units = self._units(first, sectors)
        offset = first - self.set["base"]
        for unit in units:
            place = self.where.get(unit)
            self._look_up(unit, start, change=True)
            whole = offset <= unit * UNIT and (unit + 1) * UNIT <= offset + sectors
            if not whole and place is not None and not self._is_buffered(place):
                self._read_place(place, start)
            start = self._write_unit(unit, start)
        stays = len(units) + self.set["program_units"] <= self.set["buffer_units"]
        if self.set["write_back"] and (through or not stays):
            self._close(start)
            start = max(start, self.latest)
        return self._finished(start)

    def flush(self, now: int) -> int:
        """When a flush sent then completes."""
        start = self._taken(now)
        self.count.update(flushes=1)
        return self._finished(self._flushed(start))

    def _flushed(self, start: int) -> int:
        self._close(start)
        while self.pending:
            start = self._await(start)
        return start

    def discard(self, first: int, sectors: int, now: int) -> int:
        """When a discard sent then completes."""
        start = self._taken(now)
        offset = first - self.set["base"]
        for unit in range(-(-offset // UNIT), (offset + sectors) // UNIT):
            self._look_up(unit, start, change=True)
            self._forget(unit)
            self.count.update(units_discarded=1)
        return self._finished(start + self.set["discard_ns"])

    def settle(self) -> None:
        """As after an orderly power-off."""
        self._finished(self._flushed(self.busy))

    # ---- how it begins

    def _use(self) -> None:
        """All units twice one behind the other, then at random until all lines were erased often."""
        units = self.set["units"]
        for number in range(1, 2 * units + 1):
            self._write_unit(number % units, 0)
        chance = _xorshift(self.set["seed"])
        while self.erasures < CYCLES * len(self.lines):
            self._write_unit((next(chance) >> 32) * units >> 32, 0)
        self._flushed(0)
        if self.set["begin"] == 1:
            for unit in list(self.where):
                self._forget(unit)
        self.dies = [Die() for _ in self.dies]
        self.channels = [0] * len(self.channels)
        self.latest = self.busy = self.idle = 0
        self.held.clear()
        self.count.clear()
        self.written.clear()


def _xorshift(seed: int) -> Iterator[int]:
    state = seed | 1
    while True:
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        yield state
