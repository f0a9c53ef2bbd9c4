"""Memory that a guest needs for the caches of its modelled drives."""

from dataclasses import replace

from agelab.disk import parse
from agelab.runner.plan.cell_spec import MIB, CellSpec


def on_drive(spec: CellSpec, drive: str) -> CellSpec:
    """The cell on other drives."""
    return replace(spec, drives=(parse(drive),), claims=())


def more_mib(spec: CellSpec, points: int) -> int:
    """What the largest of these guests has beyond the cell's other ones for the caches of their drives, MiB."""
    if not spec.scenario.tests_at_points or not spec.scenario.curve:
        return 0
    caches = [on_drive(spec, drive).disk.cache_bytes for drive in spec.scenario.curve.tested_on.values()]
    return in_memory_steps(2 * points * max(*caches, spec.disk.cache_bytes))


def in_memory_steps(size: int) -> int:
    """MiB that hold so many bytes, in the steps in which guests get their memory."""
    return -(-size // (16 * MIB)) * 16
