"""What is measured at the points of a history: each has a fork, and each fork a control; all are tested and mapped.

A boot for each fork, control and drive would take longer than what is measured, so one boot serves many disks, one
after the other, each from cold: it is mounted, the caches are dropped, its tests are done, it is unmounted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agelab.corpus import Corpus
from agelab.model.step_id import AGED, CONTROL, ForkName, StepId
from agelab.runner.execute.forks import Forks
from agelab.runner.plan.boot import Boot
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.drive_caches import in_memory_steps, on_drive
from agelab.runner.plan.guest_plan import (
    AGED_MOUNT,
    DATA_DISK,
    MOUNT,
    commands,
    guest_plan,
    mkfs,
    mounted,
    raid,
)
from agelab.runner.plan.phases import DAYS, MAKING, Phase, copying
from agelab.runner.plan.step_plan import StepPlan
from agelab.vm.guest import MemoryDisk


def fork_names(points: Sequence[int]) -> list[str]:
    """The names of the forks at these points and of their controls, each control behind its fork."""
    return [str(ForkName(kind, point)) for point in points for kind in (AGED, CONTROL)]


class _Many:
    """Disks of one boot, each on drives of its own."""

    def __init__(self, spec: CellSpec, there: Forks) -> None:
        # What lies beside the disk under test is of no use here.
        self.spec = replace(spec, machine=spec.machine.model_copy(update={"swap": None}))
        self.there = there
        self.drives: list[dict[str, Any]] = []
        self.disks: list[dict[str, Any]] = []
        self.attached: list[MemoryDisk] = []
        self.cache = 0

    def add(self, name: str, *, made: bool = False) -> None:
        """A fork's disk, on drives as the cell's are; one that is ``made`` gets a new filesystem, which is kept."""
        drives = self.spec.disk
        first = len(self.drives)
        self.drives += drives.for_guest(self.spec.run_seed, DATA_DISK + len(self.attached), first)
        self.attached += self.there.attached(name, written=made)
        self.cache += drives.cache_bytes
        self.disks.append(
            {
                "name": name,
                "members": [[first + drive, part] for drive, part in drives.members],
                "raid": raid(drives, name),
                "mkfs": mkfs(self.spec, CONTROL, name) if made else None,
                "source": None,
                **commands(self.spec, name, MOUNT),
            }
        )

    def copied_from(self, name: str) -> None:
        """The disk that was added last gets its tree from that fork, which lies on bare memory."""
        first = DATA_DISK + len(self.attached)
        self.attached += self.there.attached(name)
        source = mounted(self.spec, self.drives, first, name, AGED_MOUNT, read_only=True)
        self.disks[-1]["source"] = source

    def boot(self, corpus: Corpus, name: str, day: int, steps: Sequence[StepPlan]) -> Boot:
        """The boot that does these steps, each on its disk."""
        plan = guest_plan(self.spec, corpus, Phase(MAKING, tuple(steps), 0, fork_of=AGED))
        return Boot(
            name=f"{name}-",
            number=0,
            day=day,
            plan={**plan, "drives": self.drives, "disks": self.disks},
            memory_mib=self.spec.memory_mib(corpus) + in_memory_steps(self.cache),
            disks=tuple(self.attached),
            phase=name,
        )


def copying_controls(spec: CellSpec, corpus: Corpus, there: Forks, points: Sequence[int]) -> Boot:
    """The boot in which each control is made as the aged disk was, on the cell's drive: a new filesystem to which the
    tree is copied."""
    many = _Many(spec, there)
    steps = []
    for index, point in enumerate(points):
        many.add(str(ForkName(CONTROL, point)), made=True)
        many.copied_from(str(ForkName(AGED, point)))
        steps.append(replace(StepPlan.of(copying(spec.scenario), point, corpus), disk=index))
    return many.boot(corpus, CONTROL, DAYS, steps)


def testing(spec: CellSpec, corpus: Corpus, there: Forks, names: Sequence[str]) -> Iterator[Boot]:
    """A boot for each drive on which these forks are tested, each on one of that kind of its own."""
    assert spec.scenario.curve is not None
    for day, (label, drive) in enumerate(spec.scenario.curve.tested_on.items(), start=2):
        many = _Many(on_drive(spec, drive), there)
        steps = []
        for index, name in enumerate(names):
            many.add(name)
            fork = ForkName.parse(name)
            assert fork.number is not None
            steps += [
                replace(
                    StepPlan.of(test, fork.number, corpus),
                    name=str(StepId(test.name, (label, fork.kind))),
                    disk=index,
                )
                for test in spec.scenario.tests
            ]
        yield many.boot(corpus, label, day * DAYS, steps)
