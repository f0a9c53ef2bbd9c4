"""The guests of one cell: domain and disks of each boot, and saved guests, which begin where another one had booted."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from agelab.base import fileio, process
from agelab.base.errors import HostError, InputError, Notify, is_disk_full
from agelab.base.hashing import canonical_json
from agelab.base.sanitize import parse_digits
from agelab.data.corpus import Corpus
from agelab.evaluate.boot_events import BootEvents
from agelab.kernel import initramfs
from agelab.machine.image import Image
from agelab.machine.qemu import Emulator
from agelab.machine.vm import domain, guest_output
from agelab.machine.vm.domain import EPOCH
from agelab.machine.vm.guest import (
    FIRST_DATA_DISK,
    REAL_SERIAL,
    Clock,
    GuestSpec,
    MemoryDisk,
    RealDisk,
    SavedMemory,
    SlotLayout,
    Stop,
    slots_for,
)
from agelab.machine.vm.hypervisor import DaemonLost, Hypervisor
from agelab.machine.vm.saved_guest import NotRestored
from agelab.results.result import Ending, Sample
from agelab.runner.execute import disks
from agelab.runner.execute.disks import ModuleFile
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_drive import CellDrive
from agelab.runner.plan.cell_spec import BASE_MODULES, CellSpec
from agelab.runner.plan.guest_plan import Boot
from agelab.runner.prepare.prepare import PreparedRun
from agelab.store import stored_disk
from agelab.store.artefacts import Artefact, Store, content_hash

KIND = "guest"
MEMORY, STATE, EMPTY, INITRAMFS = "memory", "state", "empty", "initramfs"
"""Files of a saved guest: its memory, its devices, the hole that was its disks, and what it booted."""
PLAN = "plan"
"""The end of the name of a boot's plan disk."""
LAST_LINES = 5
SOMEWHERE = Path("/agelab/saved")
"""Stands for a saved guest's directory in what its key and a cell's inputs are made of."""


@dataclass(frozen=True)
class RunGuests:
    """What the guests of all cells of a run have in common."""

    store: Store
    """Where its parts are; what virt-install prints is remembered in its cache."""
    hypervisor: Hypervisor
    image: Image
    emulator: Emulator
    progress: Notify
    are_saved: bool
    """Boots begin with a saved guest; else each boots in full."""
    schedule: Path | None = None
    """The library that shakes the schedule, or by which processors take turns."""
    _commands: dict[GuestSpec, list[str]] = field(default_factory=dict, init=False, compare=False)
    """Those that are known: each boot asks for one."""

    @classmethod
    def of(cls, prepared: PreparedRun, hypervisor: Hypervisor, store: Store, progress: Notify) -> "RunGuests":
        return cls(
            store, hypervisor, prepared.image, prepared.emulator, progress, prepared.saves_guests, prepared.schedule
        )

    def preload(self, *, saved: bool, shaken: bool = True) -> tuple[Path, ...]:
        """Return QEMU's libraries: each calls those behind it."""
        schedule = (self.schedule,) if self.schedule and shaken else ()
        main_loop = (self.emulator.main_loop,) if saved else ()
        return (*schedule, self.emulator.clock, *main_loop)

    @cached_property
    def initramfs_bytes(self) -> bytes:
        """What guests boot: the image's archive, followed by the modules of every cell and the harness."""
        return fileio.read_bytes(self.image.initramfs, fileio.PROGRAM) + initramfs.cell(
            self.image.kernel.modules, BASE_MODULES, cell_inputs.harness_files(), {"start": cell_inputs.harness_start()}
        )

    @cached_property
    def initramfs_sha256(self) -> str:
        return hashlib.sha256(self.initramfs_bytes).hexdigest()

    def restored(self, guest: GuestSpec, directory: Path = SOMEWHERE) -> GuestSpec:
        """Return the guest that begins as a copy of the one saved in ``directory``, with the disks of ``guest``."""
        return replace(
            guest,
            initramfs=directory / INITRAMFS,
            preload=self.preload(saved=True),
            saved=SavedMemory(directory / MEMORY, restored=True),
        )

    def obtain(self, guest: GuestSpec) -> Artefact:
        """Return the saved guest of which ``guest``, with its disks in slots, can be a copy; made now if there is none.

        Raises HostError or AgelabError where it cannot be made.
        """
        inputs = {
            "kernel": self.image.kernel.key,
            "image": self.image.content,
            "initramfs": self.initramfs_sha256,
            "command": self._command(self._to_save(guest, SOMEWHERE)),
            "qemu": self.emulator.identity,
        }

        def build(directory: Path) -> None:
            self.progress(f"booting a guest of {guest.memory_mib} MiB once: cells start from a copy of it")
            self._make(self._to_save(guest, directory), directory)

        return self.store.obtain(KIND, inputs, build, content_hash)

    def _command(self, guest: GuestSpec) -> list[str]:
        """Return the QEMU command of a guest, with names for this host's directories."""
        if guest not in self._commands:
            command = self.hypervisor.command_line(self.domain_xml(guest))
            places = {
                "saved": SOMEWHERE,
                "image": self.image.artefact.directory,
                "qemu": self.emulator.artefact.directory,
            }
            self._commands[guest] = cell_inputs.guest_command(command, places)
        return self._commands[guest]

    def domain_xml(self, guest: GuestSpec) -> str:
        models = self.hypervisor.security_models
        return domain.domain_xml(guest, models, self.store.cache(domain.CACHE))

    def discard(self, made: Artefact, error: NotRestored) -> None:
        """Remove a saved guest that does not start, so that agelab makes it again."""
        self.progress(f"{error}: agelab makes it again")
        self.store.discard(made)

    def _to_save(self, guest: GuestSpec, directory: Path) -> GuestSpec:
        """Return the guest that is saved in ``directory``.

        Each of its disks is a shared mapping: the content of any other would be part of the saved state.
        """
        empty = directory / EMPTY
        root, plan, corpus, *data = guest.disks
        return replace(
            guest,
            name=f"agelab-saved-{hashlib.sha256(str(directory).encode()).hexdigest()[:12]}",
            initramfs=directory / INITRAMFS,
            disks=(
                root,
                replace(plan, path=empty, written=True),
                replace(corpus, path=empty),
                *(replace(disk, path=empty, written=True) for disk in data),
            ),
            console=directory / "console.log",
            events=directory / "events",
            preload=self.preload(saved=True, shaken=False),
            schedule=None if guest.schedule is None else "",
            saved=SavedMemory(directory / MEMORY, restored=False),
        )

    def _make(self, guest: GuestSpec, directory: Path) -> None:
        guest.initramfs.write_bytes(self.initramfs_bytes)
        for file in (guest.console, guest.events):
            file.touch()
        stored_disk.make_hole(directory / EMPTY, max(disk.size for disk in guest.disks))
        try:
            self.hypervisor.save(guest.name, self.domain_xml(guest), directory / STATE)
        except DaemonLost:
            raise
        except HostError as error:
            words = " ".join(guest_output.console_text(guest.console).splitlines()[-LAST_LINES:])
            raise HostError(f"{error}; it said last: {words or 'nothing'}", error.hint) from error
        guest.events.unlink()
        process.run(["fallocate", "--dig-holes", str(directory / MEMORY)])


BOOT_TIMEOUT: dict[Clock, float] = {"virtual": 6 * 3600.0, "wall": 7 * 86400.0}
"""Host seconds for one boot."""
MAX_TIMEOUT = 10**9
DAY_SECONDS = 86400
ANY_CELL = Path("/agelab-any/agelab-cell")
"""What stands for a cell's directory where only the command is asked for."""
SLOT_COPY = "slot-"
"""How the copies begin of disks that are shorter than their slots."""
TIMEOUT_VARIABLE = "AGELAB_PATIENCE"
"""The environment variable that sets them."""


def boot_timeout(clock: Clock) -> float:
    """Return the host seconds for one boot. Raises InputError where AGELAB_PATIENCE is not a number of them."""
    patience = os.environ.get(TIMEOUT_VARIABLE)
    if not patience:
        return BOOT_TIMEOUT[clock]
    if not (seconds := parse_digits(patience, MAX_TIMEOUT)):
        raise InputError(
            f"{TIMEOUT_VARIABLE} is {patience[:20]!r}: set it to the host's seconds for one boot, a whole number from "
            f"1 to {MAX_TIMEOUT}"
        )
    return float(seconds)


@dataclass(frozen=True)
class Debugger:
    """What stops a guest at a moment, and is told when it has."""

    library: Path
    stop: Stop
    phase: str | None
    """The phase in whose boots that is; None for any."""
    at_stop: Callable[[], None]
    ended: Callable[[], None]
    """Called when a boot has ended in which it could stop."""


@dataclass(frozen=True)
class GuestLauncher:
    """Starts the guests of one cell."""

    directory: Path
    """The cell's directory, which holds its guests' files."""
    spec: CellSpec
    corpus: Corpus
    guests: RunGuests
    module: Path | None
    """The modelled drive's kernel module, for cells that have one."""
    tools: Mapping[str, Path]
    """The guest's own programs, for cells that need them."""
    debugger: Debugger | None = None
    """What stops it, where somebody wants to look."""
    _domains: dict[GuestSpec, str] = field(default_factory=dict, init=False, compare=False)
    """The domain of each guest, which is needed twice: for the inputs and to start it."""

    def run(
        self, boot: Boot, events: BootEvents, record: Callable[[Sample], None], on_step: Callable[[str], None]
    ) -> Ending:
        """Run one boot to its end: ``record`` gets each sample, ``on_step`` each step's name as it ends.

        Raises DamagedArtefact for a part that is no longer as it was stored.
        """
        try:
            self._read_parts()
            guest, saved = self._guest_to_run(boot)
            try:
                ending = self._run_guest(guest, saved, boot, events, record, on_step)
            except NotRestored as error:
                if not saved:
                    raise
                self.guests.discard(saved, error)
                guest, saved = self._guest_to_run(boot)
                ending = self._run_guest(guest, saved, boot, events, record, on_step)
            return Ending.OUTPUT_LOST if self._is_output_lost(ending, events) else ending
        except DaemonLost:
            return Ending.DAEMON_LOST
        finally:
            files = [self._file(boot, name) for name in (PLAN, EMPTY, INITRAMFS)]
            for file in (*files, *self.directory.glob(f"{boot.name}{SLOT_COPY}*")):
                file.unlink(missing_ok=True)

    def _read_parts(self) -> None:
        """Read what QEMU will, unless this process has: no digest rests on what was intact yesterday.

        All else of a boot is hashed as the guest gets it.
        """
        image, emulator = self.guests.image.artefact, self.guests.emulator.artefact
        self.guests.store.read((emulator.directory, image.directory, self.corpus.image.parent))

    def _run_guest(
        self,
        guest: GuestSpec,
        saved: Artefact | None,
        boot: Boot,
        events: BootEvents,
        record: Callable[[Sample], None],
        on_step: Callable[[str], None],
    ) -> Ending:
        limit = guest_output.MAX_EVENT_BYTES + guest_output.EVENT_BYTES_PER_STEP * len(boot.plan["steps"])
        output = guest_output.GuestOutput(guest.events, guest.console, limit)
        debugger = self.debugger if self.debugger and self.debugger.phase in (None, boot.phase) else None
        if debugger:
            guest = replace(guest, stop=debugger.stop, preload=(debugger.library, *guest.preload))
        xml = self._domain_xml(guest)
        (self.directory / f"{boot.name}domain-{boot.number}.xml").write_text(xml, encoding="utf-8")
        disks.write_plan_disk(self._file(boot, PLAN), events.secret, self._archive(boot))
        ending = self.guests.hypervisor.run(
            guest.name,
            xml,
            output,
            lambda line: events.hear(line, boot.phase, record, on_step),
            boot_timeout(self.spec.clock),
            saved / STATE if saved else None,
            debugger.at_stop if debugger else None,
        )
        if debugger:
            debugger.ended()
        return ending

    def _guest_to_run(self, boot: Boot) -> tuple[GuestSpec, Artefact | None]:
        """Return the guest of a boot, and the saved guest of which it is a copy, if it is one."""
        guest, layout = self.guest(boot), self._layout(boot)
        for output in (guest.console, guest.events):
            output.touch()
        if layout:
            stored_disk.make_hole(self._file(boot, EMPTY), layout.size)
            data = (self._lengthened(disk, boot) for disk in guest.disks[FIRST_DATA_DISK:])
            guest = replace(guest, disks=(*guest.disks[:FIRST_DATA_DISK], *data))
        if self.guests.are_saved and layout:
            saved = self.guests.obtain(guest)
            self.guests.store.read([saved.directory])
            return self.guests.restored(guest, saved.directory), saved
        guest.initramfs.write_bytes(self.guests.initramfs_bytes)
        return guest, None

    def _lengthened(self, disk: MemoryDisk, boot: Boot) -> MemoryDisk:
        """Return a disk whose file is as long as its slot: QEMU takes no shorter one.

        Disks of 16 GiB and less have shorter files than the slots that a larger one beside them takes. What is not
        written is an artefact of the store, which never changes: of it a copy is made longer.
        """
        if disk.path.stat().st_size >= disk.size:
            return disk
        path = disk.path
        if not disk.written:
            path = self.directory / f"{boot.name}{SLOT_COPY}{disk.path.name}"
            stored_disk.sparse_copy(disk.path, path)
        os.truncate(path, disk.size)
        return replace(disk, path=path)

    def _is_output_lost(self, ending: Ending, events: BootEvents) -> bool:
        """Return True if lines are missing. A full disk may also be why the last one is, or one was altered."""
        if events.lost and not events.foreign:
            return True
        silent = ending is Ending.STOPPED and not events.last_word
        return (silent or bool(events.foreign)) and is_disk_full(self.directory)

    def inputs(self, boot: Boot, places: Mapping[str, Path]) -> dict[str, Any]:
        """Return all that shapes a boot beside the cell's environment: its plan and files, initramfs and QEMU command.

        ``places`` names directories of the host that the command speaks of.
        """
        guest = self.guest(boot)
        if self.guests.are_saved and self._layout(boot):
            guest = self.guests.restored(guest)
        # By a name that all cells have, libvirt is asked once for guests that differ in nothing else.
        xml = (
            self._domain_xml(guest)
            .replace(str(self._file(boot, EMPTY)), str(ANY_CELL / EMPTY))
            .replace(str(self.directory), str(ANY_CELL))
            .replace(guest.name, ANY_CELL.name)
        )
        command = self.guests.hypervisor.command_line(xml)
        named = {
            "cell": ANY_CELL,
            "image": self.guests.image.artefact.directory,
            "corpus": self.corpus.image.parent,
            "saved": SOMEWHERE,
            "qemu": self.guests.emulator.artefact.directory,
            **{f"drive{n}": Path(drive.claim.source) for n, drive in self._real_drives() if drive.claim},
            **{name: self._any_cell(path) for name, path in places.items()},
        }
        if library := self.guests.schedule:
            named["schedule"] = library.parent
        return {
            "plan": self._plan(boot),
            "archive": hashlib.sha256(self._archive(boot)).hexdigest(),
            "initramfs": self.guests.initramfs_sha256,
            "command": cell_inputs.guest_command(command, named),
        }

    def _any_cell(self, path: Path) -> Path:
        """Return a path with ANY_CELL in place of the cell's directory."""
        inside = path.is_relative_to(self.directory)
        return ANY_CELL / path.relative_to(self.directory) if inside else path

    def console(self, boot: Boot) -> str:
        """Return the kernel's messages; of a long console the beginning and the end."""
        return guest_output.console_text(self.directory / f"{boot.name}console-{boot.number}.log")

    def _domain_xml(self, guest: GuestSpec) -> str:
        if guest not in self._domains:
            self._domains[guest] = self.guests.domain_xml(guest)
        return self._domains[guest]

    def _plan(self, boot: Boot) -> dict[str, Any]:
        """Return the boot's plan with its date."""
        virtual = self.spec.clock == "virtual"
        return {**boot.plan, "booted_at": EPOCH + (boot.day + boot.number) * DAY_SECONDS if virtual else None}

    def _archive(self, boot: Boot) -> bytes:
        """Return what the plan disk holds beside the secret: plan, programs of the cell, and its kernel modules."""
        module = self.module if any(drive["settings"] for drive in boot.plan["drives"]) else None
        drive = {module.stem: ModuleFile(fileio.read_bytes(module, fileio.PROGRAM))} if module else {}
        plan = canonical_json(self._plan(boot))
        return disks.plan_archive(plan, self._programs, self._modules | drive)

    @cached_property
    def _programs(self) -> dict[str, bytes]:
        """The content of the tools, of the user's scripts and of what a scenario brings, by paths in the archive."""
        parts = (
            {f"control/{name}": text for name, text in sorted(self.spec.scripts.items())},
            dict(sorted(self.spec.brought.files.items())),
            {f"tools/{name}": fileio.read_bytes(path, fileio.PROGRAM) for name, path in sorted(self.tools.items())},
        )
        for name, times in Counter(chain.from_iterable(parts)).items():
            if times > 1:
                raise InputError(f"two of the guest's files would be {name}", hint="rename the one that is brought")
        return dict(chain.from_iterable(part.items() for part in parts))

    @cached_property
    def _modules(self) -> dict[str, ModuleFile]:
        """The kernel modules that not every cell has, in the order of their insertion."""
        modules = self.guests.image.kernel.modules
        there = {module.name for module in modules.closure((*initramfs.BASE_MODULES, *BASE_MODULES))}
        own = [module for module in modules.closure(self.spec.modules) if module.name not in there]
        return {module.name: ModuleFile(module.read(), module.optional) for module in own}

    def _file(self, boot: Boot, name: str) -> Path:
        """Return the file of a boot: its plan disk, its initramfs, or the one behind each slot without a disk."""
        return self.directory / f"{boot.name}{name}"

    def guest(self, boot: Boot) -> GuestSpec:
        """Return the guest of a boot that boots in full."""
        layout = self._layout(boot)
        disks = self._disks(boot)
        # Guests of a cell run side by side, but for the boots of a phase.
        own = hashlib.sha256(str(self.directory / boot.name).encode()).hexdigest()[:12]
        real = [(number, drive) for number, drive in self._real_drives() if boot.plan["drives"][number:]]
        return GuestSpec(
            name=f"agelab-{own}",
            emulator=self.guests.emulator.program,
            machine=self.spec.machine,
            memory_mib=boot.memory_mib,
            kernel=self.guests.image.boot_image,
            initramfs=self._file(boot, INITRAMFS),
            disks=layout.fill(disks, self._file(boot, EMPTY)) if layout else disks,
            console=self.directory / f"{boot.name}console-{boot.number}.log",
            events=self.directory / f"{boot.name}events-{boot.number}.jsonl",
            preload=self.guests.preload(saved=False) if self.spec.clock == "virtual" else (),
            schedule=self.spec.schedule_words,
            clock=self.spec.clock,
            vcpus=self.spec.vcpus,
            accelerator=self.spec.accelerator,
            real_disks=tuple(
                RealDisk(
                    source=drive.claim.source,
                    kind="file" if drive.spec.kind == "file" else "block",
                    serial=REAL_SERIAL.format(number),
                    cache=drive.spec.cache,
                    aio=drive.spec.aio,
                )
                for number, drive in real
                if drive.claim and drive.spec.kind != "pci"
            ),
            passthrough=tuple(drive.claim.source for _, drive in real if drive.claim and drive.spec.kind == "pci"),
        )

    def _disks(self, boot: Boot) -> tuple[MemoryDisk, ...]:
        return (
            MemoryDisk(self.guests.image.root, self.guests.image.root.stat().st_size, written=False, constant=True),
            MemoryDisk(self._file(boot, PLAN), disks.PLAN_DISK_BYTES, written=False),
            MemoryDisk(self.corpus.image, self.corpus.size, written=False, constant=True),
            *boot.disks,
        )

    def _layout(self, boot: Boot) -> SlotLayout | None:
        """Return the slots of a boot's disks; None in the wall clock, and for more disks than any layout holds."""
        return slots_for(self._disks(boot)) if self.spec.clock == "virtual" else None

    def _real_drives(self) -> Iterator[tuple[int, CellDrive]]:
        """Return the real drives, with their numbers among all."""
        return ((number, drive) for number, drive in enumerate(self.spec.disk.drives) if drive.spec.real)
