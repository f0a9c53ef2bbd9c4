"""One guest that is made as a cell's is and runs a program of ours in place of the harness.

The program is Python of the standard library, the guest's first process. It finds the harness's own modules, and
``job.json`` in /run/agelab, and says its results on the second serial line, one JSON object each.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agelab import kernel as kernels
from agelab.base import fileio
from agelab.base.errors import AgelabError, Notify, silent
from agelab.base.hashing import canonical_json
from agelab.kernel import initramfs
from agelab.machine import image as images
from agelab.machine import qemu
from agelab.machine.drive import module
from agelab.machine.image import Image
from agelab.machine.image import root as roots
from agelab.machine.qemu import Emulator
from agelab.machine.vm import domain
from agelab.machine.vm.guest import GuestSpec, MemoryDisk
from agelab.machine.vm.guest_output import GuestOutput
from agelab.machine.vm.hypervisor import Hypervisor, connected
from agelab.results.result import Ending
from agelab.runner.plan import cell_inputs
from agelab.scenario.machine import Machine
from agelab.store import stored_disk
from agelab.store.artefacts import Store

MODULES = ("dm_mod", "ext4")
PATIENCE = 900.0
"""Host seconds for one boot."""
MAX_EVENT_BYTES = 256 << 20
"""Bytes that a program of ours may say in one boot."""


@dataclass(frozen=True)
class Boot:
    """The output of one boot, and the reason for its end."""

    events: list[dict[str, Any]]
    ending: Ending
    console: str

    def only(self, event: str) -> dict[str, Any]:
        """Return the only object of an event. Raises AgelabError when there is none or more than one."""
        objects = [line for line in self.events if line["event"] == event]
        if len(objects) != 1:
            raise AgelabError(f"the guest said {event!r} {len(objects)} times; its console ends:\n{self.tail}")
        return objects[0]

    @property
    def tail(self) -> str:
        """The console's last lines."""
        return "\n".join(self.console.splitlines()[-20:])


@dataclass(frozen=True)
class Bench:
    """An image, the modelled drive's module for its kernel, and a working directory, to start guests with."""

    image: Image
    module: Path
    emulator: Emulator
    hypervisor: Hypervisor
    directory: Path

    def disk(self, mib: int) -> MemoryDisk:
        """Make an empty memory-backed disk that outlives the guests that write to it."""
        path = self.directory / "disk"
        stored_disk.make_hole(path, mib << 20)
        return MemoryDisk(path, mib << 20, written=True)

    def boot(
        self,
        program: bytes,
        job: object,
        machine: Machine,
        memory_mib: int,
        disks: Sequence[MemoryDisk] = (),
        *,
        modules: Sequence[str] = MODULES,
        programs: Mapping[str, bytes] = MappingProxyType({}),
        patience: float = PATIENCE,
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
        terminal: Path | None = None,
    ) -> Boot:
        """Run a guest of the virtual clock to its end. ``on_event`` hears of each object as it comes.

        With ``terminal`` its console is that socket: what is typed there is no input that could come again.
        """
        console, events = self.directory / "console.log", self.directory / "events.jsonl"
        for output in (console, events):
            output.write_bytes(b"")
        archive = self.directory / "initramfs"
        files = {**cell_inputs.harness_files(), "job.json": canonical_json(job)}
        extra = {self.module.stem: fileio.read_bytes(self.module, fileio.PROGRAM)}
        own = initramfs.cell(self.image.kernel.modules, modules, files, {"start": program, **programs}, extra)
        archive.write_bytes(fileio.read_bytes(self.image.initramfs, fileio.PROGRAM) + own)
        root = MemoryDisk(self.image.root, self.image.root.stat().st_size, written=False, constant=True)
        guest = GuestSpec(
            name="agelab-bench-" + hashlib.sha256(str(self.directory).encode()).hexdigest()[:12],
            emulator=self.emulator.program,
            machine=machine,
            memory_mib=memory_mib,
            kernel=self.image.boot_image,
            initramfs=archive,
            disks=(root, *disks),
            console=console,
            events=events,
            preload=(self.emulator.clock,),
            terminal=terminal,
        )
        xml = domain.domain_xml(guest, self.hypervisor.security_models)
        objects: list[dict[str, Any]] = []

        def hear(line: str) -> None:
            objects.append(json.loads(line))
            on_event(objects[-1])

        written = GuestOutput(events, console, MAX_EVENT_BYTES)
        ending = self.hypervisor.run(guest.name, xml, written, hear, patience)
        return Boot(objects, ending, fileio.tail(console))


@contextmanager
def bench(
    store: Store, kernel: str, directory: Path, filesystems: Sequence[str] = (), progress: Notify = silent
) -> Iterator[Bench]:
    """Set up a bench for a kernel, with its image and module built if the store does not have them.

    The image serves ``filesystems`` beside those of every guest.
    """
    resolved = kernels.resolve(kernel, store, progress=progress)
    image = images.build(resolved, store, roots.served(roots.definition(), filesystems), progress=progress)
    built = module.obtain(resolved, store, progress)
    with connected() as hypervisor:
        yield Bench(image, built, qemu.obtain(store), hypervisor, directory)
