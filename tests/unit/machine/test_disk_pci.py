"""Checks before a controller is taken from the host; on a made-up sysfs."""

from pathlib import Path

import pytest

from agelab.base.errors import HostError, InputError
from agelab.machine.disk import pci

ADDRESS = "0000:01:00.0"


def device(sys: Path, address: str = ADDRESS, code: str = "0x010802") -> Path:
    directory = sys / "bus/pci/devices" / address
    directory.mkdir(parents=True)
    (directory / "class").write_text(f"{code}\n")
    return directory


def disk(directory: Path, name: str, hidden: bool = False) -> None:
    place = directory / "nvme/nvme0" / name
    (place / "queue").mkdir(parents=True)
    (place / f"{name}p1").mkdir()
    (place / f"{name}p1/dev").touch()
    (place / "hidden").write_text(f"{hidden:d}\n")
    if not hidden:
        (place / "dev").write_text("259:0\n")


def group(sys: Path, directory: Path, *others: Path) -> None:
    members = sys / "kernel/iommu_groups/7/devices"
    members.mkdir(parents=True)
    for member in (directory, *others):
        (members / member.name).symlink_to(member)
    (directory / "iommu_group").symlink_to(members.parent)


def test_the_disks_of_a_controller_are_whole_disks(tmp_path: Path) -> None:
    directory = device(tmp_path)
    disk(directory, "nvme0n2")
    disk(directory, "nvme0n1")
    assert pci.disks(ADDRESS, tmp_path, Path("/dev")) == [Path("/dev/nvme0n1"), Path("/dev/nvme0n2")]


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("", "no such device"),
        ("0x030000", "not a storage controller"),
        ("0x010000", r"drivers for SATA and NVMe controllers alone \(this one's class"),
    ],
)
def test_only_a_storage_controller_that_guests_have_a_driver_for_has_disks(
    tmp_path: Path, code: str, wrong: str
) -> None:
    if code:
        disk(device(tmp_path, code=code), "sda")
    with pytest.raises(InputError, match=wrong):
        pci.disks(ADDRESS, tmp_path)


def test_a_controller_whose_disks_nobody_can_look_at_is_refused(tmp_path: Path) -> None:
    directory = device(tmp_path)
    with pytest.raises(HostError, match="sees no disk") as raised:
        pci.disks(ADDRESS, tmp_path)
    assert raised.value.hint.endswith("virsh nodedev-reattach pci_0000_01_00_0")
    disk(directory, "nvme0c0n1", hidden=True)
    with pytest.raises(HostError, match="multipath"):
        pci.disks(ADDRESS, tmp_path)


def test_an_optical_drive_is_no_disk(tmp_path: Path) -> None:
    directory = device(tmp_path, code="0x010601")
    disk(directory, "sda")
    disk(directory, "sr0")
    (directory / "nvme/nvme0/sr0/device").mkdir()
    (directory / "nvme/nvme0/sr0/device/type").write_text("5\n")
    assert pci.disks(ADDRESS, tmp_path) == [Path("/dev/sda")]
    assert pci.optical_drives(ADDRESS, tmp_path) == [Path("/dev/sr0")]


def driven(sys: Path, directory: Path, driver: str) -> Path:
    place = sys / "bus/pci/drivers" / driver
    place.mkdir(parents=True, exist_ok=True)
    (directory / "driver").symlink_to(place)
    return directory


def test_the_iommu_must_keep_it_apart(tmp_path: Path) -> None:
    directory = device(tmp_path)
    with pytest.raises(HostError, match="IOMMU is off"):
        pci.require_own_iommu_group(ADDRESS, tmp_path)
    function = device(tmp_path, "0000:01:00.1", "0x040300")
    given = driven(tmp_path, device(tmp_path, "0000:02:00.0", "0x020000"), "vfio-pci")
    bridge = driven(tmp_path, device(tmp_path, "0000:00:01.0", "0x060400"), "pcieport")
    group(tmp_path, directory, function, given, bridge)
    pci.require_own_iommu_group(ADDRESS, tmp_path)


def test_a_shared_group_is_refused(tmp_path: Path) -> None:
    directory = device(tmp_path)
    same_slot = driven(tmp_path, device(tmp_path, "0000:01:00.3", "0x0c0500"), "i801_smbus")
    isa = driven(tmp_path, device(tmp_path, "0000:00:1f.0", "0x060100"), "lpc_ich")
    group(tmp_path, directory, same_slot, isa)
    shared = r"what the host uses: 0000:00:1f\.0 \(lpc_ich\), 0000:01:00\.3 \(i801_smbus\)$"
    with pytest.raises(HostError, match=shared):
        pci.require_own_iommu_group(ADDRESS, tmp_path)


def test_a_controller_that_has_gone_is_trouble(tmp_path: Path) -> None:
    assert pci.problem(ADDRESS, tmp_path) == f"pci:{ADDRESS} has gone"
    directory = device(tmp_path)
    assert pci.problem(ADDRESS, tmp_path) == f"pci:{ADDRESS} was taken by another driver (none)"
    driven(tmp_path, directory, "vfio-pci")
    assert pci.problem(ADDRESS, tmp_path) is None
