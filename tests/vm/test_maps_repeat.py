"""Extent maps of every kernel filesystem are the same, bit for bit, however many cells run at once."""

from pathlib import Path

import pytest

from tests.vm.aged import HISTORY, MEASURES
from tests.vm.cells import run, scenario

pytestmark = [pytest.mark.vm, pytest.mark.full]
FILESYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs")


def test_maps_are_bit_identical_between_runs_of_one_key(tmp_path: Path) -> None:
    path = str(scenario(tmp_path, HISTORY, *FILESYSTEMS, head=MEASURES))
    together, alone = run(path, "--jobs", "2"), run(path)
    for one, other in zip(together, alone, strict=True):
        assert (one["status"], other["status"]) == ("ok", "ok"), one["variant"]
        assert one["inputs_key"] == other["inputs_key"]
        assert set(one["maps"]) == {"aged/extents", "aged/free"}
        assert one["maps"] == other["maps"], one["variant"]
        assert one["digest"] == other["digest"]
    assert len({cell["maps"]["aged/extents"] for cell in together}) == len(FILESYSTEMS)
