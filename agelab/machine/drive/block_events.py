"""The kernel's events of its block layer, as a guest prints them, read as block requests (tracefs, events/block)."""

import re
from collections.abc import Iterable, Mapping

from agelab.machine.drive.block_trace import SECTOR, BlockRequest, kind_of

MARK = "begin"
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


def read(lines: Iterable[str], drives: Mapping[str, str], dilation: float) -> list[BlockRequest]:
    """Return the requests after the mark, with the machine's time since it; ``drives`` names the devices.

    Raises UnreadableEvents.
    """
    begun: int | None = None
    found: list[BlockRequest] = []
    for line in lines:
        event = _EVENT.fullmatch(line)
        if event is None:
            raise UnreadableEvents(f"no event: {line[:60]!r}")
        seconds, parts = event["at"].split(".")
        at = int(seconds) * 10**6 + int(parts)
        if event["rest"] == f"tracing_mark_write: {MARK}":
            begun, found = at, []
            continue
        request = _REQUEST.fullmatch(event["rest"])
        device = request["device"].replace(",", ":") if request else ""
        if request is None or device not in drives:
            raise UnreadableEvents(f"no request of a drive: {event['rest'][:60]!r}")
        sectors, sector = int(request["sectors"]), int(request["sector"])
        found.append(
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
    return found
