"""Domain arguments of the wall clock: real time, several processors, real disks over virtio or PCI passthrough.

Errors of a real disk are reported to the guest: by default QEMU stops the guest when a disk has no room, and a disk
that was pulled out must fail the cell, not hang it.
"""

from agelab.machine.vm.guest import GuestSpec, RealDisk

DRIVE_LETTERS = "abcdefghijklmnopqrstuvwxyz"
PINNED_EXTRA_MIB = 2048
"""MiB that QEMU may lock beside guest memory for PCI passthrough."""


def kernel_arguments(spec: GuestSpec) -> tuple[str, ...]:
    """Return the kernel arguments for the accelerator.

    An emulated guest skips the timer check (check_timer in arch/x86/kernel/apic/io_apic.c of Linux): it panics unless
    ticks come within 40 ms, which the emulator misses on a busy host. Under KVM Linux makes no such check.
    """
    return () if spec.accelerator == "kvm" else ("no_timer_check",)


def virt_install_arguments(spec: GuestSpec) -> list[str]:
    """Return the virt-install arguments specific to the wall clock."""
    without = (f"disable={name}" for name in spec.machine.cpu_without)
    # Under KVM all instructions are kept: those disabled are slow or random only in the emulator.
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
    # translation to a QEMU command wants the driver named. The controller is taken for the whole run (agelab.machine.disk.pci).
    parts = {"@mode": "subsystem", "@managed": "no", "driver/@name": "vfio"} | {
        f"source/address/@{name}": str(int(number, 16)) for name, number in numbers.items()
    }
    words = (f"xpath{n}.set=./{part},xpath{n}.value={text}" for n, (part, text) in enumerate(parts.items()))
    return ",".join(("type=pci", *words))


def _pinned_kib(spec: GuestSpec) -> int:
    """Return the limit on locked memory: passthrough pins all guest memory, memory-backed disks included."""
    return (spec.memory_mib + PINNED_EXTRA_MIB) * 1024 + sum(disk.size for disk in spec.disks) // 1024
