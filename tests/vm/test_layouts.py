"""Layouts in real guests: an array and an encrypted disk repeat to the last digit, and a drive may fail."""

from pathlib import Path
from typing import Any

import pytest

from tests.vm.cells import run, scenario, step
from tests.vm.test_drives import CONTROL, COPY, MEASURES, OWN, READ, measured

pytestmark = pytest.mark.vm
TEST = READ.replace("[[steps]]", "[[tests]]").replace('caches = "reboot"', "")


def digest(words: list[str]) -> tuple[Any, Any]:
    [cell] = run(*words, "--fresh")
    assert cell["status"] == "ok", cell["reason"]
    return cell["inputs_key"], cell["digest"]


@pytest.mark.parametrize("layout", ["raid1", pytest.param("dm-crypt", marks=pytest.mark.full)])
def test_a_layout_has_the_same_digest_twice_and_is_followed_to_its_drives(
    tmp_path: Path, layout: str
) -> None:
    path = scenario(tmp_path, COPY + TEST + CONTROL, head=MEASURES, mib=8)
    words = [str(path), "--layout", layout, "--disks", OWN]
    assert digest(words) == digest(words)
    [cell] = run(*words)
    found = measured(cell, "aged/map")
    assert found["drive_extents"] >= found["extents"] > 0 and found["drive_layout_score"] > 0.5


def test_a_drive_that_fails_is_replaced_and_the_filesystem_is_whole(tmp_path: Path) -> None:
    path = scenario(tmp_path, COPY + step("again", 'cp -r "$SOURCE/." again', "sync = true"), mib=8)
    [cell] = run(str(path), "--layout", "raid1", "--disks", OWN, "--fail", "1@copy+0.05")
    assert cell["status"] == "ok", cell["reason"]
    assert measured(cell, "copy")["failed_after"] == pytest.approx(0.05, abs=0.01)
    rebuilt = measured(cell, "rebuild")
    assert rebuilt["bytes_written"] > 8 << 20 and rebuilt["elapsed"] > 0
    assert measured(cell, "fsck")["fsck_status"] == 0
