"""One cell to run: what it is made of, and the sizes and seeds that follow from it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from agelab.corpus import Corpus
from agelab.disk import DriveClaim, DriveSpec
from agelab.model.base import Defaults, Layout
from agelab.model.figure import Figure
from agelab.model.filesystem import Filesystem
from agelab.model.history import History
from agelab.model.machine import Machine
from agelab.model.scenario import Scenario, Variant
from agelab.runner.plan.disk_layout import DiskLayout, lay_out
from agelab.runner.plan.power_cut import PowerCut
from agelab.vm.guest import DISK_ALIGNMENT, Accelerator, Clock

MIB = 1 << 20
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, are as far apart as can be, however many there are."""
FIRST_STEP = 15.0
"""Guest seconds after boot at which the first step starts: later than any guest is ready, at 2 ns an instruction."""
OVERHEAD_MIB = 128
"""What the kernel and the harness take of a guest's memory, rounded up; the ballast takes the rest away."""
LARGE_MIB, LARGE_SHARE = 256, 4
"""Of what a guest has beyond so much the kernel takes at most a quarter: page descriptors, reserves, tables of jfs."""
PROCESSOR_MIB = 8
"""What the kernel takes for each further processor, rounded up."""
BASE_MODULES = ("loop", "isofs", "dm_mod", "i6300esb")
"""What every cell needs beside its filesystem: the corpus's mount, the disk under test, the watchdog."""
REAL_MODULES = {
    "file": ("virtio_pci", "virtio_blk"),
    "block": ("virtio_pci", "virtio_blk"),
    "pci": ("nvme", "ahci", "sd_mod"),
}
"""What finds a real disk of that kind."""


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
    claims: tuple[DriveClaim, ...] = ()
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
    crash: PowerCut | None = None
    """The power cut that ends it."""
    member_bytes: int | None = None
    """Of each member of the disk under test, where a stored disk decides it; None for the scenario's size."""

    def sized(self, figure: Figure) -> int:
        """A size of the scenario at this cell's scale: MiB at paper scale to bytes."""
        return int(figure.value * MIB / self.shrink)

    def counted(self, figure: Figure) -> int:
        """A number of the scenario at this cell's scale, one at least."""
        return max(1, round(figure.value / self.shrink))

    @property
    def whole_bytes(self) -> int:
        """The disk under test as the scenario wants it, however it is put together."""
        return _even(self.sized(self.scenario.disk.mib))

    @property
    def history(self) -> History | None:
        """What it is asked to live through, in a scenario of histories."""
        return next((one for one in self.scenario.histories if one.name == self.variant.history), None)

    @property
    def gone(self) -> tuple[str, ...]:
        """By what the kernel says that one of its filesystems has shut itself down, as regular expressions."""
        return (*self.filesystem.gone, *(self.beside.gone if self.beside else ()))

    @property
    def held_in_ram(self) -> bool:
        """Whether the corpus is copied into RAM first."""
        return self.scenario.corpus is not None and self.scenario.corpus.held_in_ram

    @cached_property
    def disk(self) -> DiskLayout:
        """The drives and the disk under test. Raises InputError where they cannot be had."""
        size = self.whole_bytes // 2 if self.layout == "raid0" else self.whole_bytes
        size = size if self.member_bytes is None else self.member_bytes
        swap = _whole(self.machine.swap.mib * MIB / self.shrink) if self.machine.swap else 0
        use, chosen = self.scenario.disk, (self.drives, self.claims)
        if self.variant.drive is not None:
            places = [part.model_copy(update={"drive": self.variant.drive}) for part in use.partitions]
            use = use.model_copy(update={"partitions": tuple(places)})
        neighbour = self.scenario.beside
        beside = (neighbour.partition, self.beside_bytes) if neighbour else None
        return lay_out(use, self.machine, self.layout, self.defaults, size, *chosen, swap, beside)

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
    def modelled(self) -> bool:
        """Whether some boot of the cell has a modelled drive."""
        return self.disk.modelled or self.scenario.tests_at_points

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
        held = corpus.size if self.held_in_ram and not self.scenario.beside else 0
        system = (OVERHEAD_MIB + PROCESSOR_MIB * (self.vcpus - 1)) * MIB + self.disk.cache_bytes
        used = self.available + held
        wanted = used + system + max(0, used - LARGE_MIB * MIB) // LARGE_SHARE
        return -(-wanted // (16 * MIB)) * 16

    @property
    def entropy(self) -> str:
        """256 bits, in hex, for the guest's random pool."""
        return hashlib.sha256(f"agelab run seed {self.run_seed}".encode()).hexdigest()

    def moment(self, first: float, last: float) -> float:
        """When in a window of seconds the power is cut: run seeds that follow each other are far apart."""
        return round(first + (last - first) * (self.run_seed * GOLDEN % 1), 3)

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


def _whole(size: float) -> int:
    """That many bytes, rounded up to the pieces in which a memory-backed disk is mapped."""
    return ceil(size / DISK_ALIGNMENT) * DISK_ALIGNMENT


def _even(size: int) -> int:
    """That many bytes, rounded up so that one partition and two of RAID-0 have the same size."""
    return 2 * _whole(size / 2)
