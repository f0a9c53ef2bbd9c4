"""Drives behind a PCI controller: checks before it is passed through to a guest."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agelab.base import fileio, orphans, process
from agelab.base.errors import HostError, InputError
from agelab.machine.disk import device_state, keeper

STORAGE = 0x01
SERVED = {0x0106: "SATA", 0x0108: "NVMe"}
"""The storage controllers that a guest has a driver for."""
BRIDGE = 0x0604
"""Between two PCI buses. These are classes of the PCI code assignment, base class and sub-class."""
HARMLESS = (keeper.VFIO, "pci-stub")
"""Drivers of functions that nothing on the host uses."""


def _device(address: str, sys: Path) -> Path:
    device = sys / "bus/pci/devices" / address
    if not device.exists():
        raise InputError(f"pci:{address}: there is no such device", hint="lspci -D shows the addresses")
    return device


def _class(device: Path) -> int:
    return int(fileio.read_text(device / "class"), 16) >> 8


def disks(address: str, sys: Path = device_state.SYS, dev: Path = Path("/dev")) -> list[Path]:
    """Return the block devices (whole disks) of a controller that is still bound to its host driver.

    Raises InputError when it is not a storage controller that guests have a driver for, HostError when its disks cannot
    be seen.
    """
    device = _device(address, sys)
    if _class(device) >> 8 != STORAGE:
        raise InputError(
            f"pci:{address} is not a storage controller",
            hint="lspci -D -d ::01xx shows them; a disk behind USB is block:<device>",
        )
    if _class(device) not in SERVED:
        raise InputError(
            f"pci:{address}: a guest has drivers for {' and '.join(SERVED.values())} controllers alone "
            f"(this one's class is {_class(device):04x})",
            hint="name its disk as block:<device>",
        )
    directories = [path for path in _devices_below(device) if not device_state.is_optical(path)]
    if any((path / "hidden").exists() and fileio.read_text(path / "hidden").strip() == "1" for path in directories):
        raise HostError(
            f"pci:{address} is one of several paths to its disks (multipath)",
            hint="name the disk as block:<device>, or boot with nvme_core.multipath=N",
        )
    if not directories:
        raise HostError(
            f"pci:{address}: the host sees no disk there, so its content cannot be checked", hint=_reattach(address)
        )
    return [dev / path.name.replace("!", "/") for path in directories]


def _reattach(address: str) -> str:
    name = address.replace(":", "_").replace(".", "_")
    return f"give the controller back to its own driver: virsh nodedev-reattach pci_{name}"


def optical_drives(address: str, sys: Path = device_state.SYS) -> list[Path]:
    """Return the drives for CDs and DVDs of a controller."""
    directories = _devices_below(_device(address, sys))
    return [Path("/dev") / path.name for path in directories if device_state.is_optical(path)]


def _devices_below(device: Path) -> list[Path]:
    """Return the sysfs directories of the whole disks and optical drives below a device."""
    directories = []
    for directory, names, files in os.walk(device.resolve()):  # os.walk follows no links, so it stays below the device
        if "dev" in files and "queue" in names:
            directories.append(Path(directory))
            names.clear()  # skip partitions
        elif "hidden" in files:
            directories.append(Path(directory))
    return sorted(directories)


def require_own_iommu_group(address: str, sys: Path = device_state.SYS) -> None:
    """Raise HostError unless the host uses nothing else in the controller's IOMMU group: a guest gets all or nothing.

    A bridge between buses, and a function without a driver, are no obstacle (drivers/vfio/vfio_main.c of Linux,
    vfio_dev_viable).
    """
    device = _device(address, sys)
    group = device / "iommu_group/devices"
    if not group.exists():
        raise HostError(
            f"pci:{address} cannot be given to a guest: this host's IOMMU is off, or it has none",
            hint="switch it on in the firmware (VT-d, AMD-Vi; Intel: boot with intel_iommu=on); "
            "block:<device> needs none",
        )
    others = [other for other in sorted(group.iterdir()) if other.name != address]
    used = [
        f"{other.name} ({driver})"
        for other in others
        if (driver := keeper.driver_of(other)) not in (None, *HARMLESS) and _class(other.resolve()) != BRIDGE
    ]
    if used:
        raise HostError(
            f"pci:{address} shares its IOMMU group with what the host uses: {', '.join(used)}",
            hint="put the controller into another slot, or name its disk as block:<device>",
        )


def problem(address: str, sys: Path = device_state.SYS) -> str | None:
    """Return why a controller that was taken cannot be passed to a guest (again), or None."""
    device = sys / "bus/pci/devices" / address
    if not device.exists():
        return f"pci:{address} has gone"
    if (driver := keeper.driver_of(device)) != keeper.VFIO:
        return f"pci:{address} was taken by another driver ({driver or 'none'})"
    return None


@contextmanager
def taken(addresses: Sequence[str]) -> Iterator[None]:
    """Take controllers from the host's drivers for the body, and give them back however this process ends.

    Raises HostError where a controller cannot be taken; those taken before are given back.
    """
    if not addresses:
        yield
        return
    if not (device_state.SYS / "bus/pci/drivers" / keeper.VFIO).exists():
        process.run(["modprobe", keeper.VFIO])
    with _given_back(addresses):
        for address in addresses:
            try:
                keeper.bind(address, keeper.VFIO)
            except OSError as error:
                raise HostError(f"pci:{address} cannot be taken from its driver: {error}") from error
            if why := problem(address):
                raise HostError(f"{why}: it cannot be taken from its driver", hint="see: dmesg")
        yield
    for address in addresses:
        if not problem(address):
            raise HostError(f"pci:{address} was not given back to the host", hint=_reattach(address))


@contextmanager
def _given_back(addresses: Sequence[str]) -> Iterator[None]:
    """Have another process give controllers back after the body, or when this one has ended, and wait for it."""
    held, holding = os.pipe()
    waited, ending = os.pipe()
    with ExitStack() as stack:
        stack.callback(os.close, waited)
        try:
            stack.callback(os.read, waited, 1)  # to its end: that of the other process
            stack.callback(os.close, holding)
            process.run(
                keeper.command(addresses),
                stdin=Path(device_state.descriptor_path(held)),
                stdout=Path(device_state.descriptor_path(ending)),
                env={orphans.VARIABLE: orphans.DAEMON},
            )
        finally:
            os.close(held)
            os.close(ending)
        yield
