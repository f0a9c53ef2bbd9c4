"""The guard on real kernel devices: each state of a disk has its right reason, by ``block:`` and by ``pci:``."""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.base.errors import AgelabError, InputError
from agelab.cli.options import open_store
from agelab.machine import qemu
from agelab.machine.disk import claim_drives, parse
from tests.lab import devices
from tests.lab.laboratory import Laboratory
from tests.lab.machine import BY_ID, address, driver, empty, named, settle, until
from tests.lab.states import ACCEPTED, STATES, State

MIB = 128
"""Size of each drive: btrfs wants 110."""
LABORATORY = Laboratory(
    (
        devices.nvme("ONE", MIB), devices.nvme("TWO", MIB), devices.ahci("THREE", MIB),
        devices.dvd("disc", "THREE-ahci.1"), devices.sata("FOUR", mib=MIB), devices.dvd("", "ide.1", mib=0),
        devices.usb("FIVE"), devices.scsi("SIX"), devices.two_paths("SEVEN"),
        devices.nvme_of_two_paths("EIGHT"),
    )
)  # fmt: skip
MARK = b"written by the guard's test"
M = "/tmp/mounted"
MODULES = (
    "md_mod raid0 raid1 dm-mod dm-crypt dm-raid dm-mirror dm-snapshot dm-thin-pool dm-multipath dm-round-robin "
    "btrfs xfs ext4 virtio_scsi sg usb_storage xhci_pci lpc_ich i2c_i801"
)


def shell(script: str) -> None:
    variables = {
        **os.environ,
        "D": str(named("ONE")),
        "E": str(named("TWO")),
        "M": M,
        "QEMU": str(qemu.obtain(open_store()).program),
    }
    done = subprocess.run(["sh", "-c", script], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    settle()
    os.sync()


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    """What a host has before a disk is used: its drivers."""
    subprocess.run(["modprobe", "-a", *MODULES.split()], check=True)
    settle()
    Path(M).mkdir(exist_ok=True)


def content(device: Path) -> str:
    """The hash of what a disk holds that is not zero, and of where it is."""
    found, zeros = hashlib.md5(usedforsecurity=False), bytes(4 << 20)
    with device.open("rb", buffering=0) as file:
        for number in range(MIB // 4):
            if (piece := file.read(len(zeros))) != zeros:
                found.update(b"%d" % number + piece)
    return found.hexdigest()


def reason(spec: str) -> str:
    """Why a drive is refused; "" where it is not, if need be after its data were named. Then it is written to."""
    try:
        return claimed(spec, ())
    except InputError as error:
        if "--erase" not in error.hint:
            return str(error)
        return claimed(spec, tuple(error.hint.partition("--erase ")[2].split()[0].split(",")))
    except AgelabError as error:
        return str(error)


def claimed(spec: str, erase: tuple[str, ...]) -> str:
    drive = parse(spec)
    try:
        with claim_drives([drive], erase) as (claim,):
            assert claim.problem() is None
            if drive.kind == "pci":
                assert driver(drive.name) == "vfio-pci"
            else:
                with open(claim.source, "r+b", buffering=0) as file:  # noqa: PTH123 (a descriptor's path)
                    file.seek(1 << 20)
                    file.write(MARK)
    except InputError:
        raise
    except AgelabError as error:
        return str(error)
    if drive.kind == "pci":
        assert driver(drive.name) in ("nvme", "ahci")
        settle()
    else:
        with Path(drive.name).open("rb") as file:
            file.seek(1 << 20)
            assert file.read(len(MARK)) == MARK
    return ACCEPTED


def meant(text: str) -> str:
    """The pattern with the devices' real names."""
    names = {"D": named("ONE").resolve(), "E": named("TWO").resolve(), "M": M}
    return re.sub(r"\b([DEM])(?=\b|p\d)", lambda found: str(names[found[1]]), text)


def spec_of(device: str, way: str) -> str | None:
    """The drive to name for a device of a table; None for what is no whole disk, by ``pci:``."""
    given = device.replace("$M", M)
    for letter, serial in (("D", "ONE"), ("E", "TWO")):
        if way == "pci" and device == f"${letter}":
            return f"pci:{address(named(serial))}"
        given = given.replace(f"${letter}", str(named(serial)))
    if way == "pci":
        return None
    return given if given.startswith("file:") else f"block:{given}"


def check(checks: dict[str, str], way: str) -> None:
    """Have each drive of a table refused, which changes none of them, and then accepted, as it says."""
    specs = {spec: wanted for device, wanted in checks.items() if (spec := spec_of(device, way))}
    refused = {spec: wanted for spec, wanted in specs.items() if wanted != ACCEPTED}
    before = contents() if refused else []
    for spec, wanted in refused.items():
        why = reason(spec)
        assert re.search(meant(wanted), why), f"{spec}: not {meant(wanted)!r}, but {why}"
    assert not refused or before == contents()
    for spec in specs.keys() - refused.keys():
        settle()
        assert reason(spec) == ACCEPTED, spec


def contents() -> list[str]:
    return [content(named(serial)) for serial in ("ONE", "TWO")]


@pytest.fixture
def drives() -> Iterator[None]:
    """The two drives, empty before and after."""
    for serial in ("ONE", "TWO"):
        empty(named(serial))
    yield
    for serial in ("ONE", "TWO"):
        empty(named(serial))


@pytest.mark.parametrize("way", ["block", "pci"])
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_disk_in_use_is_refused_with_the_reason_and_a_free_one_is_not(state: State, way: str, drives: None) -> None:
    shell(state.made)
    try:
        check(state.checks, way)
    finally:
        shell(f"({state.undone or 'true'})")
    check(state.afterwards, way)


def test_a_controller_that_a_guest_cannot_have_is_refused_before_anything_is_unbound() -> None:
    wanted = {
        "FOUR": r"IOMMU group with what the host uses: [\d:.a-f]+\.0 \(lpc_ich\), [\d:.a-f]+\.3 \(i801_smbus\)",
        "EIGHT": r"is one of several paths to its disks",
    }
    for serial, why in wanted.items():
        if serial == "EIGHT":
            found = Path("/sys/class/nvme-subsystem").glob("*/nvme*")
            places = [
                path.resolve().parents[1].name for path in found
                if (path / "serial").exists() and (path / "serial").read_text().strip() == serial
            ]  # fmt: skip
            assert len(places) == 2
        else:
            places = [address(named(serial))]
        for place in places:
            before = driver(place)
            assert re.search(why, reason(f"pci:{place}")), reason(f"pci:{place}")
            assert driver(place) == before


def test_a_class_without_a_driver_in_the_guest_is_refused() -> None:
    for device in sorted(Path("/sys/bus/pci/devices").iterdir()):
        code = (device / "class").read_text().strip()
        if code.startswith("0x0100"):
            assert "a guest has drivers for SATA and NVMe controllers alone" in reason(f"pci:{device.name}")
            assert driver(device.name) == "virtio-pci"
        if code.startswith("0x0c03"):
            assert "is not a storage controller" in reason(f"pci:{device.name}")
            assert driver(device.name) == "xhci_hcd"


def test_an_optical_drive_is_no_disk_and_its_mounted_disc_keeps_the_controller(tmp_path: Path) -> None:
    place = address(named("THREE"))
    drives = sorted(Path("/dev").glob("sr*"))
    assert len(drives) == 2
    for drive in drives:
        assert "is a drive for CDs or DVDs, not a disk" in reason(f"block:{drive}")
    assert reason(f"pci:{place}") == ACCEPTED
    named("THREE")
    until(lambda: len(sorted(Path("/dev").glob("sr*"))) == 2)
    [disc] = [drive for drive in Path("/dev").glob("sr*") if address(drive) == place]
    reader = subprocess.Popen(["sleep", "999"], stdin=disc.open("rb"))
    try:
        assert re.search(rf"process {reader.pid} \(sleep\) has {disc} open$", reason(f"pci:{place}"))
    finally:
        reader.kill()
        reader.wait()
    assert driver(place) == "ahci"


def test_disks_behind_sata_and_usb_are_taken_by_their_lasting_names() -> None:
    empty(named("FOUR"))
    assert reason(f"block:{named('FOUR')}") == ACCEPTED
    [stick] = [path for path in BY_ID.glob("usb-*FIVE*") if "part" not in path.name]
    assert reason(f"block:{stick}") == ACCEPTED
    assert reason(f"block:{named('EIGHT')}") == ACCEPTED


def test_the_paths_of_an_active_multipath_are_in_use_and_itself_is_not() -> None:
    listed = subprocess.run(["lsblk", "-dno", "PATH,SERIAL"], capture_output=True, text=True, check=True).stdout
    paths = [line.split()[0] for line in listed.splitlines() if line.endswith(" SEVEN")]
    assert len(paths) == 2
    assert [reason(f"block:{path}") for path in paths] == [ACCEPTED, ACCEPTED]
    Path("/etc/multipath.conf").write_text(
        "defaults {\n user_friendly_names yes\n find_multipaths no\n}\n"
        'blacklist {\n devnode "^(nvme|vd|loop|sr|pmem)"\n}\n'
    )
    for path in paths:
        subprocess.run(["wipefs", "--all", "--quiet", path], check=True)
    subprocess.run(["multipath", "-v1"], check=False, capture_output=True)
    settle()
    try:
        slaves = [Path("/sys/class/block") / Path(path).name / "holders" for path in paths]
        [mapped] = {
            Path("/dev/mapper") / (one / "dm/name").read_text().strip() for held in slaves for one in held.iterdir()
        }
        for path in paths:
            assert f"{path} is part of {mapped} (mpath)" in reason(f"block:{path}")
        assert reason(f"block:{mapped}") == ACCEPTED
    finally:
        settle()
        subprocess.run(["dmsetup", "remove", "--retry", str(mapped)], check=True)


def test_twenty_claims_in_a_row_are_not_hindered_by_udev(drives: None) -> None:
    assert [reason(f"block:{named('TWO')}") for _ in range(20)] == [ACCEPTED] * 20
