"""The plan that the harness carries out: everything a cell does, and nothing about this host."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

from agelab.corpus import Corpus
from agelab.disk import Claim, DriveSpec
from agelab.model.base import Defaults, Layout
from agelab.model.figure import Figure
from agelab.model.filesystem import Filesystem, FreeSpaceTool
from agelab.model.machine import Machine
from agelab.model.scenario import Scenario, Variant
from agelab.run.drives import Arrangement, arrange
from agelab.run.phases import CONTROL, MAKING, Phase
from agelab.vm.guest import DISK_ALIGNMENT, Accelerator, Clock

MIB = 1 << 20
FILESYSTEM_UUID = {
    "making": "6167656c-6162-4000-8000-000000000001",
    "control": "6167656c-6162-4000-8000-000000000003",
    "beside": "6167656c-6162-4000-8000-000000000004",
}
"""Every filesystem gets this UUID, and where it can be given, this hash seed. (The swap space has the second.)"""
FIRST_STEP = 15.0
"""Guest seconds after boot at which the first step starts: later than any guest is ready, at 2 ns an instruction."""
OVERHEAD_MIB = 128
"""What the kernel and the harness take of a guest's memory, rounded up; the ballast takes the rest away."""
LARGE_MIB, LARGE_SHARE = 256, 4
"""Of what a guest has beyond so much the kernel takes at most a quarter: page descriptors, reserves, tables of jfs."""
PROCESSOR_MIB = 8
"""What the kernel takes for each further processor, rounded up."""
ARRAY_UUID = {
    "making": "6167656c:61620000:00000000:00000001",
    "control": "6167656c:61620000:00000000:00000003",
}
"""The same of RAID-0 arrays."""
CORPUS_DISK, DATA_DISK = 1, 2
"""Their places among the memory-backed disks; the root is 0."""
BASE_MODULES = ("loop", "isofs", "dm_mod", "i6300esb")
"""What every cell needs beside its filesystem: the corpus's mount, the disk under test, the watchdog."""
REAL_MODULES = {
    "file": ("virtio_pci", "virtio_blk"),
    "block": ("virtio_pci", "virtio_blk"),
    "pci": ("nvme", "ahci", "sd_mod"),
}
"""What finds a real disk of that kind."""
DEVICES = "/dev/disk"
"""Where the guest finds the disk under test and forks, by name (harness.drives)."""
MOUNT = "/mnt"
"""Where the disk under test is."""
AGED_MOUNT, MAP_MOUNT, BESIDE_MOUNT = "/run/aged", "/run/map", "/run/beside"
"""Where the tree is that the control gets, where a disk is that is mapped, and where the filesystem beside is."""
MAP_MEMORY_MIB = 512
"""Of the guest in which nothing is timed, without what further processors take."""
RESULTS_MIB = 1024
"""Room for what a boot brings back as files."""


@dataclass(frozen=True)
class CellSpec:
    """One cell to run."""

    scenario: Scenario
    variant: Variant
    filesystem: Filesystem
    shrink: float
    """How many times smaller than the study's every size is."""
    defaults: Defaults
    run_seed: int
    corpus_seed: int
    machine: Machine
    layout: Layout = "single"
    drives: tuple[DriveSpec, ...] = ()
    """The drives that the user asked for; empty for those of the scenario."""
    claims: tuple[Claim, ...] = ()
    """The real drives among them, held for the whole run."""
    clock: Clock = "virtual"
    vcpus: int = 1
    accelerator: Accelerator = "tcg"
    """What runs the guest in the wall clock."""
    beside: Filesystem | None = None
    """What the filesystem beside the disk under test is, where the scenario has one."""
    scripts: Mapping[str, bytes] = field(default_factory=dict)
    """The user's own programs that the guest gets: file name to content."""
    device: str = ""
    """A path by which the guest finds the disk under test, too."""
    makes_beside: bool = False
    """Whether this cell makes what others have beside theirs: it has a name of its own then."""
    member_bytes: int | None = None
    """Of each member of the disk under test, where a stored disk decides it; None for the scenario's size."""

    def sized(self, figure: Figure) -> int:
        """A size of the scenario at this cell's scale: MiB at paper scale to bytes."""
        return int(figure.value * MIB / self.shrink)

    def counted(self, figure: Figure) -> int:
        """A number of the scenario at this cell's scale, one at least."""
        return max(1, round(figure.value / self.shrink))

    @cached_property
    def disk(self) -> Arrangement:
        """The drives and the disk under test. Raises InputError where they cannot be had."""
        whole = _even(self.sized(self.scenario.disk.mib))
        size = whole // 2 if self.layout == "raid0" else whole
        size = size if self.member_bytes is None else self.member_bytes
        swap = _whole(self.machine.swap.mib * MIB / self.shrink) if self.machine.swap else 0
        use, chosen = self.scenario.disk, (self.drives, self.claims)
        if self.variant.drive is not None:
            places = [part.model_copy(update={"drive": self.variant.drive}) for part in use.partitions]
            use = use.model_copy(update={"partitions": tuple(places)})
        neighbour = self.scenario.beside
        beside = (neighbour.partition, self.beside_bytes) if neighbour else None
        return arrange(use, self.machine, self.layout, self.defaults, size, *chosen, swap, beside)

    @property
    def beside_bytes(self) -> int:
        """The partition beside."""
        return _even(self.sized(self.scenario.beside.mib)) if self.scenario.beside else 0

    @property
    def filled_bytes(self) -> int:
        """What the memory-backed disks of the cell take of the host at most."""
        filled = self.scenario.disk.filled_mib
        whole = sum(self.disk.backing) - (self.beside_bytes if self.disk.beside else 0)
        return min(whole, self.sized(filled)) if filled else whole

    @property
    def disk_bytes(self) -> int:
        """What the disk under test holds, but for the array's own metadata."""
        return sum(self.disk.drives[drive].partitions[part].bytes for drive, part in self.disk.members)

    @property
    def modules(self) -> tuple[str, ...]:
        """The kernel's modules that the guest inserts."""
        raid = ("raid0",) if self.disk.raid else ()
        kinds = {drive.spec.kind for drive in self.disk.drives if drive.spec.real}
        real = dict.fromkeys(module for kind in sorted(kinds) for module in REAL_MODULES[kind])
        beside = self.beside.modules if self.beside else ()
        modules = (*BASE_MODULES, *real, *raid, *self.filesystem.modules, *beside)
        return tuple(dict.fromkeys(modules))

    @property
    def available(self) -> int:
        """Bytes that the first step finds: what the study left to it, and what the filesystem's own processes take."""
        found = self.variant.available_mib or self.scenario.memory.available_mib
        return self.sized(found) + self.filesystem.processes_mib * MIB

    def memory_mib(self, corpus: Corpus) -> int:
        """The guest's memory: what the first step finds, the corpus if RAM holds it, and the system's own."""
        held = corpus.size if self.scenario.corpus.held_in_ram and not self.scenario.beside else 0
        system = (OVERHEAD_MIB + PROCESSOR_MIB * (self.vcpus - 1)) * MIB + self.disk.cache_bytes
        used = self.available + held
        wanted = used + system + max(0, used - LARGE_MIB * MIB) // LARGE_SHARE
        return -(-wanted // (16 * MIB)) * 16

    @property
    def entropy(self) -> str:
        """256 bits, in hex, for the guest's random pool."""
        return hashlib.sha256(f"agelab run seed {self.run_seed}".encode()).hexdigest()

    @property
    def uuid(self) -> str:
        """The guest's SMBIOS UUID, which the kernel stirs into its random pool."""
        digest = self.entropy
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"

    @property
    def start_at(self) -> float | None:
        """When the first step starts: the run seed moves it by up to a second, against the timer's phase.

        None in the wall clock, where no moment is like another."""
        if self.clock == "wall":
            return None
        offset = int.from_bytes(hashlib.sha256(f"offset {self.run_seed}".encode()).digest()[:4], "big")
        return round(FIRST_STEP * (1 << max(0, self.machine.shift - 1)) + offset % 1_000_000 / 1e6, 6)


def guest_plan(
    spec: CellSpec,
    corpus: Corpus,
    phase: Phase,
    boot: int = 0,
    first_step: int = 0,
    as_before: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The plan of one boot of a phase as JSON. Format: docs/design.md, "The plan and the events".

    ``as_before``: type and options with which a script has mounted the disk in an earlier boot.
    """
    memory = spec.scenario.memory
    drives = spec.disk.for_guest(spec.run_seed, DATA_DISK)
    source = None
    if phase.source and boot == 0:
        first = DATA_DISK + len(spec.disk.backing)
        source = mounted(spec, drives, first, "aged", AGED_MOUNT, read_only=True)
    carries = spec.scenario.beside is not None
    image = {"disk": CORPUS_DISK, "size": corpus.size, "held": spec.scenario.corpus.held_in_ram}
    return {
        "boot": boot,
        "first_step": first_step,
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
        "disk": {
            "members": [list(member) for member in spec.disk.members],
            "raid": _raid(spec.disk, phase.name),
            "mkfs": mkfs(spec, phase) if phase.fresh else None,
            **_under_test(spec, as_before),
        },
        "tell_mount": bool(spec.variant.script),
        "links": _links(spec, "/run/beside" if carries else "/run/source"),
        "swap": list(spec.disk.swap) if spec.disk.swap else None,
        "source": source,
        "beside": _beside(spec),
        "maps": [],
        "results": None,
        "refuses": list(spec.filesystem.refuses),
        "environment": {
            "CORPUS_SEED": str(spec.corpus_seed),
            "DEVICE": f"{DEVICES}/under-test",
            **{name: str(spec.sized(figure)) for name, figure in spec.scenario.sizes.items()},
            **{name: str(spec.counted(figure)) for name, figure in spec.scenario.counts.items()},
        },
        "steps": list(phase.steps),
    }


def _under_test(spec: CellSpec, as_before: tuple[str, str] | None) -> dict[str, list[str]]:
    """How the disk under test is mounted and unmounted: as its filesystem is, a script's as the script has left it."""
    found = commands(spec, "under-test", MOUNT)
    if not spec.variant.script:
        return found
    device = f"{DEVICES}/under-test"
    if as_before:
        kind, options = as_before
        return {"mount": ["mount", "-t", kind, "-o", options, device, MOUNT], "umount": ["umount", MOUNT]}
    unless = 'mountpoint -q "$1" || mount "$0" "$1"'
    return {"mount": ["sh", "-c", unless, device, MOUNT], "umount": ["umount", MOUNT]}


def _links(spec: CellSpec, data: str) -> dict[str, str]:
    """Paths by which a user's scripts find things, to what they lead to."""
    if not spec.variant.script:
        return {}
    named = {spec.device: f"{DEVICES}/under-test"} if spec.device else {}
    return {"/export/experiment/data": data, **named}


def map_plan(spec: CellSpec, names: Sequence[str]) -> dict[str, Any]:
    """The plan of the boot that maps forks of these names, which are attached in this order, all on bare memory."""
    drives: list[dict[str, Any]] = []
    maps = []
    if spec.disk.real:
        drives = spec.disk.for_guest(spec.run_seed, DATA_DISK)
        here = {"members": [list(member) for member in spec.disk.members], "raid": _raid(spec.disk)}
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
        "disk": None,
        "tell_mount": False,
        "links": {},
        "swap": None,
        "source": None,
        "beside": None,
        "maps": maps,
        "results": results,
        "refuses": [],
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
        "raid": _raid(spec.disk, name),
        **commands(spec, name, where, read_only=read_only),
    }


def mkfs(spec: CellSpec, phase: Phase) -> list[str]:
    """The command that makes the phase's filesystem. The control's has a name of its own: both are mounted at once."""
    if spec.variant.script:
        return ["sh", "-c", '"$0"', spec.variant.script]
    words = {
        "{uuid}": FILESYSTEM_UUID[
            "beside" if spec.makes_beside else phase.name if phase.name == CONTROL else MAKING
        ],
        "{device}": f"{DEVICES}/under-test",
        "{mountpoint}": MOUNT,
    }
    options = spec.variant.made_with(spec.defaults)
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


def _whole(size: float) -> int:
    """That many bytes, rounded up to the pieces in which a memory-backed disk is mapped."""
    return ceil(size / DISK_ALIGNMENT) * DISK_ALIGNMENT


def _even(size: int) -> int:
    """That many bytes, rounded up so that one partition and two of RAID-0 have the same size."""
    return 2 * _whole(size / 2)


def _raid(disk: Arrangement, made_by: str = "making") -> dict[str, Any] | None:
    """The array; that of the control has a name of its own, since both are put together at once."""
    if disk.raid is None:
        return None
    chunk, metadata = disk.raid
    return {"chunk_kib": chunk, "metadata": metadata, "uuid": ARRAY_UUID.get(made_by, ARRAY_UUID["making"])}


def filled(argv: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """The command with the words put in."""
    found = list(argv)
    for name, value in words.items():
        found = [word.replace(name, value) for word in found]
    return found
