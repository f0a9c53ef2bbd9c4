"""Domain XML of a guest, written by virt-install: the part common to both clocks, plus that of each."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from agelab.base import orphans
from agelab.base.errors import AgelabError, InputError
from agelab.base.fileio import require_plain
from agelab.machine.vm import virt_install, virtual_clock, wall_clock
from agelab.machine.vm.guest import MACHINE_TYPE, GuestSpec, MemoryDisk, SavedMemory
from agelab.store.disks import DISK_ALIGNMENT

MEMORY_SLOTS = 32
"""Maximum number of memory-backed disks: root, plan, corpus, results, and two members of each fork of a curve."""
UUID = "6167656c-6162-4000-8000-000000000001"
"""SMBIOS UUID of every guest, which its kernel stirs into its random pool: the plan brings the pool's real content."""
ADDRESS_SPACES_GIB = (256, 512)
"""GiB for memory and memory-backed disks; a larger one costs the guest nothing. QEMU's processor addresses 1 TiB."""
UNRESERVED_BYTES = 4 << 30
"""From this size in bytes the host reserves no memory for guest writes to a disk that discards them."""
BASE_ARGUMENTS = (
    "console=ttyS0",
    "quiet",
    "panic=-1",
    "oops=panic",
    "norandmaps",
    "nokaslr",
    "random.trust_cpu=off",
    "iommu=off",
    "cryptomgr.notests",
)
"""Kernel arguments: fail fast, no randomness, no bounce buffers, no crypto self-tests (1.5 s)."""
ANY_NAME, ANY_OWNER = "agelab-guest", "agelab-owner"
STANDING_FOR = re.compile(r"/agelab/(\d+)\.file")
"""Names that stand for a guest, for the agelab that starts it, and for its files."""
OWN_UUID = re.compile(r"\n *<uuid>[^<]*</uuid>")
SAVE_ARGUMENT = "agelab.save"
"""Kernel argument by which the harness stops the guest at the moment to be saved (harness/saved.py)."""


def domain_xml(spec: GuestSpec, confined_by: Collection[str], remembered: Path | None = None) -> str:
    """Return the domain XML for ``spec`` on a host with these security models (libvirt's capabilities).

    What virt-install printed for others is taken from the directory ``remembered``. Raises HostError when virt-install
    is missing or fails, InputError when the disks exceed a guest's address space, or when a file has a name that QEMU
    would misread.
    """
    if spec.clock == "virtual":
        virtual_clock.require_supported(spec)
    for disk in spec.disks:
        if disk.size % DISK_ALIGNMENT:
            raise AgelabError(f"{disk.path}: {disk.size} bytes is not a multiple of {DISK_ALIGNMENT}")
    for path in spec.paths:
        require_plain(path, "a file of a guest", "rename the run, or move the store: AGELAB_HOME=<directory>")
    # Most guests differ in their names and those of their files alone, and need no virt-install of their own.
    places = {path: Path(f"/agelab/{number}.file") for number, path in enumerate(dict.fromkeys(spec.paths))}
    command = virt_install_command(_moved(spec, places), confined_by)
    # Without the UUID of its own that virt-install gives the domain: libvirt gives each another.
    xml = OWN_UUID.sub("", virt_install.printed(command, remembered).strip()) + "\n"
    paths = list(places)
    named = xml.replace(f"<name>{ANY_NAME}</name>", f"<name>{spec.name}</name>", 1)
    named = named.replace(f'value="{ANY_OWNER}"', f'value="{orphans.tag()}"', 1)
    return STANDING_FOR.sub(lambda found: str(paths[int(found[1])]), named)


def _moved(spec: GuestSpec, places: Mapping[Path, Path]) -> GuestSpec:
    """Return the guest with its files in other places, and any name."""
    saved = spec.saved
    return replace(
        spec,
        name=ANY_NAME,
        emulator=places[spec.emulator],
        kernel=places[spec.kernel],
        initramfs=places[spec.initramfs],
        disks=tuple(replace(disk, path=places[disk.path]) for disk in spec.disks),
        console=places[spec.console],
        events=places[spec.events],
        preload=tuple(places[path] for path in spec.preload),
        saved=saved and replace(saved, path=places[saved.path]),
    )


def kernel_arguments(spec: GuestSpec) -> list[str]:
    """Return the kernel arguments of a guest."""
    of_clock = (
        virtual_clock.KERNEL_ARGUMENTS if spec.clock == "virtual" else wall_clock.kernel_arguments(spec)
    )
    saved = [SAVE_ARGUMENT] if spec.saved else []
    return [*BASE_ARGUMENTS, *of_clock, *spec.machine.kernel_arguments, *saved]


def virt_install_command(spec: GuestSpec, confined_by: Collection[str]) -> list[str]:
    """Return the virt-install command for ``spec``; it prints XML, which names ANY_OWNER, and creates nothing."""
    fixed = (
        "--print-xml 1 --arch x86_64 --import --network none "
        "--graphics none --video none --sound none --controller usb,model=none --memballoon none --rng none "
        "--tpm none --console none --channel none --input none --osinfo detect=off,require=off "
        "--watchdog i6300esb,action=poweroff "
        f"--events on_poweroff=destroy,on_reboot=destroy,on_crash={'preserve' if spec.is_saved else 'destroy'}"
    )
    clock = virtual_clock if spec.clock == "virtual" else wall_clock
    own = virtual_clock.qemu_arguments(spec) if spec.clock == "virtual" else []
    whose = f"env={orphans.VARIABLE}={ANY_OWNER}"
    return [
        "virt-install", "--connect", virt_install.CONNECTION, *fixed.split(),
        "--name", spec.name, "--memory", str(spec.memory_mib), "--vcpus", str(spec.vcpus),
        "--machine", MACHINE_TYPE, *clock.virt_install_arguments(spec),
        "--boot", f"emulator={spec.emulator},kernel={spec.kernel},initrd={spec.initramfs}",
        "--boot", f"kernel_args={' '.join(kernel_arguments(spec))}",
        *security_labels(confined_by),
        *(f"--qemu-commandline={words}" for words in [*own, whose, *_qemu_arguments(spec)]),
    ]  # fmt: skip


def security_labels(confined_by: Collection[str]) -> list[str]:
    """Return arguments that run the guest unconfined, as the current user: libvirt does not know the files it opens."""
    words = []
    for model in sorted(confined_by):
        own = f"type=static,model=dac,relabel=no,label=+{os.getuid()}:+{os.getgid()}"
        words += ["--seclabel", own if model == "dac" else f"type=none,model={model}"]
    return words


def address_space_gib(spec: GuestSpec) -> int:
    """Return the smallest of ADDRESS_SPACES_GIB that holds memory and disks, with 1 GiB of alignment per disk.

    Raises InputError when none does.
    """
    wanted = (spec.memory_mib << 20) + sum(disk.size + (1 << 30) for disk in spec.disks)
    for size in ADDRESS_SPACES_GIB:
        if wanted <= size << 30:
            return size
    raise InputError(
        f"memory and memory-backed disks of {wanted / 1e9:.0f} GB: a guest can address "
        f"{(ADDRESS_SPACES_GIB[-1] << 30) / 1e9:.0f} GB: take a smaller scale or a smaller disk"
    )


def _qemu_arguments(spec: GuestSpec) -> list[str]:
    """Return QEMU arguments that libvirt cannot express: identity, memory-backed disks, serial lines."""
    lines = [
        # libvirt needs a unique UUID for each domain; the guest sees the last one given.
        f"-uuid {UUID} -seed 1",
        "-no-reboot",
        "-machine nvdimm=on",
        f"-m size={spec.memory_mib * 1024}k,slots={MEMORY_SLOTS},maxmem={address_space_gib(spec)}G",
    ]
    for number, disk in enumerate(spec.disks):
        lines.append(
            f"-object memory-backend-file,id=disk{number}-memory,{_sharing(disk)},"
            f"mem-path={disk.path},size={disk.size}"
        )
        unarmed = ",unarmed=on" if disk.constant else ""
        lines.append(f"-device nvdimm,memdev=disk{number}-memory,id=disk{number}{unarmed}")
    if spec.saved:
        lines += _saved_arguments(spec.saved, spec.memory_mib)
    # Regular files: with a pipe or a pty the 16550 would wait for a reader, in host time.
    return [*lines, f"-serial file:{spec.console}", f"-serial file:{spec.events}"]


def _sharing(disk: MemoryDisk) -> str:
    """Return the options that say whether the guest's writes reach the file."""
    if disk.constant:
        return "share=on,readonly=on"
    if disk.written:
        return "share=on"
    return "share=off,reserve=off" if disk.size >= UNRESERVED_BYTES else "share=off"


def _saved_arguments(saved: SavedMemory, memory_mib: int) -> list[str]:
    """Return the arguments of a guest that stops itself to be saved, or of one that begins where it stopped."""
    share = "off" if saved.restored else "on"
    return [
        "-machine memory-backend=guest-memory",
        f"-object memory-backend-file,id=guest-memory,share={share},mem-path={saved.path},size={memory_mib}M",
        "-incoming defer" if saved.restored else "-action panic=pause",
    ]
