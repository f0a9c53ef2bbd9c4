"""A kernel in the store, ready to boot."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from agelab.base import fileio
from agelab.kernel import modinfo
from agelab.kernel.build_inputs import BuildInputs
from agelab.kernel.modules import Modules
from agelab.store.artefacts import Artefact

DEFAULT = "debian:6.1"
"""The newest Debian 6.1: it still has reiserfs and jfs."""

RELEASE_FILE = "release"
"""File with the release of a kernel that was built here."""


class NamedKernel(Protocol):
    """What the packages that belong to a kernel are asked for by. The kernel need not have been made."""

    @property
    def spec(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def release(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def suite(self) -> str: ...
    @property
    def build_inputs(self) -> BuildInputs | None: ...


@dataclass(frozen=True)
class KernelName:
    """A kernel of packages, before it is made."""

    spec: str
    release: str
    version: str
    suite: str = ""
    build_inputs: None = None

    @property
    def kind(self) -> str:
        return self.spec.partition(":")[0]


@dataclass(frozen=True)
class Kernel:
    """A kernel in the store, ready to boot."""

    spec: str
    release: str
    version: str
    artefact: Artefact
    suite: str = ""
    """The Debian suite that has the kernel and its headers; empty for any other kernel."""
    build_inputs: BuildInputs | None = None
    """The inputs of its build; None unless it was built here."""
    built_modules: tuple[Path, ...] = ()
    """Modules that were built for it beside its own, such as a filesystem's (agelab.machine.dkms)."""

    @property
    def kind(self) -> str:
        """The kind of its spec: debian, deb, image, tree, source or recipe."""
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
        """The file that QEMU boots: the unpacked ELF image, which saves the guest time, or else ``vmlinuz``."""
        unpacked = self.directory / "vmlinux"
        return unpacked if unpacked.exists() else self.vmlinuz

    @property
    def config(self) -> str | None:
        """The text of its configuration; None if that is unknown."""
        file = self.directory / "config"
        return fileio.read_text(file, errors="replace") if file.exists() else None

    @cached_property
    def modules(self) -> Modules:
        found = Modules.of(self.release, self.directory)
        infos = (modinfo.read(path, str(path.absolute())) for path in self.built_modules)
        return replace(found, infos=(*found.infos, *infos))
