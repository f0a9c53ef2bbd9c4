"""Free space: real outputs against what the kernel said of the same filesystem, refusals, measures.

tests/golden/free-space/ holds, for a small filesystem of each kind that a guest had aged, the output of the tool and
in NAME.truth.json what the kernel said: statvfs of the read-only mount, and where the files' data lay (FIEMAP, or
FIBMAP block by block, neighbours joined; of btrfs translated by the chunk tree, each compared with the raw disk).
"""

import json
import lzma
import random
import struct
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.evaluate.layout import freespace
from agelab.evaluate.layout.freespace.runs import Run, clear_bits, join_runs, overlap_bytes, subtract, total_bytes
from agelab.evaluate.layout.measures import FREE_METRICS, free_space_measures
from agelab.evaluate.layout.model import FreeSpace
from agelab.scenario.filesystem import Filesystem, FreeSpaceTool
from agelab.scenario.metrics import METRICS
from agelab.scenario.toml_files import read_all

GOLDEN = Path(__file__).parents[2] / "golden" / "free-space"
NAMES = sorted(path.name.partition(".")[0] for path in GOLDEN.glob("*.truth.json"))

KEPT = {
    "xfs": 4 * 8 * 4096,  # XFS_ALLOC_SET_ASIDE: 8 blocks for each of the 4 groups
    "f2fs": 28 * (2 << 20),  # overprov_segment_count
    "reiser4": 4080 * 4096,  # the twentieth of the disk that is kept back, less 16 blocks
}
"""Free bytes that statfs does not show, by what the filesystem keeps for itself."""


@dataclass(frozen=True)
class Aged:
    """One of the golden filesystems."""

    name: str
    format: str
    output: bytes
    free: int
    """Free bytes as the kernel has them."""
    files: tuple[Run, ...]
    """Where the files' data lies."""

    @property
    def space(self) -> FreeSpace:
        return freespace.parse(self.format, self.output)


def aged(name: str) -> Aged:
    truth = json.loads((GOLDEN / f"{name}.truth.json").read_text())
    plain = GOLDEN / f"{name}.output"
    packed = GOLDEN / f"{name}.output.xz"
    output = plain.read_bytes() if plain.exists() else lzma.decompress(packed.read_bytes())
    stat = truth["statvfs"]
    # btrfs: f_bfree has what chunks of metadata have left too, f_bavail is what data may take.
    free = stat["f_bavail" if name == "btrfs" else "f_bfree"] * stat["f_frsize"] + KEPT.get(name, 0)
    if name == "zfs":  # 183 metaslabs, less what zdb -b finds at the end of every pointer of the pool
        free = 183 * (512 << 10) - truth["allocated"]
    if name == "openzfs":  # the same of 15 metaslabs of 32 MiB
        free = 15 * (32 << 20) - truth["allocated"]
    if name == "bcachefs":  # alloc_debug of the kernel; statvfs also has what is left of used buckets
        free = truth["free_buckets"] * (128 << 10)
    return Aged(name, truth["format"], output, free, tuple((at, length) for at, length in truth["file_runs"]))


@pytest.mark.parametrize("name", NAMES)
def test_the_free_bytes_are_those_of_the_kernel(name: str) -> None:
    one = aged(name)
    assert total_bytes(one.space.runs) == one.free


@pytest.mark.parametrize("name", NAMES)
def test_no_free_run_and_no_metadata_touch_a_file(name: str) -> None:
    one = aged(name)
    space = one.space
    assert overlap_bytes(one.files, space.runs) == overlap_bytes(one.files, space.metadata) == 0
    # What is neither free, nor a file's, nor named is trees, directories, a journal of 4 MiB: little of the disk.
    left = space.size - total_bytes(space.runs) - total_bytes(space.metadata) - total_bytes(one.files)
    # What exfat's files leave of their clusters of 32 KiB is theirs.
    assert left >= 0 and (left < (6 if name == "exfat" else 5) << 20 or name == "zfs")


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_within_the_disk_in_its_order_and_as_long_as_they_go(name: str) -> None:
    space = aged(name).space
    ends = [start + length for start, length in space.runs]
    assert all(end < start for end, (start, _) in zip(ends, space.runs[1:], strict=False))
    assert len(space.runs) >= 20 and space.runs[0][0] >= 0 and ends[-1] <= space.size


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_ends_early_anywhere_is_unexpected_or_read(name: str) -> None:
    whole = aged(name)
    for length in (*range(0, 2048, 7), *range(2048, len(whole.output), len(whole.output) // 20 + 1)):
        with suppress(freespace.UnexpectedOutput):
            freespace.parse(whole.format, whole.output[:length])


@pytest.mark.parametrize("name", NAMES)
def test_half_an_output_is_refused(name: str) -> None:
    one = aged(name)
    for part in (b"", one.output[: len(one.output) // 2]):
        with pytest.raises(freespace.UnexpectedOutput, match="output: "):
            freespace.parse(one.format, part)


@pytest.mark.parametrize(
    "name, old, new, said",
    [
        ("ext4", b"  Free blocks: ", b"  Free blocks: 7, ", "runs of free space have"),
        ("ext4", b"  Free blocks: ", b"  Free blocks: 1-2-3, ", "line 61 .* is no range of blocks"),
        ("ext4", b"Block count: ", b"Cluster size: 65536\nBlock count: ", "bigalloc"),
        ("xfs", b"       3       22       20", b"       3       22       19", "runs of free space have"),
        ("xfs", b"    agno    agbno      len\n", b"    agno    agbno      len\n  none\n",
         "line 11 .* no extent"),
        ("xfs", b"fdblocks = ", b"fdblox = ", "no 'fdblocks'"),
        ("reiserfs", b"Free(", b"Gone(", "line 34 .* no range of blocks"),
        ("reiserfs", b"Blocksize:", b"Size of a block:", "block size"),
        ("btrfs", b"num_devices\t\t1", b"num_devices\t\t2", "lies on 2 devices"),
        ("btrfs", b"type DATA|single", b"type DATA|RAID1", "spread over devices"),
        ("btrfs", b"block group used 6", b"block group used 5", "the extents of chunk"),
        ("f2fs", b"vblocks:113", b"vblocks:112", "does not hold 112 valid blocks"),
        ("f2fs", b"\n\nsegno:       1\t", b"\n\nsegno:       2\t", "segment 2 follows after 1 segments"),
        ("f2fs", b"valid_block_count", b"valid_block_cound", "no 'valid_block_count'"),
        ("ntfs", b"clusters of free space", b"clusters free", "no line of ntfscluster"),
        ("ntfs", b"clusters of free space  : 1", b"clusters of free space  : 2", "its total is"),
        ("vfat", b"\x55\xaa", b"\xaa\x55", "boot sector"),
        ("zfs", b"    A  range: ", b"    F  range: ", "free segments, it says"),
        ("zfs", b"\tmetaslabs ", b"\tvdev          1\n\tmetaslabs ", "line 4 .* more than one device"),
        ("jfs", b"JFS1", b"JFS2", "no superblock of jfs"),
    ],
)  # fmt: skip
def test_an_output_that_does_not_agree_is_refused(name: str, old: bytes, new: bytes, said: str) -> None:
    one = aged(name)
    assert old in one.output
    with pytest.raises(freespace.UnexpectedOutput, match=said):
        freespace.parse(one.format, one.output.replace(old, new, 1))


@pytest.mark.parametrize("trees", [-1, 0, 4, 5])
def test_xfs_counts_the_blocks_of_its_trees_of_free_space_as_free(trees: int) -> None:
    """600 extents: a root, and 2 leaves that are half full, in each of the group's two trees."""
    size = "blocksize = 4096\ndblocks = 76800\nagblocks = 19200\nagblklog = 15\nagcount = 4\nsectsize = 512\n"
    log = f"logstart = 0\nlogblocks = 0\nfdblocks = {600 + trees}\n"
    extents = "".join(f"{0:8} {100 + 2 * number:8} {1:8}\n" for number in range(600))
    output = f"{size}{log}    agno    agbno      len\n{extents}   from      to extents  blocks    pct\n".encode()
    if trees in (0, 4):
        assert sum(length for _, length in freespace.parse("xfs_db", output).runs) == 600 * 4096
    else:
        with pytest.raises(freespace.UnexpectedOutput, match="runs of free space have"):
            freespace.parse("xfs_db", output)


# What debugfs.reiser4 1.2.2 prints of a new filesystem of 256 MiB, without what is not read.
REISER4 = b"""Master super block (16):
blksize:\t4096
Format super block (17):
blocks:\t\t65536
free blocks:\t65508
FS status block (21):
Block allocator:
total blocks:\t65536
used blocks:\t28
free blocks:\t65508
       BLK       CRC      Used
        18 [ 0xe3c502ff ] 25
     32736 [ 0x3ff00004 ] 2
     65472 [ 0x87e6e4ef ] 1

Block map:
[ 0(25) 32736(2) 65472(1) ]
"""


def test_of_reiser4_what_no_run_of_the_map_uses_is_free() -> None:
    space = freespace.parse("debugfs.reiser4", REISER4)
    assert total_bytes(space.runs) == 65508 * 4096 and len(space.runs) == 3
    assert space.metadata == ((0, 19 * 4096), (21 * 4096, 4096), (32736 * 4096, 4096), (65472 * 4096, 4096))


def exfat(bitmap: bytes = b"\x07\x01", told: int = 12) -> bytes:
    """A volume of 16 clusters of 4 KiB from 64 KiB on: bitmap, table of upper case, root, and a file's cluster."""
    boot = bytearray(512)
    boot[3:11] = b"EXFAT   "
    struct.pack_into("<II", boot, 88, 128, 16)
    boot[108:110] = bytes((9, 3))
    root = bytearray(512)
    struct.pack_into("<B19xIQ", root, 0, 0x81, 2, 2)
    struct.pack_into("<B19xIQ", root, 32, 0x82, 3, 128)
    return bytes(boot + root) + bitmap + f"Free Clusters: \t\t\t  {told}\n".encode()


def test_of_exfat_the_clear_bits_of_the_bitmap_are_free() -> None:
    space = freespace.parse("exfat", exfat())
    start, cluster = 128 * 512, 4096
    assert space.runs == ((start + 3 * cluster, 5 * cluster), (start + 9 * cluster, 7 * cluster))
    assert space.metadata == ((0, start + 2 * cluster),) and space.size == start + 16 * cluster


def test_every_filesystem_names_a_format_that_is_read_or_says_why_not() -> None:
    given = {one.name: one.free_space for one in read_all("filesystems", Filesystem)}
    formats = {tool.format for tool in given.values() if isinstance(tool, FreeSpaceTool)}
    assert formats == set(freespace.FORMATS)
    assert [name for name, tool in given.items() if not isinstance(tool, FreeSpaceTool)] == ["nilfs2"]


def test_measures_of_runs_known_by_hand() -> None:
    mib = 1 << 20
    runs = tuple((index * 4 * mib, length) for index, length in enumerate([4096] * 6 + [8192, mib - 1, mib, 2 * mib]))
    found = {one.metric: one.value for one in free_space_measures(FreeSpace(64 * mib, runs))}
    free = 6 * 4096 + 8192 + mib - 1 + mib + 2 * mib
    assert found == {
        **{"free_bytes": free, "free_extents": 10, "free_extent_largest": 2 * mib},
        **{"free_extent_p10": 4096, "free_extent_p50": 4096, "free_extent_p90": mib},
        "free_usable_1mib": round(3 * mib / free, 6),
    }
    assert set(found) <= set(METRICS) and tuple(found) == FREE_METRICS


def test_a_full_disk_has_no_lengths_and_one_that_was_not_read_has_nothing() -> None:
    full = free_space_measures(FreeSpace(4096, ()))
    assert [(one.metric, one.value) for one in full[:2]] == [("free_bytes", 0), ("free_extents", 0)]
    assert {(one.value, one.not_measured) for one in full[2:]} == {(None, "there is no free space")}
    unread = free_space_measures(None, "no tool")
    assert [one.metric for one in unread] == list(FREE_METRICS)
    assert {(one.value, one.not_measured) for one in unread} == {(None, "no tool")}
    assert free_space_measures(FreeSpace(1 << 21, ((0, 1 << 20),)))[-1].value == 1


def drawn(chance: random.Random) -> list[Run]:
    return [(chance.randrange(60), chance.randrange(12)) for _ in range(chance.randrange(9))]


def bytes_of(runs: object) -> set[int]:
    return {at for start, length in runs for at in range(start, start + length)}  # type: ignore[attr-defined]


def test_runs_are_sets_of_bytes() -> None:
    chance = random.Random(4)
    for _ in range(500):
        one, other = drawn(chance), drawn(chance)
        whole = join_runs(one)
        assert bytes_of(whole) == bytes_of(one) and total_bytes(whole) == len(bytes_of(one))
        assert all(sum(before) < after[0] for before, after in pairwise(whole))
        assert bytes_of(subtract(one, other)) == bytes_of(one) - bytes_of(other)
        assert join_runs(subtract(one, other)) == subtract(one, other)
        assert overlap_bytes(one, other) == len(bytes_of(one) & bytes_of(other))


@pytest.mark.parametrize("high_first", [False, True])
def test_clear_bits_are_found_one_by_one(high_first: bool) -> None:
    chance = random.Random(5)
    for _ in range(300):
        bitmap = bytes(chance.choice((0, 0xFF, chance.randrange(256))) for _ in range(chance.randrange(9)))
        count = chance.randrange(8 * len(bitmap) + 1)
        clear = {at for at in range(count) if not bitmap[at // 8] >> (7 - at % 8 if high_first else at % 8) & 1}
        found = list(clear_bits(bitmap, count, high_first=high_first))
        assert bytes_of(found) == clear and join_runs(found) == tuple(found)


@pytest.mark.parametrize(
    ("form", "output", "said"),
    [
        ("debugfs.reiser4", REISER4.replace(b"0(25)", b"0(24)"),
         "its map has 27 used blocks, its total is 28"),
        ("debugfs.reiser4", REISER4.replace(b"0(25)", b"0-25"), "'0-25' is no run of blocks"),
        ("debugfs.reiser4", REISER4.replace(b"65508\nFS", b"65509\nFS"),
         "tell of 65508 and 65509 free blocks"),
        ("debugfs.reiser4", REISER4.replace(b"Block map:", b"Map:"), "gives the block map"),
        ("debugfs.reiser4", REISER4.replace(b"blksize", b"block size"), "gives the blksize"),
        ("exfat", exfat(told=11), "its bitmap has 12 free clusters, dump.exfat says 11"),
        ("exfat", exfat()[:-20], "dump.exfat's free clusters are missing"),
        ("exfat", exfat(b"\x06\x01", 13), "are called free and metadata"),
        ("exfat", exfat().replace(b"EXFAT", b"NTFSX"), "not begin with a boot sector of exFAT"),
    ],
)  # fmt: skip
def test_a_made_up_output_that_does_not_agree_is_refused(form: str, output: bytes, said: str) -> None:
    with pytest.raises(freespace.UnexpectedOutput, match=said):
        freespace.parse(form, output)
    with pytest.raises(InputError, match="did you mean xfs_db"):
        freespace.parse("xfsdb", b"")
