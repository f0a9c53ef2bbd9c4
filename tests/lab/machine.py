"""Inside the laboratory: its disks and controllers."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

BY_ID = Path("/dev/disk/by-id")
PCI = Path("/sys/bus/pci")
KINDS = ("nvme-QEMU_NVMe_Ctrl_", "ata-QEMU_HARDDISK_")


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until a condition is true. Raises AssertionError where it does not become so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, sorted(BY_ID.glob("*"))
        time.sleep(0.2)


def settle() -> None:
    """Wait until udev has looked at all that has changed."""
    subprocess.run(["udevadm", "settle", "--timeout", "60"], check=True)


def named(serial: str) -> Path:
    """Return the lasting name of a disk, once udev has given it one."""
    names = [BY_ID / f"{kind}{serial}" for kind in KINDS]
    until(lambda: any(name.exists() for name in names))
    return next(name for name in names if name.exists())


def address(device: Path) -> str:
    """Return the address of the controller that a disk is behind."""
    parts = (Path("/sys/class/block") / device.resolve().name).resolve().parts
    return next(part for part in reversed(parts) if re.fullmatch(r"[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d", part))


def driver(place: str) -> str:
    """Return the driver of the controller at an address."""
    return (PCI / "devices" / place / "driver").resolve().name


def bound_to_vfio() -> list[str]:
    """Return the addresses of the controllers that are taken from their drivers."""
    return [path.name for path in (PCI / "drivers/vfio-pci").glob("0000:*")]


def empty(device: Path) -> None:
    """Make a disk zeros; what the host has made of it ends first.

    udev assembles arrays and activates volumes of what it finds, whenever a disk appears or was written to.
    """
    for words in (("mdadm", "--stop", "--scan"), ("vgchange", "-an"), ("dmsetup", "remove_all", "--force")):
        subprocess.run(words, check=True, capture_output=True)
    subprocess.run(["blkdiscard", "--force", "--zeroout", device], check=True, capture_output=True)
    subprocess.run(["blockdev", "--rereadpt", device], check=False, capture_output=True)
    settle()
