"""Maps against the raw disk: where a file's blocks really lie is read from the blocks themselves."""

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agelab.cli.options import open_store
from agelab.evaluate.layout import extents
from agelab.evaluate.layout.model import INLINE, FileMap
from agelab.store import stored_disk
from tests.vm.cells import agelab, newest, run, scenario, step

pytestmark = pytest.mark.vm
BLOCK = 4096
STAMP = re.compile(rb"agelab-stamp:([a-z0-9]+):([0-9]+):")
# Three files grow by turns, a block at a time, each block on the disk before the next is asked for; a fourth is written
# at once; the fifth has a hole; the last is smaller than a block. Every block says whose it is, and which of them.
WRITE = """
python3 - <<END
import os

def stamp(name, block):
    return f"agelab-stamp:{name}:{block}:".encode().ljust(4096)

for block in range(24):
    for name in ("a", "b", "c"):
        with open(name, "ab") as file:  # closed each time: what is reserved behind it is given back
            file.write(stamp(name, block))
            file.flush()
            os.fsync(file.fileno())
with open("whole", "wb") as file:
    file.writelines(stamp("whole", block) for block in range(24))
with open("holes", "wb") as file:
    for block in (0, 9):
        file.seek(block * 4096)
        file.write(stamp("holes", block))
with open("small", "wb") as file:
    file.write(stamp("small", 0).rstrip())
END
"""
FILES = {"a": range(24), "b": range(24), "c": range(24), "whole": range(24), "holes": (0, 9)}


def test_extents_and_scores_are_those_of_the_blocks_on_the_disk(tmp_path: Path) -> None:
    steps = step("write", WRITE, "sync = true")
    head = 'measures = ["extents"]'
    path = scenario(tmp_path, steps, "ext4", "xfs", "reiserfs", "jfs", head=head, mib=1)
    cells = run(str(path), "--jobs", "2", "--keep-disk")
    made = newest(path)
    try:
        for number, cell in enumerate(cells):
            mapped = gzip.decompress((made / f"cells/{number}/maps/aged/extents.gz").read_bytes())
            files = {file.path: file for file in extents.parse_extents(mapped).files}
            _check(cell, files, _stamps(stored_disk.find(open_store(), cell["disk"]).members[0]))
    finally:
        agelab("disk", "rm", *(cell["disk"] for cell in cells))


@pytest.mark.full
@pytest.mark.parametrize("names", [("exfat", "nilfs2", "ntfs3"), ("bcachefs",)], ids=["usual suite", "trixie"])
def test_extents_of_todays_filesystems_are_those_of_the_blocks_on_the_disk(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    steps = step("write", WRITE, "sync = true")
    path = scenario(tmp_path, steps, *names, head='measures = ["extents"]', mib=1)
    cells = run(str(path), "--kernel", "6.12", "--keep-disk")
    made = newest(path)
    try:
        for number, cell in enumerate(cells):
            mapped = gzip.decompress((made / f"cells/{number}/maps/aged/extents.gz").read_bytes())
            files = {file.path: file for file in extents.parse_extents(mapped).files}
            stamps = _stamps(stored_disk.find(open_store(), cell["disk"]).members[0])
            for name, blocks in FILES.items():
                places = _places(files[name])
                # A hole is filled where the filesystem knows none, or has not been told to.
                filled = cell["variant"] in ("exfat", "ntfs3") and name == "holes"
                assert places.keys() == set(range(10) if filled else blocks), (cell["variant"], name)
                assert {block: places[block] for block in blocks} == {block: stamps[name, block] for block in blocks}
            small = [extent.physical for extent in files["small"].extents if not extent.flags & INLINE]
            in_the_tree = cell["variant"] in ("ntfs3", "bcachefs")
            assert small == ([] if in_the_tree else [stamps["small", 0]])
            assert not any(file.unmapped for file in files.values())
    finally:
        agelab("disk", "rm", *(cell["disk"] for cell in cells))


def _stamps(disk: Path) -> dict[tuple[str, int], int]:
    """File and block to the byte of the disk where that block lies."""
    found: dict[tuple[str, int], int] = {}
    with disk.open("rb") as file:
        for start, end in _written(file.fileno()):
            for match in STAMP.finditer(os.pread(file.fileno(), end - start, start)):
                key = match[1].decode(), int(match[2])
                # The journal of a filesystem's own blocks may have what lies in them once more.
                assert key not in found or key[0] == "small", f"{key} is on the disk twice"
                found[key] = start + match.start()
    return found


def _written(file: int) -> Iterator[tuple[int, int]]:
    """Start and end of each part of a disk that is no hole: its file is as long as the largest disk."""
    end = 0
    with suppress(OSError):  # there is nothing behind the last part
        while True:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = os.lseek(file, start, os.SEEK_HOLE)
            yield start, end


def _check(cell: dict[str, Any], files: dict[str, FileMap], stamps: dict[tuple[str, int], int]) -> None:
    where = cell["variant"]
    for name, blocks in FILES.items():
        assert _places(files[name]) == {block: stamps[name, block] for block in blocks}, (where, name)
    score, pieces = _known(stamps)
    small = files["small"].extents
    if where == "reiserfs":  # its few bytes are in the tree: data without a block of their own
        assert [(extent.physical, extent.flags) for extent in small] == [(0, 0x500)]
        assert stamps["small", 0] % BLOCK
    else:
        assert [extent.physical for extent in small] == [stamps["small", 0]]
        pieces += 1
    values = {s["metric"]: s["value"] for s in cell["samples"] if s["step"] == "aged/map"}
    assert values["files"] == 6
    assert values["extents"] == pieces, where
    assert values["layout_score"] == pytest.approx(score, abs=5e-7), where
    assert values["tails"] == (where == "reiserfs")
    assert pieces > 9 and score < 1, f"{where} took no notice of files that grow by turns"


def _places(file: FileMap) -> dict[int, int]:
    """Each block of a file to the byte of the disk where it lies, by its map."""
    return {
        extent.logical // BLOCK + number: extent.physical + number * BLOCK
        for extent in file.extents
        for number in range(-(-extent.length // BLOCK))
    }


def _known(stamps: dict[tuple[str, int], int]) -> tuple[float, int]:
    """The share of blocks that follow their predecessor, and the number of runs, from the blocks alone."""
    following = pairs = runs = 0
    for name, blocks in FILES.items():
        runs += 1
        for before, block in pairwise(blocks):
            apart = stamps[name, block] - stamps[name, before]
            joined = apart in (BLOCK, BLOCK * (block - before))  # a hole may be left its place
            pairs += 1
            following += joined
            runs += not joined
    return following / pairs, runs
