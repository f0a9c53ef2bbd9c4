"""The domain XML of a guest in the virtual clock, written by virt-install.

What repeatability takes is in the argument lists below; docs/architecture.md says why each is there. Nothing
asynchronous and nothing fed by the host may be in such a domain: its disks are memory-backed (nvdimm), its
serial lines end in regular files, and it has no network, no balloon and no source of randomness.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agelab import process
from agelab.errors import AgelabError
from agelab.model.machine import Machine

EMULATOR = "/usr/bin/qemu-system-x86_64"
MACHINE_TYPE = "pc-i440fx-7.2"
DISK_ALIGNMENT = 2 << 20
"""Bytes; a memory-backed disk is mapped in pieces of this size."""
MEMORY_SLOTS = 16
MEMORY_LIMIT = "256G"
"""Address space for memory-backed disks; it costs the guest nothing."""
EPOCH = 1577836800
"""Guest time of a cell's first boot: 2020-01-01 UTC, in seconds."""
DAY = 86400
TIMERS = ("rtc", "pit", "hpet")
"""What virt-install writes policies for: they catch up with lost ticks, by the host's idea of time."""
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
"""Kernel arguments: fail fast, nothing random, no bounce buffers, none of the crypto self-tests (1.5 s)."""


@dataclass(frozen=True)
class MemoryDisk:
    """A file that the guest sees as a synchronous memory-backed disk."""

    path: Path
    size: int
    """Bytes, a multiple of DISK_ALIGNMENT."""
    written: bool
    """Whether the guest's writes reach the file."""


@dataclass(frozen=True)
class GuestSpec:
    """One boot of one guest."""

    name: str
    uuid: str
    """The SMBIOS UUID, which is also part of what seeds the guest's random pool."""
    seed: int
    """QEMU's own random numbers."""
    machine: Machine
    memory_mib: int
    kernel: Path
    initramfs: Path
    boot: int
    """How many boots of the cell came before: each is a day of guest time later."""
    disks: tuple[MemoryDisk, ...]
    """The root comes first."""
    console: Path
    events: Path
    preload: Path
    """The library that takes the host's clock away from QEMU (agelab.vm.clock)."""


def xml(spec: GuestSpec, uri: str, confined_by: Collection[str]) -> str:
    """The domain XML for ``spec`` on a host with these security models (libvirt's capabilities).

    Raises HostError when virt-install is missing or refuses."""
    for disk in spec.disks:
        if disk.size % DISK_ALIGNMENT:
            raise AgelabError(f"{disk.path}: {disk.size} bytes is not a multiple of {DISK_ALIGNMENT}")
    return process.run(virt_install(spec, uri, confined_by), timeout=120).stdout.strip() + "\n"


def virt_install(spec: GuestSpec, uri: str, confined_by: Collection[str]) -> list[str]:
    """The virt-install command for ``spec``; it prints XML and creates nothing."""
    cpu = [spec.machine.cpu_model, *(f"disable={name}" for name in spec.machine.cpu_without), "check=none"]
    start = EPOCH + spec.boot * DAY
    arguments = " ".join([*BASE_ARGUMENTS, *spec.machine.kernel_arguments])
    fixed = (
        "--print-xml 1 --vcpus 1 --virt-type qemu --arch x86_64 --import --disk none --network none "
        "--graphics none --video none --sound none --controller usb,model=none --memballoon none --rng none "
        "--tpm none --console none --channel none --input none --osinfo detect=off,require=off "
        "--watchdog i6300esb,action=poweroff --clock offset=absolute "
        "--events on_poweroff=destroy,on_reboot=destroy,on_crash=destroy"
    )
    return [
        "virt-install", "--connect", uri, *fixed.split(),
        "--name", spec.name, "--memory", str(spec.memory_mib),
        "--machine", MACHINE_TYPE, "--cpu", ",".join(cpu),
        "--xml", f"./clock/@start={start}", *["--xml", "xpath.delete=./clock/timer"] * len(TIMERS),
        "--boot", f"kernel={spec.kernel},initrd={spec.initramfs},kernel_args={arguments}",
        *labels(confined_by),
        *(f"--qemu-commandline={words}" for words in virtual_clock(spec)),
    ]  # fmt: skip


def labels(confined_by: Collection[str]) -> list[str]:
    """The guest runs as the user who asked for it, unconfined: libvirt knows nothing of the files it is given."""
    words = []
    for model in sorted(confined_by):
        own = f"type=static,model=dac,relabel=no,label=+{os.getuid()}:+{os.getgid()}"
        words += ["--seclabel", own if model == "dac" else f"type=none,model={model}"]
    return words


def virtual_clock(spec: GuestSpec) -> list[str]:
    """QEMU's arguments that libvirt has no words for: the instruction counter, the disks, the serial lines."""
    moment = datetime.fromtimestamp(EPOCH + spec.boot * DAY, UTC).strftime("%Y-%m-%d")
    lines = [
        f"env=LD_PRELOAD={spec.preload}",
        # Recording (into nothing) keeps QEMU's main loop from looking at the clock while the guest runs: it could
        # see a processor that has just halted and not yet accounted for its last instructions.
        f"-icount shift={spec.machine.shift},sleep=off,align=off,rr=record,rrfile=/dev/null",
        f"-rtc base={moment},clock=vm",
        # libvirt wants a UUID of its own for each domain; the guest sees the last one named.
        f"-uuid {spec.uuid} -seed {spec.seed}",
        "-no-reboot",
        "-machine nvdimm=on",
        f"-m size={spec.memory_mib * 1024}k,slots={MEMORY_SLOTS},maxmem={MEMORY_LIMIT}",
    ]
    for number, disk in enumerate(spec.disks):
        share = "on" if disk.written else "off"
        lines.append(
            f"-object memory-backend-file,id=disk{number}-memory,share={share},"
            f"mem-path={disk.path},size={disk.size}"
        )
        lines.append(f"-device nvdimm,memdev=disk{number}-memory,id=disk{number}")
    # Straight into regular files: behind a pipe or a pty the 16550 would wait for a reader, in host time.
    return [*lines, f"-serial file:{spec.console}", f"-serial file:{spec.events}"]
