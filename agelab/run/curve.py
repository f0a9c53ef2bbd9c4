"""What is measured at the points of a history: each has a fork, and each fork a control; all are tested and mapped.

A boot for each fork, control and drive would take longer than what is measured, so one boot serves many disks, one
after the other, each from cold: it is mounted, the caches are dropped, its tests are done, it is unmounted.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agelab.corpus import Corpus
from agelab.disk import parse
from agelab.model.step import CONTROL_COPY, Action
from agelab.run.boots import Boot
from agelab.run.drives import BARE
from agelab.run.forks import Forks
from agelab.run.phases import AGED, CONTROL, DAYS, MAKING, Phase, step
from agelab.run.plan import AGED_MOUNT, DATA_DISK, MOUNT, commands, guest_plan, mkfs, mounted, raid
from agelab.run.spec import MIB, CellSpec
from agelab.vm.guest import MemoryDisk

PAGES = 64
"""Of a memory-backed disk the kernel takes one byte in so many for its page descriptors (struct page, 64 in 4096)."""


def forks(points: Sequence[int]) -> list[str]:
    """The names of the forks at these points and of their controls, each control behind its fork."""
    return [f"{kind}-{point}" for point in points for kind in (AGED, CONTROL)]


def boots(spec: CellSpec, corpus: Corpus, there: Forks, points: Sequence[int]) -> list[Boot]:
    """The one that makes the controls, and one for each of the drives on which all are tested."""
    if not points or not spec.scenario.curve:
        return []
    drives = enumerate(spec.scenario.curve.tested_on.items(), start=2)
    return [
        _controls(spec, corpus, there, points),
        *(_tests(spec, corpus, there, points, label, drive, day * DAYS) for day, (label, drive) in drives),
    ]


def _on(spec: CellSpec, drive: str) -> CellSpec:
    """The cell with its disk on other drives, and nothing beside."""
    machine = spec.machine.model_copy(update={"swap": None})
    return replace(spec, machine=machine, drives=(parse(drive),), claims=())


def _controls(spec: CellSpec, corpus: Corpus, there: Forks, points: Sequence[int]) -> Boot:
    """Each control made on bare memory: a new filesystem to which the tree of its fork is copied."""
    assert spec.scenario.control is not None
    drives: list[dict[str, Any]] = []
    disks, steps, attached = [], [], list[MemoryDisk]()
    wanted = spec.scenario.control
    copy = Action(name=CONTROL_COPY, run=wanted.run, deadline=wanted.deadline, sync=True, origin="inferred")
    for index, point in enumerate(points):
        name, source = f"{CONTROL}-{point}", f"{AGED}-{point}"
        first = DATA_DISK + len(attached)
        attached += [*there.attached(name, written=True), *there.attached(source)]
        disk = mounted(spec, drives, first, name, MOUNT, read_only=False)
        first += len(spec.disk.members)
        disks.append(
            {
                **disk,
                "mkfs": mkfs(spec, CONTROL, name),
                "source": mounted(spec, drives, first, source, AGED_MOUNT, read_only=True),
            }
        )
        steps.append({**step(copy, point, corpus), "disk": index})
    plan = {**_plan(spec, corpus, steps), "drives": drives, "disks": disks}
    return _boot(spec, corpus, CONTROL, DAYS, plan, attached, cache=0)


def _tests(
    spec: CellSpec, corpus: Corpus, there: Forks, points: Sequence[int], label: str, drive: str, day: int
) -> Boot:
    """Each fork and each control on a drive of that kind of its own."""
    on = _on(spec, drive)
    drives: list[dict[str, Any]] = []
    disks, steps, attached = [], [], list[MemoryDisk]()
    for index, name in enumerate(forks(points)):
        first = len(drives)
        drives += on.disk.for_guest(spec.run_seed, DATA_DISK + len(attached), first)
        attached += there.attached(name)
        kind, _, point = name.partition("-")
        disks.append(
            {
                "name": name,
                "members": [[first + drive, part] for drive, part in on.disk.members],
                "raid": raid(spec.disk, name),
                "mkfs": None,
                "source": None,
                **commands(spec, name, MOUNT),
            }
        )
        steps += [
            {**step(test, int(point), corpus), "name": f"{label}/{kind}/{test.name}", "disk": index}
            for test in spec.scenario.tests
        ]
    plan = {**_plan(spec, corpus, steps), "drives": drives, "disks": disks}
    return _boot(spec, corpus, label, day, plan, attached, cache=len(disks) * on.disk.cache_bytes)


def _plan(spec: CellSpec, corpus: Corpus, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    plain = _on(spec, f"model:{BARE}")
    return {**guest_plan(plain, corpus, Phase(MAKING, tuple(steps), 0, fork_of=AGED)), "swap": None}


def _boot(
    spec: CellSpec,
    corpus: Corpus,
    name: str,
    day: int,
    plan: dict[str, Any],
    disks: Sequence[MemoryDisk],
    cache: int,
) -> Boot:
    more = cache + sum(disk.size for disk in disks) // PAGES
    return Boot(
        name=f"{name}-",
        number=0,
        day=day,
        plan=plan,
        memory_mib=spec.memory_mib(corpus) + _pieces(more),
        disks=tuple(disks),
        prefix=f"{name}/",
    )


def more_mib(spec: CellSpec, points: int) -> int:
    """What the largest of these guests has beyond the other ones, MiB: caches of drives, and page descriptors."""
    if not spec.scenario.measured_on_the_way or not spec.scenario.curve:
        return 0
    caches = [_on(spec, drive).disk.cache_bytes for drive in spec.scenario.curve.tested_on.values()]
    return _pieces(2 * points * (max(caches) + sum(spec.disk.backing) // PAGES))


def _pieces(size: int) -> int:
    """MiB that hold so many bytes, in the steps in which guests get their memory."""
    return -(-size // (16 * MIB)) * 16
