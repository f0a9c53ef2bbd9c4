"""The plan that the harness carries out: everything a cell does, and nothing about this host."""

from collections.abc import Mapping, Sequence
from typing import Any

from agelab.corpus import Corpus
from agelab.model.base import Defaults
from agelab.model.filesystem import Filesystem, FreeSpaceTool
from agelab.model.step_id import CONTROL, ForkName
from agelab.runner.plan.boot import FIRST_BOOT, BootStart, MountedAs
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_layout import DiskLayout
from agelab.runner.plan.phases import MAKING, Phase
from agelab.runner.plan.step_plan import StepPlan

FILESYSTEM_UUID = {
    "making": "6167656c-6162-4000-8000-000000000001",
    "control": "6167656c-6162-4000-8000-000000000003",
    "beside": "6167656c-6162-4000-8000-000000000004",
}
"""Every filesystem gets this UUID, and where it can be given, this hash seed. (The swap space has the second.)"""
ARRAY_UUID = {
    "making": "6167656c:61620000:00000000:00000001",
    "control": "6167656c:61620000:00000000:00000003",
}
"""The same of RAID-0 arrays."""
CORPUS_DISK, DATA_DISK = 1, 2
"""Their places among the memory-backed disks; the root is 0."""
DEVICES = "/dev/disk"
"""Where the guest finds the disk under test and forks, by name (harness.drives)."""
UNDER_TEST = "under-test"
"""The name of a boot's only disk."""
MOUNT = "/mnt"
"""Where the disk under test is."""
AGED_MOUNT, MAP_MOUNT, BESIDE_MOUNT = "/run/aged", "/run/map", "/run/beside"
"""Where the tree is that the control gets, where a disk is that is mapped, and where the filesystem beside is."""
MAP_MEMORY_MIB = 512
"""Of the guest in which nothing is timed, without what further processors take."""
RESULTS_MIB = 1024
"""Room for what a boot brings back as files."""


def guest_plan(
    spec: CellSpec,
    corpus: Corpus,
    phase: Phase,
    start: BootStart = FIRST_BOOT,
) -> dict[str, Any]:
    """The plan of one boot of a phase as JSON. Format: docs/design.md, "The plan and the events"."""
    memory = spec.scenario.memory
    drives = spec.disk.for_guest(spec.run_seed, DATA_DISK)
    source = None
    if phase.source and start.number == 0:
        first = DATA_DISK + len(spec.disk.backing)
        source = mounted(spec, drives, first, "aged", AGED_MOUNT, read_only=True)
    carries = spec.scenario.beside is not None
    image = {"disk": CORPUS_DISK, "size": corpus.size, "held": spec.held_in_ram}
    return {
        "boot": start.number,
        "first_step": start.first_step,
        "entropy": spec.entropy,
        "start_at": spec.start_at,
        "memory": {
            "available": spec.available,
            "sysctl": {
                "vm/dirty_ratio": f"{memory.dirty_percent.value:g}",
                "vm/dirty_background_ratio": f"{memory.dirty_background_percent.value:g}",
            },
        },
        "corpus": None if carries else image,
        "drives": drives,
        "disks": [
            {
                "name": UNDER_TEST,
                "members": [list(member) for member in spec.disk.members],
                "raid": raid(spec.disk, phase.name),
                "mkfs": mkfs(spec, phase.name) if phase.fresh else None,
                "source": source,
                **_under_test(spec, start.mounted),
            }
        ],
        "tell_mount": bool(spec.variant.script),
        "links": _links(spec, "/run/beside" if carries else "/run/source"),
        "swap": list(spec.disk.swap) if spec.disk.swap else None,
        "beside": _beside(spec),
        "maps": [],
        "results": None,
        "refuses": list(spec.filesystem.refuses),
        "gone": [] if start.survived is not None else list(spec.gone),  # after a cut it is what is measured
        "environment": {
            "CORPUS_SEED": str(spec.corpus_seed),
            "DEVICE": f"{DEVICES}/{UNDER_TEST}",
            **{name: str(spec.sized(figure)) for name, figure in spec.scenario.sizes.items()},
            **{name: str(spec.counted(figure)) for name, figure in spec.scenario.counts.items()},
        },
        "steps": [step_json(spec, step) for step in phase.steps],
        **_recovery(spec, phase, start.survived),
    }


def step_json(spec: CellSpec, step: StepPlan) -> dict[str, Any]:
    """A step as JSON, with the moment of its power cut where it has one."""
    return step.to_json(spec.moment(*step.cut_after) if step.cut_after else None)


def _recovery(spec: CellSpec, phase: Phase, survived: str | None) -> dict[str, Any]:
    """What is done after a power cut, in the plans of phases that have one."""
    if not any(step.cut_after for step in phase.steps):
        return {}
    filesystem, words = spec.filesystem, {"{device}": f"{DEVICES}/{UNDER_TEST}", "{mountpoint}": MOUNT}
    return {
        "recovery": {
            "repair": filled(filesystem.repair, words),
            "repair_first": filesystem.repair_first,
            "fsck": filled(filesystem.tooling(spec.defaults).fsck, words),
            "survived": survived,
        }
    }


def _under_test(spec: CellSpec, mounted_before: MountedAs | None) -> dict[str, list[str]]:
    """How the disk under test is mounted and unmounted: as its filesystem is, a script's as the script has left it."""
    found = commands(spec, UNDER_TEST, MOUNT)
    if not spec.variant.script:
        return found
    device = f"{DEVICES}/{UNDER_TEST}"
    if mounted_before:
        kind, options = mounted_before
        return {"mount": ["mount", "-t", kind, "-o", options, device, MOUNT], "umount": ["umount", MOUNT]}
    unless = 'mountpoint -q "$1" || mount "$0" "$1"'
    return {"mount": ["sh", "-c", unless, device, MOUNT], "umount": ["umount", MOUNT]}


def _links(spec: CellSpec, data: str) -> dict[str, str]:
    """Paths by which a user's scripts find things, to what they lead to."""
    if not spec.variant.script:
        return {}
    named = {spec.device: f"{DEVICES}/{UNDER_TEST}"} if spec.device else {}
    return {"/export/experiment/data": data, **named}


def map_plan(spec: CellSpec, names: Sequence[str]) -> dict[str, Any]:
    """The plan of the boot that maps forks of these names, which are attached in this order, all on bare memory."""
    drives: list[dict[str, Any]] = []
    maps = []
    if spec.disk.real:
        drives = spec.disk.for_guest(spec.run_seed, DATA_DISK)
        here = {"members": [list(member) for member in spec.disk.members], "raid": raid(spec.disk)}
        maps = [{"name": names[0], **here, **commands(spec, names[0], MAP_MOUNT, read_only=True)}]
    else:
        for number, name in enumerate(names):
            first = DATA_DISK + number * len(spec.disk.members)
            maps.append(mounted(spec, drives, first, name, MAP_MOUNT, read_only=True))
    filesystem = spec.filesystem
    tool = filesystem.free_space
    listed = tool.run if isinstance(tool, FreeSpaceTool) else None
    wanted = spec.scenario.measures
    for entry in maps:
        words = {"{device}": f"{DEVICES}/{entry['name']}", "{mountpoint}": MAP_MOUNT}
        entry["extents"] = filesystem.extents if "extents" in wanted else "none"
        entry["free"] = filled(listed, words) if listed and "free_space" in wanted else None
    results = DATA_DISK + (0 if spec.disk.real else len(names) * len(spec.disk.members))
    return {
        "boot": 0,
        "first_step": 0,
        "entropy": spec.entropy,
        "start_at": None,
        "memory": {"available": None, "sysctl": {}},
        "corpus": None,
        "drives": drives,
        "disks": [],
        "tell_mount": False,
        "links": {},
        "swap": None,
        "beside": None,
        "maps": maps,
        "results": results,
        "refuses": [],
        "gone": list(spec.gone),
        "environment": {},
        "steps": [],
    }


def mounted(
    spec: CellSpec, drives: list[dict[str, Any]], first: int, name: str, where: str, *, read_only: bool
) -> dict[str, Any]:
    """A fork whose members are the memory-backed disks from number ``first`` on: its drives are added to ``drives``."""
    members = []
    for number, (drive, part) in enumerate(spec.disk.members):
        sectors = spec.disk.drives[drive].partitions[part].sectors
        members.append([len(drives), 0])
        drives.append(
            {
                "name": f"{name}{number}",
                "settings": None,
                "real": None,
                "partitions": [{"disk": first + number, "first": 0, "sectors": sectors}],
            }
        )
    return {
        "name": name,
        "members": members,
        "raid": raid(spec.disk, name),
        **commands(spec, name, where, read_only=read_only),
    }


def mkfs(spec: CellSpec, made_by: str, name: str = UNDER_TEST) -> list[str]:
    """The command that makes a phase's filesystem on the disk of that name.

    The control's has a UUID of its own: it is mounted beside the one that it is copied from. So has each of several
    controls: mkfs.btrfs refuses one that another disk has.
    """
    if spec.variant.script:
        return ["sh", "-c", '"$0"', spec.variant.script]
    known = FILESYSTEM_UUID["beside" if spec.makes_beside else made_by if made_by == CONTROL else MAKING]
    point = ForkName.parse(name).number
    words = {
        "{uuid}": known if point is None else known.replace("-4000-", f"-4{point:03x}-"),
        "{device}": f"{DEVICES}/{name}",
        "{mountpoint}": MOUNT,
    }
    options = spec.variant.mkfs_options_for(spec.defaults)
    return filled(spec.filesystem.mkfs_command(spec.defaults, options, shrink=spec.shrink), words)


def commands(spec: CellSpec, device: str, where: str, *, read_only: bool = False) -> dict[str, list[str]]:
    """How a filesystem of the cell's kind is mounted and unmounted."""
    # A variant's options say how it is written; some of them cannot be had where nothing may be (data=journal).
    options = () if read_only else spec.variant.mount_options
    return _commands(spec.filesystem, spec.defaults, options, device, where, read_only)


def _commands(
    filesystem: Filesystem,
    defaults: Defaults,
    options: Sequence[str],
    device: str,
    where: str,
    read_only: bool = False,
) -> dict[str, list[str]]:
    words = {"{device}": f"{DEVICES}/{device}", "{mountpoint}": where}
    mount = filesystem.mount_command(defaults, options, read_only=read_only)
    return {
        "mount": filled(mount, words),
        "umount": filled(filesystem.umount_command(defaults), words),
    }


def _beside(spec: CellSpec) -> dict[str, Any] | None:
    """The filesystem beside the disk under test."""
    if spec.disk.beside is None or spec.beside is None:
        return None
    return {
        "name": "beside",
        "members": [list(spec.disk.beside)],
        "raid": None,
        **_commands(spec.beside, spec.defaults, (), "beside", BESIDE_MOUNT),
    }


def raid(disk: DiskLayout, name: str = MAKING) -> dict[str, Any] | None:
    """The array of a fork or phase; that of a control has a UUID of its own, since both are put together at once."""
    if disk.raid is None:
        return None
    chunk, metadata = disk.raid
    return {
        "chunk_kib": chunk,
        "metadata": metadata,
        "uuid": ARRAY_UUID.get(ForkName.parse(name).kind, ARRAY_UUID[MAKING]),
    }


def filled(argv: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """The command with the words put in."""
    found = list(argv)
    for name, value in words.items():
        found = [word.replace(name, value) for word in found]
    return found
