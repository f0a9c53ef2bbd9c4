"""Debian 13's libvirt, virt-install, Python and kernel: a cell on a drive that is passed through."""

import subprocess

from tests.lab import devices
from tests.lab.laboratory import Laboratory
from tests.lab.machine import address, bound_to_vfio, driver, named
from tests.lab.test_cells import small
from tests.vm.cells import SMALL, agelab

LABORATORY = Laboratory(
    (devices.nvme("ONE"), devices.nvme("TWO")), suite="trixie", prepared=(("run", str(SMALL), "--filesystem", "ext4"),)
)


def test_a_drive_is_passed_through_by_the_libvirt_of_debian_13() -> None:
    release = subprocess.run(["libvirtd", "--version"], capture_output=True, text=True, check=True).stdout
    assert int(release.split()[-1].partition(".")[0]) >= 11
    said = agelab("doctor").stdout
    assert "passthrough    ok" in said, said
    place = address(named("TWO"))
    small(f"pci:{place}")
    assert (driver(place), bound_to_vfio()) == ("nvme", [])
