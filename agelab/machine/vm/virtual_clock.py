"""Domain arguments of the virtual clock.

The argument lists below make guests repeatable; docs/architecture.md explains each. Such a domain has nothing
asynchronous and no input from the host: its disks are memory-backed (nvdimm), its serial lines end in regular files,
and it has no network, balloon or source of randomness.
"""

from agelab.base.errors import AgelabError
from agelab.machine.vm.guest import GuestSpec

EPOCH = 1577836800
"""Date at which every guest boots: 2020-01-01 UTC, in seconds. The harness then sets the date of its boot's plan."""
EPOCH_DATE = "2020-01-01"
TIMERS = ("rtc", "pit", "hpet")
"""Timers for which virt-install writes policies; these would catch up with lost ticks in host time."""


KERNEL_ARGUMENTS = ("clearcpuid=112", "rodata=off", "nolapic_timer", "softlockup_panic=1")
"""Kernel arguments, in order:

``clearcpuid=112``: without REP_GOOD (bit 112 in every kernel from 5.10 to 7.2) the kernel copies and clears in loops
of words, which the emulator runs up to three times as fast as string instructions; it counts one iteration of these
as one instruction. A machine whose ``copies`` are of bytes has ERMS, which the kernel prefers to either: string moves
of bytes.

``rodata=off``: the kernel does not search its page tables for writable text, which saves a tenth of a boot.

``nolapic_timer``: with the HPET as its timer the kernel does not calibrate the local APIC timer by spinning for a
fifth of a second, which saves a quarter of a boot.

``softlockup_panic=1``: a processor that spends 20 s of guest time in the kernel (soft lockup) panics; no busy host
can cause this here.
"""


def require_supported(spec: GuestSpec) -> None:
    """Raise AgelabError for a guest with real disks, several processors or no clock library."""
    if spec.real_disks or spec.passthrough or spec.vcpus != 1 or not spec.preload:
        raise AgelabError(
            "the virtual clock has one processor, the clock library and no real disks",
            hint="use the wall clock",
        )


def virt_install_arguments(spec: GuestSpec) -> list[str]:
    """Return the virt-install arguments specific to the virtual clock."""
    strings = ["require=erms"] if spec.machine.copies == "bytes" else []
    without = [f"disable={name}" for name in spec.machine.cpu_without]
    cpu = [spec.machine.cpu_model, *strings, *without, "check=none"]
    return [
        "--virt-type", "qemu", "--cpu", ",".join(cpu), "--disk", "none",
        "--clock", "offset=absolute", "--xml", f"./clock/@start={EPOCH}",
        *["--xml", "xpath.delete=./clock/timer"] * len(TIMERS),
    ]  # fmt: skip


def qemu_arguments(spec: GuestSpec) -> list[str]:
    """Return the QEMU arguments of the instruction counter."""
    # Recording (to /dev/null) keeps QEMU's main loop from reading the clock while the guest runs: it could see a
    # processor that has just halted and not yet accounted for its last instructions. A recorded guest cannot be
    # saved: there a library keeps the main loop out (main_loop.c).
    recording = "" if spec.saved else ",rr=record,rrfile=/dev/null"
    return [
        f"env=LD_PRELOAD={':'.join(str(library) for library in spec.preload)}",
        f"-icount shift={spec.machine.shift},sleep=off,align=off{recording}",
        f"-rtc base={EPOCH_DATE},clock=vm",
        # By it a guest stops itself to be saved (harness/saved.py). Others have it to be the same machine.
        "-device pvpanic",
    ]
