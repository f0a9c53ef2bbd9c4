"""The boots of one cell: a guest for each, its disks, its initramfs, and what it says."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agelab.corpus import Corpus
from agelab.errors import InputError
from agelab.image import Image
from agelab.kernel import initramfs
from agelab.model.event import (
    EVENT,
    CellEnded,
    FilesystemChecked,
    HarnessReady,
    LinesWritten,
    Mounted,
    PowerIsCut,
    RebootRequested,
    SampleSent,
    StepBegun,
    StepDone,
    StepFailed,
)
from agelab.model.result import Sample
from agelab.model.step_id import StepId
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_layout import CellDrive
from agelab.store import canonical_json
from agelab.vm import domain, guest_output, host, libvirt_daemon
from agelab.vm.guest import REAL_SERIAL, Clock, GuestSpec, MemoryDisk, RealDisk
from agelab.vm.hypervisor import Ending, Hypervisor

PATIENCE: dict[Clock, float] = {"virtual": 6 * 3600.0, "wall": 7 * 86400.0}
"""Host seconds for one boot."""
IMPATIENT = "AGELAB_PATIENCE"
"""The environment variable that sets them."""


def boot_timeout(clock: Clock) -> float:
    """Host seconds for one boot. Raises InputError for an AGELAB_PATIENCE that is no number of them."""
    wanted = os.environ.get(IMPATIENT)
    if not wanted:
        return PATIENCE[clock]
    if not (wanted.isascii() and wanted.isdigit() and int(wanted)):
        raise InputError(f"{IMPATIENT} is {wanted!r}: it is the host's seconds for one boot, a whole number")
    return float(wanted)


@dataclass
class BootEvents:
    """What one boot has said so far."""

    ended: CellEnded | None = None
    reboot: RebootRequested | None = None
    cut: PowerIsCut | None = None
    checked: list[FilesystemChecked] = field(default_factory=list)
    mounted: Mounted | None = None
    begun: StepBegun | None = None
    """The step that is under way."""
    failures: list[StepFailed] = field(default_factory=list)
    lines: int = 0
    """How many events there were."""
    lost: bool = False
    """Whether the guest has written more of them."""

    @property
    def during(self) -> str:
        """The step that is under way, in words."""
        return f"step {self.begun.step}, repetition {self.begun.repetition}" if self.begun else ""


@dataclass(frozen=True)
class Boot:
    """One boot, ready to start."""

    name: str
    """What its files in the cell's directory begin with: the phase's name and a dash, or nothing."""
    number: int
    """Which boot of its phase, from 0."""
    day: int
    """The date, in days after the cell's first boot."""
    plan: Mapping[str, Any]
    memory_mib: int
    disks: tuple[MemoryDisk, ...]
    """The memory-backed ones behind root and corpus."""
    phase: str = ""
    """Within which the names of its samples' steps are: nothing while the disk is made."""


@dataclass(frozen=True)
class GuestLauncher:
    """Starts the guests of one cell."""

    directory: Path
    spec: CellSpec
    image: Image
    corpus: Corpus
    hypervisor: Hypervisor
    clock: Path | None
    """The library that takes the host's clock away from QEMU, in the virtual clock."""
    module: Path | None
    """The modelled drive's kernel module, for cells that have one."""
    tools: Mapping[str, Path]
    """The guest's own programs, for cells that need them."""

    @cached_property
    def _xml(self) -> dict[GuestSpec, str]:
        return {}

    def run(
        self, boot: Boot, heard: BootEvents, keep: Callable[[Sample], None], progress: Callable[[str], None]
    ) -> Ending:
        """Carry out one boot: ``keep`` gets each sample, ``progress`` the name of each step, as it ends."""
        guest = self.guest(boot)
        guest.initramfs.write_bytes(self._archive(boot))
        most = guest_output.MAX_EVENT_BYTES + guest_output.EVENT_BYTES_PER_STEP * len(boot.plan["steps"])
        written = guest_output.GuestOutput(guest.events, guest.console, most)
        for file in (guest.console, guest.events):
            file.touch()
        xml = self._domain(boot)
        (self.directory / f"{boot.name}domain-{boot.number}.xml").write_text(xml)
        try:
            ending = self.hypervisor.run(
                guest.name,
                xml,
                written,
                lambda line: _hear(line, boot.phase, heard, keep, progress),
                boot_timeout(self.spec.clock),
            )
            last = heard.ended or heard.reboot or heard.cut
            silent = ending is Ending.STOPPED and not last and host.is_disk_full(self.directory)
            return Ending.UNHEARD if heard.lost or silent else ending
        finally:
            guest.initramfs.unlink()

    def inputs(self, boot: Boot, places: Mapping[str, Path]) -> dict[str, Any]:
        """What shapes a phase beside the cell's environment: its first boot's plan, initramfs and QEMU command."""
        command = self.hypervisor.command_line(self._domain(boot))
        everywhere = {
            "cell": self.directory,
            "image": self.image.artefact.directory,
            "corpus": self.corpus.image.parent,
            **{f"drive{n}": Path(drive.claim.source) for n, drive in self._real() if drive.claim},
            **places,
        }
        return {
            "plan": boot.plan,
            "initramfs": hashlib.sha256(self._archive(boot)).hexdigest(),
            "command": cell_inputs.guest_command(command, everywhere),
        }

    def console(self, boot: Boot) -> str:
        """What the kernel has said; of a long console its beginning and its end."""
        return guest_output.console_text(self.directory / f"{boot.name}console-{boot.number}.log")

    def _domain(self, boot: Boot) -> str:
        """The libvirt domain, which is asked for twice: for the inputs and to be started."""
        known = self._xml
        guest = self.guest(boot)
        if guest not in known:
            known[guest] = domain.domain_xml(guest, libvirt_daemon.uri(), self.hypervisor.security_models)
        return known[guest]

    def _archive(self, boot: Boot) -> bytes:
        """The image's archive, and behind it the cell's own: modules, harness, tools and plan."""
        module = self.module if any(drive["settings"] for drive in boot.plan["drives"]) else None
        scripts = {f"control/{name}": text for name, text in sorted(self.spec.scripts.items())}
        programs = {f"tools/{name}": path.read_bytes() for name, path in sorted(self.tools.items())}
        return self.image.initramfs.read_bytes() + initramfs.cell(
            self.image.kernel.modules,
            self.spec.modules,
            {**cell_inputs.harness_files(), "plan.json": canonical_json(boot.plan)},
            {"start": cell_inputs.harness_start(), **programs, **scripts},
            {module.stem: module.read_bytes()} if module else {},
        )

    def guest(self, boot: Boot) -> GuestSpec:
        """The guest of one boot."""
        place = hashlib.sha256(str(self.directory).encode()).hexdigest()[:12]
        real = [(number, drive) for number, drive in self._real() if boot.plan["drives"][number:]]
        return GuestSpec(
            name=f"agelab-{place}",
            uuid=self.spec.uuid,
            seed=self.spec.run_seed,
            machine=self.spec.machine,
            memory_mib=boot.memory_mib,
            kernel=self.image.boot_image,
            initramfs=self.directory / f"{boot.name}initramfs",
            day=boot.day + boot.number,
            disks=(
                MemoryDisk(self.image.root, self.image.root.stat().st_size, written=False),
                MemoryDisk(self.corpus.image, self.corpus.size, written=False),
                *boot.disks,
            ),
            console=self.directory / f"{boot.name}console-{boot.number}.log",
            events=self.directory / f"{boot.name}events-{boot.number}.jsonl",
            preload=self.clock,
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
            passthrough=tuple(
                drive.claim.source for _, drive in real if drive.claim and drive.spec.kind == "pci"
            ),
        )

    def _real(self) -> Sequence[tuple[int, CellDrive]]:
        """The real drives, with their numbers among all."""
        return [(number, drive) for number, drive in enumerate(self.spec.disk.drives) if drive.spec.real]


def _hear(
    line: str, phase: str, heard: BootEvents, keep: Callable[[Sample], None], progress: Callable[[str], None]
) -> None:
    """Take in one event. A line that is none (a kernel message cut in, a crash cut it short) changes nothing."""
    try:
        event = EVENT.validate_json(line)
    except ValidationError:
        return

    def whole(step: str) -> str:
        """The step's name with its phase."""
        return str(StepId.parse(step).inside(phase))

    heard.lines += 1
    match event:
        case LinesWritten():
            heard.lost = heard.lines <= event.lines
        case SampleSent():
            keep(event.sample(whole(event.step)))
        case StepBegun():
            heard.begun = event.model_copy(update={"step": whole(event.step)})
        case StepDone():
            heard.begun = None
            progress(f"{whole(event.step)} {event.repetition}")
        case StepFailed():
            heard.failures.append(event.model_copy(update={"step": whole(event.step)}))
        case Mounted():
            heard.mounted = event
        case PowerIsCut():
            heard.cut = event
            progress(f"{whole(event.step)} {event.repetition}: power cut")
        case FilesystemChecked():
            heard.checked.append(event)
        case RebootRequested():
            heard.reboot = event
        case CellEnded():
            heard.ended = event
        case HarnessReady():
            progress("ready")
