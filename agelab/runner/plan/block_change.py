"""What the user changes of a machine's block layer and of write-back: ``--block scheduler=bfq,read_ahead_kib=128``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agelab.base.errors import InputError, did_you_mean
from agelab.base.sanitize import parse_digits
from agelab.scenario.block_layer import PARAMETERS, SCHEDULERS, BlockLayer
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.machine import Machine
from agelab.scenario.scenario import MemoryUse, Scenario

OPTION = "--block"
ORIGIN = "estimated"
"""Origin of a figure that the user gives."""
QUEUE = ("scheduler", "requests", "read_ahead_kib", "writeback_throttle_us")
"""Keys of the queue of a modelled drive, beside the scheduler's parameters."""
DIRTY = ("dirty_percent", "dirty_background_percent")
INODES = "inode_readahead_blks"
_PARAMETERS = tuple(dict.fromkeys(name for names in PARAMETERS.values() for name in names))
KEYS = (*QUEUE, *DIRTY, INODES, *_PARAMETERS)
MAX_NUMBER = 2**31 - 1
MAX_INODE_BLOCKS = 2**30
"""Limit of ext4's inode_readahead_blks."""


@dataclass(frozen=True)
class BlockChange:
    """Values in place of those of the machine, the scenario and the filesystem."""

    scheduler: str | None
    numbers: Mapping[str, int]
    """Every other key."""

    @classmethod
    def parse(cls, text: str) -> "BlockChange":
        """Read ``key=value`` words with commas between them. Raises InputError with every error, a line for each."""
        scheduler: str | None = None
        numbers: dict[str, int] = {}
        problems: list[str] = []
        for word in text.split(","):
            key, _, value = (part.strip() for part in word.partition("="))
            number = parse_digits(value, MAX_NUMBER)
            if key in numbers or (key == "scheduler" and scheduler is not None):
                problems.append(f"{key} is given twice")
            elif key == "scheduler":
                scheduler = value
                if value not in SCHEDULERS:
                    near = did_you_mean(value, SCHEDULERS) or f"there are: {', '.join(SCHEDULERS)}"
                    problems.append(f"no scheduler {value!r}; {near}")
            elif key not in KEYS:
                near = did_you_mean(key, KEYS) or f"there are: {', '.join(KEYS)}"
                problems.append(f"no key {key!r}; {near}")
            elif number is None:
                problems.append(f"{key}={value!r} is not a whole number from 0 to {MAX_NUMBER}")
            else:
                numbers[key] = number
        problems += _beyond(numbers)
        if problems:
            raise InputError("\n".join(f"{OPTION} {text!r}: {problem}" for problem in problems))
        return cls(scheduler, numbers)

    @property
    def of_queue(self) -> list[str]:
        """The keys that only a modelled drive has a use for."""
        named = ["scheduler"] if self.scheduler else []
        return named + [key for key in self.numbers if key in (*QUEUE, *_PARAMETERS)]

    @property
    def inode_read_ahead(self) -> int | None:
        """The blocks of an inode table that ext4's driver reads ahead."""
        return self.numbers.get(INODES)

    def machine(self, machine: Machine) -> Machine:
        """Return the machine with this block layer. Raises InputError where its scheduler lacks a parameter.

        Another scheduler than the machine's begins with the kernel's own parameters.
        """
        block = machine.block
        settings = block.model_dump()
        if self.scheduler and self.scheduler != block.scheduler.value:
            settings |= {"scheduler": _given(self.scheduler), "parameters": {}}
        for key, value in self.numbers.items():
            if key in QUEUE:
                settings[key] = _given(value)
            elif key in _PARAMETERS:
                settings["parameters"] = {**settings["parameters"], key: _given(value)}
        if settings["scheduler"]["value"] == "none" and "requests" in self.numbers:
            raise InputError(f"{OPTION}: scheduler none holds no requests: leave requests out, or name another")
        try:
            changed = BlockLayer.model_validate(settings)
        except ValidationError as error:
            problems = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
            raise InputError(f"{OPTION}: machine {machine.name}: {problems}") from error
        return machine.model_copy(update={"block": changed})

    def scenario(self, scenario: Scenario) -> Scenario:
        """Return the scenario with these limits on dirty pages. Raises InputError where they contradict each other."""
        limits = {key: _given(self.numbers[key]) for key in DIRTY if key in self.numbers}
        if not limits:
            return scenario
        memory = MemoryUse.model_validate(scenario.memory.model_dump() | limits)
        upper, lower = memory.dirty_percent.value, memory.dirty_background_percent.value
        if lower >= upper:
            raise InputError(
                f"{OPTION}: dirty_background_percent is {lower:g}, which is not below dirty_percent, {upper:g}",
                hint="name both",
            )
        return scenario.model_copy(update={"memory": memory})

    def require_use(self, filesystems: Sequence[Filesystem], *, modelled: bool) -> None:
        """Raise InputError for keys that none of the cells has a use for."""
        if (keys := self.of_queue) and not modelled:
            raise InputError(
                f"{OPTION}: {keys[0]} is of the queue before a modelled drive, and no cell has one",
                hint="name one with --disks model:<drive>, or leave it out",
            )
        if INODES in self.numbers and not any(is_served_by_ext4(filesystem) for filesystem in filesystems):
            named = ", ".join(sorted({filesystem.name for filesystem in filesystems}))
            raise InputError(f"{OPTION}: {INODES} is a mount option of ext2, ext3 and ext4, not of {named}")


def is_served_by_ext4(filesystem: Filesystem) -> bool:
    """Return True for a filesystem of ext4's driver, which serves ext2 and ext3 as well."""
    return "ext4" in filesystem.modules


def _beyond(numbers: Mapping[str, int]) -> list[str]:
    """Return what is wrong with numbers that no machine or scheduler decides on."""
    problems = [f"{key} is {numbers[key]}, and not 1 to 100" for key in DIRTY if not 1 <= numbers.get(key, 1) <= 100]
    blocks = numbers.get(INODES, 0)
    if blocks & (blocks - 1) or blocks > MAX_INODE_BLOCKS:
        problems.append(f"{INODES} is {blocks}: it is 0 or a power of two, {MAX_INODE_BLOCKS} at most")
    return problems


def _given(value: int | str) -> dict[str, Any]:
    return {"value": value, "origin": ORIGIN, "note": f"given with {OPTION}"}
