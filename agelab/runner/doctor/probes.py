"""Probes of the host and of the programs that agelab uses, and what each means for the user.

All but that of KVM open no device.
"""

import getpass
import importlib.util
import os
import platform
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from os import W_OK, access
from pathlib import Path
from tempfile import gettempdir

from pydantic import Field

from agelab.base import atomic, fileio, process
from agelab.base.errors import HostError
from agelab.base.types import Frozen
from agelab.debian import WITHOUT_SECURITY, buildroot, mirrors, to_have_security
from agelab.machine import qemu
from agelab.machine.image import root as roots
from agelab.machine.vm import host, libvirt_daemon
from agelab.machine.vm.host import DEVICE, probe_kvm
from agelab.store.artefacts import Store


class ProbeStatus(StrEnum):
    """OK: as it should be. MISSING: not there. LIMITED: partly usable. UNKNOWN: not proven."""

    OK = "ok"
    MISSING = "missing"
    LIMITED = "limited"
    UNKNOWN = "unknown"


class Finding(Frozen):
    """Result of one probe."""

    name: str
    status: ProbeStatus
    found: str = Field(description="version or fact found; empty if nothing was")
    meaning: str = Field(description="consequence for the user")
    fix: str = Field(default="", description="what to install or change; empty if nothing")
    required: bool = Field(default=False, description="the virtual clock cannot run without it")


class HostReport(Frozen):
    """All findings about one host. ``schema`` is the version of this layout."""

    schema_: int = Field(default=1, alias="schema")
    findings: tuple[Finding, ...]

    @property
    def virtual_clock(self) -> bool:
        """True if the virtual clock can run here: nothing that it requires is missing."""
        return not any(finding.required and finding.status is ProbeStatus.MISSING for finding in self.findings)


_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_PROBE_SECONDS = 30.0
_NVDIMM_MACHINE = (
    "-machine q35,nvdimm=on -m 64M,slots=1,maxmem=1G -nodefaults -no-user-config -display none "
    "-object memory-backend-ram,id=m0,size=128M -device nvdimm,memdev=m0 -dump-vmstate /dev/null"
)
"""QEMU's words for a machine like that of the virtual clock; it describes its state and ends."""
WITHOUT_APT = "no Debian: install what is missing by your distribution's names, or use a container (docs/quickstart.md)"
SUBORDINATE_IDS = (Path("/etc/subuid"), Path("/etc/subgid"))


@dataclass(frozen=True)
class Tool:
    """A program, the command that prints its version, and its purpose."""

    name: str
    argv: Sequence[str]
    purpose: str


TOOLS = (
    Tool("virt-install", ("virt-install", "--version"), "writes the definition of every guest"),
    Tool("mmdebstrap", ("mmdebstrap", "--version"), "builds the root of the guest images"),
    Tool("sqfstar", ("sqfstar", "-version"), "packs the root, the same bytes each time"),
    Tool("xorriso", ("xorriso", "-version"), "makes the stand-in for a Debian ISO"),
    Tool("apt", ("apt-get", "--version"), "fetches kernels and packages from the host's own mirror"),
    Tool("dpkg-deb", ("dpkg-deb", "--version"), "unpacks kernels without installing them"),
)


def version_in(text: str) -> str:
    """Return the first version number in a program's output, or the first line if there is none."""
    version = _VERSION.search(text)
    return version.group() if version else text.strip().partition("\n")[0]


def probe(tool: Tool) -> Finding:
    """Check that ``tool`` is installed and starts, and find its version."""
    program = tool.argv[0]
    finding = partial(Finding, name=tool.name, required=True)
    if process.which(program) is None:
        hint = process.install_hint(program)
        return finding(status=ProbeStatus.MISSING, found="", meaning=tool.purpose, fix=hint)
    try:
        done = process.run(tool.argv, env={"CHECKPOINT_DISABLE": "1"}, timeout=_PROBE_SECONDS)
    except HostError as error:
        meaning = f"{tool.purpose}; it is there but does not start"
        return finding(status=ProbeStatus.MISSING, found=str(error), meaning=meaning, fix=error.hint)
    version = version_in(done.stdout + done.stderr)
    return finding(status=ProbeStatus.OK, found=version, meaning=tool.purpose)


def other_packages() -> Finding:
    """Check the other entries of host-packages.txt: programs and files without a version."""
    probed = {tool.argv[0] for tool in TOOLS} | {libvirt_daemon.DAEMONS[0], "-"}
    rest = {program: package for program, package in process.host_packages().items() if program not in probed}
    absent = sorted(package for program, package in rest.items() if not _exists(program))
    return Finding(
        name="other packages",
        status=ProbeStatus.MISSING if absent else ProbeStatus.OK,
        found="missing: " + ", ".join(absent) if absent else "all there",
        meaning="helpers of the programs above",
        fix="install the Debian packages " + " ".join(absent) if absent else "",
        required=True,
    )


def one_advice(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return ``findings`` as they are or, on a host without apt, with one advice in place of a Debian package each."""
    if process.which("apt-get"):
        return tuple(findings)
    return tuple(
        finding.model_copy(update={"fix": WITHOUT_APT if finding.name == "apt" else ""})
        if finding.fix.startswith("install the Debian package")
        else finding
        for finding in findings
    )


def sources(store: Store) -> Finding:
    """Check that apt's sources have the host's suite, and its security updates."""
    finding = partial(Finding, name="apt's sources")
    meaning = "guests are made of the newest packages there"
    try:
        if mirrors()[1]:
            return finding(status=ProbeStatus.OK, found="with security updates", meaning=meaning)
    except HostError as error:
        problem = str(error).splitlines()[0]
        return finding(status=ProbeStatus.MISSING, found=problem, meaning=meaning, fix=error.hint)
    return finding(
        status=ProbeStatus.LIMITED,
        found=WITHOUT_SECURITY,
        meaning="kernels and packages may be older than README's, so cells have other keys",
        fix=to_have_security(store),
    )


def _exists(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else process.which(program) is not None


def confinement(store: Store) -> Finding:
    """Check that this user may build: mmdebstrap makes an empty root, bubblewrap runs a program.

    Where the store has an image, cells run without, as in a container without privileges.
    """
    has_images = any(store.all("image"))
    meaning = "guests' roots and kernel modules are built in namespaces"
    meaning += "; cells with the store's images run without" if has_images else ""
    finding = partial(Finding, name="namespaces", meaning=meaning, required=not has_images)
    try:
        with atomic.temp_dir(Path(gettempdir())) as work:
            roots.prove_mmdebstrap(work)
        buildroot.prove_bubblewrap()
    except HostError as error:
        *_, last = str(error).strip().splitlines()
        return finding(status=ProbeStatus.MISSING, found=last, fix=_namespace_fix())
    return finding(status=ProbeStatus.OK, found="mmdebstrap and bubblewrap build as this user")


def _namespace_fix() -> str:
    """Return what lets this user have namespaces."""
    for program in ("mmdebstrap", "bwrap"):
        if process.which(program) is None:
            return process.install_hint(program)
    if os.geteuid() == 0:
        return "allow this container to mount and to have namespaces (CAP_SYS_ADMIN)"
    name = getpass.getuser()
    if process.which("newuidmap") is None:
        return process.install_hint("newuidmap")
    if not all(f"\n{name}:" in f"\n{fileio.read_text(path)}" for path in SUBORDINATE_IDS if path.exists()):
        return f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
    return "allow user namespaces to users who are not root (sysctl user.max_user_namespaces, AppArmor), or be root"


def libvirt() -> Finding:
    """Check for a libvirt daemon and its Python binding, and whether a daemon runs."""
    daemon = next((program for program in libvirt_daemon.DAEMONS if process.which(program)), None)
    if daemon is None or importlib.util.find_spec("libvirt") is None:
        return Finding(
            name="libvirt",
            status=ProbeStatus.MISSING,
            found="" if daemon is None else f"{daemon}, without its Python binding",
            meaning="manages the guests",
            fix=process.install_hint(libvirt_daemon.DAEMONS[0]) if daemon is None else host.binding_hint(),
            required=True,
        )
    finding = probe(Tool("libvirt", (daemon, "--version"), "manages the guests"))
    if finding.status is not ProbeStatus.OK:
        return finding
    state = "running" if libvirt_daemon.daemons() else "no daemon running"
    return finding.model_copy(
        update={
            "found": f"{finding.found}, {state}",
            "meaning": "manages the guests; a run starts a daemon when none is running",
        }
    )


def emulator(store: Store) -> Finding:
    """Check that agelab's QEMU can run here: the store's, if it has one, sets up a machine of the virtual clock."""
    meaning = "runs every guest; Debian's package, unpacked in the store: the same on every host"
    finding = partial(Finding, name="QEMU", required=True, meaning=meaning)
    try:
        qemu.require_processor()
        emulator = qemu.find(store)
        if emulator is None:
            first = "none in the store yet: a run takes it from the packages of Debian " + qemu.SUITE
            return finding(status=ProbeStatus.UNKNOWN, found=first)
        process.run([str(emulator.program), *_NVDIMM_MACHINE.split()], timeout=_PROBE_SECONDS)
    except HostError as error:
        return finding(status=ProbeStatus.MISSING, found=str(error), fix=error.hint)
    version = emulator.version.removeprefix("QEMU emulator version ")
    return finding(status=ProbeStatus.OK, found=version)


GIB = 1 << 30
# Wanted: sealed image, kernel, corpus and the drives of one quick cell. Needed: the image alone.
SPACE_WANTED = 6 * GIB
SPACE_NEEDED = 2 * GIB
# The largest guest of the quick scale, QEMU's overhead and the host side.
MEMORY_WANTED = 2 * GIB
WITHOUT_KVM = "wall-clock runs are emulated (slow, and no real time); the virtual clock needs no KVM"


def space(home: Path) -> Finding:
    """Check free space and write permission of the store's directory, which may not exist yet."""
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    move = "free some space, or move the store with AGELAB_HOME=<directory>"
    fact = f"{free / GIB:.1f} GiB free for {home}"
    finding = partial(Finding, name="space", required=True)
    if not access(place, W_OK):
        return finding(
            status=ProbeStatus.MISSING,
            found=f"{place} cannot be written",
            meaning="the store cannot be made there",
            fix="move the store with AGELAB_HOME=<directory>",
        )
    if free >= SPACE_WANTED:
        meaning = "enough for the quick scale; each scenario checks its own need"
        return finding(status=ProbeStatus.OK, found=fact, meaning=meaning)
    status = ProbeStatus.LIMITED if free >= SPACE_NEEDED else ProbeStatus.MISSING
    wants = f"the quick scale wants about {SPACE_WANTED // GIB} GiB"
    return finding(status=status, found=fact, meaning=wants, fix=move)


def memory(proc: Path = Path("/proc")) -> Finding:
    """Check the memory available to guests."""
    total, available = host.memory("MemTotal", proc), host.memory("MemAvailable", proc)
    enough = available >= MEMORY_WANTED
    return Finding(
        name="memory",
        status=ProbeStatus.OK if enough else ProbeStatus.LIMITED,
        found=f"{available / GIB:.1f} of {total / GIB:.1f} GiB available",
        meaning="bounds the guests that can run side by side"
        if enough
        else f"a quick guest and the host side want about {MEMORY_WANTED // GIB} GiB",
        fix="" if enough else "end other programs, or use JOBS=1",
    )


def passthrough(sys: Path = Path("/sys"), modules: Path | None = None) -> Finding:
    """Check for PCI passthrough: an enabled IOMMU and the vfio-pci driver."""
    modules = modules or Path("/lib/modules") / platform.release()
    groups = sys / "kernel/iommu_groups"
    count = len(list(groups.iterdir())) if groups.is_dir() else 0
    driver = (sys / "module/vfio_pci").exists() or any(
        "/vfio-pci.ko" in fileio.read_text(path)
        for path in (modules / "modules.dep", modules / "modules.builtin")
        if path.exists()
    )
    facts = f"{count} IOMMU groups, vfio-pci {'available' if driver else 'not available'}"
    switch_on = "switch the IOMMU on in the firmware (VT-d, AMD-Vi) and boot with intel_iommu=on (Intel)"
    fixes = ([] if count else [switch_on]) + ([] if driver else ["use a kernel with the vfio-pci module"])
    usable = "root can give a guest drives pci:<address> that are alone in their IOMMU group"
    meaning = "no drives pci:<address> here" if fixes else usable
    return Finding(
        name="passthrough",
        status=ProbeStatus.MISSING if fixes else ProbeStatus.OK,
        found=facts,
        meaning=f"{meaning}; block:<device> and file:<path> need none of it",
        fix="; ".join(fixes),
    )


def kvm(store: Store, device: Path = DEVICE, *, again: bool = False) -> Finding:
    """Return the finding about KVM; boots a guest if no result is cached, or with ``again``."""
    verdict = probe_kvm(store, device, again=again)
    if verdict.boots:
        return Finding(name="KVM", status=ProbeStatus.OK, found=verdict.detail, meaning="wall-clock runs use KVM")
    status = ProbeStatus.UNKNOWN if verdict.detail.startswith("not proven") else ProbeStatus.LIMITED
    return Finding(
        name="KVM",
        status=status if device.exists() else ProbeStatus.MISSING,
        found=f"{device} exists, but {verdict.detail}" if verdict.tried else verdict.detail,
        meaning=WITHOUT_KVM,
        fix=verdict.fix,
    )
