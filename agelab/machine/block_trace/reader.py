"""Reads a block trace: the requests to one of its devices, and how many of its lines are none.

A device of blkparse's text that has no event D, such as one of the device mapper's, has its events Q read.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from agelab.base.errors import InputError, name_some
from agelab.machine.block_trace.lines import ACTIONS, HINT, Queued, Refused, format_of
from agelab.machine.block_trace.requests import BlockRequest

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
                f"{name}: there is no request in it"
                + (f", but lines of other kinds: {kinds}" if kinds else ""),
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
