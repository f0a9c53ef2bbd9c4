"""One cell: its scenario, variant and drives, and what follows from them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

from agelab.base.errors import InputError
from agelab.base.types import Defaults, Figure, LayoutName
from agelab.data.corpus import Corpus
from agelab.machine.disk import DriveClaim, DriveSpec, parse
from agelab.machine.vm.guest import Accelerator, Clock
from agelab.results.result import Cell
from agelab.runner.plan import cell_drive
from agelab.runner.plan.disk_layout import DiskLayout, lay_out
from agelab.runner.plan.steps import DriveFailure
from agelab.scenario import selection
from agelab.scenario.drive import SolidState
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.history import History, Pulled
from agelab.scenario.machine import Machine
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.seeds import CellName, Seeds
from agelab.scenario.workloads import NOTHING, Workload
from agelab.store.stored_disk import DISK_ALIGNMENT


@dataclass(frozen=True)
class Brought:
    """Files for the guest, and how its steps find them."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path below /run/agelab."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the steps: where programs and libraries are."""

    @property
    def size(self) -> int:
        """Bytes of all files: they lie in the guest's memory."""
        return sum(map(len, self.files.values()))


NOTHING_BROUGHT = Brought()


MIB = 1 << 20
MEMORY_STEP = 16 * MIB
"""Guests get their memory in steps of this many bytes."""
GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, are as far apart as can be, however many there are."""
FIRST_STEP = 15.0
"""Guest seconds after boot at which the first step starts: later than any guest is ready, at 2 ns an instruction."""
OVERHEAD_MIB = 128
"""Memory that the kernel and the harness take, rounded up; the ballast takes the rest away."""
LARGE_MIB, LARGE_SHARE = 256, 4
"""Beyond so many MiB of a guest the kernel takes up to a quarter: page descriptors, reserves, tables of jfs."""
LARGE_FILE, BYTES_OF_FILE = 64 << 10, 8 << 10
"""Bytes of a file from which on the study's memory holds it, and bytes that the kernel takes for one beyond those."""
PROCESSOR_MIB = 8
"""Memory that the kernel takes for each further processor, rounded up."""
WRITE_BACK = {"vm/dirty_expire_centisecs": 3000, "vm/dirty_writeback_centisecs": 500}
"""The kernel's own timers of writing back, at their defaults (Documentation/admin-guide/sysctl/vm.rst)."""
BASE_MODULES = ("loop", "isofs", "dm_mod", "i6300esb")
"""The modules of every cell: for the corpus's mount, the disk under test, and the watchdog."""
REAL_MODULES = {
    "file": ("virtio_pci", "virtio_blk"),
    "block": ("virtio_pci", "virtio_blk"),
    "pci": ("nvme", "ahci", "sd_mod"),
}
"""The modules that find a real disk of each kind."""


def memory_steps(size: int) -> int:
    """Return the MiB of the memory steps that hold so many bytes."""
    return -(-size // MEMORY_STEP) * (MEMORY_STEP // MIB)


def memory_of_small_files(corpus: Corpus) -> int:
    """Return the bytes of memory that a corpus takes for having more files than a study's of its size.

    A study's memory is divided as its bytes are. What the kernel holds of each file (inodes, directory entries,
    their blocks and the journal's) is not, however small the file is.
    """
    return max(0, corpus.files - corpus.content_bytes // LARGE_FILE) * BYTES_OF_FILE


@dataclass(frozen=True)
class CellSpec:
    """One cell to run."""

    scenario: Scenario
    variant: Variant
    filesystem: Filesystem
    shrink: float
    """The study's sizes are divided by this."""
    defaults: Defaults
    run_seed: int
    corpus_seed: int
    machine: Machine
    layout: LayoutName = "single"
    drives: tuple[DriveSpec, ...] = ()
    """The drives that the user asked for; empty for the scenario's."""
    claims: tuple[DriveClaim, ...] = ()
    """The real drives among them, held for the whole run."""
    clock: Clock = "virtual"
    vcpus: int = 1
    accelerator: Accelerator = "tcg"
    """Runs the guest in the wall clock."""
    companion: Filesystem | None = None
    """The filesystem beside the disk under test, where the scenario has one."""
    scripts: Mapping[str, bytes] = field(default_factory=dict)
    """The user's own programs for the guest: file name to content."""
    workload: Workload = NOTHING
    """The programs and metrics of the scenario's own."""
    brought: Brought = NOTHING_BROUGHT
    """The scenario's own files for the guest: job files, and what it brings."""
    device: str = ""
    """Another path by which the guest finds the disk under test."""
    is_companion: bool = False
    """True for the cell that makes the filesystem beside other cells' disks: its UUID differs."""
    failure: DriveFailure | None = None
    """The drive that fails on the way."""
    inode_read_ahead: int | None = None
    """Blocks of an inode table that ext4's driver reads ahead, in place of the filesystem's file's or the kernel's."""
    changes: tuple[str, ...] = ()
    """The words of --block and --source, by which results are told apart."""
    set_aside: int = 0
    """Bytes of memory beyond the study's: for many small files, for what a pass does beside the steps."""
    member_bytes: tuple[int, ...] = ()
    """Size of each member of the disk under test, where a stored disk decides it."""
    schedule: int = 0
    """Draws how the schedule is shaken, with the run seed; 0 leaves it alone."""
    refused: str = ""
    """What mkfs said against its options, where they were tried before the first cell."""
    key_seed: int | None = None
    """The run seed of the stored disk to start from, from which its layout's key follows."""

    def scaled_bytes(self, figure: Figure) -> int:
        """Return a size of the scenario (MiB at paper scale), in bytes at this cell's scale."""
        return int(figure.value * MIB / self.shrink)

    def scaled_count(self, figure: Figure) -> int:
        """Return a number of the scenario at this cell's scale, one at least."""
        return max(1, round(figure.value / self.shrink))

    def on_drive(self, drive: str) -> "CellSpec":
        """Return the cell with its disk on another drive. Raises InputError for a solid-state one.

        Where the data of a disk lie on such a drive depends on how they were written there.
        """
        spec = parse(drive)
        if (profile := cell_drive.profile(spec)) and isinstance(profile.medium, SolidState):
            raise InputError(
                f"{self.scenario.name}: tested_on: a disk that was made elsewhere cannot be tested on the solid-state "
                f"drive {drive}",
                hint="make it there: --disks " + drive,
            )
        return replace(self, drives=(spec,), claims=())

    # ---- the disks ----

    @property
    def wanted_bytes(self) -> int:
        """The scenario's size of the disk under test, whatever it is made of."""
        return _even(self.scaled_bytes(self.scenario.disk.mib))

    @cached_property
    def disk(self) -> DiskLayout:
        """The drives and the partitions on them. Raises InputError where a drive or the room is missing."""
        layout = selection.layout(self.layout)
        sizes = self.member_bytes or [_aligned(self.wanted_bytes * member.share) for member in layout.members]
        swap = _aligned(self.machine.swap.mib * MIB / self.shrink) if self.machine.swap else 0
        use, chosen = self.scenario.disk, (self.drives, self.claims)
        if self.variant.drive is not None:
            places = [part.model_copy(update={"drive": self.variant.drive}) for part in use.partitions]
            use = use.model_copy(update={"partitions": tuple(places)})
        neighbour = self.scenario.beside
        beside = (neighbour.partition, self.companion_bytes) if neighbour else None
        return lay_out(use, self.machine, layout, self.defaults, sizes, *chosen, swap, beside)

    @property
    def companion_bytes(self) -> int:
        """The size of the companion's partition; 0 without one."""
        return _even(self.scaled_bytes(self.scenario.beside.mib)) if self.scenario.beside else 0

    @property
    def host_bytes(self) -> int:
        """The most that the memory-backed disks of the cell take of the host's disk."""
        filled = self.scenario.disk.filled_mib
        total = sum(self.disk.memory_disks) - (self.companion_bytes if self.disk.companion else 0)
        copies = sum(member.share for member in self.disk.layout.members)
        return min(total, round(self.scaled_bytes(filled) * copies)) if filled else total

    @property
    def record_bytes(self) -> int:
        """The most that the records of its drives take, where their power is cut."""
        return sum(room for room, _ in self.disk.recorded) if self.scenario.has_power_cuts else 0

    @property
    def disk_bytes(self) -> int:
        """The size of the disk under test, with its layout's own metadata."""
        drive, part = self.disk.members[0]
        return round(self.disk.drives[drive].partitions[part].bytes / self.disk.layout.members[0].share)

    # ---- the filesystem and the kernel ----

    @property
    def history(self) -> History | None:
        """The history of the disk at this cell's scale, in a scenario of histories."""
        chosen = next((history for history in self.scenario.histories if history.name == self.variant.history), None)
        return chosen.at_shrink(self.shrink) if isinstance(chosen, Pulled) else chosen

    @property
    def shutdown_patterns(self) -> tuple[str, ...]:
        """Regular expressions of kernel messages by which one of the cell's filesystems shuts itself down."""
        return (*self.filesystem.gone, *(self.companion.gone if self.companion else ()))

    @property
    def has_modelled_drive(self) -> bool:
        """True if some boot of the cell has a modelled drive."""
        return self.disk.modelled or self.scenario.tests_at_points

    @property
    def modules(self) -> tuple[str, ...]:
        """The kernel modules that the guest inserts."""
        kinds = {drive.spec.kind for drive in self.disk.drives if drive.spec.real}
        real = dict.fromkeys(module for kind in sorted(kinds) for module in REAL_MODULES[kind])
        companion = self.companion.modules if self.companion else ()
        block = self.machine.block.modules if self.has_modelled_drive else ()
        modules = (*BASE_MODULES, *real, *self.disk.layout.modules, *block, *self.filesystem.modules, *companion)
        return tuple(dict.fromkeys(modules))

    # ---- memory ----

    @property
    def corpus_in_ram(self) -> bool:
        """True if the corpus is copied into RAM first."""
        return self.scenario.corpus is not None and self.scenario.corpus.held_in_ram

    @property
    def available_bytes(self) -> int:
        """The memory that the first step finds: as in the study, and for the filesystem's own processes."""
        mib = self.variant.available_mib or self.scenario.memory.available_mib
        return self.scaled_bytes(mib) + self.filesystem.processes_mib * MIB + self.set_aside

    def memory_mib(self, corpus: Corpus) -> int:
        """Return the guest's memory: for the first step, for a corpus in RAM, and for the system."""
        held = corpus.size if self.corpus_in_ram and not self.scenario.beside else 0
        system = (OVERHEAD_MIB + PROCESSOR_MIB * (self.vcpus - 1)) * MIB + self.disk.cache_bytes
        used = self.available_bytes + held + self.brought.size
        return memory_steps(used + system + max(0, used - LARGE_MIB * MIB) // LARGE_SHARE)

    def more_memory_at_points(self, points: int) -> int:
        """Return the MiB by which the largest guest that tests points exceeds the cell's others: drive caches."""
        if not self.scenario.tests_at_points or not self.scenario.curve:
            return 0
        caches = [self.on_drive(drive).disk.cache_bytes for drive in self.scenario.curve.tested_on.values()]
        return memory_steps(2 * points * max(*caches, self.disk.cache_bytes))

    # ---- name and seeds ----

    @property
    def name(self) -> CellName:
        """What tells it from the other cells of its run."""
        return self.variant.name, self.layout, Seeds(self.corpus_seed, self.run_seed)

    @property
    def layout_key(self) -> str:
        """512 bits, in hex, with which a layout encrypts the disk under test."""
        seed = self.run_seed if self.key_seed is None else self.key_seed
        return hashlib.sha512(f"agelab layout {seed}".encode()).hexdigest()

    @property
    def entropy(self) -> str:
        """256 bits, in hex, for the guest's random pool."""
        return hashlib.sha256(f"agelab run seed {self.run_seed}".encode()).hexdigest()

    @property
    def schedule_words(self) -> str | None:
        """What shakes the schedule: 63 bits that draw, and the nanosecond from which on, that of the first step."""
        if not self.schedule:
            return None
        digest = hashlib.sha256(f"agelab schedule {self.schedule} of run seed {self.run_seed}".encode()).digest()
        return f"{int.from_bytes(digest[:8], 'big') >> 1}:{round((self.start_at or 0) * 1e9)}"

    def cut_at(self, first: float, last: float) -> float:
        """Return the moment of a power cut in a window of seconds: far apart for run seeds that follow each other."""
        return round(first + (last - first) * (self.run_seed * GOLDEN % 1), 3)

    # ---- time ----

    @property
    def dilation(self) -> float:
        """Seconds of the machine for one second of the guest's clock."""
        return self.machine.dilation if self.clock == "virtual" else 1.0

    @property
    def copy_prices(self) -> dict[str, int] | None:
        """What 1024 copied bytes cost beyond their instructions: nothing in the wall clock, where none has a price."""
        return self.machine.copy_prices if self.clock == "virtual" else None

    @property
    def kernel_timers(self) -> dict[str, int]:
        """The kernel's timers below /proc/sys, in hundredths of a second of the machine."""
        own = (self.filesystem.timers, self.companion.timers if self.companion else {})
        return {**WRITE_BACK, **{name: value for timers in own for name, value in timers.items()}}

    @property
    def start_at(self) -> float | None:
        """Guest seconds at which the first step starts; None in the wall clock.

        The run seed moves it by up to a second, against the timer's phase.
        """
        if self.clock == "wall":
            return None
        offset = int.from_bytes(hashlib.sha256(f"offset {self.run_seed}".encode()).digest()[:4], "big")
        ready = FIRST_STEP * (1 << max(0, self.machine.shift - 1))
        return round(ready + offset % 1_000_000 / 1e6, 6)


def _aligned(size: float) -> int:
    """Round up to the pieces in which a memory-backed disk is mapped."""
    return ceil(size / DISK_ALIGNMENT) * DISK_ALIGNMENT


def _even(size: int) -> int:
    """Round up so that one partition and two of RAID-0 have the same size."""
    return 2 * _aligned(size / 2)


def cell_of(spec: CellSpec, release: str) -> Cell:
    """Return the cell as results name it, on a kernel of that release."""
    return Cell(
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        kernel=release,
        machine="+".join((spec.machine.name, *spec.changes)),
        drives=spec.disk.drive_specs,
        accelerator=spec.accelerator,
        defaults=spec.defaults,
        seed=spec.run_seed,
        corpus_seed=spec.corpus_seed,
    )
