"""The spread of a host under KVM, and two kernels compared by it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.lab import devices
from tests.lab.laboratory import Laboratory
from tests.lab.machine import named
from tests.vm import test_calibrate
from tests.vm.cells import SMALL, agelab, scenario
from tests.vm.test_calibrate import COPY

KERNELS = ("6.1", "6.12")
LABORATORY = Laboratory(
    (devices.nvme("ONE", 2048),),
    prepared=tuple(("run", str(SMALL), "--filesystem", "ext4", "--kernel", kernel) for kernel in KERNELS),
)


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """A directory on an ext4, which has direct I/O."""
    subprocess.run(["mkfs.ext4", "-qF", named("ONE")], check=True)
    subprocess.run(["mount", named("ONE"), tmp_path], check=True)
    path = tmp_path / tmp_path.name
    path.mkdir()
    return path


def test_the_same_thing_twice_under_kvm_is_this_hosts_floor_by_which_two_kernels_are_compared(on_disk: Path) -> None:
    test_calibrate.test_in_real_time_the_same_thing_twice_is_this_hosts_floor(on_disk)
    [host] = json.loads(agelab("calibrate", "--show", "--json").stdout)["hosts"]
    assert host["host"]["accelerator"] == "kvm"
    file, runs = str(scenario(on_disk, COPY)), []
    for kernel in KERNELS:
        disk = on_disk / f"{kernel}.img"
        with disk.open("wb") as image:
            image.truncate(400 << 20)
        words = ("--kernel", kernel, "--seeds", "1,2,3,4,5")
        done = agelab("run", file, *words, "--disks", f"file:{disk}?cache=writeback&aio=threads")
        assert done.returncode == 0, done.stdout + done.stderr
        runs.append(done.stdout.rsplit("agelab show ", 1)[1].split()[0])
    compared = agelab("compare", *runs)
    print(compared.stdout)
    assert compared.returncode == 0, compared.stderr
    [pair] = json.loads(agelab("compare", *runs, "--json").stdout)["pairs"]
    [copied] = [row for row in pair["rows"] if (row["step"], row["metric"]) == ("copy", "elapsed")]
    # Real time is never the same twice; whether the kernels differ is for the numbers to say.
    assert copied["verdict"] in ("higher", "lower", "the same", "below the floor", "not known"), copied
