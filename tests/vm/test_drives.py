"""Drives in real guests: modelled ones and RAID-0 repeat to the last digit, real ones are found, and may vanish."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import capabilities
from tests.vm.cells import (
    CONTROL,
    COPY,
    MEASURES,
    OWN,
    PROGRAM,
    READ,
    agelab,
    measured,
    run,
    runs,
    sampled,
    scenario,
    step,
)
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
MODELLED = {
    "seeks", "seek_distance", "busy_seek", "busy_rotation", "busy_transfer", "cache_hits", "queue_depth",
}  # fmt: skip
MIB = 1 << 20
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
LOOP_INFO64, LO_SIZELIMIT = 232, 32
"""Size of struct loop_info64, and where lo_sizelimit lies in it (linux/loop.h)."""


def test_raid0_over_modelled_drives_has_the_same_digest_on_a_loaded_host(tmp_path: Path) -> None:
    words = [str(scenario(tmp_path, COPY + READ, mib=8)), "--layout", "raid0", "--disks", OWN]
    [quiet] = run(*words)
    with both_cores_busy():
        [loaded] = run(*words, cwd=tmp_path)
    assert quiet["inputs_key"] == loaded["inputs_key"]  # else the sources changed meanwhile: agelab compare says which
    assert quiet["samples"] == loaded["samples"]
    assert quiet["digest"] == loaded["digest"]
    assert (quiet["layout"], quiet["drives"]) == ("raid0", [OWN, OWN])
    read = measured(quiet, "read")
    assert set(read) >= MODELLED
    assert read["bytes_read"] > 7 * MIB and read["seeks"] > 0
    # Two arms at work: what they did together takes longer than the step did, and waiting is not computing.
    busy = sum(read[name] for name in ("busy_overhead", "busy_seek", "busy_rotation", "busy_transfer"))
    assert busy > 0.5 * read["elapsed"] and read["cpu_iowait"] > 0.1 * read["elapsed"]


def test_raid0_over_bare_memory_counts_both_members(tmp_path: Path) -> None:
    [cell] = run(str(scenario(tmp_path, COPY + READ, mib=8)), "--layout", "raid0", "--defaults", "today")
    assert (cell["layout"], cell["drives"]) == ("raid0", ["model:none", "model:none"])
    read = measured(cell, "read")
    assert read["bytes_read"] > 7 * MIB
    assert not MODELLED & set(read)  # bare memory has no arm to move


def test_a_raw_file_takes_the_wall_clock_and_is_not_overwritten_unasked(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    with disk.open("wb") as file:
        file.truncate(320 * MIB)
    tests = READ.replace("[[steps]]", "[[tests]]").replace('caches = "reboot"', "") + CONTROL
    path = scenario(tmp_path, COPY + tests, head=MEASURES, mib=16)
    words = [str(path), "--disks", f"file:{disk}", "--vcpus", "2"]
    [cell] = run(*words)
    assert cell["accelerator"] in ("kvm", "tcg")
    assert (cell["digest"], cell["drives"]) == (None, [f"file:{disk}?cache=none&aio=native"])
    # Nothing of it can be forked: it is mapped where it is, then tested, and there is no control.
    assert measured(cell, "aged/read")["bytes_read"] > 7 * MIB
    assert measured(cell, "aged/map")["files"] > 50
    assert not [s for s in cell["samples"] if s["step"].startswith("control/")]
    [slowdown] = [s for s in cell["samples"] if s["metric"] == "slowdown"]
    assert slowdown["not_measured"] == "a real disk cannot be forked: there is no control"
    before = disk.stat().st_mtime_ns
    again = agelab("run", *words)
    assert again.returncode == 2 and "holds data: ext4" in again.stderr and "--erase" in again.stderr
    assert disk.stat().st_mtime_ns == before


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A block device."""
    if os.geteuid():
        capabilities.skip("root")
    backing = tmp_path / "backing"
    with backing.open("wb") as file:
        file.truncate(320 * MIB)
    made = subprocess.run(["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, check=False)
    if made.returncode:
        capabilities.skip("loop devices", made.stderr.strip())
    device = made.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


def test_a_device_that_vanishes_fails_its_cell_and_says_so(tmp_path: Path, loop: str) -> None:
    steps = COPY + step("long", "while cp -r copy again && sync && rm -r again; do :; done", "deadline = 120")
    path = scenario(tmp_path, steps, mib=8)
    command = [PROGRAM, "run", str(path), "--disks", f"block:{loop}"]
    before = runs(path)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        sampled(path, before, '"copy"')
        _shrink(loop, MIB)
        said, _ = child.communicate(timeout=200)
    finally:
        with suppress(ProcessLookupError):
            child.kill()
    assert child.returncode == 1, said
    assert f"the drive changed while the cell ran: block:{loop}: it has {MIB} bytes now, not {320 * MIB}" in said


def _shrink(device: str, size: int) -> None:
    """Cut a loop device short in one go: a file that was truncated grows again with the guest's next write."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        status = bytearray(LOOP_INFO64)
        fcntl.ioctl(descriptor, LOOP_GET_STATUS64, status)
        struct.pack_into("=Q", status, LO_SIZELIMIT, size)
        fcntl.ioctl(descriptor, LOOP_SET_STATUS64, status)
    finally:
        os.close(descriptor)
