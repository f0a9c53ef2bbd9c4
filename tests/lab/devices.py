"""The devices of a laboratory's machine, in QEMU's words."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True)
class Device:
    """One device and the files of the host that hold its data."""

    words: tuple[str, ...]
    """QEMU's arguments; ``{name}`` stands for the path of the image of that name."""
    images: dict[str, int] = field(default_factory=dict)
    """Size in bytes of each image: an empty file, made anew for each machine."""


def _disk(image: str, size: int, *devices: str, more: str = "") -> Device:
    drive = f"file={{{image}}},if=none,id={image},format=raw,cache=unsafe{more}"
    return Device(("-drive", drive, *(word for text in devices for word in ("-device", text))), {image: size})


def nvme(serial: str, mib: int = 1024, port: bool = False) -> Device:
    """An NVMe drive alone in its IOMMU group; behind a ``port`` of PCI Express it can be pulled out."""
    bus = (f"pcie-root-port,id={serial}-port,chassis={sum(serial.encode()) % 200}",) if port else ()
    place = f",bus={serial}-port" if port else ""
    return _disk(serial, mib * MIB, *bus, f"nvme,id={serial}-nvme,drive={serial},serial={serial}{place}")


def sata(serial: str, port: int = 0, mib: int = 1024) -> Device:
    """A disk on a port of the chipset's SATA controller, which shares its IOMMU group with other functions."""
    return _disk(serial, mib * MIB, f"ide-hd,drive={serial},bus=ide.{port},serial={serial}")


def ahci(serial: str, mib: int = 1024) -> Device:
    """A disk on a SATA controller of its own."""
    controller = f"{serial}-ahci"
    return _disk(
        serial, mib * MIB, f"ahci,id={controller}", f"ide-hd,drive={serial},bus={controller}.0,serial={serial}"
    )


def dvd(name: str, bus: str, mib: int = 64) -> Device:
    """A DVD drive at ``bus``, ``ide.1``; without a medium where ``mib`` is 0."""
    if not mib:
        return Device(("-device", f"ide-cd,bus={bus}"))
    return _disk(name, mib * MIB, f"ide-cd,drive={name},bus={bus}", more=",media=cdrom")


def usb(serial: str, mib: int = 256) -> Device:
    """A disk behind USB."""
    return _disk(serial, mib * MIB, "qemu-xhci,id=xhci", f"usb-storage,drive={serial},bus=xhci.0,serial={serial}")


def scsi(serial: str, mib: int = 256) -> Device:
    """A disk on a virtio-scsi controller, which a guest has no driver for."""
    return _disk(
        serial,
        mib * MIB,
        f"virtio-scsi-pci,id={serial}-scsi",
        f"scsi-hd,bus={serial}-scsi.0,drive={serial},serial={serial}",
    )


def two_paths(serial: str, mib: int = 256) -> Device:
    """One SCSI disk behind two controllers."""
    words: list[str] = []
    for path in ("a", "b"):
        name = f"{serial}{path}"
        drive = f"file={{{serial}}},if=none,id={name},format=raw,cache=unsafe,file.locking=off"
        disk = f"scsi-hd,bus={name}-scsi.0,drive={name},serial={serial},wwn=0x5000000000000001,share-rw=on"
        words += ["-drive", drive, "-device", f"virtio-scsi-pci,id={name}-scsi", "-device", disk]
    return Device(tuple(words), {serial: mib * MIB})


def nvme_of_two_paths(serial: str, mib: int = 256) -> Device:
    """One NVMe namespace behind two controllers: native multipath."""
    return _disk(
        serial, mib * MIB, f"nvme-subsys,id={serial}-sub",
        *(f"nvme,id={serial}-{path},subsys={serial}-sub,serial={serial}" for path in ("a", "b")),
        f"nvme-ns,drive={serial},bus={serial}-a,nsid=1,shared=on",
    )  # fmt: skip


def words_of(devices: Sequence[Device], directory: str) -> list[str]:
    """Return QEMU's arguments for devices whose images lie in ``directory``."""
    return [
        word.format(**{name: f"{directory}/{name}.img" for name in device.images}) if "{" in word else word
        for device in devices
        for word in device.words
    ]
