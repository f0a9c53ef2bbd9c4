"""The boots that measure at the points of a history: each point has a fork and a control, and both are tested.

A boot for each fork, control and drive would take longer than the tests themselves. So one boot serves many disks, one
after the other, each from cold: it is mounted, the caches are dropped, its tests run, it is unmounted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agelab.data.corpus import Corpus
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.forks import Forks
from agelab.runner.plan.boot import Boot
from agelab.runner.plan.cell_spec import CellSpec, memory_steps
from agelab.runner.plan.disk_plans import MOUNT, fork_on_memory, layers, mkfs, mount_and_umount
from agelab.runner.plan.guest_plan import AGED_MOUNT, DATA_DISK, plan_with_disks
from agelab.runner.plan.kept_output import DISK_VARIABLE, disk_bytes, with_keepers
from agelab.runner.plan.phases import DAYS, Phase, copying
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.step import AGED, CONTROL, ForkName, StepId


@dataclass(frozen=True)
class PointsBoot(Boot):
    """A boot at the points of a history."""

    steps: Phase | None = None
    """Its steps, as those of a phase."""
    output: MemoryDisk | None = None
    """The disk that takes what they print; None where nothing is read of it."""


def fork_names(points: Sequence[int]) -> list[str]:
    """Return the forks at these points and their controls, each control after its fork."""
    return [str(ForkName(kind, point)) for point in points for kind in (AGED, CONTROL)]


class _ManyDisks:
    """The disks of one boot, each on drives of its own."""

    def __init__(self, spec: CellSpec, forks: Forks) -> None:
        self.spec = replace(spec, machine=spec.machine.model_copy(update={"swap": None}))
        self.forks = forks
        self.drives: list[dict[str, Any]] = []
        self.disks: list[dict[str, Any]] = []
        self.attached: list[MemoryDisk] = []
        self.cache_bytes = 0

    @property
    def next_disk(self) -> int:
        """The number of the next memory-backed disk."""
        return DATA_DISK + len(self.attached)

    def add(self, name: str, *, made: bool = False) -> None:
        """Add a fork's disk, on drives like the cell's; one that is ``made`` gets a new filesystem, which is kept."""
        layout, first_drive = self.spec.disk, len(self.drives)
        self.drives += layout.to_json(self.spec.run_seed, self.next_disk, first_drive)
        self.attached += self.forks.attached(name, written=made)
        self.cache_bytes += layout.cache_bytes
        self.disks.append(
            {
                "name": name,
                "members": [[first_drive + drive, part] for drive, part in layout.members],
                "layers": layers(self.spec, name),
                "mkfs": mkfs(self.spec, CONTROL, name) if made else None,
                "source": None,
                **mount_and_umount(self.spec, name, MOUNT),
            }
        )

    def copy_from(self, name: str) -> None:
        """Copy the tree of the disk added last from that fork, on bare memory."""
        first_disk = self.next_disk
        self.attached += self.forks.attached(name)
        self.disks[-1]["source"] = fork_on_memory(self.spec, self.drives, first_disk, name, AGED_MOUNT)

    def boot(self, corpus: Corpus, name: str, day: int, steps: Sequence[StepPlan]) -> PointsBoot:
        """Return the boot that carries out these steps, each on its disk."""
        phase = with_keepers(Phase(name, tuple(steps), day))
        plan = plan_with_disks(self.spec, corpus, self.drives, self.disks, phase.steps)
        size, output = disk_bytes(phase), None
        if size:
            output = MemoryDisk(self.forks.directory / f"{phase.file_prefix}output", size, written=True)
            plan = {**plan, "environment": plan["environment"] | {DISK_VARIABLE: str(self.next_disk)}}
        return PointsBoot(
            name=phase.file_prefix,
            number=0,
            day=day,
            plan=plan,
            memory_mib=self.spec.memory_mib(corpus) + memory_steps(self.cache_bytes),
            disks=(*self.attached, *([output] if output else [])),
            phase=name,
            steps=phase,
            output=output,
        )


def copying_controls(spec: CellSpec, corpus: Corpus, forks: Forks, points: Sequence[int]) -> PointsBoot:
    """Return the boot that makes the control of each point.

    Each is a new filesystem on a drive like the cell's, with a copy of the point's tree.
    """
    many = _ManyDisks(spec, forks)
    steps = []
    for index, point in enumerate(points):
        many.add(str(ForkName(CONTROL, point)), made=True)
        many.copy_from(str(ForkName(AGED, point)))
        steps.append(replace(StepPlan.of(copying(spec.scenario), point, corpus), disk=index))
    return many.boot(corpus, CONTROL, DAYS, steps)


def testing(spec: CellSpec, corpus: Corpus, forks: Forks, names: Sequence[str]) -> Iterator[PointsBoot]:
    """Return a boot for each drive on which these forks are tested, each fork on a drive of that kind of its own."""
    assert spec.scenario.curve is not None
    for day, (label, drive) in enumerate(spec.scenario.curve.tested_on.items(), start=2):
        many = _ManyDisks(spec.on_drive(drive), forks)
        steps: list[StepPlan] = []
        for index, name in enumerate(names):
            many.add(name)
            steps += [_test(label, name, index, StepPlan.of(test, 1, corpus)) for test in spec.scenario.tests]
        yield many.boot(corpus, label, day * DAYS, steps)


def _test(label: str, fork_name: str, disk: int, test: StepPlan) -> StepPlan:
    """Return a test of a fork: the point is its repetition."""
    fork = ForkName.parse(fork_name)
    assert fork.number is not None
    return replace(test, name=str(StepId(test.name, (label, fork.kind))), repetition=fork.number, disk=disk)
