"""Extents followed to the drives against the drives' bytes: every block lies where it is followed to."""

import gzip
import hashlib
import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from agelab.cli.options import open_store
from agelab.evaluate.layout import extents
from agelab.evaluate.layout.mapping import parse_mapping
from agelab.evaluate.layout.model import ExtentMap
from agelab.store import stored_disk
from tests.vm.cells import agelab, measured, newest, run, scenario, step

pytestmark = pytest.mark.vm
BLOCK, SECTOR = 4096, 512
FILES, BLOCKS = "abcdefgh", 40
MASK = (1 << 128) - 1
XTS_POLYNOMIAL = 0x87
# Files in directories of their own, which the filesystem puts far apart, grow by turns: longer than a chunk, in pieces.
WRITE = f"""
python3 - <<END
import os

for name in "{FILES}":
    os.mkdir(name)
for block in range({BLOCKS}):
    for name in "{FILES}":
        with open(f"{{name}}/{{name}}", "ab") as file:
            file.write(f"agelab-stamp:{{name}}:{{block}}:".encode().ljust({BLOCK}))
            file.flush()
            os.fsync(file.fileno())
END
"""
Place = tuple[int, int]
"""Member, and byte on it."""


@pytest.mark.parametrize(
    "layout",
    [
        "raid5",
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("raid0", "raid1", "lvm-linear", "lvm-striped", "lvm-snapshot", "dm-crypt")
        ),
    ],
)
def test_each_block_lies_where_it_is_followed_to(tmp_path: Path, layout: str) -> None:
    path = scenario(tmp_path, step("write", WRITE, "sync = true"), head='measures = ["extents"]', mib=1)
    [cell] = run(str(path), "--layout", layout, "--keep-disk")
    try:
        assert cell["status"] == "ok", cell["reason"]
        maps = newest(path) / "cells/0/maps/aged"
        told = parse_mapping(gzip.decompress((maps / "mapping.gz").read_bytes()))
        found = extents.parse_extents(gzip.decompress((maps / "extents.gz").read_bytes()))
        members = stored_disk.find(open_store(), cell["disk"]).members
        disks = [os.open(member, os.O_RDONLY) for member in members]
        runs = 0
        for name, places in _places(found):
            lie = [told.follow(place, BLOCK)[0] for place in places]
            for block, (place, (member, start, size)) in enumerate(zip(places, lie, strict=True)):
                stamp = f"agelab-stamp:{name}:{block}:".encode().ljust(SECTOR)
                stamp = _encrypted(stamp, place // SECTOR) if layout == "dm-crypt" else stamp
                assert size == BLOCK and os.pread(disks[member], SECTOR, start) == stamp, (name, block)
                if layout == "raid1":
                    assert os.pread(disks[1 - member], SECTOR, start) == stamp, (name, block)
            runs += _runs([(member, start) for member, start, _ in lie])
        assert measured(cell, "aged/map")["drive_extents"] == runs
        score = 1 - (runs - len(FILES)) / (len(FILES) * (BLOCKS - 1))
        assert measured(cell, "aged/map")["drive_layout_score"] == pytest.approx(score, abs=5e-7)
    finally:
        agelab("disk", "rm", cell["disk"])


def _places(found: ExtentMap) -> Iterator[tuple[str, list[int]]]:
    """Each file's name and the place of each of its blocks on the disk under test."""
    assert len(found.files) == len(FILES)
    for file in found.files:
        blocks = {
            extent.logical // BLOCK + number: extent.physical + number * BLOCK
            for extent in file.extents
            for number in range(extent.length // BLOCK)
        }
        yield file.path[0], [blocks[number] for number in range(BLOCKS)]


def _runs(places: list[Place]) -> int:
    """Count the runs of blocks that lie one behind the other on one member."""
    return 1 + sum((one[0], one[1] + BLOCK) != following for one, following in pairwise(places))


def _encrypted(sector: bytes, number: int) -> bytes:
    """What dm-crypt makes of a sector: AES in XTS mode (IEEE 1619), the key of run seed 1."""
    key = hashlib.sha512(b"agelab layout 1").digest()
    tweak = int.from_bytes(_aes(key[32:], number.to_bytes(16, "little")), "little")
    tweaks = b""
    for _ in range(0, len(sector), 16):
        tweaks += tweak.to_bytes(16, "little")
        tweak = (tweak << 1 & MASK) ^ (XTS_POLYNOMIAL if tweak >> 127 else 0)
    return _xor(_aes(key[:32], _xor(sector, tweaks)), tweaks)


def _aes(key: bytes, blocks: bytes) -> bytes:
    argv = ["openssl", "enc", "-aes-256-ecb", "-nopad", "-K", key.hex()]
    return subprocess.run(argv, input=blocks, capture_output=True, check=True).stdout


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
