"""An image that is cut short is refused when it is imported, not by a guest that cannot mount it."""

import os
import struct
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import InputError
from agelab.store import disk_import, stored_disk
from agelab.store.artefacts import Store
from tests.build.disk_builder import MIB

COPY_AGAIN = "copy it again, and compare sizes or checksums"
FORMATS = ("qcow2", "vdi", "vhdx", "vpc")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ext4 with data up to its end."""
    path = tmp_path_factory.mktemp("whole") / "image"
    process.run(["mke2fs", "-q", "-F", "-t", "ext4", str(path), "32M"])
    with path.open("r+b") as file:
        for at in range(8 * MIB, 32 * MIB, MIB):
            file.seek(at)
            file.write(os.urandom(MIB // 2) if at < 31 * MIB else os.urandom(MIB))
    return path


def taken(store: Store, image: Path, filesystem: str = "ext4") -> stored_disk.StoredDisk:
    return disk_import.import_images(store, [image], filesystem, "single", "today", "x")


def cut(image: Path, size: int) -> Path:
    os.truncate(image, size)
    return image


@pytest.mark.parametrize("kind", [*FORMATS, "qcow2 -c", "raw"])
def test_each_format_is_taken_whole_and_refused_cut(store: Store, tmp_path: Path, whole: Path, kind: str) -> None:
    image = tmp_path / "image"
    process.run(["qemu-img", "convert", "-O", *kind.split(), str(whole), str(image)])
    size = image.stat().st_size
    assert taken(store, image).recipe.sizes == ((34 if kind == "vpc" else 32) * MIB,), "vpc counts cylinders"
    for left in (size - 1000, size - 300_000, size * 3 // 4, size // 3):
        with pytest.raises(InputError, match="is cut short") as raised:
            taken(store, cut(image, left))
        assert raised.value.hint == COPY_AGAIN and len(store.all("disk")) == 1, left


def test_the_words_name_both_sizes_and_what_to_do(store: Store, tmp_path: Path, whole: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(whole.read_bytes()[: 20 * MIB])
    with pytest.raises(InputError) as raised:
        taken(store, image)
    assert str(raised.value) == (f"{image} is cut short: its ext4 takes 33,554,432 bytes, and there are 20,971,520")
    assert raised.value.hint == COPY_AGAIN
    process.run(["qemu-img", "convert", "-O", "qcow2", str(whole), str(image)])
    with pytest.raises(InputError, match=r"data reach to byte [\d,]+, and it has 9,437,184 bytes"):
        taken(store, cut(image, 9 * MIB))


def test_an_image_whose_tables_are_lost_is_refused(store: Store, tmp_path: Path, whole: Path) -> None:
    """What a zeroed table does not map reads as zeros, so its data seem to end within the file."""
    image = tmp_path / "image"
    process.run(["qemu-img", "convert", "-O", "qcow2", str(whole), str(image)])
    with image.open("r+b") as file:
        file.seek(40)
        [table] = struct.unpack(">Q", file.read(8))  # l1_table_offset
        file.seek(table)
        file.write(bytes(8))
    with pytest.raises(InputError, match=r"qemu-img check finds errors|no ext4"):
        taken(store, image)


def test_a_size_that_is_no_multiple_of_anything_is_whole(store: Store, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    process.run(["mke2fs", "-q", "-F", "-t", "ext4", str(raw), "8M"])
    with raw.open("ab") as file:
        file.write(b"x" * 12_800)
    for kind in FORMATS:
        image = tmp_path / kind
        process.run(["qemu-img", "convert", "-O", kind, str(raw), str(image)])
        assert taken(store, image).recipe.sizes[0] >= 8 * MIB, kind


@pytest.mark.parametrize("name", ["xfs", "btrfs", "ext3"])
def test_other_filesystems_say_their_size(store: Store, tmp_path: Path, name: str) -> None:
    image = tmp_path / "image"
    image.touch()
    cut(image, 310 * MIB + 5000)
    make = ["mke2fs", "-q", "-F", "-t", name] if name == "ext3" else [f"mkfs.{name}", "-q"]
    process.run([*make, str(image)])
    stated = disk_import.stated_bytes(image, name)
    assert stated is not None and 310 * MIB <= stated <= 310 * MIB + 5000
    assert taken(store, cut(image, stated), name).recipe.filesystem == name
    with pytest.raises(InputError, match=f"is cut short: its {name} takes {stated:,} bytes"):
        taken(store, cut(image, stated - 512), name)


def head(*parts: tuple[int, bytes]) -> bytes:
    made = bytearray(disk_import.HEAD)
    for at, data in parts:
        made[at : at + len(data)] = data
    return bytes(made)


SIZE = 300 * MIB
SUPERBLOCKS = {
    "jfs": head((32776, struct.pack("<qIHHI", 600_000, 4096, 0, 0, 512)), (32840, struct.pack("<II", 800, 76_000))),
    "reiserfs": head((65536, struct.pack("<I40xH6xQ", SIZE // 4096, 4096, 0)), (65588, b"ReIsEr2Fs")),
    "reiser4": head((65536 + 18, struct.pack("<H", 4096)), (69632, struct.pack("<Q", SIZE // 4096))),
    "nilfs2": head((1024 + 32, struct.pack("<Q", SIZE))),
    "ntfs": head((11, struct.pack("<H", 512)), (40, struct.pack("<Q", SIZE // 512))),
    "vfat": head((11, struct.pack("<H", 512)), (32, struct.pack("<I", SIZE // 512))),
    "exfat": head((72, struct.pack("<Q", SIZE // 512)), (108, b"\x09")),
    "f2fs": head((1024 + 16, struct.pack("<I", 12)), (1024 + 36, struct.pack("<Q", SIZE // 4096))),
    "ufs": head((65536 + 52, struct.pack("<i", 4096)), (65536 + 1080, struct.pack("<q", SIZE // 4096))),
    "zfs_member": head((20_000, b"\0\0\0\x05asize\0\0\0" + struct.pack(">IIQ", 8, 1, SIZE - 9 * MIB // 2))),
    "linux_raid_member": head((4096, b"\xfc\x4e\x2b\xa9"), (4224, struct.pack("<QQ", 2048, SIZE // 512 - 2048))),
}


@pytest.mark.parametrize("name", SUPERBLOCKS)
def test_where_each_superblock_has_its_size(tmp_path: Path, name: str) -> None:
    """As in images of 300 MiB that jfs_mkfs, mkreiserfs, mkntfs... have made."""
    path = tmp_path / "image"
    path.write_bytes(SUPERBLOCKS[name])
    stated = disk_import.stated_bytes(path, name)
    assert stated == (SIZE if name != "jfs" else (800 + 76_000) * 4096)


@pytest.mark.parametrize("name", [*SUPERBLOCKS, "ext4", "xfs", "btrfs", "swap"])
def test_what_makes_no_sense_is_no_size_and_no_traceback(tmp_path: Path, name: str) -> None:
    path = tmp_path / "image"
    for content in (b"", b"\xff" * 100, b"\xff" * disk_import.HEAD, bytes(disk_import.HEAD)):
        path.write_bytes(content)
        assert (disk_import.stated_bytes(path, name) or 1) > 0, content[:1]
