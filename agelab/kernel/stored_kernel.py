"""A kernel in the store, ready to boot, and its provenance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agelab.base import fileio
from agelab.kernel import elf, recipes
from agelab.kernel.build_inputs import BuildInputs
from agelab.kernel.modules import Modules
from agelab.kernel.source_tree import PROVENANCE_FILE, BuildRecord, KernelPart
from agelab.store.artefacts import Artefact, damaged

DEFAULT = "debian:6.1"
"""The newest Debian 6.1: it still has reiserfs and jfs."""

RELEASE_FILE = "release"
"""File with the release of a kernel that was built here."""


@dataclass(frozen=True)
class NamedKernel:
    """What the packages that belong to a kernel are asked for by. The kernel need not have been made."""

    spec: str
    release: str
    version: str
    suite: str = ""
    """The Debian suite that has the kernel and its headers; empty for any other kernel."""
    build_inputs: BuildInputs | None = None
    """The inputs of its build; None unless it is built here."""

    @property
    def kind(self) -> str:
        """The kind of its spec: debian, deb, image, tree, source or recipe."""
        return self.spec.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class Kernel(NamedKernel):
    """A kernel in the store, ready to boot."""

    artefact: Artefact
    built_modules: tuple[Path, ...] = ()
    """Modules that were built for it beside its own, such as a filesystem's (agelab.machine.dkms)."""

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
        shipped = Modules.of(self.release, self.directory)
        infos = (elf.read_module(path, str(path.absolute())) for path in self.built_modules)
        return replace(shipped, infos=(*shipped.infos, *infos))


_HIGHLIGHTS = ("HZ", "PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC")
# Linux version RELEASE (who@where) (COMPILER, LINKER) #1 ...; before Linux 5.8 without the linker.
_COMPILER = re.compile(r"\) \((.+)\) #\d")
_LINKER = re.compile(r", (?=GNU ld|LLD|ld)")


class Provenance(BuildRecord):
    """The provenance of a kernel."""

    kind: str = Field(description='what the sources are: "packages", "files" or "built"')
    release: str
    version: str
    config: str | None = Field(description="sha256 of its configuration; null where that is not known")
    compiler: str | None
    banner: str | None = Field(
        description="the first line that it prints when it boots; null where it cannot be unpacked"
    )
    highlights: dict[str, str] = Field(description="options that runs depend on, of those that are set")


def provenance_of(kernel: Kernel) -> Provenance:
    """Return the provenance of a kernel in the store. Raises HostError when its build record is damaged.

    Most of it is read from the key's inputs and the kernel's own files. Only what a build knows (commit and patches) is
    recorded.
    """
    artefact = kernel.artefact
    kind, sources = _sources_in_key(artefact.manifest.inputs)
    recorded = _read_record(artefact)
    text = kernel.config
    set_to = recipes.set_options(text) if text else {}
    # boot_image is the ELF image, or else the bzImage that contains it.
    booted = fileio.read_bytes(kernel.boot_image, fileio.PROGRAM)
    image = elf.unpack(booted) if kernel.boot_image == kernel.vmlinuz else booted
    banner = elf.banner(image) if image else None
    return Provenance(
        kind=kind,
        release=kernel.release,
        version=kernel.version,
        sources=recorded.sources or sources,
        commit=recorded.commit,
        patches=recorded.patches,
        config=artefact.manifest.files.get("config"),
        compiler=set_to.get("CC_VERSION_TEXT", "").strip('"') or _compiler(banner),
        banner=banner,
        highlights={name: set_to[name] for name in _HIGHLIGHTS if name in set_to},
    )


def release_and_version(artefact: Artefact) -> tuple[str, str]:
    """Return release and version of a kernel in the store, of any kind."""
    inputs = artefact.manifest.inputs
    release = inputs.get("release") or str(inputs.get("package", "")).removeprefix("linux-image-")
    if (artefact / RELEASE_FILE).exists():
        release = fileio.read_text(artefact / RELEASE_FILE)
    return str(release), str(inputs.get("version", ""))


def _sources_in_key(inputs: Mapping[str, Any]) -> tuple[str, tuple[KernelPart, ...]]:
    """Return the kind of a kernel's sources and the sources, from its key's inputs."""
    version = str(inputs.get("version", ""))
    if "package" in inputs or "parts" in inputs:
        named = [(inputs["package"], inputs["sha256"])] if "package" in inputs else []
        named += inputs.get("parts", [])
        return "packages", tuple(KernelPart(name=name, version=version, sha256=digest) for name, digest in named)
    files = (("bzImage", "image"), ("modules", "modules"), ("config", "config"))
    parts = [KernelPart(name=name, sha256=inputs[key]) for name, key in files if inputs.get(key)]
    return ("files" if parts else "built"), tuple(parts)


def _read_record(artefact: Artefact) -> BuildRecord:
    file = artefact / PROVENANCE_FILE
    try:
        return BuildRecord.model_validate_json(fileio.read_bytes(file))
    except FileNotFoundError:
        return BuildRecord()
    except ValidationError as error:
        raise damaged(f"the store's {file}", artefact.directory) from error


def _compiler(banner: str | None) -> str | None:
    """Return the compiler that a banner names."""
    match = _COMPILER.search(banner or "")
    return _LINKER.split(match.group(1))[0] if match else None
