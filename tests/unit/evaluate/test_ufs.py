"""UFS2: what mkufs makes is what FreeBSD's newfs makes, and checkufs finds what is wrong with one.

The kernel side, Linux writing it, is tested in guests of a kernel that can (docs/filesystems.md).
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base import process
from agelab.evaluate.layout import freespace
from agelab.machine.image import tools
from agelab.scenario import selection
from tests.build.native_tools import compiled

UUID = "6167656c-6162-4000-8000-000000000001"
SUPER = 65536
MAGIC = SUPER + 1372
PERIOD, TODAY = (selection.filesystem("ufs").mkfs_command(which)[1:-3] for which in ("period", "today"))
FRAGMENT = 2048
CYLINDER_GROUP = 0x090255


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ufs")
    for name in ("mkufs", "checkufs"):
        compiled(name, directory, tools.FILESYSTEMS)
    return directory


@pytest.fixture
def make(programs: Path, tmp_path: Path) -> Callable[..., Path]:
    """A filesystem in a sparse file."""

    def made(mib: int, *options: str, uuid: str = UUID, name: str = "image") -> Path:
        image = tmp_path / name
        image.touch()
        os.truncate(image, 0)
        os.truncate(image, mib << 20)
        process.run([str(programs / "mkufs"), *options, "-U", uuid, str(image)])
        return image

    return made


def integer(image: Path, at: int, size: int = 4) -> int:
    with image.open("rb") as file:
        file.seek(at)
        return int.from_bytes(file.read(size), "little")


def put(image: Path, at: int, data: bytes) -> None:
    with image.open("r+b") as file:
        file.seek(at)
        file.write(data)


def checked(programs: Path, image: Path) -> tuple[int, str]:
    """Its exit status and what it printed."""
    done = process.run([str(programs / "checkufs"), str(image)], ok=(0, 1, 4))
    return done.returncode, done.stdout + done.stderr


# Printed by newfs of FreeBSD 7 or 8 ("20480.0MB ... 112 cylinder groups of 183.72MB, 11758 blks, 23552 inodes ...
# super-block backups at: 160, 376416, 752672") and of FreeBSD 13 ("10240.0MB ... 17 cylinder groups of 625.22MB,
# 20007 blks, 80128 inodes ... at: 192, 1280640, 2561088").
@pytest.mark.parametrize(
    "mib, options, groups, blocks, inodes, copies",
    [
        (20480, PERIOD, 112, 11758, 23552, (160, 376416, 752672, 1128928)),
        (10240, TODAY, 17, 20007, 80128, (192, 1280640, 2561088, 3841536)),
        (7168, TODAY, 12, 20007, 80128, (192, 1280640, 2561088, 3841536)),
    ],
)
def test_groups_are_those_of_freebsds_newfs(
    make: Callable[..., Path],
    mib: int,
    options: tuple[str, ...],
    groups: int,
    blocks: int,
    inodes: int,
    copies: tuple[int, ...],
) -> None:
    image = make(mib, *options)
    assert integer(image, SUPER + 44) == groups
    assert integer(image, SUPER + 188) == blocks * 8
    assert integer(image, SUPER + 184) == inodes
    for sector in copies:
        assert integer(image, sector * 512 + 1372) == 0x19540119
    first_data = integer(image, SUPER + 20)
    for number, sector in enumerate(copies):  # the group's own block is the block behind its copy
        block, size = integer(image, SUPER + 48), integer(image, SUPER + 52)
        at = sector * 512 + block
        assert integer(image, at + 4) == CYLINDER_GROUP and integer(image, at + 12) == number
        assert first_data * size > integer(image, SUPER + 16) * size == copies[0] * 512 + 2 * block


def test_linux_finds_the_superblock_where_it_looks(make: Callable[..., Path]) -> None:
    image = make(64, *PERIOD)
    assert integer(image, MAGIC) == 0x19540119
    assert integer(image, SUPER + 1000, 8) == SUPER  # fs_sblockloc
    assert [integer(image, SUPER + at) for at in (48, 52, 56)] == [16384, FRAGMENT, 8]
    assert integer(image, SUPER + 104) == 2048  # fs_sbsize: Linux reads so much again
    assert integer(image, SUPER + 209, 1) == 1  # fs_clean: else Linux mounts it read-only
    assert integer(image, SUPER + 1080, 8) * FRAGMENT == 64 << 20
    assert image.read_bytes()[:SUPER] == bytes(SUPER)


@pytest.mark.parametrize("mib", [8, 9, 193, 300, 1000])
@pytest.mark.parametrize("options", [PERIOD, TODAY, ("-b", "4096", "-f", "4096", "-a", "1")])
def test_every_size_agrees_with_itself(
    programs: Path, make: Callable[..., Path], mib: int, options: tuple[str, ...]
) -> None:
    image = make(mib, *options)
    status, said = checked(programs, image)
    assert (status, said) == (0, f"{image}: UFS2, 1 inodes and 1 fragments in use: clean\n")


@pytest.mark.parametrize(
    "options, said",
    [
        (("-f", "8192"), "8192 is no power of 2 from 512 to 4096"),
        (("-b", "12288"), "12288 is no power of 2"),
        (("-b", "65536"), "a block has 1 to 8 fragments"),
        (("-b", "4096", "-f", "512", "-a", "17"), "17 is no power of 2"),
    ],
)
def test_what_linux_would_not_take_is_refused(make: Callable[..., Path], options: tuple[str, ...], said: str) -> None:
    with pytest.raises(process.ProcessFailed, match=said):
        make(8, *options)


def test_a_size_of_no_whole_blocks_is_used_to_its_last_fragment(
    programs: Path, make: Callable[..., Path], tmp_path: Path
) -> None:
    image = make(64, *PERIOD)
    os.truncate(image, (64 << 20) - 3 * FRAGMENT - 5)
    process.run([str(programs / "mkufs"), *PERIOD, "-U", UUID, str(image)])
    assert integer(image, SUPER + 1080, 8) == (64 << 20) // FRAGMENT - 4
    assert checked(programs, image)[0] == 0


@pytest.mark.parametrize("kib", [0, 100, 160, 300, 1000])
def test_a_disk_that_is_too_small_is_refused(programs: Path, tmp_path: Path, kib: int) -> None:
    image = tmp_path / "image"
    image.touch()
    os.truncate(image, kib << 10)
    try:
        process.run([str(programs / "mkufs"), *TODAY, "-U", UUID, str(image)])
    except process.ProcessFailed as failed:
        assert "too small" in failed.stderr and kib < 1000
    else:
        assert checked(programs, image)[0] == 0 and kib > 160


def test_the_same_uuid_makes_the_same_bytes(make: Callable[..., Path]) -> None:
    one = make(8, *PERIOD).read_bytes()
    assert make(8, *PERIOD, name="again").read_bytes() == one
    other = make(8, *PERIOD, uuid=UUID[:-1] + "3", name="other").read_bytes()
    differ = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    copy, length = (int.from_bytes(one[SUPER + at :][:4], "little") for at in (8, 188))
    copies = [(copy + group * length) * FRAGMENT for group in range(4)]
    assert differ == [at + 148 for at in (SUPER, *copies)]  # fs_id


def group_block(image: Path, number: int) -> int:
    """Where a group's own block lies."""
    return (number * integer(image, SUPER + 188) + integer(image, SUPER + 12)) * FRAGMENT


def root_inode(image: Path) -> int:
    return integer(image, SUPER + 16) * FRAGMENT + 2 * 256


def root_directory(image: Path) -> int:
    return integer(image, root_inode(image) + 112, 8) * FRAGMENT


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda image: (MAGIC, b"\0"), "has no UFS2 at byte 65536"),
        (lambda image: (SUPER + 56, b"\4"), "its superblock contradicts itself"),
        (lambda image: (SUPER + 209, b"\0"), "it is not marked clean"),
        (lambda image: (group_block(image, 2) + 4, b"\0"), "the block of group 2 is damaged"),
        (lambda image: (group_block(image, 2) + 28, b"\1"), "group 2 says: directories 0, blocks 769"),
        (lambda image: (group_block(image, 2) + 60, b"\1"), "group 2 counts its runs of free fragments wrongly"),
        (lambda image: (free_map(image, 2) + 900, b"\xfe"), "1 fragments of group 2 are not free and nobody's"),
        (lambda image: (free_map(image, 2) + 900, b"\xfe"), "group 2: its map of free blocks"),
        (lambda image: (free_map(image, 2) + 900, b"\xfe"), "group 2 counts its clusters wrongly"),
        (lambda image: (free_map(image, 0) + root_block(image), b"\xff"), "is in use, and free in the map of group 0"),
        (lambda image: (root_inode(image) + 2, b"\3"), "inode 2 says that it has 3 links, and has 2"),
        (lambda image: (root_inode(image) + 24, b"\x08"), "inode 2 says that it holds 8 sectors, and holds 4"),
        (lambda image: (root_inode(image) + 112 + 8, b"\x01"), "inode 2: block 1 lies behind its end"),
        (lambda image: (root_inode(image) + 112, b"\x01\0\0"), "inode 2: fragment 1 is group 0's own"),
        (lambda image: (root_inode(image) + 112 + 4, b"\1"), "lie outside the filesystem or in two groups"),
        (lambda image: (root_inode(image) + 1, b"\x91"), "inode 2 has mode 110755"),
        (lambda image: (root_inode(image) + 256, b"\xed\x41"), "inode 3 has mode 40755 and is not in use"),
        (lambda image: (root_directory(image), b"\3"), "directory 2: . is inode 3, which is none"),
        (lambda image: (root_directory(image) + 4, b"\x0b"), "directory 2 is damaged at byte 0"),
        (lambda image: (root_directory(image) + 6, b"\x08"), "directory 2: . says type 8, its inode 40755"),
        (lambda image: (root_directory(image) + 8, b"a"), "directory 2 does not begin with . and .."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(
    programs: Path, make: Callable[..., Path], damage: Callable[[Path], tuple[int, bytes]], said: str
) -> None:
    image = make(64, *PERIOD)
    put(image, *damage(image))
    status, printed = checked(programs, image)
    assert status in (1, 4) and said in printed


def free_map(image: Path, number: int) -> int:
    at = group_block(image, number)
    return at + integer(image, at + 96)


def root_block(image: Path) -> int:
    return integer(image, root_inode(image) + 112, 8) // 8


def test_the_free_space_is_all_but_what_is_the_filesystems_own(programs: Path, make: Callable[..., Path]) -> None:
    image = make(300, *PERIOD)
    listed = process.run([str(programs / "checkufs"), "--free", str(image)]).stdout.encode()
    found = freespace.parse("ufs", listed)
    assert found.size == 300 << 20
    free, own = (sum(length for _, length in runs) for runs in (found.runs, found.metadata))
    assert free + own == found.size - FRAGMENT  # the root directory's
    assert free == (integer(image, SUPER + 1016, 8) * 8 + integer(image, SUPER + 1032, 8)) * FRAGMENT


@pytest.mark.parametrize(
    "old, new, said",
    [
        (b"agelab-ufs 1", b"agelab-ufs 2", "line 1 .* it begins with"),
        (b"\nF ", b"\nX ", "line 3 .* is no run"),
        (b"\nM 0 ", b"\nM -1 ", "line 2 .* is no run"),
        (b" 100\nM", b" 101\nM", "its runs of free space have 100 bytes, its total is 101"),
    ],
)
def test_a_list_that_is_none_is_refused(old: bytes, new: bytes, said: str) -> None:
    listed = b"agelab-ufs 1 50 1000 100\nM 0 50\nF 50 100\n"
    assert freespace.parse("ufs", listed).runs == ((50, 100),)
    with pytest.raises(freespace.UnexpectedOutput, match=said):
        freespace.parse("ufs", listed.replace(old, new))
