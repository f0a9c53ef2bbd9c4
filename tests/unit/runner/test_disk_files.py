"""Disks of guests in memory: the same names and contents as in files, and nothing is left of them, whoever dies."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.disks import Content, DiskFiles, Forks
from agelab.store.artefacts import content_hash
from agelab.store.stored_disk import SLOT_BYTES
from tests.build.cell_builder import spec

MIB = 1 << 20


def disk_of(path: Path, mib: int) -> MemoryDisk:
    """A disk of a guest in that file."""
    return MemoryDisk(path, mib * MIB, written=True)


def descriptors() -> set[str]:
    """The files in memory that this process holds."""
    found = set()
    for place in Path("/proc/self/fd").iterdir():
        try:
            target = str(place.readlink())
        except FileNotFoundError:
            continue
        found |= {place.name} if target.startswith("/memfd:") else set()
    return found


@pytest.fixture(params=[False, True], ids=["files", "memory"])
def files(request: pytest.FixtureRequest) -> Iterator[DiskFiles]:
    before = descriptors()
    yield DiskFiles(request.param)
    assert descriptors() == before


def test_a_disk_is_created_copied_renamed_and_removed(files: DiskFiles, tmp_path: Path) -> None:
    one, other, last = tmp_path / "disk-2", tmp_path / "aged-disk-2", tmp_path / "disk-0"
    files.create(disk_of(one, 300))
    assert one.stat().st_size == SLOT_BYTES[0] and one.stat().st_blocks == 0
    with one.open("r+b") as disk:
        disk.seek(200 * MIB)
        disk.write(b"content")
    files.copy(one, other)
    assert content_hash(other) == content_hash(one) and other.stat().st_size == SLOT_BYTES[0]
    assert other.stat().st_blocks * 512 < MIB
    with other.open("r+b") as disk:
        disk.write(b"more")
    assert content_hash(other) != content_hash(one)
    files.copy(one, other)  # in the place of what was there
    assert content_hash(other) == content_hash(one)
    one.rename(last)
    assert content_hash(last) == content_hash(other)
    assert last.is_symlink() == files.in_memory
    for path in (one, other, last, last):  # one has been renamed, last is removed twice
        files.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_a_new_disk_has_what_it_is_to_begin_with(files: DiskFiles, tmp_path: Path) -> None:
    disk, content = disk_of(tmp_path / "disk-2", 300), tmp_path / "map"
    content.write_bytes(b"content" * 1000)
    files.create(disk, Content(content, 200 * MIB))
    assert disk.path.stat().st_size == SLOT_BYTES[0] and 0 < disk.path.stat().st_blocks * 512 < MIB
    with disk.path.open("rb") as file:
        file.seek(200 * MIB - 1)
        assert file.read(7002) == b"\0" + content.read_bytes() + b"\0"
    files.remove(disk.path)


def test_a_link_that_is_not_ours_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """A dead agelab's, whose number is another process's now, or one's own of another kind."""
    kept = tmp_path / "kept"
    kept.write_text("kept")
    for target in (kept, Path("/proc/1/fd/1"), Path(f"/proc/{os.getpid()}/fd/99999"), tmp_path / "gone"):
        link = tmp_path / "disk-2"
        link.symlink_to(target)
        DiskFiles(in_memory=True).remove(link)
        assert not link.is_symlink()
    assert kept.read_text() == "kept"


def test_forks_are_taken_created_and_removed(files: DiskFiles, tmp_path: Path) -> None:
    forks = Forks(tmp_path, spec(), None, files)
    disk = tmp_path / "disk-2"
    files.create(disk_of(disk, 64))
    with disk.open("r+b") as file:
        file.write(b"content")
    wanted = content_hash(disk)
    with ExitStack() as cleanup:
        forks.take("curve-1", [disk], cleanup, is_last=False)
        begins = tmp_path / "map"
        begins.write_bytes(b"map")
        [place] = spec().disk.member_places
        forks.create("control-1", cleanup, {place: Content(begins, MIB), place + 1: Content(tmp_path, 0)})
        with forks.files("control-1")[0].open("rb") as file:
            file.seek(MIB)
            assert file.read(4) == b"map\0"
        begins.unlink()
        forks.remove("control-1")
        forks.take("aged", [disk], cleanup, is_last=True)
        assert [forks.exists(name) for name in ("curve-1", "control-1", "aged")] == [True, False, True]
        assert [content_hash(forks.files(name)[0]) for name in ("curve-1", "aged")] == [wanted] * 2
        assert not disk.exists()
    assert list(tmp_path.iterdir()) == []


def test_another_program_of_this_user_finds_it_by_its_name_and_none_when_agelab_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from agelab.runner.execute.disks import DiskFiles;"
        "from agelab.machine.vm.guest import MemoryDisk;"
        "path = Path(sys.argv[1]); DiskFiles(True).create(MemoryDisk(path, 1 << 20, True));"
        "path.write_bytes(b'x' * 5000);"
        "print(os.popen(f'stat -Lc %s {path}').read(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "disk-2"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (-9, ["5000"], "")
    assert path.is_symlink() and not path.exists()
    DiskFiles().create(disk_of(path, 1))  # the cell begins again
    assert not path.is_symlink() and path.stat().st_size == SLOT_BYTES[0]
