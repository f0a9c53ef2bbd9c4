"""The virtual clock's part of a domain.

What repeatability takes is in the argument lists below; docs/architecture.md says why each is there. Nothing
asynchronous and nothing fed by the host may be in such a domain: its disks are memory-backed (nvdimm), its
serial lines end in regular files, and it has no network, no balloon and no source of randomness.
"""

from datetime import UTC, datetime

from agelab.errors import AgelabError
from agelab.vm.guest import GuestSpec

EPOCH = 1577836800
"""Guest time of a cell's first boot: 2020-01-01 UTC, in seconds."""
DAY_SECONDS = 86400
TIMERS = ("rtc", "pit", "hpet")
"""What virt-install writes policies for: they catch up with lost ticks, by the host's idea of time."""


KERNEL_ARGUMENTS = ("clearcpuid=112", "rodata=off", "nolapic_timer", "softlockup_panic=1")
"""Without REP_GOOD (bit 112 in every kernel from 5.10 to 7.2) the kernel copies and clears by loops of words, which the
emulator runs up to three times as fast as string instructions, one step of which it counts as one instruction.
Without write protection of its own text it does not search its page tables for holes in it: a tenth of a boot. With the
HPET as its timer it does not measure the local APIC's by spinning for a fifth of a second: a quarter of a boot.
A processor that is 20 s of guest time in the kernel (soft lockup) is a panic: here no busy host can look like that."""


def require_supported(spec: GuestSpec) -> None:
    """Refuse what has a time of its own, or none of the host's taken away."""
    if spec.real_disks or spec.passthrough or spec.vcpus != 1 or spec.preload is None:
        raise AgelabError(
            "the virtual clock has one processor, the clock library and no real disks",
            hint="use the wall clock",
        )


def virt_install_arguments(spec: GuestSpec) -> list[str]:
    """virt-install's words that only the virtual clock has."""
    cpu = [spec.machine.cpu_model, *(f"disable={name}" for name in spec.machine.cpu_without), "check=none"]
    return [
        "--virt-type", "qemu", "--cpu", ",".join(cpu), "--disk", "none",
        "--clock", "offset=absolute", "--xml", f"./clock/@start={EPOCH + spec.day * DAY_SECONDS}",
        *["--xml", "xpath.delete=./clock/timer"] * len(TIMERS),
    ]  # fmt: skip


def qemu_arguments(spec: GuestSpec) -> list[str]:
    """QEMU's arguments for the instruction counter."""
    moment = datetime.fromtimestamp(EPOCH + spec.day * DAY_SECONDS, UTC).strftime("%Y-%m-%d")
    return [
        f"env=LD_PRELOAD={spec.preload}",
        # Recording (into nothing) keeps QEMU's main loop from looking at the clock while the guest runs: it could
        # see a processor that has just halted and not yet accounted for its last instructions.
        f"-icount shift={spec.machine.shift},sleep=off,align=off,rr=record,rrfile=/dev/null",
        f"-rtc base={moment},clock=vm",
    ]
