"""Maps against the raw disk: where a file's blocks really lie is read from the blocks themselves."""

import gzip
import mmap
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agelab import stored_disk
from agelab.cli.options import open_store
from agelab.layout import extents
from agelab.layout.model import FileMap
from tests.vm.cells import agelab, newest, run, scenario, step

pytestmark = pytest.mark.vm
BLOCK = 4096
STAMP = re.compile(rb"agelab-stamp:([a-z0-9]+):([0-9]+):")
# Three files grow by turns, a block at a time, each block on the disk before the next is asked for; a fourth is written
# at once; the fifth has a hole; the last is smaller than a block. Every block says whose it is, and which of them.
WRITE = """
stamp() { printf "%-4096s" "agelab-stamp:$1:$2:"; }
for block in $(seq 0 23); do
    for file in a b c; do stamp $file $block | dd of=$file bs=4096 oflag=append conv=notrunc,fsync status=none; done
done
for block in $(seq 0 23); do stamp whole $block; done > whole
stamp holes 0 > holes
stamp holes 9 | dd of=holes bs=4096 seek=9 status=none
printf "agelab-stamp:small:0:" > small
"""
FILES = {"a": range(24), "b": range(24), "c": range(24), "whole": range(24), "holes": (0, 9)}


def test_extents_and_scores_are_those_of_the_blocks_on_the_disk(tmp_path: Path) -> None:
    steps = step("write", WRITE, "sync = true")
    head = 'measures = ["extents"]'
    path = scenario(tmp_path, steps, "ext4", "xfs", "reiserfs", "jfs", head=head)
    cells = run(str(path), "--jobs", "2", "--keep-disk")
    made = newest(path)
    try:
        for number, cell in enumerate(cells):
            mapped = gzip.decompress((made / f"cells/{number}/maps/aged/extents.gz").read_bytes())
            files = {file.path: file for file in extents.parse_extents(mapped).files}
            _check(cell, files, _stamps(stored_disk.find(open_store(), cell["disk"]).members[0]))
    finally:
        agelab("disk", "rm", *(cell["disk"] for cell in cells))


def _stamps(disk: Path) -> dict[tuple[str, int], int]:
    """File and block to the byte of the disk where that block lies."""
    with disk.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found: dict[tuple[str, int], int] = {}
        for match in STAMP.finditer(content):
            key = match[1].decode(), int(match[2])
            # The journal of a filesystem's own blocks may have what lies in them once more.
            assert key not in found or key[0] == "small", f"{key} is on the disk twice"
            found[key] = match.start()
    return found


def _check(cell: dict[str, Any], files: dict[str, FileMap], stamps: dict[tuple[str, int], int]) -> None:
    where = cell["variant"]
    for name, blocks in FILES.items():
        places = {
            extent.logical // BLOCK + number: extent.physical + number * BLOCK
            for extent in files[name].extents
            for number in range(-(-extent.length // BLOCK))
        }
        assert places == {block: stamps[name, block] for block in blocks}, (where, name)
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
