"""The block layer before a machine's modelled drives: I/O scheduler, requests, read-ahead, throttling of write-back."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from agelab.base.types import Frozen, Sourced, Whole

Scheduler = Literal["none", "mq-deadline", "bfq", "kyber"]
SCHEDULERS: tuple[Scheduler, ...] = get_args(Scheduler)
PARAMETERS: Mapping[Scheduler, tuple[str, ...]] = {
    "none": (),
    "mq-deadline": (
        *("read_expire", "write_expire", "prio_aging_expire", "writes_starved", "fifo_batch", "front_merges"),
        "async_depth",
    ),
    "bfq": (
        *("slice_idle_us", "fifo_expire_sync", "fifo_expire_async", "timeout_sync", "back_seek_max"),
        *("back_seek_penalty", "max_budget", "low_latency", "strict_guarantees"),
    ),
    "kyber": ("read_lat_nsec", "write_lat_nsec"),
}
"""Parameters of each scheduler: files of ``queue/iosched`` (Documentation/block of Linux). bfq's ``slice_idle`` is
``slice_idle_us`` in milliseconds."""
MODULES: Mapping[Scheduler, tuple[str, ...]] = {
    "none": (),
    "mq-deadline": ("mq-deadline",),
    "bfq": ("bfq",),
    "kyber": ("kyber-iosched",),
}
"""Kernel modules of each scheduler."""
MIN_REQUESTS, MAX_REQUESTS = 4, 2048
"""Bounds of ``nr_requests`` (BLKDEV_MIN_RQ, MAX_SCHED_RQ)."""
PAGE_KIB = 4
"""The kernel reads ahead whole pages."""
MAX_READ_AHEAD_KIB = 1 << 20
MAX_VALUE = 2**31 - 1
"""The kernel takes parameters as int."""


class SchedulerChoice(Sourced):
    """An I/O scheduler."""

    value: Scheduler = Field(description="none, mq-deadline, bfq or kyber")


class BlockLayer(Frozen):
    """The block layer before the modelled drives of a machine.

    Its times are the machine's (harness/dilation.py). What is left out is the kernel's own, except for the scheduler
    and its requests.
    """

    scheduler: SchedulerChoice = Field(
        default=SchedulerChoice(
            value="mq-deadline", origin="estimated", note="the kernel's own before a rotating disk"
        ),
        description="I/O scheduler",
    )
    parameters: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], Whole] = Field(
        default={}, description="parameters of the scheduler, by their names in queue/iosched"
    )
    requests: Whole | None = Field(
        default=Whole(value=128, origin="inferred", note="Linux 2.6's number for every drive"),
        description="requests that the scheduler holds (nr_requests); none holds no more than the drive takes",
    )
    read_ahead_kib: Whole | None = Field(
        default=None,
        description="read-ahead of drives and arrays, KiB; by default 128, and of an array twice its stripe",
    )
    writeback_throttle_us: Whole | None = Field(
        default=None,
        description="latency to which write-back is throttled (wbt_lat_usec); 0 is never, as before Linux 4.10",
    )

    @model_validator(mode="after")
    def _kernel_can_do_it(self) -> Self:
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        """Yield everything that no kernel takes."""
        scheduler = self.scheduler.value
        known = PARAMETERS[scheduler]
        for name, figure in self.parameters.items():
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                yield f"scheduler {scheduler} has no parameter {name!r}: {has}"
            elif figure.value > MAX_VALUE:
                yield f"{name} is {figure.value}: the kernel takes {MAX_VALUE} at most"
        requests, ahead = self.requests, self.read_ahead_kib
        if requests and not MIN_REQUESTS <= requests.value <= MAX_REQUESTS:
            yield f"requests is {requests.value}: the kernel takes {MIN_REQUESTS} to {MAX_REQUESTS}"
        if ahead and (ahead.value % PAGE_KIB or ahead.value > MAX_READ_AHEAD_KIB):
            yield (f"read_ahead_kib is {ahead.value}: it is a multiple of {PAGE_KIB}, {MAX_READ_AHEAD_KIB} at most")
        if self.writeback_throttle_us and self.writeback_throttle_us.value > MAX_VALUE:
            yield f"writeback_throttle_us is {self.writeback_throttle_us.value}: the kernel takes {MAX_VALUE} at most"

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def modules(self) -> tuple[str, ...]:
        """Kernel modules of the scheduler."""
        return MODULES[self.scheduler.value]

    def to_json(self) -> dict[str, object]:
        """Return the block layer as the guest's plan has it."""
        held = self.requests if self.scheduler.value != "none" else None
        return {
            "scheduler": self.scheduler.value,
            "parameters": {name: figure.value for name, figure in sorted(self.parameters.items())},
            "requests": held.value if held else None,
            "read_ahead_kib": self.read_ahead_kib.value if self.read_ahead_kib else None,
            "writeback_throttle_us": self.writeback_throttle_us.value if self.writeback_throttle_us else None,
        }
