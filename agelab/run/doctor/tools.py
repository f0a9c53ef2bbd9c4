"""Probes of the programs that agelab uses."""

import getpass
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from agelab.base import atomic, fileio, process
from agelab.base.errors import HostError
from agelab.debian import WITHOUT_SECURITY, buildroot, mirrors, to_have_security
from agelab.machine import qemu
from agelab.machine.image import root as roots
from agelab.machine.vm import host, libvirt_daemon
from agelab.run.doctor.finding import Finding, ProbeStatus
from agelab.store.artefacts import Store

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_PROBE_SECONDS = 30.0
_NVDIMM_MACHINE = (
    "-machine q35,nvdimm=on -m 64M,slots=1,maxmem=1G -nodefaults -no-user-config -display none "
    "-object memory-backend-ram,id=m0,size=128M -device nvdimm,memdev=m0 -dump-vmstate /dev/null"
)
"""QEMU's words for a machine like that of the virtual clock; it describes its state and ends."""
WITHOUT_APT = (
    "no Debian: install what is missing under your distribution's names, or use a container (docs/install.md)"
)
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
    found = _VERSION.search(text)
    return found.group() if found else text.strip().partition("\n")[0]


def probe(tool: Tool) -> Finding:
    """Check that ``tool`` is installed and starts, and find its version."""
    program = tool.argv[0]
    finding = partial(Finding, name=tool.name, required=True)
    if process.find(program) is None:
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
    if process.find("apt-get"):
        return tuple(findings)
    return tuple(
        found.model_copy(update={"fix": WITHOUT_APT if found.name == "apt" else ""})
        if found.fix.startswith("install the Debian package")
        else found
        for found in findings
    )


def sources(store: Store) -> Finding:
    """Check that apt's sources have the host's suite, and its security updates."""
    finding = partial(Finding, name="apt's sources")
    meaning = "guests are made of the newest packages there"
    try:
        if mirrors()[1]:
            return finding(status=ProbeStatus.OK, found="with security updates", meaning=meaning)
    except HostError as error:
        told = str(error).splitlines()[0]
        return finding(status=ProbeStatus.MISSING, found=told, meaning=meaning, fix=error.hint)
    return finding(
        status=ProbeStatus.LIMITED,
        found=WITHOUT_SECURITY,
        meaning="kernels and packages may be older than README's, so cells have other keys",
        fix=to_have_security(store),
    )


def _exists(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else process.find(program) is not None


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
        if process.find(program) is None:
            return process.install_hint(program)
    if os.geteuid() == 0:
        return "allow this container to mount and to have namespaces (CAP_SYS_ADMIN)"
    name = getpass.getuser()
    if process.find("newuidmap") is None:
        return process.install_hint("newuidmap")
    if not all(f"\n{name}:" in f"\n{fileio.read_text(path)}" for path in SUBORDINATE_IDS if path.exists()):
        return f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
    return "allow user namespaces to users who are not root (sysctl user.max_user_namespaces, AppArmor), or be root"


def libvirt() -> Finding:
    """Check for a libvirt daemon and its Python binding, and whether a daemon runs."""
    daemon = next((program for program in libvirt_daemon.DAEMONS if process.find(program)), None)
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
        found = qemu.find(store)
        if found is None:
            first = "none in the store yet: a run takes it from the packages of Debian " + qemu.SUITE
            return finding(status=ProbeStatus.UNKNOWN, found=first)
        process.run([str(found.program), *_NVDIMM_MACHINE.split()], timeout=_PROBE_SECONDS)
    except HostError as error:
        return finding(status=ProbeStatus.MISSING, found=str(error), fix=error.hint)
    version = found.version.removeprefix("QEMU emulator version ")
    return finding(status=ProbeStatus.OK, found=version)
