"""The boots of a cell as data, and the plan that the harness carries out in one, with nothing about this host.

Format: docs/design.md, "The plan and the events"; the other end is harness/plan.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agelab.data.corpus import Corpus
from agelab.kernel import MissingModule
from agelab.machine.image import Image
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.plan.disk_plans import (
    MountedAs,
    companion,
    fill_in,
    fork_on_memory,
    layers,
    mkfs,
    mount_and_umount,
    mount_and_umount_under_test,
)
from agelab.runner.plan.passes import OUTPUT_VARIABLE, output_bytes
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.steps import StepPlan
from agelab.scenario.filesystem import FreeSpaceTool
from agelab.scenario.guest_places import AGED_MOUNT, BESIDE_MOUNT, SOURCE, UNDER_TEST, device
from agelab.scenario.workload import TEST


@dataclass(frozen=True)
class BootStart:
    """The start of a boot in its phase, and what the boot before it has left."""

    number: int = 0
    """The boot's number in its phase, from 0."""
    first_step: int = 0
    mounted: MountedAs | None = None
    """The mount of the disk under test by a script in an earlier boot."""
    survived: str | None = None
    """After a power cut, the content of the steps' safe place."""


FIRST_BOOT = BootStart()


@dataclass(frozen=True)
class Boot:
    """One boot, ready to start."""

    name: str
    """The prefix of its files' names in the cell's directory: the phase's name and a dash, or nothing."""
    number: int
    """The boot's number in its phase, from 0."""
    day: int
    """The date, in days after the cell's first boot."""
    plan: Mapping[str, Any]
    memory_mib: int
    disks: tuple[MemoryDisk, ...]
    """The memory-backed disks after root and corpus."""
    phase: str = ""
    """The phase in the names of its samples' steps: nothing while the disk is made."""


PROOF = "the image's proof"
"""The start of the reason where the image could not prove a filesystem; the proof's own status follows."""


def unsupported(spec: CellSpec, image: Image) -> str | None:
    """Say why this image or its kernel cannot serve the cell, or None where it can."""
    if spec.refused:
        return f"mkfs refuses its options: {spec.refused}"
    try:
        image.kernel.modules.closure(spec.modules)
    except MissingModule as missing:
        return ": ".join(filter(None, (str(missing), spec.filesystem.modules_why)))
    if why := too_small(spec):
        return why
    proof = image.proof.get((spec.filesystem.name, spec.defaults))
    if proof is None:
        return f"the image has no proof of {spec.filesystem.name} with the {spec.defaults} defaults"
    if proof.status == "unsupported":
        return proof.reason
    return None if proof.status == "ok" else f"{PROOF} {proof.status}: {proof.reason}"


def too_small(spec: CellSpec) -> str:
    """Say that the disk is too small for the filesystem; empty where it is not."""
    smallest = spec.variant.minimum_mib or spec.filesystem.minimum_mib
    if spec.disk_bytes >= smallest * MIB:
        return ""
    there = f"{spec.variant.name} has {spec.disk_bytes / MIB:.4g} MiB"
    return f"{spec.filesystem.name} needs {smallest} MiB of disk, {there}"


PLAN_DISK, CORPUS_DISK, DATA_DISK = 1, 2, 3
"""Places of the plan, the corpus and the first data disk among the memory-backed disks; the root is 0."""
SHAKEN_TIMES = 100
"""How many times as fast the clock of one processor with a shaken schedule may run: a test has as many times its
seconds."""
MAP_MOUNT = "/run/map"
"""Mount point of a disk that is mapped."""
MAP_MEMORY_MIB = 512
"""Memory of the guest that maps disks and times nothing, without that for further processors."""
RESULTS_MIB = 1024
"""Size of the results disk."""


def guest_plan(spec: CellSpec, corpus: Corpus, phase: Phase, start: BootStart = FIRST_BOOT) -> dict[str, Any]:
    source, next_disk = None, DATA_DISK + len(spec.disk.memory_disks)
    output = {}
    if output_bytes(phase):
        output = {OUTPUT_VARIABLE: str(next_disk)}
        next_disk += 1
    records = next_disk if phase.cuts(start.first_step) else None
    drives = spec.disk.to_json(spec.run_seed, DATA_DISK, records=records)
    if phase.source and start.number == 0:
        source = fork_on_memory(spec, drives, next_disk, "aged", AGED_MOUNT)
    under_test = {
        "name": UNDER_TEST,
        "members": [list(member) for member in spec.disk.members],
        "layers": layers(spec, phase.name),
        "mkfs": mkfs(spec, phase.name) if phase.fork_of is None else None,
        "source": source,
        **mount_and_umount_under_test(spec, start.mounted),
    }
    plan = plan_with_disks(spec, corpus, drives, [under_test], phase.steps)
    return plan | {
        "environment": plan["environment"] | output,
        "boot": start.number,
        "first_step": start.first_step,
        # After a power cut the filesystem's trouble is what is measured.
        "gone": [] if start.survived is not None else list(spec.shutdown_patterns),
        **_recovery(spec, phase, start.survived),
        **_failing(spec),
    }


def plan_with_disks(
    spec: CellSpec,
    corpus: Corpus,
    drives: Sequence[dict[str, Any]],
    disks: Sequence[dict[str, Any]],
    steps: Sequence[StepPlan],
) -> dict[str, Any]:
    """Return the plan of a first boot that carries out these steps on these disks."""
    memory, scenario = spec.scenario.memory, spec.scenario
    image = {"disk": CORPUS_DISK, "size": corpus.size, "held": spec.corpus_in_ram}
    modelled = any(drive["settings"] for drive in drives)
    return {
        "boot": 0,
        "first_step": 0,
        "entropy": spec.entropy,
        "dilation": spec.dilation,
        "start_at": spec.start_at,
        "memory": {
            "available": spec.available_bytes,
            "sysctl": {
                "vm/dirty_ratio": f"{memory.dirty_percent.value:g}",
                "vm/dirty_background_ratio": f"{memory.dirty_background_percent.value:g}",
                **{name: f"{value / spec.dilation:.0f}" for name, value in spec.kernel_timers.items()},
            },
        },
        "corpus": None if scenario.beside else image,
        "drives": drives,
        "block": spec.machine.block.to_json() if modelled else None,
        "copy_prices": spec.copy_prices if modelled else None,
        "disks": disks,
        "tell_mount": bool(spec.variant.script),
        "links": _links(spec),
        "swap": list(spec.disk.swap) if spec.disk.swap else None,
        "beside": companion(spec),
        "maps": [],
        "results": None,
        "refuses": list(spec.filesystem.refuses),
        "gone": list(spec.shutdown_patterns),
        "environment": step_environment(spec),
        "steps": [step.to_json(spec.cut_at(*step.cut_after) if step.cut_after else None) for step in steps],
    }


def step_environment(spec: CellSpec) -> dict[str, str]:
    """Return the environment variables of a cell's steps, beside those of the harness."""
    scenario = spec.scenario
    return {
        "CORPUS_SEED": str(spec.corpus_seed),
        "DEVICE": device(UNDER_TEST),
        **({"SEED": str(spec.run_seed)} if TEST in spec.workload.programs else {}),
        **({"SHAKEN": str(times)} if (times := _times_as_fast(spec)) > 1 else {}),
        **{name: str(spec.scaled_bytes(figure)) for name, figure in scenario.sizes.items()},
        **{name: str(spec.scaled_count(figure)) for name, figure in scenario.counts.items()},
        **spec.brought.environment,
    }


def _times_as_fast(spec: CellSpec) -> int:
    """Return how many times as fast the guest's clock may run as one that counts a processor's instructions."""
    if spec.clock == "wall":
        return 1
    return SHAKEN_TIMES if spec.schedule and spec.vcpus == 1 else spec.vcpus


def _recovery(spec: CellSpec, phase: Phase, survived: str | None) -> dict[str, Any]:
    """Return the part about recovery, in the plans of phases with a power cut."""
    if not phase.cuts():
        return {}
    filesystem = spec.filesystem
    return {
        "recovery": {
            "repair": fill_in(filesystem.repair),
            "repair_first": filesystem.repair_first,
            "fsck": fill_in(filesystem.tooling(spec.defaults).fsck),
            "survived": survived,
        }
    }


def _failing(spec: CellSpec) -> dict[str, Any]:
    """Return the part about a drive that fails, where one does."""
    replacement = spec.disk.layout.replacement
    if spec.failure is None or replacement is None:
        return {}
    member = spec.failure.drive
    drive, _ = spec.disk.members[member]
    return {
        "failing": {
            "drive": f"drive{drive}",
            "member": member,
            "commands": replacement.commands,
            "fsck": fill_in(spec.filesystem.tooling(spec.defaults).fsck),
        }
    }


def _links(spec: CellSpec) -> dict[str, str]:
    """Return the paths that a user's scripts use, and the paths that they lead to."""
    if not spec.variant.script:
        return {}
    data = BESIDE_MOUNT if spec.scenario.beside else SOURCE
    named = {spec.device: device(UNDER_TEST)} if spec.device else {}
    return {"/export/experiment/data": data, **named}


def map_plan(spec: CellSpec, names: Sequence[str]) -> dict[str, Any]:
    """Return the plan of the boot that maps forks of these names, attached in this order, or a real disk under test."""
    drives: list[dict[str, Any]] = []
    results = DATA_DISK
    if spec.disk.real:
        drives = spec.disk.to_json(spec.run_seed, DATA_DISK)
        here = {"members": [list(member) for member in spec.disk.members], "layers": layers(spec)}
        [name] = names
        forks = [{"name": name, **here, **mount_and_umount(spec, name, MAP_MOUNT, read_only=True)}]
    else:
        forks = []
        for name in names:
            forks.append(fork_on_memory(spec, drives, results, name, MAP_MOUNT))
            results += len(spec.disk.members)
    return {
        "boot": 0,
        "first_step": 0,
        "entropy": spec.entropy,
        "dilation": 1.0,
        "start_at": None,
        "memory": {"available": None, "sysctl": {}},
        "corpus": None,
        "drives": drives,
        "block": None,
        "copy_prices": None,
        "disks": [],
        "tell_mount": False,
        "links": {},
        "swap": None,
        "beside": None,
        "maps": [fork | _questions(spec, name) for fork, name in zip(forks, names, strict=True)],
        "results": results,
        "refuses": [],
        "gone": list(spec.shutdown_patterns),
        "environment": {},
        "steps": [],
    }


def _questions(spec: CellSpec, name: str) -> dict[str, Any]:
    """Return the part of the plan that asks for a fork's extents and free space."""
    tool, measures = spec.filesystem.free_space, spec.scenario.measures
    free = None
    if isinstance(tool, FreeSpaceTool) and "free_space" in measures:
        free = fill_in(tool.run, name, mount_point=MAP_MOUNT)
    return {"extents": spec.filesystem.extents if "extents" in measures else "none", "free": free}
