"""Traces of block requests: fio's iolog and text like blkparse's, written and read.

Of fio's formats version 3 has times, in microseconds, and version 2 has none (fio(1), TRACE FILE FORMAT). Of blkparse's
text (blkparse(1), its default format) the lines of requests that were issued to the driver are read: their action is D.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agelab.base.errors import InputError

Kind = Literal["read", "write", "flush", "discard"]
SECTOR = 512
IOLOG = re.compile(r"fio version ([23]) iolog")
_ACTIONS: dict[str, Kind] = {
    "read": "read",
    "write": "write",
    "sync": "flush",
    "datasync": "flush",
    "trim": "discard",
}
_WORDS: dict[Kind, str] = {"read": "read", "write": "write", "flush": "sync", "discard": "trim"}
_FILE_ACTIONS = ("add", "open", "close")
_BLKPARSE = re.compile(
    r" *(?P<device>\d{1,4},\d{1,7}) +\d{1,5} +\d{1,12} +(?P<seconds>\d{1,9})\.(?P<parts>\d{9}) +\d{1,10} +"
    r"(?P<action>[A-Z]{1,2}) +(?P<flags>[A-Z]{1,8})(?: +(?P<sector>\d{1,19}) \+ (?P<sectors>\d{1,10}))?(?: .*)?",
    re.ASCII,
)
_SUMMARY = re.compile(r"(CPU\d+|Total|Throughput|Events|Skips) ?\(.*|", re.ASCII)
"""The first line of what blkparse adds at the end."""
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
MAX_REQUESTS = 2_000_000


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """A request that a drive was sent, or the moment at which it was done."""

    microseconds: int
    """Since the beginning of the trace."""
    drive: str
    kind: Kind
    first: int
    """Its first byte on the drive."""
    size: int
    flags: str = ""
    """The kernel's letters for it (rwbs)."""
    process: str = ""
    pid: int = 0
    done: bool = False

    @property
    def forced(self) -> bool:
        """True if it must reach the medium before it is done (FUA)."""
        return "F" in self.flags.partition("W")[2] if self.kind == "write" else False


def kind_of(flags: str) -> Kind:
    """Return what a request is by the kernel's letters; an F before the rest asks for a flush first."""
    rest = flags.removeprefix("F")
    return {"W": "write", "R": "read", "D": "discard"}.get(rest[:1], "flush")  # type: ignore[return-value]


def iolog(requests: Sequence[BlockRequest]) -> Iterator[str]:
    """Yield the lines of an iolog of version 3: the requests as they were sent, in their order."""
    yield "fio version 3 iolog"
    drives = list(dict.fromkeys(request.drive for request in requests))
    for action in ("add", "open"):
        yield from (f"0 /dev/{drive} {action}" for drive in drives)
    last = 0
    for request in requests:
        if not request.done:
            last = request.microseconds
            yield f"{last} /dev/{request.drive} {_WORDS[request.kind]} {request.first} {request.size}"
    yield from (f"{last} /dev/{drive} close" for drive in drives)


def blkparse(requests: Iterable[BlockRequest], devices: dict[str, str]) -> Iterator[str]:
    """Yield lines like blkparse's: D for a request that was sent, C for one that was done; ``devices`` by name."""
    for number, request in enumerate(requests, start=1):
        seconds, parts = divmod(request.microseconds, 10**6)
        where = f" {request.first // SECTOR} + {request.size // SECTOR}" if request.size else ""
        by = "[0]" if request.done else f"[{request.process}]"
        yield (
            f"{devices[request.drive]:>7} {0:2} {number:8} {seconds:5}.{parts * 1000:09} {request.pid:5}  "
            f"{'C' if request.done else 'D'} {request.flags:>3}{where} {by}"
        )


def read(text: Iterable[str], name: str) -> list[BlockRequest]:
    """Return the requests of an iolog (version 2 or 3) or of blkparse's text, in their order.

    Raises InputError that names each line which is none, twenty of them at most.
    """
    wrong: list[str] = []
    requests: list[BlockRequest] = []
    version: int | None = None
    for number, line in enumerate(text, start=1):
        line = line.rstrip("\r\n")
        if number == 1 and (header := IOLOG.fullmatch(line)):
            version = int(header[1])
            continue
        try:
            request = _of_iolog(line, version) if version else _of_blkparse(line)
        except ValueError as error:
            if not version and _SUMMARY.fullmatch(line):
                break
            wrong.append(f"{name}:{number}: {error}")
            if len(wrong) == 20:
                break
            continue
        if request:
            requests.append(request)
        if len(requests) > MAX_REQUESTS:
            raise InputError(f"{name}:{number}: more than {MAX_REQUESTS:,} requests")
    if wrong:
        raise InputError(
            "\n".join(wrong), hint="a trace is fio's iolog or blkparse's text (docs/howto/workloads.md)"
        )
    if not requests:
        raise InputError(f"{name}: there is no request in it")
    return requests


def _of_iolog(line: str, version: int) -> BlockRequest | None:
    words = line.split(" ")
    at = _number(words.pop(0), "time") if version == 3 and words else 0
    if len(words) == 2 and words[1] in _FILE_ACTIONS:
        return None
    if len(words) != 4 or words[1] not in _ACTIONS:
        raise ValueError(f"is no line of an iolog: {line[:60]!r}")
    kind = _ACTIONS[words[1]]
    first, size = _number(words[2], "offset"), _number(words[3], "length")
    if kind != "flush":
        _require_sectors(first, size)
    return BlockRequest(at, words[0].removeprefix("/dev/"), kind, first, 0 if kind == "flush" else size)


def _of_blkparse(line: str) -> BlockRequest | None:
    match = _BLKPARSE.fullmatch(line)
    if match is None:
        raise ValueError(f"is no line of blkparse's: {line[:60]!r}")
    if match["action"] != "D":
        return None
    kind = kind_of(match["flags"])
    first, size = int(match["sector"] or 0) * SECTOR, int(match["sectors"] or 0) * SECTOR
    if kind != "flush":
        _require_sectors(first, size)
    at = int(match["seconds"]) * 10**6 + int(match["parts"]) // 1000
    return BlockRequest(at, match["device"], kind, first, size, match["flags"])


def _require_sectors(first: int, size: int) -> None:
    if first % SECTOR or size % SECTOR or not size:
        raise ValueError(f"{first} + {size} bytes are no whole sectors of {SECTOR}")


def _number(word: str, what: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{what} {word[:30]!r} is no number")
    return int(word)


BEGIN_MARK = "begin"
"""What the guest writes among the events when a step is about to begin."""
_EVENT = re.compile(
    r" *(?P<process>.{1,20})-(?P<pid>\d{1,10}) +(?:\([^)]*\) +)?\[\d+\] +\S+ +(?P<at>\d{1,10}\.\d{6}): (?P<rest>.*)",
    re.ASCII,
)
_REQUEST = re.compile(
    r"block_rq_(?P<what>issue|complete): (?P<device>\d+,\d+) (?P<flags>[A-Z]{1,8}) (?:\d+ )?\(.*?\) "
    r"(?P<sector>\d{1,20}) \+ (?P<sectors>\d{1,10}).*",
    re.ASCII,
)
_EMPTY = 2**64 - 1
"""The sector of a flush, on some kernels."""


class UnreadableEvents(Exception):
    """What a guest has recorded is no list of events. The message is the reason, in one line."""


def read_events(lines: Iterable[str], drives: Mapping[str, str], dilation: float) -> list[BlockRequest]:
    """Return the requests after the mark, with the machine's time since it; ``drives`` names the devices.

    Raises UnreadableEvents.
    """
    begun: int | None = None
    requests: list[BlockRequest] = []
    for line in lines:
        event = _EVENT.fullmatch(line)
        if event is None:
            raise UnreadableEvents(f"no event: {line[:60]!r}")
        seconds, parts = event["at"].split(".")
        at = int(seconds) * 10**6 + int(parts)
        if event["rest"] == f"tracing_mark_write: {BEGIN_MARK}":
            begun, requests = at, []
            continue
        request = _REQUEST.fullmatch(event["rest"])
        device = request["device"].replace(",", ":") if request else ""
        if request is None or device not in drives:
            raise UnreadableEvents(f"no request of a drive: {event['rest'][:60]!r}")
        sectors, sector = int(request["sectors"]), int(request["sector"])
        requests.append(
            BlockRequest(
                microseconds=round((at - (begun or at)) * dilation),
                drive=drives[device],
                kind=kind_of(request["flags"]),
                first=0 if sector == _EMPTY else sector * SECTOR,
                size=sectors * SECTOR,
                flags=request["flags"],
                process=event["process"].strip(),
                pid=int(event["pid"]),
                done=request["what"] == "complete",
            )
        )
    if begun is None:
        raise UnreadableEvents("it does not say when the step began")
    return requests
