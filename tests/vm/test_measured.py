"""A disk made, kept, forked, measured beside its control and mapped, in real guests."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from agelab.base import process
from agelab.cli.options import open_store
from agelab.store import stored_disk
from tests.vm.aged import HISTORY, MEASURES, TESTS
from tests.vm.cells import agelab, newest, run, scenario, step, values

pytestmark = pytest.mark.vm


def test_a_stored_disk_gives_the_digest_of_one_made_afresh_however_many_cells_run_at_once(tmp_path: Path) -> None:
    """Two cells side by side, then one of them by itself from the disk that it kept: the same result."""
    path = scenario(tmp_path, HISTORY + TESTS, "ext4", "xfs", head=MEASURES, mib=16)
    both = run(str(path), "--jobs", "2", "--keep-disk")
    assert [cell["status"] for cell in both] == ["ok", "ok"]
    ext4 = both[0]
    found = values(ext4)
    assert found["aged/map", "files"] == found["control/map", "files"] > 100
    for cell in both:
        extents = {s["step"]: s["value"] for s in cell["samples"] if s["metric"] == "extents"}
        assert extents["aged/map"] == extents["aged/filefrag"] > found["aged/map", "files"]
        assert extents["control/map"] == extents["control/filefrag"] >= found["aged/map", "files"]
    assert found["aged/map", "free_bytes"] > 0 < found["read", "slowdown"]
    assert set(ext4["maps"]) == {f"{disk}/{what}" for disk in ("aged", "control") for what in ("extents", "free")}
    again = run(str(path), "--filesystem", "ext4", "--disk", ext4["disk"][:16])
    assert [(c["inputs_key"], c["digest"]) for c in again] == [(ext4["inputs_key"], ext4["digest"])]
    last = newest(path)
    assert "<svg" in (last / "cells/0/maps/block-map.svg").read_text()[:200]
    mapped = gzip.decompress((last / "cells/0/maps/aged/extents.gz").read_bytes())
    assert mapped.startswith(b"agelab-extents 1 4096 fiemap\n")
    _exported(ext4["disk"], tmp_path)
    _damaged(path, both[1]["disk"])
    assert agelab("disk", "rm", *(cell["disk"] for cell in both)).returncode == 0


def _exported(key: str, tmp_path: Path) -> None:
    """The image is the filesystem."""
    image = tmp_path / "out.img"
    done = agelab("disk", "export", key, str(image))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.img.recipe.json").read_text())["key"] == key
    with image.open("rb") as file:
        file.seek(0x438)
        assert file.read(2) == b"\x53\xef"  # ext2 to ext4, s_magic
    if process.which("e2fsck"):
        check = subprocess.run(["e2fsck", "-f", "-n", str(image)], capture_output=True, check=False)
        assert check.returncode == 0, check.stdout


def _damaged(path: Path, key: str) -> None:
    """A bit more or less, and no run starts from it."""
    disk = stored_disk.find(open_store(), key)
    with disk.members[0].open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"not what was stored")
    refused = agelab("run", str(path), "--filesystem", "xfs", "--disk", key)
    assert refused.returncode == 3
    assert "is damaged" in refused.stderr and "agelab disk rm" in refused.stderr


def test_a_disk_of_another_kind_than_the_cells_is_refused(tmp_path: Path) -> None:
    image = tmp_path / "image"
    process.run(["mke2fs", "-q", "-F", "-t", "ext2", str(image), "16M"])
    taken = agelab("disk", "import", "--filesystem", "ext2", str(image))
    assert taken.returncode == 0, taken.stderr
    key = next(disk for disk in stored_disk.list_disks(open_store()) if disk.recipe.filesystem == "ext2").key
    try:
        refused = agelab("run", str(scenario(tmp_path, step("a", "true"))), "--disk", key)
        assert refused.returncode == 2
        assert "is ext2, single, today; asked for is ext4, single, period" in refused.stderr
    finally:
        agelab("disk", "rm", key)


@pytest.mark.full
def test_a_striped_disk_has_a_control_and_a_map_and_age_makes_the_disk_that_run_measures(tmp_path: Path) -> None:
    """Two arrays are put together at once when the control is made."""
    path = str(scenario(tmp_path, HISTORY + TESTS, head=MEASURES, mib=16))
    words = [path, "--layout", "raid0"]
    made = agelab("age", *words)
    assert made.returncode == 0, made.stderr
    key = next(disk.key for disk in stored_disk.list_disks(open_store()) if disk.recipe.layout == "raid0")
    try:
        [fresh], [again] = run(*words), run(*words, "--disk", key)
        assert fresh["status"] == again["status"] == "ok"
        assert (fresh["inputs_key"], fresh["digest"]) == (again["inputs_key"], again["digest"])
        found = values(fresh)
        assert found["aged/map", "files"] == found["control/map", "files"] > 100
        assert found["read", "slowdown"] > 0
    finally:
        agelab("disk", "rm", key)
