"""Reads a block trace: the requests to one of its devices, and how many of its lines are none.

A device of blkparse's text that has no event D, such as one of the device mapper's, has its events Q read.

A reader takes a line and returns a request, or the kind of a line that is none. Of blkparse's text (blkparse(1), its
default format) a request is an event D, issued to the driver, or Q, queued. Of fio's iologs (fio(1), TRACE FILE FORMAT)
version 3 has times, in microseconds, and version 2 has none.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from agelab.base.errors import InputError, name_some
from agelab.machine.block_trace.requests import SECTOR, BlockRequest, Kind, kind_of

HINT = "docs/howto/workloads.md lists the traces that are read"


class Queued(BlockRequest):
    """A request to a device, which may send it on in other pieces, or to other devices."""

    __slots__ = ()


class Refused(BlockRequest):
    """A request that was issued, and that the driver did not take: it is issued again."""

    __slots__ = ()


_DIGITS = re.compile(r"\d{1,19}", re.ASCII)
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
Reader = Callable[[str], BlockRequest | str]
"""Returns the request of a line, or the kind of a line that is none. Raises ValueError with the reason."""


@dataclass(frozen=True)
class Format:
    """A format of traces, by its reader."""

    read: Reader
    table: bool = False
    """True if its times are of a calendar, or its lines not in their order: the first request of a device is at 0."""


def format_of(head: Sequence[str], name: str) -> Format:
    """Return the format in which most of the first lines are. Raises InputError for a file that is no trace."""
    lines = [line.rstrip("\r\n") for line in head if line.strip()]
    if not lines:
        raise InputError(f"{name}: it is empty", hint=HINT)
    if version := _HEADER.match(lines[0]):
        if version[1] in _VERSIONS:
            return Format(_behind_header(_VERSIONS[version[1]]))
        raise InputError(f"{name}:1: an iolog of version {version[1]}: versions 2 and 3 are read", hint=HINT)
    fits = {form: sum(_fits(form, line) for line in lines) for form in _FORMATS}
    likely = max(fits, key=lambda form: fits[form])
    if fits[likely]:
        return likely
    if any(_BINARY.search(line) for line in lines):
        raise InputError(
            f"{name}: it is binary",
            hint="unpack what is compressed; of blktrace's own files, `blkparse -i FILE` makes the text that is read",
        )
    if any(_KINDS.keys() & line.rsplit(None, 3)[1:2] for line in lines):
        raise InputError(
            f"{name}:1: lines of an iolog without its header",
            hint="its first line is `fio version 2 iolog`, or, where a time in microseconds begins each line, 3",
        )
    raise InputError(f"{name}:1: none of the traces that are read begins so: {lines[0][:60]!r}", hint=HINT)


def _fits(form: Format, line: str) -> bool:
    try:
        return form.read(line) != _SUMMARY_LINE
    except ValueError:
        return False


# ---- fio's iolog ----

_HEADER = re.compile(r"fio version (\d{1,3}) iolog\s*", re.ASCII)
_KINDS: dict[str, Kind] = {"read": "read", "write": "write", "sync": "flush", "datasync": "flush", "trim": "discard"}
_NO_TRANSFER = ("add", "open", "close", "unlink", "wait", "sync_file_range")
"""What fio logs and is no request. ``wait`` has a number to which fio's page and its program give two meanings."""


def _iolog_2(line: str, at: int = 0) -> BlockRequest | str:
    words = line.rsplit(None, 3)  # a name may have blanks
    if len(words) == 4 and words[1] in _KINDS:
        file, action = words[0].removeprefix("/dev/"), words[1]
        return _request(at, file, _KINDS[action], _number(words[2], "offset"), _number(words[3], "length"))
    if len(words) == 4 and all(map(_DIGITS.fullmatch, words[2:])) and words[1] not in _NO_TRANSFER:
        raise ValueError(f"no action of fio's: {words[1]!r}")
    others = [word for word in words if not _DIGITS.fullmatch(word)]
    if others and others[-1] in _NO_TRANSFER:
        return others[-1]
    if _HEADER.fullmatch(line):
        raise ValueError("a second iolog begins here, for fio appends to a file that is there: keep one of them")
    raise ValueError(f"cut off, or not of the form FILE ACTION [OFFSET LENGTH]: {line[:60]!r}")


def _iolog_3(line: str) -> BlockRequest | str:
    if _HEADER.fullmatch(line):
        return _iolog_2(line)
    time, *rest = line.split(None, 1)
    return _iolog_2("".join(rest), _number(time, "time"))


def _behind_header(read_line: Reader) -> Reader:
    """Return a reader to which the first line is the header."""
    begun = False

    def read_next(line: str) -> BlockRequest | str:
        nonlocal begun
        begun, header = True, not begun
        return "header" if header else read_line(line)

    return read_next


# ---- blkparse's text ----

_EVENT_FIELDS = (
    ("device", r"(?P<device>\d{1,4},\d{1,7})"),
    ("processor", r"\d{1,5}"),
    ("number", r"\d{1,12}"),
    ("time", r"(?P<seconds>\d{1,9})\.(?P<parts>\d{9})"),
    ("process", r"\d{1,10}"),
    ("action", r"(?:[0-9a-f]{1,8},[0-9a-f]{1,8}[ \t]+)?(?P<action>[A-Za-z]{1,2})"),
    ("letters", r"(?P<flags>[A-Z]{1,8})"),
)
"""What an event begins with; a cgroup may stand before the action."""
_EVENT = re.compile(
    r"[ \t]*" + r"[ \t]+".join(field for _, field in _EVENT_FIELDS) + r"(?:[ \t]+(?P<rest>.*))?", re.ASCII
)
_SECTORS = re.compile(r"(\d{1,19}) \+ (\d{1,10})\b.*", re.ASCII)
_NO_DATA = re.compile(r"(\d{1,20} \+ 0 )?(\( *\d+\) )?\[.*", re.ASCII)
_PASSTHROUGH = re.compile(r"\d{1,10} (\(.*\) )?\[.*", re.ASCII)
ACTIONS = {
    "A": "remap (A)",
    "B": "bounce (B)",
    "C": "completed (C)",
    "F": "front merge (F)",
    "G": "get request (G)",
    "I": "inserted (I)",
    "M": "back merge (M)",
    "P": "plug (P)",
    "Q": "queued (Q)",
    "R": "requeued (R)",
    "S": "sleep (S)",
    "T": "unplug by timer (T)",
    "U": "unplug (U)",
    "UT": "unplug by timer (UT)",
    "X": "split (X)",
    "m": "message (m)",
}
"""Actions of blkparse's by which no request comes to a drive; Q does on a device that has no D."""
_REQUESTS = {"D": BlockRequest, "Q": Queued, "R": Refused}
_SUMMARY_LINE = "line of blkparse's summary"
_SUMMARY = re.compile(
    r"Input file .* added|(Throughput|Events|Skips)\b.*|(?!\d+,\d)\S.{0,63} \(.*\):?| [A-Z][A-Za-z ./]*:\s.*", re.ASCII
)


def _blkparse(line: str) -> BlockRequest | str:
    event = _EVENT.fullmatch(line)
    if event is None:
        if _SUMMARY.fullmatch(line):
            return _SUMMARY_LINE
        raise ValueError(_no_event(line))
    action, flags, rest = event["action"], event["flags"], event["rest"] or ""
    if action not in _REQUESTS:
        if action not in ACTIONS:
            raise ValueError(f"no action of blkparse's: {action!r}")
        return ACTIONS[action]
    sectors = _SECTORS.fullmatch(rest)
    size = int(sectors[2]) * SECTOR if sectors else 0
    if action == "R" and not size:
        return ACTIONS["R"]
    if not size:
        if _PASSTHROUGH.fullmatch(rest):
            return "passthrough"
        if not _NO_DATA.fullmatch(rest):
            raise ValueError(f"cut off: {line.strip()[:60]!r}")
        if not flags.startswith("F"):
            return "without data"
    kind = kind_of(flags) if size else "flush"
    if size and kind == "flush":
        return "command other than reading and writing"
    first = int(sectors[1]) * SECTOR if sectors and size else 0
    at = int(event["seconds"]) * 10**6 + int(event["parts"]) // 1000
    return _REQUESTS[action](at, event["device"], kind, first, size, flags)


def _no_event(line: str) -> str:
    """Return what is wrong with a line that should be an event of blkparse's."""
    rest = line.strip()
    for name, field in _EVENT_FIELDS:
        if not rest:
            return f"cut off before its {name}: {line.strip()[:60]!r}"
        part = re.match(rf"{field}(?:[ \t]+|$)", rest, re.ASCII)
        if part is None:
            return f"its {name} is {rest.split()[0][:30]!r}: {line.strip()[:60]!r}"
        rest = rest[part.end() :]
    return f"what follows its letters is not understood: {line.strip()[:60]!r}"


# ---- tables ----

_NUMBER = (_DIGITS.pattern, "no number")
_SECONDS = (r"\d{1,12}(\.\d{1,12})?", "no number of seconds")
_LETTER = (r"[RWrw]", "neither R nor W")


def _columns(line: str, name: str, fields: Sequence[tuple[str, tuple[str, str]]], *, more: bool = False) -> list[str]:
    """Return the columns of a line. Raises ValueError that names the one which does not fit; ``more`` may follow."""
    columns = [column.strip() for column in line.split(",")]
    if len(columns) < len(fields) or (len(columns) > len(fields) and not more):
        raise ValueError(f"it has {len(columns)} columns, and {name} {len(fields)}: {line[:60]!r}")
    for column, (field, (pattern, otherwise)) in zip(columns, fields, strict=False):
        if not re.fullmatch(pattern, column, re.ASCII):
            raise ValueError(f"its {field} is {column[:30]!r}, {otherwise}")
    return columns


_MSR = (
    ("Timestamp", _NUMBER),
    ("Hostname", (r"[^,]{1,64}", "no name")),
    ("DiskNumber", _NUMBER),
    ("Type", (r"(?i:read|write)", "neither Read nor Write")),
    ("Offset", _NUMBER),
    ("Size", _NUMBER),
    ("ResponseTime", (r"-?\d{1,19}(\.\d{1,9})?", "no number")),
)
_ALIBABA = (
    ("device_id", _NUMBER),
    ("opcode", _LETTER),
    ("offset", _NUMBER),
    ("length", _NUMBER),
    ("timestamp", _NUMBER),
)
_TENCENT = (
    ("Timestamp", _SECONDS),
    ("Offset", _NUMBER),
    ("Size", _NUMBER),
    ("IOType", (r"[01]", "neither 0 nor 1")),
    ("VolumeID", _NUMBER),
)
_SPC = (("ASU", _NUMBER), ("LBA", _NUMBER), ("size", _NUMBER), ("opcode", _LETTER), ("timestamp", _SECONDS))


def _msr(line: str) -> BlockRequest | str:
    """MSR Cambridge (Narayanan et al., FAST 2008): times in units of 100 ns, offset and size in bytes."""
    time, host, disk, kind, first, size, _ = _columns(line, "MSR Cambridge", _MSR)
    return _request(int(time) // 10, f"{host}_{disk}", _read_or_write(kind), int(first), int(size))


def _alibaba(line: str) -> BlockRequest | str:
    """Alibaba (Li et al., IISWC 2020): times in microseconds, offset and length in bytes."""
    device, kind, first, size, time = _columns(line, "Alibaba", _ALIBABA)
    return _request(int(time), device, _read_or_write(kind), int(first), int(size))


def _tencent(line: str) -> BlockRequest | str:
    """Tencent CBS (Zhang et al., USENIX ATC 2020): times in seconds, offset and size in sectors; 0 is a read."""
    time, first, size, kind, volume = _columns(line, "Tencent", _TENCENT)
    kinds: tuple[Kind, Kind] = ("read", "write")
    return _request(_microseconds(time), volume, kinds[int(kind)], int(first) * SECTOR, int(size) * SECTOR)


def _spc(line: str) -> BlockRequest | str:
    """Storage Performance Council (SPC Trace File Format 1.0.1): times in seconds, addresses in blocks of 512 bytes."""
    unit, first, size, kind, time, *_ = _columns(line, "SPC", _SPC, more=True)
    return _request(_microseconds(time), unit, _read_or_write(kind), int(first) * SECTOR, int(size))


def _table(read_line: Reader, fields: Sequence[tuple[str, tuple[str, str]]]) -> Reader:
    """Return a reader to which a line with the names of the columns is one, too."""
    names = ",".join(name for name, _ in fields).lower()

    def read_row(line: str) -> BlockRequest | str:
        return "header" if line.replace(" ", "").lower() == names else read_line(line)

    return read_row


def _read_or_write(word: str) -> Kind:
    return "read" if word[0] in "Rr" else "write"


def _microseconds(seconds: str) -> int:
    whole, _, parts = seconds.partition(".")
    return int(whole) * 10**6 + int(parts.ljust(6, "0")[:6])


def _request(at: int, device: str, kind: Kind, first: int, size: int) -> BlockRequest | str:
    if kind == "flush":
        return BlockRequest(at, device, kind, 0, 0)
    if not size:
        return f"{kind} of 0 bytes"
    if first % SECTOR or size % SECTOR:
        raise ValueError(f"{first} + {size} bytes are no whole sectors of {SECTOR}")
    return BlockRequest(at, device, kind, first, size)


def _number(word: str, what: str) -> int:
    if not _DIGITS.fullmatch(word):
        raise ValueError(f"{what} {word[:30]!r} is no number")
    return int(word)


_VERSIONS: dict[str, Reader] = {"2": _iolog_2, "3": _iolog_3}
_FORMATS = (
    Format(_blkparse),
    Format(_table(_msr, _MSR), table=True),
    Format(_table(_alibaba, _ALIBABA), table=True),
    Format(_table(_tencent, _TENCENT), table=True),
    Format(_table(_spc, _SPC), table=True),
)


MAX_REQUESTS = 2_000_000
MAX_DEVICES = 10_000
MAX_WRONG = 20
"""Wrong lines that are named."""
LISTED = 20
"""Devices that are named."""
_SAMPLE = 20
"""Lines at the beginning that say which format it is."""
_REQUEUED_WITHIN = 1000
"""Requests back, at most, to the one that a driver has refused."""


@dataclass(frozen=True)
class Trace:
    """The requests of one device, in their order, and how many lines of which kind are none of them."""

    requests: list[BlockRequest]
    skipped: dict[str, int]


def read(lines: Iterable[str], name: str, device: str = "") -> Trace:
    """Return the requests of a trace to its only device, or to the one that is chosen.

    Raises InputError for wrong lines, twenty of them at most, and where it has several devices or not the chosen one.
    """
    lines = iter(lines)
    head = [line.removeprefix("\ufeff") for line in islice(lines, _SAMPLE)]
    form = format_of(head, name)
    devices = _Devices(device.removeprefix("/dev/"))
    wrong: list[str] = []
    for number, line in enumerate(chain(head, lines), start=1):
        try:
            devices.add(form.read(line.rstrip("\r\n")) if line.strip() else "empty line")
        except ValueError as error:
            wrong.append(f"{name}:{number}: {error}")
            if len(wrong) == MAX_WRONG:
                break
        except OverflowError as error:
            raise InputError(f"{name}:{number}: {error}", hint="take a part of it") from error
    if wrong:
        raise InputError("\n".join(wrong), hint=HINT)
    trace = devices.chosen(name)
    if not form.table:
        return trace
    in_order = sorted(trace.requests, key=lambda request: request.microseconds)
    begin = in_order[0].microseconds
    requests = [replace(request, microseconds=request.microseconds - begin) for request in in_order]
    return replace(trace, requests=requests)


class _Devices:
    """Counts the requests of each device, and keeps those of one: the chosen, or else the first."""

    def __init__(self, device: str) -> None:
        self._chosen = self._kept = device
        self._issued: Counter[str] = Counter()
        self._queued: Counter[str] = Counter()
        self._requests: list[BlockRequest] = []
        self._skipped: Counter[str] = Counter()

    def add(self, request: BlockRequest | str) -> None:
        """Take the next line. Raises OverflowError for more requests or devices than are taken."""
        if isinstance(request, str):
            self._skipped[request] += 1
            return
        if isinstance(request, Refused):
            self._skipped[ACTIONS["R"]] += 1
            self._take_back(request)
            return
        self._kept = self._kept or request.drive
        queued = isinstance(request, Queued)
        counts = self._queued if queued else self._issued
        if request.drive == self._kept:
            if not queued and not counts[request.drive]:
                self._requests.clear()  # what was queued is issued later
            if not queued or not self._issued[request.drive]:
                self._requests.append(request)
        counts[request.drive] += 1
        if len(self._requests) > MAX_REQUESTS:
            raise OverflowError(f"more than {MAX_REQUESTS:,} requests to {request.drive}")
        if len(counts) > MAX_DEVICES:
            raise OverflowError(f"more than {MAX_DEVICES:,} devices")

    def _take_back(self, refused: BlockRequest) -> None:
        if not self._issued[refused.drive]:
            return
        self._issued[refused.drive] -= 1
        self._skipped["issued (D), then requeued"] += 1
        last = len(self._requests) - 1
        for at in range(last, max(-1, last - _REQUEUED_WITHIN), -1):
            issued = self._requests[at]
            if (issued.drive, issued.first, issued.size) == (refused.drive, refused.first, refused.size):
                del self._requests[at]
                return

    def chosen(self, name: str) -> Trace:
        """Return the requests of the chosen device, or the only one. Raises InputError where there is none."""
        counts = {device: self._issued[device] or count for device, count in self._queued.items()}
        counts |= {device: count for device, count in self._issued.items() if count}
        skipped = self._skipped
        if not counts:
            kinds = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
            raise InputError(
                f"{name}: there is no request in it" + (f", but lines of other kinds: {kinds}" if kinds else ""),
                hint=HINT,
            )
        names = {device: json.dumps(device, ensure_ascii=False) for device in counts}
        several = sorted(counts, key=lambda device: (-counts[device], device))
        listed = name_some([f"{names[device]} ({counts[device]})" for device in several], LISTED)
        if self._kept not in counts:
            raise InputError(
                f"{name}: no request to device {self._chosen!r} is in it",
                hint=f"choose in the history one that is, with so many requests: {listed}",
            )
        if len(counts) > 1 and not self._chosen:
            raise InputError(
                f"{name}: requests to {len(counts)} devices are in it, and a history sends those to one: {listed}",
                hint=f"choose one in the history, as in: device = {names[several[0]]}",
            )
        if others := sum(counts.values()) - counts[self._kept]:
            skipped["request to another device"] += others
        for device, queued in self._queued.items():
            if self._issued[device] > 0:
                skipped[ACTIONS["Q"]] += queued
        if self._queued[self._kept] and not self._issued[self._kept]:
            self._requests = [sent for request in self._requests for sent in _as_sent(request)]
        return Trace(self._requests, dict(sorted(skipped.items())))


def _as_sent(request: BlockRequest) -> Sequence[BlockRequest]:
    """Return what a drive is sent of a queued request: a flush before it, where an F stands in front of its letters."""
    if request.kind == "write" and request.flags.startswith("F"):
        return replace(request, kind="flush", first=0, size=0), request
    return (request,)
