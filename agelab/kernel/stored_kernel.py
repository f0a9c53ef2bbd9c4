"""A kernel in the store, ready to boot."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agelab.kernel.build_inputs import BuildInputs
from agelab.kernel.modules import Modules
from agelab.store import Artefact

DEFAULT = "debian:6.1"
"""The newest Debian 6.1: reiserfs and jfs are still in it."""

RELEASE_FILE = "release"
"""The file that holds the release of a kernel that was built here."""


@dataclass(frozen=True)
class Kernel:
    """A kernel in the store, ready to boot."""

    spec: str
    release: str
    version: str
    artefact: Artefact
    suite: str = ""
    """Debian's suite that it is of, where its headers are; empty where it is of none."""
    build_inputs: BuildInputs | None = None
    """What it was built from here; None where it was not."""

    @property
    def kind(self) -> str:
        """Which kind of spec it came by."""
        return self.spec.partition(":")[0]

    @property
    def key(self) -> str:
        return self.artefact.key

    @property
    def directory(self) -> Path:
        return self.artefact.directory

    @property
    def vmlinuz(self) -> Path:
        """The kernel as the distribution ships it."""
        return self.directory / "vmlinuz"

    @property
    def boot_image(self) -> Path:
        """What QEMU is given: the ELF image where it could be unpacked, which saves the guest doing it."""
        unpacked = self.directory / "vmlinux"
        return unpacked if unpacked.exists() else self.vmlinuz

    @property
    def config(self) -> str | None:
        """The text of its configuration; None where nobody knows it."""
        file = self.directory / "config"
        return file.read_text(errors="replace") if file.exists() else None

    @cached_property
    def modules(self) -> Modules:
        """Its modules: ``kernel.modules.closure(names)``."""
        return Modules.of(self.release, self.directory)
