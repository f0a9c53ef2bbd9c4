"""Programs that read files of any origin: what they cannot reach, and files that would have them reach it."""

import io
import json
import os
import pty
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from agelab.base import confine, process
from agelab.base.errors import HostError, InputError
from agelab.data.corpus import iso
from agelab.debian import control_fields, unpack
from agelab.store import disk_import, stored_disk
from agelab.store.artefacts import Store
from tests.build.deb_builder import hostile
from tests.capabilities import needs_root

MIB = 1 << 20
PYTHON = "/usr/bin/python3"
LOOK = """
import json, os, socket, sys
home, secret, given, target, port = sys.argv[1:]
said = {"processes": [one for one in os.listdir("/proc") if one.isdigit()], "top": sorted(os.listdir("/"))}
for name, act in {
    "secret": lambda: open(secret).read(),
    "given": lambda: open(given).read(),
    "change": lambda: open(given, "w").close(),
    "target": lambda: open(target + "/made", "w").close(),
    "usr": lambda: open("/usr/bin/made", "w").close(),
    "outside": lambda: open(home + "/made", "w").close(),
    "core": lambda: open("/proc/sys/kernel/core_pattern", "r+").close(),
    "trigger": lambda: open("/proc/sysrq-trigger", "w").close(),
    "network": lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close(),
    "device": lambda: os.mknod(target + "/device", 0o20666, os.makedev(1, 1)),
    "chown": lambda: os.chown(target, 1000, 1000),
}.items():
    try:
        said[name] = act()
    except Exception as error:
        said[name] = type(error).__name__
said["environment"] = sorted(os.environ)
print(json.dumps(said))
"""


def test_a_confined_program_reaches_what_it_was_given_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    secret, given, target = tmp_path / "secret", tmp_path / "given", tmp_path / "target"
    secret.write_text("secret")
    given.write_text("given")
    target.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        argv = [PYTHON, "-I", "-c", LOOK, str(tmp_path), str(secret), str(given), str(target), port]
        said = json.loads(confine.run(argv, read=[given], write=[target]).stdout)
    assert said["given"] == "given" and said["target"] is None
    assert said["secret"] == "FileNotFoundError"
    refused = ("change", "usr", "core", "trigger", "network", "device", "chown")
    assert [name for name in refused if said[name] is None] == []
    assert len(said["processes"]) <= 2
    assert not {"home", "root", "run", "sys", "var"} & set(said["top"])
    assert not {"TOKEN", "AGELAB_OWNER"} & set(said["environment"])
    assert [path.name for path in target.iterdir()] == ["made"] and given.read_text() == "given"
    assert not (tmp_path / "made").exists()


@needs_root
def test_a_confined_program_of_root_reads_a_users_private_file(tmp_path: Path) -> None:
    file = tmp_path / "private"
    file.write_text("private")
    file.chmod(0o600)
    os.chown(file, 65534, 65534)
    assert confine.run(["cat", str(file)], read=[file]).stdout == "private"


TYPES = "import fcntl, os, termios; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')"
STARTS = f"""
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from agelab.base import confine, process
argv = [{PYTHON!r}, "-I", "-c", {TYPES!r}]
print(process.run(argv, ok=range(256)).stderr)
print("confined:")
try:
    confine.run(argv)
except process.ProcessFailed as error:
    print(error.stderr)
"""


def test_a_confined_program_does_not_type_into_the_terminal() -> None:
    """A program that shares the terminal can open it, and put a command there for the user's shell to run."""
    terminal, side = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", STARTS], stdin=side, capture_output=True, text=True, start_new_session=True,
        check=True,
    )  # fmt: skip
    os.close(side)
    os.close(terminal)
    before, after = done.stdout.split("confined:")
    assert "No such device or address: '/dev/tty'" not in before
    assert "No such device or address: '/dev/tty'" in after


def test_a_program_that_is_missing_is_named_and_a_failure_is_its_own() -> None:
    with pytest.raises(HostError, match="no-such-program is not installed"):
        confine.run(["no-such-program"])
    with pytest.raises(process.ProcessFailed, match=r"^cat failed \(exit 1\):\ncat: /none: No") as raised:
        confine.run(["cat", "/none"])
    assert raised.value.hint.startswith("to see it again: bwrap ")
    with pytest.raises(HostError, match=r"bwrap cannot confine cat here: bwrap: Can't find source path"):
        confine.run(["cat"], read=[Path("/none")])


def vmdk(path: Path, extent: str) -> Path:
    lines = ["# Disk DescriptorFile", "version=1", "CID=fffffffe", "parentCID=ffffffff"]
    lines += ['createType="monolithicFlat"', f'RW 2048 FLAT "{extent}" 0']
    lines += ['ddb.adapterType = "ide"', 'ddb.geometry.cylinders = "2"']
    path.write_text("\n".join([*lines, ""]))
    return path


def taken(store: Store, image: Path) -> stored_disk.StoredDisk:
    return disk_import.import_images(store, [image], "ext4", "single", "today", "x")


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_an_image_makes_qemu_img_open_no_other_file(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    os.mkfifo(other) if kind == "pipe" else other.write_bytes(b"s" * MIB)
    with pytest.raises(InputError, match="cannot be read as a disk image"):
        taken(Store(tmp_path), vmdk(tmp_path / "image.vmdk", str(other)))


def repeating_qcow2(path: Path, size: int) -> Path:
    """A small qcow2 whose every cluster is one packed cluster, and every table of them one table."""
    bits = 16
    cluster, entries = 1 << bits, 1 << (bits - 3)
    tables = -(-size // (cluster * entries))
    packer = zlib.compressobj(9, zlib.DEFLATED, -12)
    packed = packer.compress(b"x" * cluster) + packer.flush()
    l2, content, l1 = 3 * cluster, 4 * cluster, 5 * cluster
    header = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, bits, size, 0, tables, l1, cluster, 1, 0, 0)
    shift = 62 - (bits - 8)
    entry = struct.pack(">Q", 1 << 62 | ((len(packed) + 511) // 512) << shift | content)
    with path.open("wb") as file:
        file.write(header)
        file.seek(l1)
        file.write(struct.pack(">Q", 1 << 63 | l2) * tables)
        file.seek(l2)
        file.write(entry * entries)
        file.seek(content)
        file.write(packed.ljust(cluster, b"\0"))
    return path


def test_a_small_image_that_unpacks_to_more_than_there_is_room_for_is_refused(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = repeating_qcow2(tmp_path / "small.qcow2", 16 * MIB)
    assert small.stat().st_size < MIB // 2
    with pytest.raises(InputError, match="qemu-img check finds errors"):  # there was room for it
        taken(store, small)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=8 * MIB))
        with pytest.raises(HostError, match=r"unpacks to 1\d MiB, and .* has 8 MiB free"):
            taken(store, small)
    large = repeating_qcow2(tmp_path / "large.qcow2", 64 << 40)
    assert large.stat().st_size < 2 * MIB
    monkeypatch.setattr(disk_import, "_MEASURE_SECONDS", 1.0)
    with pytest.raises(InputError, match="qemu-img measure does not end within 1 s"):
        taken(store, large)
    assert list((tmp_path / "home/cache/import").iterdir()) == []


def test_a_package_gives_nothing_to_whoever_packed_it(tmp_path: Path) -> None:
    file = owned(tmp_path / "evil.deb")
    unpack(file, tmp_path / "out")
    found = (tmp_path / "out/boot/program").stat()
    assert (found.st_uid, found.st_gid, oct(found.st_mode & 0o7777)) == (os.geteuid(), os.getegid(), "0o755")


def owned(path: Path) -> Path:
    """A package with a program of user 1000 that is setuid and writable by all."""
    with tarfile.open(path.with_suffix(".tar"), "w") as tar:
        entry = tarfile.TarInfo("./boot/program")
        entry.uid = entry.gid = 1000
        entry.mode, entry.size = 0o6777, 4
        tar.addfile(entry, io.BytesIO(b"evil"))
    packed = path.with_suffix(".tar").read_bytes()
    sound = hostile(path, ("./x", tarfile.REGTYPE, "")).read_bytes()
    head = sound[: sound.index(b"data.tar")]
    member = f"{'data.tar':16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(packed):<10}`\n".encode()
    path.write_bytes(head + member + packed)
    return path


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
@needs_root
def test_a_package_makes_no_device(tmp_path: Path, kind: bytes) -> None:
    file = hostile(tmp_path / "evil.deb", ("./device", kind, ""))
    with pytest.raises(process.ProcessFailed, match="Cannot mknod"):
        unpack(file, tmp_path / "out")


def test_a_package_whose_control_data_are_endless_is_refused(tmp_path: Path) -> None:
    """dpkg-deb unpacks them first, into /tmp, which is memory where it is confined."""
    said = b"Package: linux-image-6.6\nDescription: " + b"x" * (300 * MIB)
    control, packed = io.BytesIO(), tmp_path / "packed"
    with tarfile.open(fileobj=control, mode="w:gz", compresslevel=1) as tar:
        entry = tarfile.TarInfo("./control")
        entry.size = len(said)
        tar.addfile(entry, io.BytesIO(said))
    whole = b"!<arch>\n"
    for name, content in {"debian-binary": b"2.0\n", "control.tar.gz": control.getvalue()}.items():
        whole += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        whole += b"\n" * (len(content) % 2)
    packed.write_bytes(whole)
    assert len(whole) < 2 * MIB
    with pytest.raises(process.ProcessFailed, match=r"tar: \./control: (Wrote only|Cannot write)"):
        control_fields(packed, "${Version}")


def test_a_cd_with_a_directory_within_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "tree/a/b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("text")
    image = tmp_path / "loop.iso"
    iso.make(tmp_path / "tree", image, volume="X", date=0)
    assert iso.listing(image).files == 1
    data = bytearray(image.read_bytes())
    top = bytes(data[16 * iso.BLOCK + 158 : 16 * iso.BLOCK + 166])  # where the root directory is
    entry = data.index(b"\x01B", 18 * iso.BLOCK) - 32
    data[entry + 2 : entry + 10] = top
    image.write_bytes(data)
    monkeypatch.setattr(iso, "_LIST_SECONDS", 0.5)
    with pytest.raises(InputError, match=r"within 0\.5 s"):
        iso.listing(image)


@pytest.mark.parametrize("form", ["qcow2", "vdi", "vhdx", "vpc", "vmdk"])
def test_a_damaged_image_is_refused_or_taken_and_nothing_else(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_import, "_MEASURE_SECONDS", 2.0)  # the check of one takes 9 s
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=64 * MIB))
    sound, changed, member = (tmp_path / name for name in ("sound", "changed", "member"))
    process.run(["qemu-img", "create", "-q", "-f", form, str(sound), "4M"])
    with sound.open("r+b") as file:
        data = bytearray(file.read(4 * MIB))
    seeds = Random(form)
    used = [number for number, byte in enumerate(data) if byte]
    ends = set()
    for _ in range(10):
        bad = bytearray(data)
        for _ in range(seeds.randint(1, 4)):
            at = seeds.choice((seeds.choice(used), seeds.randrange(4, 120), seeds.randrange(512)))
            bad[at] = seeds.choice((0, 1, 0x7F, 0x80, 0xFF, seeds.randrange(256)))
        changed.write_bytes(bad[: seeds.choice((len(bad), len(bad), len(bad) // 2))])
        try:
            disk_import._convert(changed, member)
            ends.add("taken")
            assert member.stat().st_blocks * 512 <= 64 * MIB
        except (InputError, HostError) as error:
            ends.add("refused")
            assert "Traceback" not in str(error) and "Assertion" not in str(error)
    assert "refused" in ends
    assert {path.name for path in tmp_path.iterdir()} <= {"sound", "changed", "member"}


def test_a_package_is_shown(tmp_path: Path) -> None:
    file = hostile(tmp_path / "-x.deb", ("./x", tarfile.REGTYPE, ""))
    assert control_fields(file, "${Version}") == "6.6-1"
