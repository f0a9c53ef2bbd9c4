"""Give PCI controllers back to the host's drivers when the process that took them has ended.

python keeper.py ADDRESS..., with a pipe from that process as standard input.

The kernel closes the pipe however the process ends. A guest that still has a controller is waited for: the kernel
takes none away that is in use.
"""

import os
import sys
from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
VFIO = "vfio-pci"
"""The driver through which guests get controllers (Documentation/driver-api/vfio.rst of Linux)."""
SECONDS = 60.0
"""Seconds of the host that giving back may take."""


def driver_of(device: Path) -> str | None:
    """Return the name of the driver that a device in sysfs is bound to, or None."""
    driver = device / "driver"
    return driver.resolve().name if driver.exists() else None


def bind(address: str, driver: str, devices: Path = DEVICES) -> None:
    """Bind a controller to a driver; to the host's own where it is "".

    Raises OSError where the kernel refuses (Documentation/ABI/testing/sysfs-bus-pci of Linux).
    """
    device = devices / address
    (device / "driver_override").write_text(f"{driver}\n", encoding="ascii")
    if (device / "driver").exists():
        (device / "driver/unbind").write_text(address, encoding="ascii")
    (devices.parent / "drivers_probe").write_text(address, encoding="ascii")


def main(addresses: list[str]) -> None:
    """Wait for the end of standard input, then give the controllers back."""
    if child := os.fork():  # the first process ends with who started it; the second has outlived that
        os.waitpid(child, 0)
        return
    os.setsid()
    while os.read(sys.stdin.fileno(), 1):
        pass
    for address in addresses:
        if driver_of(DEVICES / address) == VFIO:
            bind(address, "")


if __name__ == "__main__":
    main(sys.argv[1:])
