"""Drives behind a PCI controller: checks before it is passed through to a guest."""

import os
from collections.abc import Sequence
from pathlib import Path

from agelab import fileio
from agelab.disk import device_state
from agelab.errors import HostError, InputError

STORAGE = 0x01
BRIDGE = 0x06
"""Base classes of the PCI code assignment."""


def _device(address: str, sys: Path) -> Path:
    device = sys / "bus/pci/devices" / address
    if not device.exists():
        raise InputError(f"pci:{address}: there is no such device", hint="lspci -D shows the addresses")
    return device


def _class(device: Path) -> int:
    return int(fileio.read_text(device / "class"), 16) >> 16


def disks(address: str, sys: Path = device_state.SYS, dev: Path = Path("/dev")) -> list[Path]:
    """Return the block devices (whole disks) of a controller that is still bound to its host driver.

    Raises InputError when it is not a storage controller, HostError when its disks cannot be seen.
    """
    device = _device(address, sys)
    if _class(device) != STORAGE:
        raise InputError(
            f"pci:{address} is not a storage controller",
            hint="lspci -D -d ::01xx shows them; a disk behind USB is block:<device>",
        )
    found = _disks_below(device)
    if any((path / "hidden").exists() and fileio.read_text(path / "hidden").strip() == "1" for path in found):
        raise HostError(
            f"pci:{address} is one of several paths to its disks (multipath)",
            hint="name the disk as block:<device>, or boot with nvme_core.multipath=N",
        )
    if not found:
        raise HostError(
            f"pci:{address}: the host sees no disk there, so its content cannot be checked",
            hint="give the controller back to its own driver: virsh nodedev-reattach "
            f"pci_{address.replace(':', '_').replace('.', '_')}",
        )
    return [dev / path.name.replace("!", "/") for path in found]


def _disks_below(device: Path) -> list[Path]:
    """Return the sysfs directories of the whole disks below a device."""
    found = []
    for directory, names, files in os.walk(
        device.resolve()
    ):  # os.walk follows no links, so it stays below the device
        if "dev" in files and "queue" in names:
            found.append(Path(directory))
            names.clear()  # skip partitions
        elif "hidden" in files:
            found.append(Path(directory))
    return sorted(found)


def require_own_iommu_group(address: str, sys: Path = device_state.SYS) -> None:
    """Raise HostError unless the controller, with its own functions, is alone in its IOMMU group."""
    device = _device(address, sys)
    group = device / "iommu_group/devices"
    if not group.exists():
        raise HostError(
            f"pci:{address} cannot be given to a guest: this host's IOMMU is off, or it has none",
            hint="switch it on in the firmware (VT-d, AMD-Vi; Intel: boot with intel_iommu=on); "
            "block:<device> needs none",
        )
    slot = address.rpartition(".")[0]
    others = sorted(
        other.name
        for other in group.iterdir()
        if other.name.rpartition(".")[0] != slot and _class(other.resolve()) != BRIDGE
    )
    if others:
        raise HostError(
            f"pci:{address} shares its IOMMU group with {', '.join(others)}",
            hint="put the controller into another slot, or name its disk as block:<device>",
        )


def problem(address: str, held: Sequence[int], sys: Path = device_state.SYS) -> str | None:
    """Return why the controller cannot be passed to a guest (again), or None.

    Between two boots the host owns it, and may have started to use what the guest left on its disks.
    """
    device = sys / "bus/pci/devices" / address
    if not device.exists():
        return f"pci:{address} has gone"
    known = {os.fstat(descriptor).st_rdev for descriptor in held}
    for path in _disks_below(device):
        node = Path("/dev") / path.name.replace("!", "/")
        if not node.exists() or node.stat().st_rdev in known:
            continue
        if uses := device_state.block_device_users(str(node)):
            return f"pci:{address}: {'; '.join(uses)}"
    return None
