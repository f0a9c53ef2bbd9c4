"""Starts the guests of one cell: domain, disks and initramfs of each boot."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agelab import fileio
from agelab.corpus import Corpus
from agelab.disk_errors import is_disk_full
from agelab.errors import InputError
from agelab.image import Image
from agelab.kernel import initramfs
from agelab.model.digits import parse_digits
from agelab.model.result import Sample
from agelab.runner.execute import event_code
from agelab.runner.execute.boot_events import BootEvents
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.boot import Boot
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_layout import CellDrive
from agelab.store import canonical_json
from agelab.vm import domain, guest_output, libvirt_daemon
from agelab.vm.guest import REAL_SERIAL, Clock, GuestSpec, MemoryDisk, RealDisk
from agelab.vm.hypervisor import Ending, Hypervisor

BOOT_TIMEOUT: dict[Clock, float] = {"virtual": 6 * 3600.0, "wall": 7 * 86400.0}
"""Host seconds for one boot."""
MAX_TIMEOUT = 10**9
NO_SECRET = bytes(event_code.SECRET_BYTES)
"""Stands for a boot's secret in the inputs: it shapes no digit."""
TIMEOUT_VARIABLE = "AGELAB_PATIENCE"
"""The environment variable that sets them."""


def boot_timeout(clock: Clock) -> float:
    """Return the host seconds for one boot. Raises InputError where AGELAB_PATIENCE is not a number of them."""
    wanted = os.environ.get(TIMEOUT_VARIABLE)
    if not wanted:
        return BOOT_TIMEOUT[clock]
    if not (seconds := parse_digits(wanted, MAX_TIMEOUT)):
        raise InputError(
            f"{TIMEOUT_VARIABLE} is {wanted[:20]!r}: set it to the host's seconds for one boot, a whole number from 1 "
            f"to {MAX_TIMEOUT}"
        )
    return float(seconds)


@dataclass(frozen=True)
class GuestLauncher:
    """Starts the guests of one cell."""

    directory: Path
    """The cell's directory, which holds its guests' files."""
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

    def run(
        self,
        boot: Boot,
        events: BootEvents,
        record: Callable[[Sample], None],
        on_step: Callable[[str], None],
    ) -> Ending:
        """Run one boot to its end: ``record`` gets each sample, ``on_step`` each step's name as it ends."""
        guest = self.guest(boot)
        guest.initramfs.write_bytes(self._initramfs(boot, events.secret))
        limit = guest_output.MAX_EVENT_BYTES + guest_output.EVENT_BYTES_PER_STEP * len(boot.plan["steps"])
        output = guest_output.GuestOutput(guest.events, guest.console, limit)
        for file in (guest.console, guest.events):
            file.touch()
        xml = self._domain_xml(guest)
        (self.directory / f"{boot.name}domain-{boot.number}.xml").write_text(xml, encoding="utf-8")
        try:
            ending = self.hypervisor.run(
                guest.name,
                xml,
                output,
                lambda line: events.hear(line, boot.phase, record, on_step),
                boot_timeout(self.spec.clock),
            )
            return Ending.OUTPUT_LOST if self._is_output_lost(ending, events) else ending
        finally:
            guest.initramfs.unlink()

    def _is_output_lost(self, ending: Ending, events: BootEvents) -> bool:
        """Tell whether lines are missing. A full disk may also be why the last one is, or why one has been altered."""
        if events.lost and not events.foreign:
            return True
        silent = ending is Ending.STOPPED and not events.last_word
        return (silent or bool(events.foreign)) and is_disk_full(self.directory)

    def inputs(self, boot: Boot, places: Mapping[str, Path]) -> dict[str, Any]:
        """Return all that shapes a boot beside the cell's environment: its plan, initramfs and QEMU command.

        ``places`` names directories of the host that the command speaks of.
        """
        command = self.hypervisor.command_line(self._domain_xml(self.guest(boot)))
        named = {
            "cell": self.directory,
            "image": self.image.artefact.directory,
            "corpus": self.corpus.image.parent,
            **{f"drive{n}": Path(drive.claim.source) for n, drive in self._real_drives() if drive.claim},
            **places,
        }
        return {
            "plan": boot.plan,
            "initramfs": hashlib.sha256(self._initramfs(boot, NO_SECRET)).hexdigest(),
            "command": cell_inputs.guest_command(command, named),
        }

    def console(self, boot: Boot) -> str:
        """Return the kernel's messages; of a long console the beginning and the end."""
        return guest_output.console_text(self.directory / f"{boot.name}console-{boot.number}.log")

    @cached_property
    def _known_domains(self) -> dict[GuestSpec, str]:
        """The domain of each guest, which is needed twice: for the inputs and to start it."""
        return {}

    def _domain_xml(self, guest: GuestSpec) -> str:
        known = self._known_domains
        if guest not in known:
            known[guest] = domain.domain_xml(guest, libvirt_daemon.uri(), self.hypervisor.security_models)
        return known[guest]

    def _initramfs(self, boot: Boot, secret: bytes) -> bytes:
        """Return the image's archive, followed by the cell's own: modules, harness, tools, plan and secret."""
        module = self.module if any(drive["settings"] for drive in boot.plan["drives"]) else None
        scripts = {f"control/{name}": text for name, text in sorted(self.spec.scripts.items())}
        programs = {
            f"tools/{name}": fileio.read_bytes(path, fileio.PROGRAM)
            for name, path in sorted(self.tools.items())
        }
        return fileio.read_bytes(self.image.initramfs, fileio.PROGRAM) + initramfs.cell(
            self.image.kernel.modules,
            self.spec.modules,
            {**cell_inputs.harness_files(), "plan.json": canonical_json(boot.plan), "secret": secret},
            {"start": cell_inputs.harness_start(), **programs, **scripts},
            {module.stem: fileio.read_bytes(module, fileio.PROGRAM)} if module else {},
        )

    def guest(self, boot: Boot) -> GuestSpec:
        own = hashlib.sha256(str(self.directory).encode()).hexdigest()[:12]
        real = [(number, drive) for number, drive in self._real_drives() if boot.plan["drives"][number:]]
        return GuestSpec(
            name=f"agelab-{own}",
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

    def _real_drives(self) -> Iterator[tuple[int, CellDrive]]:
        """Return the real drives, with their numbers among all."""
        return ((number, drive) for number, drive in enumerate(self.spec.disk.drives) if drive.spec.real)
