"""One cell: fresh disks, one guest after the other until its steps are done, and a verdict."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from agelab.corpus import Corpus
from agelab.image import Image
from agelab.kernel import MissingModule, initramfs
from agelab.model.event import EVENT, Ended, Measured, Ready, Reboot, StepDone, StepFailed
from agelab.model.result import End, Sample, Status
from agelab.results.digest import digest, inputs_key
from agelab.results.ratios import derived
from agelab.results.rundir import RunDirectory
from agelab.run import inputs
from agelab.run.drives import CellDrive
from agelab.run.plan import DATA_DISK, MIB, CellSpec, guest_plan
from agelab.run.verdict import Verdict, verdict
from agelab.store import canonical
from agelab.vm import daemon, domain
from agelab.vm.guest import REAL_SERIAL, GuestSpec, MemoryDisk, RealDisk
from agelab.vm.hypervisor import Ending, Hypervisor

PATIENCE = {"virtual": 6 * 3600.0, "wall": 7 * 86400.0}
"""Host seconds for one boot."""

MEMORY_TOLERANCE = 256 * 1024
"""Bytes by which the memory that the first step finds may miss the plan's."""


@dataclass
class Heard:
    """What one boot has said so far."""

    ended: Ended | None = None
    reboot: Reboot | None = None
    failures: list[StepFailed] = field(default_factory=list)


@dataclass(frozen=True)
class CellRunner:
    """Runs one cell of a run; ``progress`` hears of each step as it ends."""

    run: RunDirectory
    number: int
    spec: CellSpec
    image: Image
    corpus: Corpus
    hypervisor: Hypervisor
    clock: Path | None
    """The library that takes the host's clock away from QEMU, in the virtual clock."""
    module: Path | None
    """The modelled drive's kernel module, for cells that have one."""
    progress: Callable[[str], None]

    @property
    def directory(self) -> Path:
        return self.run.cell(self.number)

    def carry_out(self) -> End:
        """Run the cell to its end record. Whatever goes wrong in the guest is its status, not an exception."""
        started = time.monotonic()
        key = None
        unsupported = self._unsupported()
        if unsupported:
            end = Verdict(Status.UNSUPPORTED, unsupported)
            samples: list[Sample] = []
        else:
            key = self._write_inputs()
            samples = []
            end = self._checked(self._boots(samples), samples)
            for sample in derived(self.spec.scenario.ratios, samples):
                self._keep(sample, samples)
        record = End(
            status=end.status,
            reason=end.reason,
            inputs_key=key,
            digest=digest(end.status, samples) if key and self._repeatable(end) else None,
            host_seconds=round(time.monotonic() - started, 3),
        )
        self.run.finish(self.number, record)
        return record

    def _repeatable(self, end: Verdict) -> bool:
        """Whether the same inputs would end so again, with the same samples: no promise of real time."""
        return self.spec.clock == "virtual" and end.status is not Status.INTERRUPTED

    def _checked(self, end: Verdict, samples: list[Sample]) -> Verdict:
        """The verdict, unless a boot's first step found other memory than the plan says: then its ratios are off."""
        wanted = self.spec.sized(self.spec.scenario.memory.available_mib)
        for sample in samples:
            if sample.metric == "memory_available" and abs((sample.value or 0) - wanted) > MEMORY_TOLERANCE:
                why = f"the first step of boot {sample.repetition} found {sample.value} bytes available, not {wanted}"
                return Verdict(Status.FAILED, why) if end.status is Status.OK else end
        return end

    def _keep(self, sample: Sample, samples: list[Sample]) -> None:
        self.run.append(self.number, sample)
        samples.append(sample)

    def _unsupported(self) -> str | None:
        """Why this kernel or image cannot serve the cell, or None."""
        try:
            self.image.kernel.modules.closure(self.spec.modules)
        except MissingModule as missing:
            return str(missing)
        smallest = self.spec.filesystem.minimum_mib * MIB
        if self.spec.disk_bytes < smallest:
            return f"{self.spec.filesystem.name} needs {smallest} bytes of disk, the cell has {self.spec.disk_bytes}"
        proof = self.image.proof.get((self.spec.filesystem.name, self.spec.defaults))
        if proof is None:
            return f"the image has no proof of {self.spec.filesystem.name} with the {self.spec.defaults} defaults"
        return None if proof.status == "ok" else f"the image's proof {proof.status}: {proof.reason}"

    def _write_inputs(self) -> str:
        guest = self._guest(boot=0)
        command = self.hypervisor.command_line(
            domain.xml(guest, daemon.uri(), self.hypervisor.security_models)
        )
        places = {
            "cell": self.directory,
            "image": self.image.artefact.directory,
            "corpus": self.corpus.image.parent,
            **{f"drive{n}": Path(drive.claim.source) for n, drive in self._real() if drive.claim},
        }
        archive = hashlib.sha256(self._initramfs(0, 0)).hexdigest()
        module = self.module if self.spec.disk.modelled else None
        found = inputs.cell_inputs(self.spec, self.image, self.corpus, module, archive, command, places)
        self.run.write_inputs(self.number, found)
        return inputs_key(found)

    def _boots(self, samples: list[Sample]) -> Verdict:
        """Boot until the harness has said the last word, the disks persisting from one boot to the next."""
        failures: list[StepFailed] = []
        boot, first_step = 0, 0
        disks = self._disks()
        for disk in disks:
            with disk.path.open("wb") as file:
                file.truncate(disk.size)
        try:
            while True:
                if gone := self._vanished():
                    return gone
                heard = Heard(failures=failures)
                ending = self._boot(boot, first_step, heard, samples)
                if heard.reboot is None or heard.ended:
                    said = verdict(ending, heard.ended, failures, self._console(boot))
                    return self._vanished() or said
                boot, first_step = boot + 1, heard.reboot.next
        finally:
            for disk in disks:
                disk.path.unlink()

    def _vanished(self) -> Verdict | None:
        """That a real drive is not what it was when the run claimed it: whatever else went wrong followed from it."""
        for _, drive in self._real():
            if drive.claim and (why := drive.claim.check()):
                return Verdict(Status.FAILED, f"the drive changed while the cell ran: {why}")
        return None

    def _boot(self, boot: int, first_step: int, heard: Heard, samples: list[Sample]) -> Ending:
        guest = self._guest(boot)
        guest.initramfs.write_bytes(self._initramfs(boot, first_step))
        for output in (guest.console, guest.events):
            output.touch()
        xml = domain.xml(guest, daemon.uri(), self.hypervisor.security_models)
        (self.directory / f"domain-{boot}.xml").write_text(xml)
        try:
            return self.hypervisor.run(
                guest.name,
                xml,
                guest.events,
                lambda line: self._hear(line, heard, samples),
                PATIENCE[self.spec.clock],
            )
        finally:
            guest.initramfs.unlink()

    def _initramfs(self, boot: int, first_step: int) -> bytes:
        """The image's archive, and behind it the cell's own: modules, harness and plan."""
        plan = guest_plan(self.spec, self.corpus, boot, first_step)
        return self.image.initramfs.read_bytes() + initramfs.cell(
            self.image.kernel.modules,
            self.spec.modules,
            {**inputs.harness_files(), "plan.json": canonical(plan)},
            {"start": inputs.harness_start()},
            {self.module.stem: self.module.read_bytes()} if self.module and self.spec.disk.modelled else {},
        )

    def _guest(self, boot: int) -> GuestSpec:
        place = hashlib.sha256(str(self.directory).encode()).hexdigest()[:12]
        return GuestSpec(
            name=f"agelab-{place}",
            uuid=self.spec.uuid,
            seed=self.spec.run_seed,
            machine=self.spec.machine,
            memory_mib=self.spec.memory_mib(self.corpus),
            kernel=self.image.boot,
            initramfs=self.directory / "initramfs",
            boot=boot,
            disks=(
                MemoryDisk(self.image.root, self.image.root.stat().st_size, written=False),
                MemoryDisk(self.corpus.image, self.corpus.size, written=False),
                *self._disks(),
            ),
            console=self.directory / f"console-{boot}.log",
            events=self.directory / f"events-{boot}.jsonl",
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
                for number, drive in self._real()
                if drive.claim and drive.spec.kind != "pci"
            ),
            passthrough=tuple(
                drive.claim.source for _, drive in self._real() if drive.claim and drive.spec.kind == "pci"
            ),
        )

    def _real(self) -> list[tuple[int, CellDrive]]:
        """The real drives, with their numbers among all."""
        return [(number, drive) for number, drive in enumerate(self.spec.disk.drives) if drive.spec.real]

    def _disks(self) -> tuple[MemoryDisk, ...]:
        """What holds the data of the partitions, in the order in which the plan numbers them."""
        return tuple(
            MemoryDisk(self.directory / f"disk-{number}", size, written=True)
            for number, size in enumerate(self.spec.disk.backing, start=DATA_DISK)
        )

    def _console(self, boot: int) -> str:
        return (self.directory / f"console-{boot}.log").read_text(errors="replace")

    def _hear(self, line: str, heard: Heard, samples: list[Sample]) -> None:
        """Take in one event. A line that is none (a kernel message cut in, a crash cut it short) changes nothing."""
        try:
            event = EVENT.validate_json(line)
        except ValidationError:
            return
        match event:
            case Measured():
                self._keep(event.sample(), samples)
            case StepDone():
                self.progress(f"{event.step} {event.repetition}")
            case StepFailed():
                heard.failures.append(event)
            case Reboot():
                heard.reboot = event
            case Ended():
                heard.ended = event
            case Ready():
                self.progress("ready")
