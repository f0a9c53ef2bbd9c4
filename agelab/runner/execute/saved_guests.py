"""Saved guests in the store: each has booted once, up to the moment at which a boot's plan, date and disks come in."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agelab.base import process
from agelab.base.errors import HostError, Notify
from agelab.machine.image import Image
from agelab.machine.qemu import Emulator
from agelab.machine.vm import domain, guest_output, virt_install
from agelab.machine.vm.guest import GuestSpec, SavedMemory
from agelab.machine.vm.hypervisor import DaemonLost, Hypervisor
from agelab.machine.vm.saved_guest import NotRestored
from agelab.runner.plan import cell_inputs
from agelab.runner.prepare.prepare import PreparedRun
from agelab.store.artefacts import Artefact, Store, content_hash

KIND = "guest"
MEMORY, STATE, EMPTY, INITRAMFS = "memory", "state", "empty", "initramfs"
"""Files of a saved guest: its memory, its devices, the hole that was its disks, and what it booted."""
LAST_LINES = 5
SOMEWHERE = Path("/agelab/saved")
"""Stands for a saved guest's directory in what its key and a cell's inputs are made of."""


@dataclass(frozen=True)
class SavedGuests:
    """The saved guests for the cells of a run."""

    store: Store
    hypervisor: Hypervisor
    image: Image
    emulator: Emulator
    progress: Notify

    def restored(self, guest: GuestSpec, directory: Path = SOMEWHERE) -> GuestSpec:
        """Return the guest that begins as a copy of the one saved in ``directory``, with the disks of ``guest``."""
        return replace(
            guest,
            initramfs=directory / INITRAMFS,
            preload=(self.emulator.clock, self.emulator.main_loop),
            saved=SavedMemory(directory / MEMORY, restored=True),
        )

    def obtain(self, guest: GuestSpec, initramfs: bytes) -> Artefact:
        """Return the saved guest of which ``guest``, with its disks in slots, can be a copy; made now if there is none.

        Raises HostError or AgelabError where it cannot be made.
        """
        inputs = {
            "kernel": self.image.kernel.key,
            "image": self.image.content,
            "initramfs": hashlib.sha256(initramfs).hexdigest(),
            "command": self._command(self._to_save(guest, SOMEWHERE)),
            "qemu": self.emulator.identity,
        }

        def build(directory: Path) -> None:
            self.progress(f"booting a guest of {guest.memory_mib} MiB to be saved")
            self._make(self._to_save(guest, directory), directory, initramfs)

        return self.store.obtain(KIND, inputs, build, content_hash)

    def _command(self, guest: GuestSpec) -> list[str]:
        """Return the QEMU command of a guest, with names for this host's directories."""
        if guest not in self._commands:
            command = self.hypervisor.command_line(self._domain_xml(guest))
            places = {
                "saved": SOMEWHERE,
                "image": self.image.artefact.directory,
                "qemu": self.emulator.artefact.directory,
            }
            self._commands[guest] = cell_inputs.guest_command(command, places)
        return self._commands[guest]

    @cached_property
    def _commands(self) -> dict[GuestSpec, list[str]]:
        """The commands that are known: each boot asks for one."""
        return {}

    def _domain_xml(self, guest: GuestSpec) -> str:
        models = self.hypervisor.security_models
        return domain.domain_xml(guest, models, self.store.cache(virt_install.CACHE))

    def discard(self, made: Artefact, error: NotRestored) -> None:
        """Remove a saved guest that does not start, so that it is made anew."""
        self.progress(f"{error}: it is made anew")
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
            preload=(self.emulator.clock, self.emulator.main_loop),
            saved=SavedMemory(directory / MEMORY, restored=False),
        )

    def _make(self, guest: GuestSpec, directory: Path, initramfs: bytes) -> None:
        guest.initramfs.write_bytes(initramfs)
        for file in (guest.console, guest.events):
            file.touch()
        with (directory / EMPTY).open("wb") as empty:
            empty.truncate(max(disk.size for disk in guest.disks))
        try:
            self.hypervisor.save(guest.name, self._domain_xml(guest), directory / STATE)
        except DaemonLost:
            raise
        except HostError as error:
            words = " ".join(guest_output.console_text(guest.console).splitlines()[-LAST_LINES:])
            raise HostError(f"{error}; it said last: {words or 'nothing'}", error.hint) from error
        guest.events.unlink()
        process.run(["fallocate", "--dig-holes", str(directory / MEMORY)])


def of_run(
    prepared: PreparedRun, hypervisor: Hypervisor, store: Store, progress: Notify
) -> SavedGuests | None:
    """Return the saved guests of a run; None where its guests boot in full."""
    if not prepared.saves_guests:
        return None
    return SavedGuests(store, hypervisor, prepared.image, prepared.emulator, progress)
