"""What is done with the forks of a history, and with the maps of a cell's disks: boots, the reader, pictures."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agelab.analysis import vega
from agelab.data.corpus import Corpus
from agelab.evaluate.layout import picture
from agelab.evaluate.layout.picture import MappedDisk
from agelab.evaluate.maps import DIRECTORY, DiskMap, MapReader
from agelab.machine.vm.guest import MemoryDisk
from agelab.results.result import Sample
from agelab.results.run_directory import picture_file
from agelab.runner.execute.disks import Forks
from agelab.runner.plan.cell_spec import MIB, PROCESSOR_MIB, CellSpec, memory_steps
from agelab.runner.plan.disk_plans import fork_on_memory, layers, mkfs, mount_and_umount
from agelab.runner.plan.guest_plan import DATA_DISK, MAP_MEMORY_MIB, RESULTS_MIB, Boot, map_plan, plan_with_disks
from agelab.runner.plan.passes import OUTPUT_VARIABLE, output_bytes, with_keepers
from agelab.runner.plan.phases import DAYS, Phase, copying
from agelab.runner.plan.steps import StepPlan
from agelab.scenario.guest_places import AGED_MOUNT, MOUNT
from agelab.scenario.step import AGED, CONTROL, CURVE, MAP, ForkName, StepId
from agelab.store.artefacts import file_hash


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
        size, output = output_bytes(phase), None
        if size:
            output = MemoryDisk(self.forks.directory / f"{phase.file_prefix}output", size, written=True)
            plan = {**plan, "environment": plan["environment"] | {OUTPUT_VARIABLE: str(self.next_disk)}}
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


def mapping_boot(spec: CellSpec, forks: Forks, names: Sequence[str], results: Path) -> Boot:
    """Return the boot that maps these forks; its last disk is the file ``results``."""
    attached = [] if spec.disk.real else [disk for name in names for disk in forks.attached(name)]
    return Boot(
        name=f"{MAP}-",
        number=0,
        day=3 * DAYS,
        plan=map_plan(spec, names),
        memory_mib=MAP_MEMORY_MIB + PROCESSOR_MIB * (spec.vcpus - 1),
        disks=(*attached, MemoryDisk(results, RESULTS_MIB * MIB, written=True)),
        phase=MAP,
    )


def remove(directory: Path) -> None:
    """Remove the maps from a cell's directory."""
    shutil.rmtree(directory / DIRECTORY, ignore_errors=True)


def reader(spec: CellSpec) -> MapReader:
    return MapReader(spec.filesystem, spec.scenario.measures, bool(spec.disk.layout.make))


BLOCK_MAP, SCORE = "block-map.svg", "layout-score.svg"


def draw(directory: Path, spec: CellSpec, maps: Sequence[DiskMap], samples: Sequence[Sample]) -> dict[str, str]:
    """Write the pictures beside the maps; that of the layout score only where the scenario has a curve.

    Returns each file's sha256.
    """
    pictures = {BLOCK_MAP: _draw_blocks(spec, maps)}
    if text := _draw_scores(spec, samples):
        pictures[SCORE] = text
    (directory / DIRECTORY).mkdir(exist_ok=True)
    for name, text in pictures.items():
        (directory / DIRECTORY / name).write_text(text, encoding="utf-8")
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pictures.items()}


def are_there(directory: Path, pictures: Mapping[str, str]) -> bool:
    """Return whether a cell's directory has these pictures, as they were drawn."""
    try:
        return bool(pictures) and all(
            file_hash(directory / picture_file(name)) == sha256 for name, sha256 in pictures.items()
        )
    except (OSError, ValueError):
        return False


def _title(spec: CellSpec) -> str:
    return f"{spec.variant.name}: {spec.scenario.name}, {spec.disk_bytes / 1e6:.0f} MB"


def _draw_blocks(spec: CellSpec, maps: Sequence[DiskMap]) -> str:
    at_end = {ForkName.parse(disk_map.name).kind: disk_map for disk_map in maps}
    disks = [
        MappedDisk(kind, spec.disk_bytes, at_end[kind].extents, at_end[kind].free)
        for kind in (AGED, CONTROL)
        if kind in at_end
    ]
    return picture.draw_disks(_title(spec), disks)


def _draw_scores(spec: CellSpec, samples: Sequence[Sample]) -> str | None:
    """Return the picture of the layout score over the history; None where there is none."""
    curve = spec.scenario.curve
    if curve is None:
        return None
    at_points = spec.scenario.tests_at_points
    series = {
        kind: scores for kind in ((AGED, CONTROL) if at_points else (CURVE,)) if (scores := _scores(samples, kind))
    }
    if not series:
        return None
    heading = f"{_title(spec)}: layout score over the history"
    if not at_points:
        series = {spec.variant.name: series[CURVE]}
        end = _scores(samples, AGED)
        heading += f"; at its end {end[0][1]:.3f}" if end and end[0][1] is not None else ""
    return vega.plot(heading, f"repetitions of {curve.step}", "layout score", series)


def _scores(samples: Sequence[Sample], kind: str) -> list[tuple[float, float | None]]:
    """Return the layout scores of one kind of disks, by point of the history."""
    return sorted(
        (sample.repetition, sample.value)
        for sample in samples
        if (sample.step, sample.metric) == (str(StepId(MAP, (kind,))), "layout_score")
    )
