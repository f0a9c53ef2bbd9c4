"""The wall clock's part of a domain: real time, several processors, real disks over virtio or behind their controller.

An error of a real disk is the guest's to see: QEMU would otherwise stop the guest when a disk has no room, and
a disk that was pulled out must fail the cell, not hang it.
"""

from agelab.vm.guest import GuestSpec, RealDisk

DRIVE_LETTERS = "abcdefghijklmnopqrstuvwxyz"
PINNED_EXTRA_MIB = 2048
"""Memory that QEMU may lock beside the guest's own when a PCI device reaches into it."""


def kernel_arguments(spec: GuestSpec) -> tuple[str, ...]:
    """An emulated guest does not check its timer: for that it wants ticks within 40 ms, which the emulator misses when
    the host is busy, and panics without (check_timer in arch/x86/kernel/apic/io_apic.c of Linux). Nor does KVM's.
    """
    return () if spec.accelerator == "kvm" else ("no_timer_check",)


def virt_install_arguments(spec: GuestSpec) -> list[str]:
    """virt-install's words that only the wall clock has."""
    without = (f"disable={name}" for name in spec.machine.cpu_without)
    # A real processor keeps its own instructions: what is taken out of the emulated one is slow or random there.
    native = spec.accelerator == "kvm"
    cpu = (
        "host-passthrough,check=none"
        if native
        else ",".join([spec.machine.cpu_model, *without, "check=none"])
    )
    disks = [disk_argument(number, real) for number, real in enumerate(spec.real_disks)] or ["none"]
    return [
        "--virt-type", "kvm" if native else "qemu", "--cpu", cpu, "--clock", "offset=utc",
        *(word for text in disks for word in ("--disk", text)),
        *(word for address in spec.passthrough for word in ("--hostdev", address)),
        *(["--memtune", f"hard_limit={_pinned_kib(spec)}"] if spec.passthrough else []),
    ]  # fmt: skip


def disk_argument(number: int, real: RealDisk) -> str:
    """virt-install's words for one real disk."""
    source = "source.dev" if real.kind == "block" else "source.file"
    return (
        f"type={real.kind},device=disk,{source}={real.source},driver.name=qemu,driver.type=raw,"
        f"driver.cache={real.cache},driver.io={real.aio},driver.error_policy=report,driver.discard=unmap,"
        f"target.dev=vd{DRIVE_LETTERS[number]},target.bus=virtio,serial={real.serial}"
    )


def _pinned_kib(spec: GuestSpec) -> int:
    """A PCI device may reach all of the guest's memory, the memory-backed disks too: none of it may be paged out."""
    return (spec.memory_mib + PINNED_EXTRA_MIB) * 1024 + sum(disk.size for disk in spec.disks) // 1024
