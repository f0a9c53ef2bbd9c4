"""Run one step as the studies did (a shell command, real programs) and measure it."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness import counters, tasks
from harness.dilation import Dilation
from harness.drives import UnderTest
from harness.events import Events
from harness.kernel import Kernel, Trouble
from harness.plan import Step

UNIT = 4096
"""Bytes that a solid-state drive maps at once."""
COUNTED = {
    "seeks": "seeks",
    "seek_distance": "seek_cylinders",
    "cache_hits": "cache_hits",
    "flushes": "flushes",
}
TIMED = {
    "busy_overhead": "busy_overhead_ns",
    "busy_seek": "busy_seek_ns",
    "busy_rotation": "busy_rotation_ns",
    "busy_transfer": "busy_transfer_ns",
    "copy_late": "copy_late_ns",
    "copy_stolen": "copy_stolen_ns",
}
FLASH = {
    "flash_reads": ("flash_reads", 1, "1"),
    "flash_programmed": ("units_programmed", UNIT, "B"),
    "flash_moved": ("units_moved", UNIT, "B"),
    "discarded": ("units_discarded", UNIT, "B"),
    "blocks_erased": ("blocks_erased", 1, "1"),
}
"""Of a solid-state drive: metric to counter, what one of it is, and the unit."""
PER_REQUEST = {"sequential_share": "sequential", "queue_depth": "queue_sum"}
"""Metric to a modelled drive's counter: taken as it is, as a time, as a mean over the requests."""
PRINTED, LINE = 4096, 4096
"""Characters that are read of what a step prints, and of a line of its error output."""
EMPTY = " \t\r\n\0"
QUOTED = 400
"""Bytes of a failed step's last words that go into the event."""


class Hung(Exception):
    """A command did not end within its deadline of guest time; ``stuck``: which tasks are, and in what."""

    def __init__(self, reason: str, stuck: list[dict[str, object]]) -> None:
        super().__init__(reason)
        self.stuck = stuck


@dataclass(frozen=True)
class Place:
    """Where steps run."""

    mountpoint: Path
    scratch: Path
    """A directory in RAM for what the commands print, which takes so much and no more."""
    disk: UnderTest | None = None
    """What is counted of the disk under test."""
    kernel: Kernel | None = None
    """Whom to listen to meanwhile."""
    dilation: Dilation = field(default_factory=Dilation)
    """Between the guest's clock and the times of plan and samples."""


@dataclass(frozen=True)
class Cut:
    """The power is cut, or something else is done, in the middle of a command."""

    at: int
    """The moment, on the monotonic clock in nanoseconds."""
    now: Callable[[int], None]
    """Does it, and gets the command's process group."""
    goes_on: bool = False
    """Whether the command does."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit status (128 + n for signal n) and the end of its error output."""

    status: int
    said: str
    refused: int | None = None
    """Where it failed for nothing but what the filesystem cannot hold: how many lines of its error output say so."""


def command(
    argv: list[str],
    place: Place,
    environment: Mapping[str, str],
    deadline: float,
    cwd: Path,
    refuses: tuple[str, ...] = (),
    printed: Path | None = None,
    cut: Cut | None = None,
) -> Outcome:
    """Run ``argv`` to its end, or to the moment of a power cut.

    Raises Hung after ``deadline`` seconds, Trouble as soon as the kernel says that it is in some.

    Waiting is a blocking poll on a pidfd: subprocess's own timeout wakes up to look, which would be measured.
    """
    errors = place.scratch / "stderr"
    with errors.open("wb") as stderr, (printed or Path(os.devnull)).open("wb") as stdout:
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=stderr, start_new_session=True,
        )  # fmt: skip
        try:
            wait(child.pid, deadline, place, cut)
        except (Hung, Trouble):
            os.killpg(child.pid, signal.SIGKILL)
            raise
        status = child.wait()
    with errors.open("rb") as stderr:
        stderr.seek(max(0, errors.stat().st_size - QUOTED))
        last_words = stderr.read().decode("ascii", "replace").strip(EMPTY)
    kept = os.statvfs(place.scratch)
    if not kept.f_bavail:
        most = kept.f_blocks * kept.f_frsize
        last_words = f"it said more than the {most} bytes that are kept, which end: {last_words}"
        refuses = ()  # nobody knows what else it could not do
    root = os.statvfs("/")
    if status and not root.f_bavail:
        most = root.f_blocks * root.f_frsize
        last_words = f"/tmp and the rest of the root, {most} bytes of memory, were full: {last_words}"
    only = refused(errors, refuses) if refuses and 0 < status < 128 else None
    return Outcome(status if status >= 0 else 128 - status, last_words, only)


def wait(pid: int, deadline: float, place: Place, cut: Cut | None = None) -> None:
    """Return when the process has ended, or cut the power. Raises Hung and Trouble."""
    kernel, after = place.kernel, place.dilation.guest_seconds(deadline)
    descriptor = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if kernel:
        poll.register(kernel.descriptor, select.POLLIN)
    started = time.monotonic_ns()
    until = started + round(after * 1e9) if cut is None else cut.at
    try:
        while True:
            ready = [ready_fd for ready_fd, _ in poll.poll(max(0, until - time.monotonic_ns()) / 1e6)]
            if kernel:
                kernel.check()
            if descriptor in ready:
                return
            if not ready and cut:
                cut.now(pid)
                if cut.goes_on:
                    cut, until = None, started + round(after * 1e9)
                    continue
            if not ready:
                blocked = tasks.stuck(pid)
                where = tasks.named(blocked)
                raise Hung(f"no end within {deadline:g} s of guest time{where and f'; {where}'}", blocked)
    finally:
        os.close(descriptor)


def refused(errors: Path, refuses: tuple[str, ...]) -> int | None:
    """How many lines tell what the filesystem cannot hold, or None where some line tells anything else."""
    expected = re.compile("|".join(f"(?:{pattern})" for pattern in refuses))
    count = 0
    with errors.open(errors="replace", newline="\n") as lines:
        for line in filter(None, map(str.strip, iter(partial(lines.readline, LINE), ""))):
            if not expected.fullmatch(line):
                return None
            count += 1
    return count


def measure(
    step: Step,
    argv: list[str],
    place: Place,
    environment: Mapping[str, str],
    events: Events,
    cwd: Path,
    refuses: tuple[str, ...] = (),
    cut: Callable[[int, int], None] | None = None,
    fail: Callable[[int], None] | None = None,
) -> Outcome:
    """Run a command between two readings of the counters and emit what lies between them.

    ``elapsed`` covers the command alone; a sync that the step asks for is a metric of its own. ``cut`` cuts the power
    where the step says so: it gets the moment at which the step began, and its process group. ``fail`` makes a drive
    fail where the step says so: it gets the moment at which the step began.
    """
    counted = (place.disk.members, place.disk.modelled) if place.disk else ((), ())
    before = counters.read(*counted)
    printed = place.scratch / "printed" if step.records else None
    cutting = None
    if cut and step.cut_after is not None:
        after = place.dilation.guest_seconds(step.cut_after)
        cutting = Cut(before.at + round(after * 1e9), partial(cut, before.at))
    if fail and step.fail_after is not None:
        failing, began = fail, before.at
        at = began + round(place.dilation.guest_seconds(step.fail_after) * 1e9)
        cutting = Cut(at, lambda _: failing(began), goes_on=True)
    refuses = (*refuses, *step.refuses)
    outcome = command(argv, place, environment, step.deadline, cwd, refuses, printed, cutting)
    at = time.monotonic_ns()
    end = counters.read(*counted)
    report(step, before, end, at - before.at, events, place)
    if step.records and printed:
        with printed.open(errors="replace") as file:
            record(file.read(PRINTED), step, events)
    if step.sync:
        started = time.monotonic_ns()
        os.sync()
        synced = place.dilation.machine_seconds(time.monotonic_ns() - started)
        events.sample(step.name, step.repetition, "sync_elapsed", synced, "s")
    if outcome.refused:
        events.sample(step.name, step.repetition, "refused", outcome.refused, "1")
    elif outcome.status not in step.expect:
        events.emit("failed", step=step.name, repetition=step.repetition, status=outcome.status, said=outcome.said)
    return outcome


def record(text: str, step: Step, events: Events) -> None:
    """Emit what the step has printed as samples."""
    words = text.split()
    whole = len(words) == len(step.records) and all(word.isascii() and word.isdigit() for word in words)
    for number, (metric, unit) in enumerate(step.records):
        if whole:
            events.sample(step.name, step.repetition, metric, int(words[number]), unit)
        else:
            printed = "no whole number" if len(step.records) == 1 else f"not {len(step.records)} whole numbers"
            why = f"the step printed {printed}: {text.strip()[:40]!r}"
            events.not_measured(step.name, step.repetition, metric, unit, why)


def report(
    step: Step, before: counters.Reading, after: counters.Reading, elapsed: int, events: Events, place: Place
) -> None:
    """Emit the samples of one measured command."""

    def sample(metric: str, value: float, unit: str) -> None:
        events.sample(step.name, step.repetition, metric, value, unit)

    took = place.dilation.machine_seconds
    sample("elapsed", took(elapsed), "s")
    if step.moves is not None:
        sample("throughput", round(step.moves * 1e9 / (elapsed * place.dilation.factor), 3), "B/s")
    for name in ("user", "system", "iowait", "idle"):
        ticks = getattr(after.cpu, name) - getattr(before.cpu, name)
        sample(f"cpu_{name}", took(ticks * 1e9 / counters.TICKS), "s")
    for metric, unit in (("requests", "1"), ("bytes_read", "B"), ("bytes_written", "B")):
        if before.disk and after.disk:
            sample(metric, getattr(after.disk, metric) - getattr(before.disk, metric), unit)
        else:
            events.not_measured(step.name, step.repetition, metric, unit, "the kernel keeps no counters of it")
    if before.disk and after.disk and after.disk.modelled:
        modelled(before.disk.modelled, after.disk.modelled, sample, events, step)
    else:
        why = "only a modelled drive counts the requests that follow each other"
        for metric, unit in (("dynamic_layout_score", "1"), ("request_size", "B")):
            events.not_measured(step.name, step.repetition, metric, unit, why)
    if os.path.ismount(place.mountpoint) or place.disk is None:
        used, size = counters.space(place.mountpoint)
        sample("space_used", used, "B")
        sample("fullness", round(used / size, 6), "1")


def modelled(
    before: Mapping[str, int],
    after: Mapping[str, int],
    sample: Callable[[str, float, str], None],
    events: Events,
    step: Step,
) -> None:
    """Emit what the modelled drives know of themselves."""
    grown = {name: after[name] - before[name] for name in after}
    for metric, counter in COUNTED.items():
        sample(metric, grown[counter], "1")
    for metric, counter in TIMED.items():
        sample(metric, seconds(grown[counter]), "s")
    flash(grown, sample, events, step)
    for metric, counter in PER_REQUEST.items():
        if grown["requests"]:
            sample(metric, round(grown[counter] / grown["requests"], 6), "1")
        else:
            events.not_measured(step.name, step.repetition, metric, "1", "no request reached the drive")
    if not grown["blocks"]:
        for metric, unit in (("dynamic_layout_score", "1"), ("request_size", "B")):
            events.not_measured(step.name, step.repetition, metric, unit, "no block was moved")
    else:
        moved = (grown["sectors_read"] + grown["sectors_written"]) * counters.SECTOR
        broken = grown["requests"] - grown["sequential"]
        sample("dynamic_layout_score", round(1 - broken / grown["blocks"], 6), "1")
        sample("request_size", round(moved / grown["requests"], 3), "B")


def flash(grown: dict[str, int], sample: Callable[[str, float, str], None], events: Events, step: Step) -> None:
    """Emit what the flash of solid-state drives did; nothing where there is none."""
    if "units_programmed" not in grown:
        return
    for metric, (counter, of_one, unit) in FLASH.items():
        sample(metric, grown[counter] * of_one, unit)
    sample("gc_wait", seconds(grown["gc_wait_ns"]), "s")
    if grown["sectors_written"]:
        written = grown["sectors_written"] * counters.SECTOR
        sample("write_amplification", round(grown["units_programmed"] * UNIT / written, 6), "1")
    else:
        events.not_measured(step.name, step.repetition, "write_amplification", "1", "nothing was written")


def seconds(nanoseconds: int) -> float:
    """Return a drive's time, which is the machine's, to the microsecond."""
    return round(nanoseconds / 1e9, 6)
