"""The modelled drive's C files, compiled for the host and called from Python."""

import ctypes
from pathlib import Path
from typing import NamedTuple

from agelab.base import process
from agelab.machine.drive import used

SOURCES = Path(__file__).parents[2] / "harness" / "drive"
PURE = [SOURCES / f"{name}.c" for name in used.PURE]
PROBE = Path(__file__).with_name("probe.c")
STATISTICS = (
    *(
        "requests",
        "reads",
        "writes",
        "sectors_read",
        "sectors_written",
        "sequential",
        "blocks",
        "seeks",
        "seek_cylinders",
    ),
    *("flash_reads", "units_programmed", "units_moved", "units_discarded", "blocks_erased", "gc_wait_ns"),
    *("busy_overhead_ns", "busy_seek_ns", "busy_rotation_ns", "busy_transfer_ns", "cache_hits", "flushes"),
)
_WIDTH = 5


class Pass(NamedTuple):
    """One movement of the arm: from when to when, over which sectors, and whether it wrote them."""

    start: int
    done: int
    first: int
    end: int
    write: bool


def compiled(output: Path, *flags: str, extra: tuple[Path, ...] = ()) -> Path:
    """The pure files and the probe, linked into ``output``."""
    always = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}", "-Wl,--wrap=arm_pass"]
    sources = [str(path) for path in (*PURE, PROBE, *extra)]
    process.run(["gcc", *always, *flags, "-o", str(output), *sources], timeout=60)
    return output


class Library:
    """The compiled files as a library."""

    def __init__(self, path: Path) -> None:
        self._dll = ctypes.CDLL(str(path))
        u64, pointer = ctypes.c_uint64, ctypes.c_void_p
        rows = ctypes.POINTER(ctypes.POINTER(u64))
        for name, result, arguments in (
            ("probe_new", pointer, []),
            ("probe_free", None, [pointer]),
            ("probe_set", ctypes.c_bool, [pointer, ctypes.c_char_p, ctypes.c_int64]),
            ("probe_get", u64, [pointer, ctypes.c_char_p]),
            ("probe_kind", None, [pointer, u64]),
            ("probe_attach", None, [pointer]),
            ("probe_use", None, [pointer, u64, ctypes.c_bool]),
            ("probe_map", pointer, [pointer]),
            ("ftl_bytes", u64, [pointer]),
            ("probe_wear", u64, [pointer, u64]),
            ("probe_law", ctypes.c_char_p, [pointer]),
            ("probe_zone", ctypes.c_bool, [pointer, u64, u64]),
            ("probe_seek", ctypes.c_bool, [pointer, u64, u64]),
            ("probe_extents", u64, [pointer]),
            ("probe_written", u64, [pointer, rows]),
            ("probe_passes", u64, [pointer, rows]),
            ("drive_init", ctypes.c_char_p, [pointer]),
            ("drive_read", u64, [pointer, u64, u64, u64]),
            ("drive_write", u64, [pointer, u64, u64, ctypes.c_bool, u64]),
            ("drive_flush", u64, [pointer, u64]),
            ("drive_discard", u64, [pointer, u64, u64, u64]),
            ("drive_advance", None, [pointer, u64]),
            ("drive_settle", None, [pointer]),
            ("drive_reach", u64, [pointer, u64, u64]),
            ("geometry_turn", u64, [pointer, u64]),
            ("geometry_behind", u64, [pointer, u64]),
            ("geometry_sector", u64, [pointer, u64]),
            ("geometry_track", u64, [pointer, u64]),
            ("geometry_seek_ns", u64, [pointer, u64]),
            ("geometry_rotation_ns", u64, [pointer, u64, u64]),
            ("write_cache_size", u64, [pointer]),
            ("write_cache_has", ctypes.c_bool, [pointer, u64, u64]),
            ("write_cache_next", u64, [pointer]),
            ("write_cache_takes", ctypes.c_bool, [pointer, u64, u64, ctypes.c_bool]),
        ):
            function = getattr(self._dll, name)
            function.restype, function.argtypes = result, arguments

    def drive(self, text: str) -> "Native":
        """A drive of these settings, as the module is given them."""
        return Native(self._dll, text)


class Native:
    """One drive."""

    def __init__(self, dll: ctypes.CDLL, text: str) -> None:
        self._dll, self._at = dll, dll.probe_new()
        words = dict(word.split("=", 1) for word in text.split())
        begin, seed = int(words.pop("begin", 0)), int(words.pop("seed", 0))
        for name, value in words.items():
            self._word(name, value)
        wrong = dll.drive_init(self._at)
        if wrong:
            raise ValueError(wrong.decode())
        if words["kind"] == "ssd":
            if begin:
                dll.probe_use(self._at, seed, begin == 1)
            dll.probe_attach(self._at)

    def __del__(self) -> None:
        self._dll.probe_free(self._at)

    def _word(self, name: str, value: str) -> None:
        if name == "kind":
            self._dll.probe_kind(self._at, ("disk", "flash", "ssd").index(value))
        elif name == "zones":
            for zone in value.split(","):
                if not self._dll.probe_zone(self._at, *map(int, zone.split(":"))):
                    raise ValueError("too many zones")
        elif name == "seek":
            for point in value.split(","):
                if not self._dll.probe_seek(self._at, *map(int, point.split(":"))):
                    raise ValueError("too many points of a seek curve")
        elif name != "name" and not self._dll.probe_set(self._at, name.encode(), int(value)):
            raise KeyError(name)

    def read(self, first: int, sectors: int, now: int) -> int:
        """When a read sent at ``now`` completes."""
        return int(self._dll.drive_read(self._at, first, sectors, now))

    def write(self, first: int, sectors: int, now: int, *, through: bool = False) -> int:
        """When a write sent at ``now`` completes."""
        return int(self._dll.drive_write(self._at, first, sectors, through, now))

    def flush(self, now: int) -> int:
        """When a flush sent at ``now`` completes."""
        return int(self._dll.drive_flush(self._at, now))

    def discard(self, first: int, sectors: int, now: int) -> int:
        """When a discard sent at ``now`` completes."""
        return int(self._dll.drive_discard(self._at, first, sectors, now))

    def reattach(self) -> None:
        """Go on with what a solid-state drive keeps while its power is off."""
        self._dll.probe_attach(self._at)

    def map_bytes(self) -> int:
        """How much a solid-state drive keeps while its power is off."""
        return int(self._dll.ftl_bytes(self._at))

    def map(self) -> bytes:
        """What it keeps."""
        return ctypes.string_at(self._dll.probe_map(self._at), self.map_bytes())

    def wear(self) -> list[int]:
        """How often each line was erased."""
        return [int(self._dll.probe_wear(self._at, line)) for line in range(self.get("lines"))]

    def broken_law(self) -> str | None:
        """What is wrong with a solid-state drive's map."""
        wrong = self._dll.probe_law(self._at)
        return wrong.decode() if wrong else None

    def advance(self, now: int) -> None:
        """Let the drive work by itself until ``now``."""
        self._dll.drive_advance(self._at, now)

    def next(self) -> int:
        """When it will next have done something by itself, or 0."""
        return int(self._dll.write_cache_next(self._at))

    def settle(self) -> None:
        """As after an orderly power-off."""
        self._dll.drive_settle(self._at)

    def reach(self, first: int, now: int) -> int:
        """Nanoseconds of positioning."""
        return int(self._dll.drive_reach(self._at, first, now))

    def seek(self, cylinders: int) -> int:
        """Nanoseconds of a seek."""
        return int(self._dll.geometry_seek_ns(self._at, cylinders))

    def turn(self, sector: int) -> int:
        """The point of the spiral at which a sector begins."""
        return int(self._dll.geometry_turn(self._at, sector))

    def behind(self, end: int) -> int:
        """The point at which the sector before it has passed."""
        return int(self._dll.geometry_behind(self._at, end))

    def sector(self, turn: int) -> int:
        """The sector at a point of the spiral."""
        return int(self._dll.geometry_sector(self._at, turn))

    def track(self, sector: int) -> int:
        """The track a sector is on."""
        return int(self._dll.geometry_track(self._at, sector))

    def rotation(self, sector: int, now: int) -> int:
        """How long until a sector comes under the head."""
        return int(self._dll.geometry_rotation_ns(self._at, sector, now))

    def cache_size(self) -> int:
        """Sectors of the write cache."""
        return int(self._dll.write_cache_size(self._at))

    def takes(self, first: int, sectors: int, *, through: bool) -> bool:
        """Return True if a write stays in the write cache."""
        return bool(self._dll.write_cache_takes(self._at, first, sectors, through))

    def cached(self, first: int) -> bool:
        """Return True if the write cache has a sector."""
        return bool(self._dll.write_cache_has(self._at, first, first + 1))

    def extents(self) -> int:
        """How many extents wait."""
        return int(self._dll.probe_extents(self._at))

    def get(self, name: str) -> int:
        """A word of the settings, the statistics or the state."""
        return int(self._dll.probe_get(self._at, name.encode()))

    def statistics(self) -> dict[str, int]:
        """All that both implementations count."""
        return {name: self.get(name) for name in STATISTICS}

    def _rows(self, taken: str) -> list[tuple[int, ...]]:
        rows = ctypes.POINTER(ctypes.c_uint64)()
        count = getattr(self._dll, taken)(self._at, ctypes.byref(rows))
        return [tuple(rows[_WIDTH * i : _WIDTH * (i + 1)]) for i in range(count)]

    def take_written(self) -> list[tuple[int, int]]:
        """Return the sectors that reached the platters from the cache since the last call, in order."""
        return [(first, end) for first, end, _ in self.take_kept()]

    def take_kept(self) -> list[tuple[int, int, int]]:
        """Return these sectors, and when they reached the platters."""
        return [(row[0], row[1], row[2]) for row in self._rows("probe_written")]

    def take_passes(self) -> list[Pass]:
        """Return the arm's moves since the last call, in order."""
        return [Pass(start, done, first, end, bool(w)) for start, done, first, end, w in self._rows("probe_passes")]
