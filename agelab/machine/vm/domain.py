"""Domain XML of a guest, written by virt-install: the part common to both clocks, plus that of each.

The arguments of the virtual clock make guests repeatable; docs/design.md explains each. Such a domain has nothing
asynchronous and no input from the host: its disks are memory-backed (nvdimm), its serial lines end in regular files,
and it has no network, balloon or source of randomness.

The wall clock is real time, several processors, real disks over virtio or PCI passthrough. Errors of a real disk are
reported to the guest: by default QEMU stops the guest when a disk has no room, and a disk that was pulled out must fail
the cell, not hang it.

By itself virt-install asks libvirt what the host can do, and refuses a host that has no QEMU of its own. Here it is
told of agelab's QEMU, by the connection with which its own tests do so (virtinst/uri.py, ``MagicURI``): so it prints
the same for the same words on every host, and needs no daemon.

What it prints is remembered while its packages stay as they are: starting it takes half a second. dpkg writes its
status whenever a package changes. Where there is no such status, nothing is remembered.
"""

import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from agelab.base import atomic, fileio, orphans, process
from agelab.base.errors import AgelabError, InputError
from agelab.base.hashing import key_of
from agelab.base.plain_path import require_plain
from agelab.machine.vm.guest import MACHINE_TYPE, GuestSpec, MemoryDisk, RealDisk, SavedMemory
from agelab.store.artefacts import file_hash
from agelab.store.stored_disk import DISK_ALIGNMENT

CACHE = "domains"
"""Name of the store's cache in which it is kept."""
PACKAGES = Path("/var/lib/dpkg/status")
HERE = Path(__file__).parent
CAPABILITIES = ("capabilities.xml", "domain-capabilities.xml")
CONNECTION = (
    "__virtinst_test__test:///default,predictable,fakeuri=qemu:///system,"
    f"caps={CAPABILITIES[0]},domcaps={CAPABILITIES[1]}"
)
"""The names of files are those in HERE, where virt-install is started."""


@cache
def printed(command: tuple[str, ...], remembered: Path | None) -> str:
    """Return what a virt-install command prints; kept in the directory ``remembered``, if one is given."""
    file = remembered and _file(command, remembered)
    if file and (text := _read(file)) is not None:
        return text
    text = process.run(command, cwd=HERE, timeout=120).stdout
    if file:
        with suppress(OSError):  # a full disk, another user's store: virt-install is asked again
            atomic.write(file, f"{_checksum(text)}\n{text}".encode())
    return text


def _file(command: Sequence[str], directory: Path) -> Path | None:
    """Return where that command's output is kept while the packages are as now; None where nobody can tell."""
    try:
        status = PACKAGES.stat()
    except OSError:
        return None
    packages = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    hashes = [file_hash(HERE / name) for name in CAPABILITIES]
    return directory / key_of({"command": list(command), "packages": packages, "told": hashes})


def _read(file: Path) -> str | None:
    """Return the text that is kept in a file; None where there is none, or it is damaged."""
    try:
        checksum, _, text = fileio.read_text(file).partition("\n")
    except (OSError, ValueError, AgelabError):
        return None
    return text if checksum == _checksum(text) else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
SCHEDULE_VARIABLE = "AGELAB_SCHEDULE"
"""The environment variable of QEMU that schedule.c reads."""
STOP_VARIABLE = "AGELAB_STOP"
"""The environment variable of QEMU that stop.c reads."""
SAVE_ARGUMENT = "agelab.save"
"""Kernel argument by which the harness stops the guest at the moment to be saved (harness/saved.py)."""


EPOCH = 1577836800
"""Date at which every guest boots: 2020-01-01 UTC, in seconds. The harness then sets the date of its boot's plan."""
EPOCH_DATE = "2020-01-01"
TIMERS = ("rtc", "pit", "hpet")
"""Timers for which virt-install writes policies; these would catch up with lost ticks in host time."""
VIRTUAL_KERNEL_ARGUMENTS = ("clearcpuid=112", "rodata=off", "nolapic_timer", "softlockup_panic=1")
"""Kernel arguments, in order:

``clearcpuid=112``: without REP_GOOD (bit 112 in every kernel from 5.10 to 7.2) the kernel copies and clears in loops
of words, which the emulator runs up to three times as fast as string instructions; it counts one iteration of these
as one instruction.

``rodata=off``: the kernel does not search its page tables for writable text, which saves a tenth of a boot.

``nolapic_timer``: with the HPET as its timer the kernel does not calibrate the local APIC timer by spinning for a
fifth of a second, which saves a quarter of a boot.

``softlockup_panic=1``: a processor that spends 20 s of guest time in the kernel (soft lockup) panics; no busy host
can cause this here.
"""
PREEMPTED = "preempt=full"
"""Kernel argument of guests whose schedule is shaken: what the kernel does is preempted as well, from 5.12 on."""
TRANSLATED_MIB = 512
"""QEMU's room for translated code where there are several processors: a turn ends when it is full, and by itself QEMU
takes as much as the host's memory allows."""
DRIVE_LETTERS = "abcdefghijklmnopqrstuvwxyz"
PINNED_EXTRA_MIB = 2048
"""MiB that QEMU may lock beside guest memory for PCI passthrough."""


def domain_xml(spec: GuestSpec, confined_by: Collection[str], remembered: Path | None = None) -> str:
    """Return the domain XML for ``spec`` on a host with these security models (libvirt's capabilities).

    What virt-install printed for others is taken from the directory ``remembered``. Raises HostError when virt-install
    is missing or fails, InputError when the disks exceed a guest's address space, or when a file has a name that QEMU
    would misread.
    """
    real = spec.real_disks or spec.passthrough
    if spec.clock == "virtual" and (real or not spec.preload):
        raise AgelabError("the virtual clock has the clock library and no real disks", hint="use the wall clock")
    for disk in spec.disks:
        if disk.size % DISK_ALIGNMENT:
            raise AgelabError(f"{disk.path}: {disk.size} bytes is not a multiple of {DISK_ALIGNMENT}")
    for path in spec.paths:
        require_plain(path, "a file of a guest", "rename the run, or move the store: AGELAB_HOME=<directory>")
    # Most guests differ in their names and those of their files alone, and need no virt-install of their own.
    places = {path: Path(f"/agelab/{number}.file") for number, path in enumerate(dict.fromkeys(spec.paths))}
    command = virt_install_command(_moved(spec, places), confined_by)
    # Without the UUID of its own that virt-install gives the domain: libvirt gives each another.
    xml = OWN_UUID.sub("", printed(tuple(command), remembered).strip()) + "\n"
    paths = list(places)
    named = xml.replace(f"<name>{ANY_NAME}</name>", f"<name>{spec.name}</name>", 1)
    named = named.replace(f'value="{ANY_OWNER}"', f'value="{orphans.tag()}"', 1)
    return STANDING_FOR.sub(lambda match: str(paths[int(match[1])]), named)


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
    """Return the kernel arguments of a guest.

    In the wall clock an emulated guest skips the timer check (check_timer in arch/x86/kernel/apic/io_apic.c of Linux):
    it panics unless ticks come within 40 ms, which the emulator misses on a busy host. Under KVM Linux makes no such
    check.
    """
    emulated = ("no_timer_check",) if spec.accelerator == "tcg" else ()
    of_clock = VIRTUAL_KERNEL_ARGUMENTS if spec.clock == "virtual" else emulated
    preempted = [PREEMPTED] if spec.schedule is not None else []
    saved = [SAVE_ARGUMENT] if spec.saved else []
    return [*BASE_ARGUMENTS, *of_clock, *spec.machine.kernel_arguments, *preempted, *saved]


def virt_install_command(spec: GuestSpec, confined_by: Collection[str]) -> list[str]:
    """Return the virt-install command for ``spec``; it prints XML, which names ANY_OWNER, and creates nothing."""
    fixed = (
        "--print-xml 1 --arch x86_64 --import --network none "
        "--graphics none --video none --sound none --controller usb,model=none --memballoon none --rng none "
        "--tpm none --console none --channel none --input none --osinfo detect=off,require=off "
        "--watchdog i6300esb,action=poweroff "
        f"--events on_poweroff=destroy,on_reboot=destroy,on_crash={'preserve' if spec.is_saved else 'destroy'}"
    )
    if spec.clock == "virtual":
        of_clock, own = _virtual_clock_words(spec), _icount_arguments(spec)
    else:
        of_clock, own = _wall_clock_words(spec), []
    whose = f"env={orphans.VARIABLE}={ANY_OWNER}"
    return [
        "virt-install", "--connect", CONNECTION, *fixed.split(),
        "--name", spec.name, "--memory", str(spec.memory_mib), "--vcpus", str(spec.vcpus),
        "--machine", MACHINE_TYPE, *of_clock,
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
    needed = (spec.memory_mib << 20) + sum(disk.size + (1 << 30) for disk in spec.disks)
    for size in ADDRESS_SPACES_GIB:
        if needed <= size << 30:
            return size
    raise InputError(
        f"memory and memory-backed disks of {needed / 1e9:.0f} GB: a guest can address "
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
            f"-object memory-backend-file,id=disk{number}-memory,{_sharing(disk)},mem-path={disk.path},size={disk.size}"
        )
        unarmed = ",unarmed=on" if disk.constant else ""
        lines.append(f"-device nvdimm,memdev=disk{number}-memory,id=disk{number}{unarmed}")
    if spec.saved:
        lines += _saved_arguments(spec.saved, spec.memory_mib)
    if spec.stop:
        lines += [f"env={STOP_VARIABLE}={spec.stop.words}", f"-gdb unix:{spec.stop.socket},server=on,wait=off"]
    # Regular files: with a pipe or a pty the 16550 would wait for a reader, in host time.
    console = f"unix:{spec.terminal},server=on,wait=off" if spec.terminal else f"file:{spec.console}"
    return [*lines, f"-serial {console}", f"-serial file:{spec.events}"]


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


def _virtual_clock_words(spec: GuestSpec) -> list[str]:
    """Return the virt-install arguments specific to the virtual clock."""
    without = [f"disable={name}" for name in spec.machine.cpu_without]
    cpu = [spec.machine.cpu_model, *without, "check=none"]
    cache = ("./features/tcg/tb-cache/@unit=MiB", f"./features/tcg/tb-cache={TRANSLATED_MIB}")
    return [
        "--virt-type", "qemu", "--cpu", ",".join(cpu), "--disk", "none",
        *(word for path in cache if spec.vcpus > 1 for word in ("--xml", path)),
        "--clock", "offset=absolute", "--xml", f"./clock/@start={EPOCH}",
        *["--xml", "xpath.delete=./clock/timer"] * len(TIMERS),
    ]  # fmt: skip


def _icount_arguments(spec: GuestSpec) -> list[str]:
    """Return the QEMU arguments of the instruction counter."""
    # Recording (to /dev/null) keeps QEMU's main loop from reading the clock while the guest runs: it could see a
    # processor that has just halted and not yet accounted for its last instructions. A recorded guest cannot be
    # saved, and has one processor: there a library keeps the main loop out (main_loop.c, turns.c).
    # What somebody types reaches no guest that is recorded, and cannot come again.
    recorded = not (spec.saved or spec.terminal or spec.vcpus > 1)
    recording = ",rr=record,rrfile=/dev/null" if recorded else ""
    shaken = [f"env={SCHEDULE_VARIABLE}={spec.schedule}"] if spec.schedule else []
    return [
        f"env=LD_PRELOAD={':'.join(str(library) for library in spec.preload)}",
        *shaken,
        f"-icount shift={spec.machine.shift},sleep=off,align=off{recording}",
        f"-rtc base={EPOCH_DATE},clock=vm",
        # By it a guest stops itself to be saved (harness/saved.py). Others have it to be the same machine.
        "-device pvpanic",
    ]


def _wall_clock_words(spec: GuestSpec) -> list[str]:
    """Return the virt-install arguments specific to the wall clock."""
    without = (f"disable={name}" for name in spec.machine.cpu_without)
    # Under KVM all instructions are kept: those disabled are slow or random only in the emulator.
    native = spec.accelerator == "kvm"
    cpu = "host-passthrough,check=none" if native else ",".join([spec.machine.cpu_model, *without, "check=none"])
    disks = [disk_argument(number, real) for number, real in enumerate(spec.real_disks)] or ["none"]
    return [
        "--virt-type", "kvm" if native else "qemu", "--cpu", cpu, "--clock", "offset=utc",
        *(word for text in disks for word in ("--disk", text)),
        *(word for address in spec.passthrough for word in ("--hostdev", controller_argument(address))),
        *(["--memtune", f"hard_limit={_pinned_kib(spec)}"] if spec.passthrough else []),
    ]  # fmt: skip


def disk_argument(number: int, real: RealDisk) -> str:
    """Return the virt-install argument for one real disk."""
    source = "source.dev" if real.kind == "block" else "source.file"
    return (
        f"type={real.kind},device=disk,{source}={real.source},driver.name=qemu,driver.type=raw,"
        f"driver.cache={real.cache},driver.io={real.aio},driver.error_policy=report,driver.discard=unmap,"
        f"target.dev=vd{DRIVE_LETTERS[number]},target.bus=virtio,serial={real.serial}"
    )


def controller_argument(address: str) -> str:
    """Return the virt-install argument for the controller at a PCI address, ``0000:03:00.0``."""
    domain, bus, place = address.split(":")
    slot, function = place.split(".")
    numbers = {"domain": domain, "bus": bus, "slot": slot, "function": function}
    # By the element's parts: virt-install would look for the address by itself among the host's devices. libvirt's
    # translation to a QEMU command wants the driver named. The controller is taken for the whole run
    # (agelab.machine.disk.pci).
    parts = {"@mode": "subsystem", "@managed": "no", "driver/@name": "vfio"} | {
        f"source/address/@{name}": str(int(number, 16)) for name, number in numbers.items()
    }
    words = (f"xpath{n}.set=./{part},xpath{n}.value={text}" for n, (part, text) in enumerate(parts.items()))
    return ",".join(("type=pci", *words))


def _pinned_kib(spec: GuestSpec) -> int:
    """Return the limit on locked memory: passthrough pins all guest memory, memory-backed disks included."""
    return (spec.memory_mib + PINNED_EXTRA_MIB) * 1024 + sum(disk.size for disk in spec.disks) // 1024
