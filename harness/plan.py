"""The plan of one boot, as the host wrote it.

The host has validated it; here it only becomes types. Format: docs/design.md, "The plan and the events".
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Memory:
    """What the guest's memory must look like when the first step starts."""

    available: int | None
    """MemAvailable at the first step, in bytes; None leaves it as it is."""
    sysctl: dict[str, str]
    """Names below /proc/sys (``vm/dirty_ratio``) and what to write to them."""


@dataclass(frozen=True)
class Corpus:
    """The source data: a disk image that becomes a read-only mount."""

    disk: int
    """Which memory-backed disk holds it (0 is the root)."""
    size: int
    """Bytes of the image; the disk may be longer."""
    held: bool
    """Whether it is copied into RAM first and mounted from there."""


@dataclass(frozen=True)
class Disk:
    """The disk under test and the commands that make a filesystem of it."""

    disk: int
    mkfs: tuple[str, ...]
    mount: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One run of one step of the scenario."""

    name: str
    repetition: int
    run: str
    caches: str
    sync: bool
    pause: float
    expect: tuple[int, ...]
    deadline: float
    """Seconds of guest time after which the step counts as hung."""
    moves: int | None
    """Bytes that the step moves, for its throughput."""


@dataclass(frozen=True)
class Plan:
    """Everything one boot does."""

    boot: int
    first_step: int
    entropy: str
    """What fills the guest's random pool, in hex: it follows from the run seed."""
    start_at: float
    """Guest seconds since boot at which the first step starts."""
    memory: Memory
    corpus: Corpus | None
    disk: Disk | None
    environment: dict[str, str]
    steps: tuple[Step, ...]


def read(path: Path) -> Plan:
    """The plan in that file."""
    raw: dict[str, Any] = json.loads(path.read_text())
    disk = raw["disk"]
    return Plan(
        boot=raw["boot"],
        first_step=raw["first_step"],
        entropy=raw["entropy"],
        start_at=raw["start_at"],
        memory=Memory(**raw["memory"]),
        corpus=Corpus(**raw["corpus"]) if raw["corpus"] else None,
        disk=Disk(disk["disk"], tuple(disk["mkfs"]), tuple(disk["mount"])) if disk else None,
        environment=raw["environment"],
        steps=tuple(Step(**{**step, "expect": tuple(step["expect"])}) for step in raw["steps"]),
    )
