"""Give PCI controllers back to the host's drivers when the process that took them has ended.

python keeper.py ADDRESS..., with a pipe from that process as standard input, and one to it as standard output: the
kernel closes the first however the process ends, and the second when all is done. A guest that still has a controller
is waited for: the kernel takes none away that is in use.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
VFIO = "vfio-pci"
"""The driver through which guests get controllers (Documentation/driver-api/vfio.rst of Linux)."""


def command(addresses: Sequence[str]) -> list[str]:
    """Return the command that stays behind, in a process of its own, and gives these controllers back."""
    return [sys.executable, "-P", __file__, *addresses]


def driver_of(device: Path) -> str | None:
    """Return the name of the driver that a device in sysfs is bound to, or None."""
    driver = device / "driver"
    return driver.resolve().name if driver.exists() else None


def bind(address: str, driver: str) -> None:
    """Bind a controller to a driver; to the host's own where it is "".

    Raises OSError where the kernel refuses (Documentation/ABI/testing/sysfs-bus-pci of Linux).
    """
    device = DEVICES / address
    (device / "driver_override").write_text(f"{driver}\n", encoding="ascii")
    if (device / "driver").exists():
        (device / "driver/unbind").write_text(address, encoding="ascii")
    (DEVICES.parent / "drivers_probe").write_text(address, encoding="ascii")


def main(addresses: Sequence[str]) -> None:
    """Go into the background, wait for the end of standard input, then give the controllers back."""
    if os.fork():
        return
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    while os.read(sys.stdin.fileno(), 1):
        pass
    for address in addresses:
        if driver_of(DEVICES / address) == VFIO:
            bind(address, "")


if __name__ == "__main__":
    main(sys.argv[1:])
