"""Layout of the disk under test: of which partitions it is made, and how they are put together and taken apart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from agelab.base.types import Defaults, Frozen, Name, Sourced, Whole

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
            yield (
                f"read_ahead_kib is {ahead.value}: it is a multiple of {PAGE_KIB}, {MAX_READ_AHEAD_KIB} at most"
            )
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


PLACEHOLDER = re.compile(r"\{([a-z_]+)([0-9]*)\}")
EACH = ("member", "sectors")
"""Placeholders that carry the number of a member."""
WHOLE = ("device", "members", "uuid", "identity", "name", "number", "key")
"""Placeholders without a number."""
MOST_MEMBERS = 8
Command = Annotated[tuple[str, ...], Field(min_length=1)]
Parameter = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/-]+$")]


class LayoutMember(Frozen):
    """A partition that the disk under test is made of."""

    share: float = Field(
        gt=0, le=100, allow_inf_nan=False, description="its size, as a part of that of the disk under test"
    )
    beside: int | None = Field(
        default=None,
        ge=0,
        description="member on whose drive it lies, behind it; by default it has a drive of its own",
    )
    drive: str | None = Field(
        default=None,
        pattern=r"^model:",
        description="its drive, where the user names none; by default the machine's",
    )


class Replacement(Frozen):
    """The way to put a new drive in the place of one that has failed."""

    survives: int = Field(ge=1, description="drives that may fail at a time")
    commands: tuple[Command, ...] = Field(
        min_length=1, description="run after the last step; {failed} is the member on the new drive"
    )


class Layout(Frozen):
    """A file of scenarios/layouts/.

    Commands are argument lists. {device} is the disk that they make, {members} all members as words of their own,
    {member0} and {sectors0} a member and its sectors; {uuid} and {identity} differ between the disk and its control,
    {name} and {number} between all disks of a guest; {key} are 512 bits in hex from the run seed. Each parameter has a
    place of its own name.
    """

    name: Name = Field(description="the file's name, without its ending")
    summary: str = Field(description="the layout in one line")
    members: tuple[LayoutMember, ...] = Field(
        min_length=1, max_length=MOST_MEMBERS, description="partitions, each on a drive of its own by default"
    )
    packages: tuple[str, ...] = Field(
        default=(), description="Debian packages of the guest with its tools, beside those of every guest"
    )
    modules: tuple[str, ...] = Field(default=(), description="kernel modules; dependencies are added")
    module_parameters: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+$")], str] = Field(
        default={},
        description="module/parameter = value, set before it is put together where the kernel has it",
    )
    files: dict[Annotated[str, Field(pattern=r"^/etc/")], str] = Field(
        default={}, description="files of the guest, path to content, written before it is put together"
    )
    seeded: str = Field(min_length=1, description="what of it is fixed, and what follows from a seed")
    device: str = Field(default="", description="path of what the commands make")
    make: tuple[Command, ...] = Field(default=(), description="put new members together")
    open: tuple[Command, ...] = Field(default=(), description="put together what was made before")
    close: tuple[Command, ...] = Field(default=(), description="take it apart")
    fills: bool = Field(
        default=False,
        description="whether it is written in full when it is made: that is done after the first moment",
    )
    replacement: Replacement | None = Field(default=None, description="omitted where no drive of it may fail")
    period: dict[str, Parameter] = Field(default={}, description="parameters as in the studies' days")
    today: dict[str, Parameter] = Field(default={}, description="parameters as today")
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")

    @model_validator(mode="after")
    def _parts_hold_together(self) -> Self:
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        """Yield every contradiction in the file."""
        given = {part: bool(getattr(self, part)) for part in ("device", "make", "open", "close")}
        if len(set(given.values())) > 1:
            lacking = ", ".join(part for part, there in given.items() if not there)
            yield f"device, make, open and close go together: there is no {lacking}"
        if not self.make and (len(self.members) > 1 or self.replacement):
            yield "several members, or a replacement, need commands that put them together"
        for number, member in enumerate(self.members):
            if member.beside is not None and member.beside >= number:
                yield f"members[{number}].beside: is {member.beside}, not a member before it"
            if member.beside is not None and member.drive:
                yield f"members[{number}]: a drive of its own, or one beside another member"
        if self.period.keys() != self.today.keys():
            yield "period and today have the same parameters"
        if self.device and not self.device.startswith("/dev/"):
            yield "device: is no path of a device"
        for part, command in (("device", self.device), *self._commands()):
            for found in PLACEHOLDER.finditer(command):
                if not self._has(found[1], found[2], part):
                    yield f"{part}: {found[0]} is no placeholder of it"

    def _commands(self) -> Iterator[tuple[str, str]]:
        """Yield the commands as texts, each with its place."""
        parts = {part: getattr(self, part) for part in ("make", "open", "close")}
        if self.replacement:
            parts["replacement.commands"] = self.replacement.commands
        for part, commands in parts.items():
            yield from ((f"{part}[{number}]", " ".join(words)) for number, words in enumerate(commands))

    def _has(self, name: str, number: str, part: str) -> bool:
        """Return whether a placeholder stands for something there."""
        if name in EACH:
            return bool(number) and int(number) < len(self.members)
        if name == "failed":
            return not number and part.startswith("replacement")
        return name + number in (*WHOLE, *self.today)

    @property
    def drives(self) -> int:
        """The drives that it needs."""
        return sum(member.beside is None for member in self.members)

    def parameters(self, defaults: Defaults) -> dict[str, str]:
        """Return the parameters of a set of defaults, as words."""
        return {name: str(value) for name, value in getattr(self, defaults).items()}


def fill(commands: Sequence[Command], words: dict[str, str]) -> list[list[str]]:
    """Put words into commands; placeholders without one stay."""

    def filled(word: str) -> str:
        return PLACEHOLDER.sub(lambda found: words.get(found[1] + found[2], found[0]), word)

    return [[filled(word) for word in command] for command in commands]
