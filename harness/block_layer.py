"""The block layer before a modelled drive: what the plan wants of its queue is written, and read back.

The kernel rounds some values, and refuses others without a word. Times of the plan are the machine's; they, and the
scheduler's own, are scaled to the guest's clock (harness/dilation.py).
"""

import re
from pathlib import Path

from harness.dilation import TIMERS, Dilation
from harness.plan import BlockLayer

TICK = 10
"""Milliseconds to which kernels round the timers that they keep in ticks, at most (HZ=100)."""
TICKING = ("read_expire", "write_expire", "prio_aging_expire", "timeout_sync")
"""Timers in milliseconds that are kept in ticks."""


class Refused(Exception):
    """The kernel does not take what the plan wants: what, where and why, in words for the result."""


def set_up(queue: Path, layer: BlockLayer, dilation: Dilation) -> None:
    """Set a modelled drive's queue (``/sys/block/<drive>/queue``). Raises Refused."""
    _choose(queue, layer.scheduler)
    dilation.scale_scheduler(queue)
    for name, value in layer.parameters.items():
        scaled = dilation.guest_units(value) if name in TIMERS else value
        _write(queue, f"iosched/{name}", scaled, TICK if name in TICKING else 0)
    if layer.requests is not None:
        _write(queue, "nr_requests", layer.requests)
    if layer.read_ahead_kib is not None:
        read_ahead(queue, layer.read_ahead_kib)
    _throttle(queue, layer.writeback_throttle_us, dilation)


def read_ahead(queue: Path, kib: int) -> None:
    """Have so much read ahead. Raises Refused."""
    _write(queue, "read_ahead_kb", kib)


def _choose(queue: Path, scheduler: str) -> None:
    """Choose the scheduler. Raises Refused, with the names of those that the kernel has."""
    place, drive = queue / "scheduler", queue.parent.name
    there = re.findall(r"[\w-]+", place.read_text())
    if scheduler not in there:
        raise Refused(f"{drive}: the kernel has no I/O scheduler {scheduler}; it has: {', '.join(there)}")
    place.write_text(scheduler)
    if f"[{scheduler}]" not in (kept := place.read_text().strip()):
        raise Refused(f"{drive}: the kernel keeps {kept}, not {scheduler}")


def _throttle(queue: Path, target: int | None, dilation: Dilation) -> None:
    """Throttle write-back to a latency; None leaves it to the kernel, whose latency is scaled. Raises Refused.

    A kernel that was built without throttling, or whose scheduler switches it off, does none: so it is without it.
    """
    place = "wbt_lat_usec"
    latency = _read(queue / place)
    if target == 0 or (target is None and not latency):
        if latency:
            _write(queue, place, 0)
        return
    if target is not None:
        _write(queue, place, dilation.guest_units(target))
    elif latency and dilation.factor != 1:
        _write(queue, place, dilation.guest_units(latency))


def _read(place: Path) -> int | None:
    """The number in a file of the queue; None where the kernel has no such thing."""
    try:
        return int(place.read_text())
    except (OSError, ValueError):
        return None


def _write(queue: Path, name: str, value: int, tolerance: int = 0) -> None:
    """Write a number and see that the kernel has it, to a tolerance. Raises Refused."""
    drive = queue.parent.name
    try:
        (queue / name).write_text(str(value))
    except FileNotFoundError:
        raise Refused(f"{drive}: this kernel has no {name}") from None
    except OSError as error:
        raise Refused(f"{drive}: the kernel refuses {name} = {value}: {error.strerror}") from None
    kept = _read(queue / name)
    if kept is None or abs(kept - value) > tolerance:
        raise Refused(f"{drive}: the kernel has {name} = {kept}, not {value}")
