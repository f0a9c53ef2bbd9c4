"""Options of mkfs and mount in real guests: each combination is a cell, and what cannot be is told before, or in it."""

from pathlib import Path

import pytest

from tests.vm.cells import COPY, agelab, measured, run, runs, scenario

pytestmark = pytest.mark.vm


def test_each_combination_is_a_cell_and_one_that_mount_refuses_fails_alone(tmp_path: Path) -> None:
    path = scenario(tmp_path, COPY, mib=8)
    cells = {cell["variant"]: cell for cell in run(str(path), "--options", "ext4:-O ^has_journal,data=journal", code=1)}
    refused = cells.pop("ext4-no-has_journal-data-journal")
    assert refused["status"] == "failed" and refused["reason"].startswith("mount failed")
    assert refused["reason"].endswith("can't mount with data=, fs mounted w/o journal")
    assert {name: cell["status"] for name, cell in cells.items()} == dict.fromkeys(
        ("ext4", "ext4-data-journal", "ext4-no-has_journal"), "ok"
    )
    written = {name: measured(cell, "mkfs")["bytes_written"] for name, cell in cells.items()}
    assert written["ext4-no-has_journal"] < written["ext4"] == written["ext4-data-journal"]


def test_an_option_that_mkfs_refuses_is_one_line_and_no_run(tmp_path: Path) -> None:
    path = scenario(tmp_path, COPY, mib=8)
    done = agelab("run", str(path), "--options", "ext4:-O ^has_jurnal,noatime")
    assert done.returncode == 2 and not runs(path)
    said = done.stderr.strip().splitlines()[-1]
    assert "options of ext4-no-has_jurnal: mkfs refuses them: Invalid filesystem option set: " in said
    assert said.endswith(",^has_jurnal")
