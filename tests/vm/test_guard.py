"""The guard on loop devices: what is refused stays as it was, byte for byte. Wants root, and no guest."""

import errno
import fcntl
import hashlib
import io
import os
import struct
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.machine.disk import DriveClaim, claim, claim_drives, device_state, parse
from tests import capabilities
from tests.capabilities import needs_root

MIB = 1 << 20
SIZE = 16 * MIB


LOOPS = Path("/dev/loop-control").exists()
pytestmark = [needs_root, pytest.mark.skipif(not LOOPS, reason=capabilities.lacks("loop devices"))]


def loop_over(path: Path, stack: ExitStack, *words: str) -> Path:
    device = process.run(["losetup", "--find", "--show", *words, str(path)]).stdout.strip()
    stack.callback(process.run, ["losetup", "--detach", device], ok=range(256))
    return Path(device)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as undone:
        yield undone


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


@pytest.fixture
def loop(image: Path, stack: ExitStack) -> Path:
    return loop_over(image, stack)


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def put(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def ext4(device: Path) -> None:
    process.run(["mkfs.ext4", "-q", "-F", str(device)])


def swap(device: Path) -> None:
    process.run(["mkswap", str(device)])


def md_member(device: Path) -> None:
    """A version 1.2 superblock, 4 KiB from the start (linux/raid/md_p.h)."""
    block = bytearray(4096)
    struct.pack_into("<II", block, 0, 0xA92B4EFC, 1)
    struct.pack_into("<Q", block, 144, 8)  # super_offset, in sectors
    put(device, 4096, bytes(block))


def lvm_member(device: Path) -> None:
    """A label in the second sector, with its checksum (lib/format_text of LVM2)."""
    body = struct.pack("<I8s", 32, b"LVM2 001").ljust(512 - 20, b"\0")
    crc = zlib.crc32(body, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    put(device, 512, struct.pack("<8sQI", b"LABELONE", 1, crc) + body)


def partitions(device: Path) -> None:
    """A DOS table of two partitions of 4 MiB."""
    entries = b"".join(struct.pack("<B3sB3sII", 0, b"", 0x83, b"", first, 8192) for first in (2048, 12288))
    put(device, 446, entries.ljust(64, b"\0") + b"\x55\xaa")


def key_of(refused: AgelabError) -> str:
    """Return the key that the refusal asks for."""
    return refused.hint.partition("--erase ")[2].split()[0]


def refused(text: str, erase: tuple[str, ...] = ()) -> AgelabError:
    with pytest.raises(AgelabError) as raised, claim_drives([parse(text)], erase):
        pass
    return raised.value


def accepted(text: str, erase: tuple[str, ...] = ()) -> DriveClaim:
    with claim_drives([parse(text)], erase) as (claim,):
        return claim


def test_an_empty_disk_needs_no_permission(loop: Path) -> None:
    with claim_drives([parse(f"block:{loop}"), parse("model:none")]) as (claim,):
        [content] = claim.disks
        assert (content.size, content.serial, content.signatures, claim.problem()) == (SIZE, None, (), None)
        assert claim.source.startswith(f"/proc/{os.getpid()}/fd/")
        assert Path(claim.source).stat().st_rdev == loop.stat().st_rdev


def tar(device: Path) -> None:
    """An archive, which has no signature that libblkid knows."""
    member = tarfile.TarInfo("backup/notes.txt")
    member.size = 6
    with io.BytesIO() as made:
        with tarfile.open(fileobj=made, mode="w") as archive:
            archive.addfile(member, io.BytesIO(b"notes\n"))
        put(device, 0, made.getvalue())


def text(device: Path) -> None:
    put(device, 0, b"\x1b]0;a title\x07 that is not for the terminal")


def ext4_behind_a_mebibyte(device: Path) -> None:
    process.run(["mkfs.ext4", "-q", "-F", "-E", f"offset={MIB}", str(device), f"{SIZE // MIB - 1}M"])


def last_byte(device: Path) -> None:
    put(device, SIZE - 1, b"x")


def somewhere(device: Path) -> None:
    put(device, 5 * MIB + 123, b"it's")


@pytest.mark.parametrize(
    ("fill", "seen"),
    [
        (ext4, "holds data: ext4"),
        (swap, "holds data: swap"),
        (md_member, "holds data: linux_raid_member"),
        (lvm_member, "holds data: LVM2_member"),
        (partitions, "holds data: dos"),
        (tar, "'backup/notes.txt' at byte 0, where an empty disk has zeros"),
        (text, r"'\x1b]0;a title\x07 tha' at byte 0"),
        (ext4_behind_a_mebibyte, f" at byte {MIB + 1025}"),
        (last_byte, f"'x' at byte {SIZE - 1}"),
        (somewhere, f'"it\'s" at byte {5 * MIB + 123}'),
    ],
    ids=lambda value: "" if isinstance(value, str) else value.__name__,
)
@pytest.mark.parametrize("way", ["block", "file"])
def test_content_is_refused_until_it_is_named(
    fill: Callable[[Path], None], seen: str, way: str, image: Path, stack: ExitStack
) -> None:
    """Whether libblkid has a signature for it or none."""
    fill(image)
    before = checksum(image)
    spec = f"block:{loop_over(image, stack)}" if way == "block" else f"file:{image}"
    first = refused(spec)
    assert isinstance(first, InputError) and "holds data: " in str(first) and seen in str(first)
    assert "\x1b" not in str(first)
    assert key_of(refused(spec, ("disk-0123456789abcdef",))) == key_of(first)
    assert accepted(spec, (key_of(first),)).token == key_of(first)
    assert checksum(image) == before


def test_a_token_is_of_the_data_that_were_seen(image: Path) -> None:
    somewhere(image)
    token = key_of(refused(f"file:{image}"))
    put(image, 5 * MIB + 123, b"other data")
    assert key_of(refused(f"file:{image}", (token,))) != token


def test_zeros_and_holes_are_an_empty_file(image: Path) -> None:
    put(image, 3 * MIB, bytes(4 * MIB + 5))
    assert accepted(f"file:{image}").disks[0].content == ""


LARGE = 100 << 30


@pytest.mark.parametrize("place", [77 * 1000**3 + 1, LARGE - 1])
def test_a_large_file_is_read_throughout_but_for_its_holes(image: Path, place: int) -> None:
    os.truncate(image, LARGE)
    accepted(f"file:{image}")
    put(image, place, b"x")
    assert f"'x' at byte {place}" in str(refused(f"file:{image}"))


def test_a_large_device_is_looked_at_where_tables_and_superblocks_lie_and_all_over_it(
    image: Path, stack: ExitStack
) -> None:
    os.truncate(image, LARGE)
    device = loop_over(image, stack)
    accepted(f"block:{device}")
    copies = [MIB + 1024, MIB + 65536, 64 * MIB, 128 * MIB + 1024, 129 * MIB + 1024]
    for place in (*copies, LARGE // 4 - 9, 7 * LARGE // 16, LARGE - 1):
        put(device, place, b"x")
        assert f"'x' at byte {place}," in str(refused(f"block:{device}"))
        put(device, place, b"\0")


def test_what_cannot_be_read_is_not_taken_for_zeros(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.pread

    def pread(descriptor: int, length: int, at: int) -> bytes:
        if at >= 8 * MIB:
            raise OSError(errno.EIO, "Input/output error")
        return read(descriptor, length, at)

    monkeypatch.setattr(os, "pread", pread)
    first = refused(f"block:{loop}")
    assert "holds data: what cannot be read at byte " in str(first) and "Input/output error" in str(first)
    accepted(f"block:{loop}", (key_of(first),))


def test_what_is_in_use_is_refused_even_when_named(loop: Path, image: Path, tmp_path: Path, stack: ExitStack) -> None:
    ext4(loop)
    token = key_of(refused(f"block:{loop}"))
    held = os.open(loop, os.O_RDWR | os.O_EXCL)
    assert "holds it" in str(refused(f"block:{loop}", (token,)))
    os.close(held)
    point = tmp_path / "mounted"
    point.mkdir()
    process.run(["mount", "-o", "ro,noload", str(loop), str(point)])
    stack.callback(process.run, ["umount", str(point)])
    before = checksum(image)
    error = refused(f"block:{loop}", (token,))
    assert isinstance(error, HostError)
    assert f"{loop} is mounted on {point}" in str(error)
    assert f"{loop} is a loop device over it" in str(refused(f"file:{image}", (token,)))
    assert checksum(image) == before


def test_active_swap_is_refused(loop: Path, stack: ExitStack) -> None:
    swap(loop)
    token = key_of(refused(f"block:{loop}"))
    if process.run(["swapon", str(loop)], ok=range(256)).returncode:
        capabilities.skip("swap")
    stack.callback(process.run, ["swapoff", str(loop)])
    before = checksum(loop)
    assert f"{loop} is swap space" in str(refused(f"block:{loop}", (token,)))
    assert checksum(loop) == before


@pytest.fixture
def partitioned(image: Path, stack: ExitStack) -> tuple[Path, Path, Path]:
    """A disk and its two partitions."""
    partitions(image)
    disk = loop_over(image, stack, "--partscan")
    one, two = (Path(f"{disk}p{number}") for number in (1, 2))
    for number, first in ((1, 2048), (2, 12288)):  # where the host's kernel does not read the table by itself
        process.run(["addpart", str(disk), str(number), str(first), "8192"], ok=range(256))
        stack.callback(process.run, ["delpart", str(disk), str(number)], ok=range(256))
    if not two.exists():
        capabilities.skip("partition nodes")
    return disk, one, two


def test_a_disk_with_a_mounted_partition_is_in_use_and_its_other_partition_is_not(
    partitioned: tuple[Path, Path, Path], tmp_path: Path, stack: ExitStack
) -> None:
    disk, one, two = partitioned
    token = key_of(refused(f"block:{disk}"))
    ext4(one)
    point = tmp_path / "mounted"
    point.mkdir()
    process.run(["mount", str(one), str(point)])
    stack.callback(process.run, ["umount", str(point)])
    assert f"{one} is mounted on {point}" in str(refused(f"block:{disk}", (token,)))
    assert accepted(f"block:{two}").size == 4 * MIB


def test_who_has_a_partition_has_some_of_its_disk(partitioned: tuple[Path, Path, Path], stack: ExitStack) -> None:
    disk, one, two = partitioned
    token = key_of(refused(f"block:{disk}"))
    above = loop_over(one, stack)
    assert f"{above} is a loop device over {one}" in str(refused(f"block:{disk}", (token,)))
    assert accepted(f"block:{two}").size == 4 * MIB
    with virtual_machine_over(two):
        assert f"another program has locked {two}" in str(refused(f"block:{disk}", (token,)))
    with virtual_machine_over(disk):
        assert f"another program has locked {disk}" in str(refused(f"block:{two}"))


def test_a_disk_under_another_loop_device_is_in_use(loop: Path, stack: ExitStack) -> None:
    above = loop_over(loop, stack)
    assert f"{above} is a loop device over it" in str(refused(f"block:{loop}"))


def test_a_claim_keeps_others_away_and_is_let_go(loop: Path, tmp_path: Path) -> None:
    filesystem = tmp_path / "filesystem.img"
    filesystem.write_bytes(bytes(SIZE))
    ext4(filesystem)
    with claim_drives([parse(f"block:{loop}")]) as (claim,):
        assert "holds it" in str(refused(f"block:{loop}"))
        # What the run itself writes locks nobody out of the claim.
        put(Path(claim.source), 0, filesystem.read_bytes())
        assert claim.problem() is None
        assert process.run(["mount", str(loop), "/mnt"], ok=range(256)).returncode != 0
    assert "holds data: ext4" in str(refused(f"block:{loop}"))


def test_a_file_is_held_by_one_run(image: Path) -> None:
    with claim_drives([parse(f"file:{image}")]):
        assert "another program has locked it" in str(refused(f"file:{image}"))
    accepted(f"file:{image}")


def mounted(device: Path, point: Path, stack: ExitStack) -> None:
    point.mkdir()
    process.run(["mount", str(device), str(point)])
    stack.callback(process.run, ["umount", str(point)])


def test_the_file_behind_a_device_may_not_be_in_use_through_another_one(
    loop: Path, image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    ext4(loop)
    token = key_of(refused(f"block:{loop}"))
    another_name = tmp_path / "another-name.img"
    another_name.hardlink_to(image)
    other = loop_over(another_name, stack)
    assert f"{other} is a loop device over {image}" in str(refused(f"block:{loop}", (token,)))
    mounted(other, tmp_path / "mounted", stack)
    before = checksum(image)
    for text in (f"block:{loop}", f"file:{image}", f"file:{another_name}"):
        error = refused(text, (token,))
        assert isinstance(error, HostError) and f"{other} is a loop device over " in str(error)
    assert f"{other} is mounted on {tmp_path / 'mounted'}" in str(refused(f"block:{loop}", (token,)))
    assert checksum(image) == before


def test_a_user_who_may_not_ask_a_loop_device_goes_by_the_name_of_its_file(
    loop: Path, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = device_state._loops()
    for one in told:
        one.update({"back-ino": None, "back-maj:min": None})
    monkeypatch.setattr(device_state, "_loops", lambda: told)
    assert f"{loop} is a loop device over it" in str(refused(f"file:{image}"))
    other = tmp_path / "other.img"
    other.write_bytes(bytes(SIZE))
    accepted(f"file:{other}")


def test_two_devices_over_one_file_are_not_two_disks(loop: Path, image: Path, stack: ExitStack) -> None:
    other = loop_over(image, stack)
    with (
        pytest.raises(HostError, match="is a loop device over"),
        claim_drives([parse(f"block:{loop}"), parse(f"block:{other}")]),
    ):
        pass


def test_the_file_behind_a_partition_may_not_be_in_use_through_another_device(
    partitioned: tuple[Path, Path, Path], image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    _, one, two = partitioned
    ext4(one)
    whole = loop_over(image, stack, "--offset", str(MIB))
    mounted(whole, tmp_path / "mounted", stack)
    for part in (one, two):
        assert f"{whole} is a loop device over {image}" in str(refused(f"block:{part}"))


def test_the_device_behind_a_loop_device_may_not_be_in_use(loop: Path, tmp_path: Path, stack: ExitStack) -> None:
    ext4(loop)
    above = loop_over(loop, stack)
    token = key_of(refused(f"block:{above}"))
    mounted(loop, tmp_path / "mounted", stack)
    assert f"{loop} is mounted on {tmp_path / 'mounted'}" in str(refused(f"block:{above}", (token,)))


def test_the_file_behind_a_member_of_a_device_may_not_be_in_use(
    loop: Path, image: Path, tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says that a device is made of ``loop``, as it does of device mapper and md."""
    made = tmp_path / "made.img"
    made.write_bytes(bytes(SIZE))
    above = loop_over(made, stack)
    members = tmp_path / "dm-0/slaves"
    members.mkdir(parents=True)
    (members / loop.name).symlink_to(f"/sys/block/{loop.name}")
    monkeypatch.setattr(device_state, "device_directory", lambda *_: members.parent)
    accepted(f"block:{above}")
    other = loop_over(image, stack)
    assert f"{other} is a loop device over {image}" in str(refused(f"block:{above}"))


def test_who_looks_at_a_device_for_a_moment_is_waited_for(loop: Path) -> None:
    held = os.open(loop, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    threading.Timer(1, os.close, [held]).start()
    accepted(f"block:{loop}")


@contextmanager
def virtual_machine_over(path: Path) -> Iterator[None]:
    """A lock like QEMU's."""
    lock = (
        "import fcntl, struct, sys; f = open(sys.argv[1], 'r+b');"
        "fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 100, 1, 0));"
        "print('locked', flush=True);"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", lock, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
        yield
        holder.communicate()


def test_a_file_that_a_virtual_machine_has_open_is_refused(image: Path) -> None:
    with virtual_machine_over(image):
        assert "virtual machines" in str(refused(f"file:{image}"))


def test_the_token_changes_with_the_device_and_its_content(loop: Path, image: Path, stack: ExitStack) -> None:
    ext4(loop)
    token = key_of(refused(f"block:{loop}"))
    assert key_of(refused(f"block:{loop}")) == token
    put(loop, SIZE - 100, b"something else at the end")
    changed = key_of(refused(f"block:{loop}", (token,)))
    assert changed != token
    process.run(["losetup", "--detach", str(loop)])
    again = loop_over(image, stack)
    assert key_of(refused(f"block:{again}", (changed,))) != changed


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"disk/serial": "NVME 1\n"}, "NVME 1"),
        ({"disk/device/serial": "0x1a2b\n"}, "0x1a2b"),
        ({"disk/device/vpd_pg80": "\0\0\0\x08 WD-ABC "}, "WD-ABC"),
        ({"usb2/serial": "0000:00:14.0", "usb2/2-1/idVendor": "1234", "usb2/2-1/serial": "U1\n"}, "U1"),
        ({"usb2/serial": "0000:00:14.0", "usb2/2-1/idVendor": "1234"}, None),
        ({}, None),
    ],
)
def test_the_serial_is_the_disks_own(files: dict[str, str], found: str | None, loop: Path, tmp_path: Path) -> None:
    device = tmp_path / "usb2/2-1/host0/target"
    device.mkdir(parents=True)
    disk = tmp_path / "disk"
    (disk / "part").mkdir(parents=True)
    (disk / "part/partition").write_text("1")
    (disk / "device").symlink_to(device)
    (tmp_path / "dev/block").mkdir(parents=True)
    number = tmp_path / "dev/block" / f"{os.major(loop.stat().st_rdev)}:{os.minor(loop.stat().st_rdev)}"
    number.symlink_to(disk / "part")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with loop.open("rb") as opened:
        assert device_state.serial(opened.fileno(), tmp_path) == found


def test_a_disk_with_a_serial_is_named_by_it(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ext4(image)
    token = key_of(refused(f"file:{image}"))
    monkeypatch.setattr(device_state, "serial", lambda descriptor: "WD-ABC")
    assert key_of(refused(f"file:{image}", (token,))) == "WD-ABC"
    assert accepted(f"file:{image}", ("WD-ABC",)).disks[0].serial == "WD-ABC"


def test_a_name_that_comes_to_mean_another_disk_changes_nothing(loop: Path, tmp_path: Path, stack: ExitStack) -> None:
    other = tmp_path / "other.img"
    other.write_bytes(bytes(SIZE))
    second = loop_over(other, stack)
    directory = Path("/dev/agelab-test")
    directory.mkdir(exist_ok=True)
    stack.callback(directory.rmdir)
    link = directory / "disk"
    link.symlink_to(loop)
    stack.callback(link.unlink)
    with claim_drives([parse(f"block:{link}")]) as (claim,):
        link.unlink()
        link.symlink_to(second)
        put(Path(claim.source), 0, b"written through the claim")
        assert claim.problem() is None
    assert checksum(second) == hashlib.sha256(bytes(SIZE)).hexdigest()
    assert loop.read_bytes().startswith(b"written through the claim")


def test_a_link_to_a_device_is_the_device_wherever_it_lies(loop: Path, tmp_path: Path, stack: ExitStack) -> None:
    link = tmp_path / "disk"
    link.symlink_to(loop)
    assert accepted(f"block:{link}").size == SIZE
    ext4(loop)
    token = key_of(refused(f"block:{link}"))
    mounted(loop, tmp_path / "mounted", stack)
    assert f"{loop} is mounted on" in str(refused(f"block:{link}", (token,)))


def test_a_device_is_no_file_and_the_hint_has_its_lasting_name(
    loop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, names = tmp_path / "disk", tmp_path / "by-id"
    link.symlink_to(loop)
    for path in (link, loop):
        error = refused(f"file:{path}")
        assert str(error) == f"file:{path} is not a file, but the device {loop}"
        assert error.hint == f"a device is block:{loop}"
    names.mkdir()
    (names / "ata-MODEL_SERIAL").symlink_to(loop)
    monkeypatch.setattr(claim, "BY_ID", names)
    assert refused(f"file:{link}").hint == f"a device is block:{names}/ata-MODEL_SERIAL"


def test_a_device_that_goes_away_is_told(loop: Path, image: Path) -> None:
    with claim_drives([parse(f"block:{loop}")]) as (claim,):
        os.truncate(image, 0)
        process.run(["losetup", "--set-capacity", str(loop)])
        assert claim.problem() == f"block:{loop}: it has gone"


def test_all_refusals_come_at_once_and_a_name_of_no_disk_is_one(image: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.img"
    other.write_bytes(bytes(SIZE))
    for path in (image, other):
        ext4(path)
    both = [parse(f"file:{image}"), parse(f"file:{other}")]
    with pytest.raises(InputError) as raised, claim_drives(both):
        pass
    assert str(raised.value).count("holds data: ext4") == 2
    names = key_of(raised.value).split(",")
    with pytest.raises(InputError) as raised, claim_drives(both, [names[0], f"{names[1]}x"]):
        pass
    assert str(raised.value).count("holds data: ext4") == 1 and f"--erase {names[1]}x: no disk" in str(raised.value)
    with claim_drives(both, names) as claims:
        assert [claim.token for claim in claims] == names
    with pytest.raises(InputError, match="no disk of this run has that name"), claim_drives(both, [*names, "X"]):
        pass


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("block:/dev/agelab-none", InputError, "does not exist"),
        ("block:/dev/null", InputError, "is not a block device"),
        ("file:/dev/null", InputError, "is not a regular file"),
        ("file:/agelab-none", InputError, "truncate -s"),
        (f"block:{__file__}", InputError, f"a file is file:{__file__}"),
    ],
)
def test_what_is_no_disk(text: str, error: type[AgelabError], says: str) -> None:
    found = refused(text)
    assert isinstance(found, error)
    assert says in f"{found} {found.hint}"


def test_a_file_where_there_is_no_direct_io_is_refused_with_the_options_to_take(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tmpfs of Linux before 6.6 has none; QEMU said so when the cell began."""
    monkeypatch.setattr(device_state, "has_direct_io", lambda _: False)
    error = refused(f"file:{image}")
    assert "has no direct I/O, which cache=none is" in str(error)
    assert f"file:{image}?cache=writeback&aio=threads" in error.hint
    accepted(f"file:{image}?cache=writeback&aio=threads")
