"""Block requests: what a guest's kernel records of them, and the traces made of that.

A trace is written as fio's iolog of version 3, in microseconds (fio(1), TRACE FILE FORMAT), and as text like that of
blkparse. trace_reader.py reads traces.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["read", "write", "flush", "discard"]
SECTOR = 512
_WORDS: dict[Kind, str] = {"read": "read", "write": "write", "flush": "sync", "discard": "trim"}


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
