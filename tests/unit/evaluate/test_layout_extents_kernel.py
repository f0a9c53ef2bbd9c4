"""The extent mapper against kernels: each block of a file is found on the disk by what was written into it."""

import os
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from agelab.base import process
from agelab.evaluate.layout import extents, measures
from agelab.evaluate.layout.model import UNWRITTEN, Extent, ExtentMap, FileMap
from agelab.machine.image.tools import SOURCES
from tests import capabilities
from tests.build.native_tools import FLAGS, compiled, lacking, made, mounted

MKFS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "ext2": (48, 1024, ("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024")),
    "ext3": (48, 4096, ("mke2fs", "-q", "-F", "-t", "ext3", "-b", "4096")),
    "ext4": (48, 4096, ("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096")),
    "xfs": (320, 4096, ("mkfs.xfs", "-q", "-f")),
    "btrfs": (160, 4096, ("mkfs.btrfs", "-q", "-f")),
}
"""Size in MiB, block size, and what makes the filesystem."""
Places = dict[str, dict[int, int]]
"""For each file: block of the file to byte on the disk."""


@pytest.fixture(scope="module")
def mapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("extents", tmp_path_factory.mktemp("tools"))


def stamp(path: str, block: int, size: int) -> bytes:
    """The content of a file's block, unlike that of any other block of the disk."""
    return f"<{path}|{block}>".encode().ljust(size, b".")


def put(root: Path, path: str, block: int, size: int) -> None:
    """Write one block of a file, and let the filesystem find its place at once."""
    descriptor = os.open(root / path, os.O_WRONLY | os.O_CREAT)
    os.pwrite(descriptor, stamp(path, block, size), block * size)
    os.fsync(descriptor)
    os.close(descriptor)


def found_on_disk(image: Path, size: int) -> Places:
    """The places of all stamps, by reading the whole image."""
    places: Places = {}
    data = image.read_bytes()
    for place in range(0, len(data), size):
        if data[place : place + 1] == b"<" and (match := re.match(rb"<([^|]*)\|(\d+)>\.", data[place : place + 80])):
            places.setdefault(match[1].decode(), {})[int(match[2])] = place
    return places


def of_blocks(file: FileMap, size: int) -> dict[int, int]:
    """The same from a map, of what was written."""
    return {
        (extent.logical + i) // size: extent.physical + i
        for extent in file.extents
        if not extent.flags & UNWRITTEN
        for i in range(0, extent.length, size)
    }


def asked(mapper: Path, root: Path, *words: str) -> ExtentMap:
    return extents.parse_extents(process.run([str(mapper), *words, str(root)]).stdout.encode())


def counted(places: Mapping[str, Mapping[int, int]], size: int) -> tuple[int, Fraction]:
    """Extents and layout score, from one block to the next."""
    total = followers = following = 0
    for blocks in places.values():
        total += 1
        for (before, place), (after, next_place) in pairwise(sorted(blocks.items())):
            follows = next_place - place in (size, (after - before) * size)
            followers += 1
            following += follows
            total += not follows
    return total, Fraction(following, followers)


def filefrag(root: Path, files: list[str]) -> int:
    said = process.run(["filefrag", *(str(root / path) for path in files)]).stdout
    counts = [int(count) for count in re.findall(r": (\d+) extents? found", said)]
    assert len(counts) == len(files)
    return sum(counts)


def interleave(root: Path, size: int) -> None:
    """Three files by turns, a block each; one with holes; one whole; one behind it that was reserved first."""
    for block in range(30):
        for path in ("a", "b", "c"):
            put(root, path, block, size)
    for block in (0, 3, 4, 9):
        put(root, "holes", block, size)
    (root / "d").mkdir()
    with (root / "d/whole").open("wb") as file:
        file.write(b"".join(stamp("d/whole", block, size) for block in range(200)))
        os.fsync(file.fileno())
    # ext2 and ext3 cannot; what does without the system call would write.
    process.run(["fallocate", "-l", str(50 * size), str(root / "d/reserved")], ok=(0, 1))
    for block in (7, 8, 30):
        put(root, "d/reserved", block, size)


def churn(root: Path, size: int) -> None:
    """Nearly fill the filesystem, delete and write by chance, several times."""
    random = Random(4)
    written: dict[str, int] = {}
    for number in range(1500):
        space = os.statvfs(root)
        while written and (space.f_bavail < space.f_blocks // 12 or random.random() < 0.2):
            (root / written_path(random, written)).unlink()
            space = os.statvfs(root)
        path, blocks = f"{number}", int(random.expovariate(1 / 60)) + 1
        with (root / path).open("wb") as file:
            for first in range(0, blocks, 16):
                last = min(first + 16, blocks)
                file.write(b"".join(stamp(path, block, size) for block in range(first, last)))
                file.flush()
                if random.random() < 0.1:
                    os.fsync(file.fileno())
        written[path] = blocks


def written_path(random: Random, written: dict[str, int]) -> str:
    path = random.choice(sorted(written))
    del written[path]
    return path


@pytest.mark.parametrize(
    ("filesystem", "history"),
    [
        *((name, interleave) for name in MKFS),
        *((name, churn) for name in ("ext2", "xfs")),
        *(pytest.param(name, churn, marks=pytest.mark.full) for name in ("ext3", "ext4", "btrfs")),
    ],
)
def test_every_block_is_where_the_map_says(
    mapper: Path, tmp_path: Path, filesystem: str, history: Callable[[Path, int], None]
) -> None:
    mib, size, mkfs = MKFS[filesystem]
    if why := lacking(mib, mkfs):
        capabilities.skip("mount", why)
    image = tmp_path / "image"
    made(image, mib, mkfs)
    with mounted(image) as where:
        history(where, size)
    on_disk = found_on_disk(image, size)
    with mounted(image, "ro") as where:
        found = asked(mapper, where)
        files = [file for file in found.files if file.path in on_disk]
        assert found.block_size == size and files
        places = {file.path: of_blocks(file, size) for file in files}
        assert places == {path: on_disk[path] for path in places}
        measured = {one.metric: one.value for one in measures.layout_measures(found)}
        assert int(measured["extents"] or 0) > len(files), "nothing is fragmented: the test shows little"
        if history is interleave:
            _scored(found, on_disk)
        if process.which("filefrag"):
            assert measured["extents"] == filefrag(where, [file.path for file in found.files])
        if filesystem != "btrfs":
            by_blocks = asked(mapper, where, "--fibmap")
            assert {file.path: of_blocks(file, size) for file in by_blocks.files if file.path in on_disk} == places


def _scored(found: ExtentMap, on_disk: Places) -> None:
    """Files by turns have the score of their blocks."""
    named = ("a", "b", "c", "holes", "d/whole")
    total, share = counted({path: on_disk[path] for path in named}, found.block_size)
    files = tuple(file for file in found.files if file.path in named)
    alone = measures.layout_measures(ExtentMap(found.block_size, found.method, files))
    measured = {one.metric: one.value for one in alone}
    assert total > 30, "the filesystem did not fragment what was written by turns"
    assert (measured["extents"], measured["layout_score"]) == (total, float(round(share, 6)))


def test_free_space_in_single_blocks_makes_files_of_single_blocks(mapper: Path, tmp_path: Path) -> None:
    mib, size, mkfs = MKFS["ext2"]
    if why := lacking(mib, mkfs):
        capabilities.skip("mount", why)
    image = tmp_path / "image"
    made(image, mib, (*mkfs, "-m", "0", "-N", "64"))
    with mounted(image) as where:
        with (where / "filler").open("wb", buffering=0) as file:
            blocks = 0
            try:
                while True:
                    blocks += file.write(bytes(size)) // size
            except OSError:
                os.fsync(file.fileno())
        # Whole but for every second block of its first 400; ext2 frees what a hole is punched into at once.
        for block in range(0, 400, 2):
            process.run(["fallocate", "--punch-hole", "-o", str(block * size), "-l", str(size), str(where / "filler")])
        (where / "pieces").write_bytes(bytes(150 * size))
        (where / "empty").touch()
    with mounted(image, "ro") as where:
        found = asked(mapper, where)
    [pieces] = [file for file in found.files if file.path == "pieces"]
    assert blocks > 30000
    alone = measures.layout_measures(ExtentMap(found.block_size, found.method, (pieces,)))
    measured = {one.metric: one.value for one in alone}
    assert measured["extents"] == 150
    assert (measured["layout_score"], measured["extent_length_p90"]) == (0, size)


def test_a_tree_is_listed_in_directory_order_and_its_names_survive(mapper: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    names = ["plain", "a b\t\\c\nd", "umläut", "x" * 255, "-dash"]
    for directory in ("", "one", "one/two", "other"):
        (root / directory).mkdir(exist_ok=True)
        for name in names:
            (root / directory / name).write_text(name)
    (root / "one" / os.fsdecode(b"\xff\xfe")).touch()
    (root / "link").symlink_to("plain")
    os.link(root / "plain", root / "other" / "again")
    os.mkfifo(root / "fifo")

    def listed(directory: str) -> list[str]:
        found = []
        with os.scandir(root / directory) as entries:
            for entry in entries:
                path = f"{directory}/{entry.name}" if directory else entry.name
                if entry.is_dir(follow_symlinks=False):
                    found += listed(path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(path)
        return found

    found = asked(mapper, root)
    assert [file.path for file in found.files] == listed("")
    assert len(found.files) == 4 * len(names) + 2
    for file in found.files:
        stat = (root / file.path).stat()
        assert (file.inode, file.size, file.links) == (stat.st_ino, stat.st_size, stat.st_nlink)
        assert file.allocated == 512 * stat.st_blocks


def test_a_filesystem_without_a_way_says_so_for_each_file(mapper: Path) -> None:
    directory = Path("/dev/shm", f"agelab-test-{os.getpid()}")
    directory.mkdir()
    try:
        (directory / "file").write_bytes(bytes(5000))
        (directory / "empty").touch()
        found = asked(mapper, directory)
        assert {file.path: file.unmapped for file in found.files} == {
            "file": "FIEMAP: Operation not supported",
            "empty": "FIEMAP: Operation not supported",
        }
    finally:
        process.run(["rm", "-r", str(directory)])


# What Linux 6.12 says of a file of ntfs3 whose content is in its record.
ANSWER = """
#include <linux/fiemap.h>
#include <sys/stat.h>
int answer(int file, unsigned long request, struct fiemap *map)
{
	struct stat stat;
	(void)request;
	map->fm_mapped_extents = 1;
	map->fm_extents[0] = (struct fiemap_extent){ .fe_flags = 0x1301 };
	if (!fstat(file, &stat))
		map->fm_extents[0].fe_length = stat.st_size;
	return 1;
}
"""


def test_an_answer_that_is_no_error_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.c").write_text(ANSWER)
    argv = ["gcc", *FLAGS, "-Dioctl=answer", "-I", str(SOURCES), "-o", str(tmp_path / "extents")]
    process.run([*argv, str(SOURCES / "extents.c"), str(tmp_path / "answer.c")])
    root = tmp_path / "root"
    root.mkdir()
    (root / "small").write_bytes(bytes(21))
    (root / "empty").touch()
    empty, small = sorted(asked(tmp_path / "extents", root).files, key=lambda file: file.path)
    assert empty.unmapped is None and not empty.extents
    assert small.unmapped is None and [one.flags for one in small.extents] == [0x1301]
    assert measures.locate(small, 4096) == measures.PlacedFile((), 0, 0, 0, 1)


# A disk of reiser4 on which file blocks 0, 1, ... lie at 100, 101, ...; a file takes as many sectors as its time says.
REISER4 = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/vfs.h>
int kind(int file, struct statfs *said)
{
	(void)file;
	*said = (struct statfs){ .f_type = 0x52345362, .f_bsize = 4096 };
	return 0;
}
int told(int file, struct stat *said)
{
	int failed = fstatat(file, "", said, AT_EMPTY_PATH);
	said->st_blocks = said->st_mtime;
	return failed;
}
int answer(int file, unsigned long request, int *block)
{
	struct stat stat;
	if (request == FIGETBSZ) {
		*block = 4096;
		return 0;
	}
	if (!told(file, &stat) && stat.st_blocks == 1) {
		errno = ERANGE;
		return -1;
	}
	*block += 100;
	return 0;
}
"""


def test_of_reiser4_what_lies_in_the_tree_has_no_place(tmp_path: Path) -> None:
    (tmp_path / "answer.c").write_text(REISER4)
    argv = [
        "gcc", *FLAGS, "-Dioctl=answer", "-Dfstat=told", "-Dfstatfs=kind", "-o", str(tmp_path / "extents"),
    ]  # fmt: skip
    process.run([*argv, str(SOURCES / "extents.c"), str(tmp_path / "answer.c")])
    root = tmp_path / "root"
    root.mkdir()
    # Name to size, sectors, and whether it lies outside the tree.
    files = {
        "tail": (5000, 10, False), "extent": (5000, 16, True), "most": (16384, 32, False),
        "more": (16385, 40, True), "odd": (16400, 33, True), "compressed": (70000, 1, False),
    }  # fmt: skip
    for name, (size, sectors, _) in files.items():
        (root / name).write_bytes(bytes(size))
        os.utime(root / name, (sectors, sectors))
    found = {file.path: file.extents for file in asked(tmp_path / "extents", root, "--fibmap").files}
    inline = {name: (Extent(0, 0, size, 0x300),) for name, (size, _, outside) in files.items() if not outside}
    assert {name: found[name] for name in inline} == inline
    for name in found.keys() - inline.keys():
        blocks = -(-files[name][0] // 4096)
        assert found[name] == (Extent(0, 100 * 4096, blocks * 4096, 0),)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "usage"),
        (("--fiemap", "/"), 2, "usage"),
        (("--fibmap",), 2, "usage"),
        (("/nowhere",), 1, "extents: opening /nowhere: No such file or directory"),
        (("/etc/passwd",), 1, "extents: opening /etc/passwd: Not a directory"),
    ],
)
def test_what_cannot_be_mapped_is_an_exit_status(mapper: Path, words: tuple[str, ...], status: int, said: str) -> None:
    with pytest.raises(process.ProcessFailed) as raised:
        process.run([str(mapper), *words])
    assert raised.value.returncode == status and said in raised.value.stderr


def test_a_map_that_cannot_be_written_is_an_exit_status(mapper: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(process.ProcessFailed, match="writing the map: No space left"):
        process.run([str(mapper), str(tmp_path)], stdout=Path("/dev/full"))
