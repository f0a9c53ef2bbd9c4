"""Files of the store that were intact are not read again, and no change to them goes unseen for that."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base.fileio import read_bytes
from agelab.store import known_intact
from agelab.store.artefacts import Artefact, DamagedArtefact, Store

INPUTS = {"n": 1}


def fill(directory: Path) -> None:
    (directory / "modules").mkdir()
    (directory / "vmlinuz").write_bytes(bytes(range(256)) * 16)
    (directory / "modules" / "ext4.ko").write_bytes(b"ext4")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose artefact is known to be intact; nothing of it is too young for that."""
    monkeypatch.setattr(known_intact, "SETTLED", 0)
    Store(tmp_path / "home").obtain("kernel", INPUTS, fill)
    time.sleep(0.05)  # ctime has passed on
    used(tmp_path / "home")
    return tmp_path / "home"


def used(home: Path) -> list[str]:
    """What a new process says of the artefact that it uses."""
    said: list[str] = []
    Store(home, said.append).obtain("kernel", INPUTS, fill)
    return said


def kernel(home: Path) -> Artefact:
    [found] = Store(home).all("kernel")
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Artefact]:
    """The artefacts that have been read."""
    found: list[Artefact] = []
    damage = Artefact.damage

    def counted(artefact: Artefact) -> list[str]:
        found.append(artefact)
        return damage(artefact)

    monkeypatch.setattr(Artefact, "damage", counted)
    return found


def test_a_later_process_does_not_read_what_was_intact(home: Path, reads: list[Artefact]) -> None:
    assert used(home) == [] == reads


def flipped_with_its_times(artefact: Artefact) -> str:
    """A bit flipped in place; size and mtime are those of before."""
    path = artefact / "vmlinuz"
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns and path.stat().st_size == before.st_size
    return "vmlinuz has changed"


def replaced_with_its_times(artefact: Artefact) -> str:
    path = artefact / "vmlinuz"
    other = path.with_name("other")
    shutil.copy2(path, other)
    other.write_bytes(bytes(4096))
    shutil.copystat(path, other)
    other.rename(path)
    return "vmlinuz has changed"


def changed_through_a_mapping(artefact: Artefact) -> str:
    import mmap

    with (artefact / "vmlinuz").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"!"
        mapped.flush()
    return "vmlinuz has changed"


def added(artefact: Artefact) -> str:
    (artefact / "modules" / "other.ko").touch()
    return "other.ko does not belong there"


def gone(artefact: Artefact) -> str:
    (artefact / "modules" / "ext4.ko").unlink()
    return "ext4.ko is missing"


def linked(artefact: Artefact) -> str:
    path = artefact / "vmlinuz"
    path.rename(artefact.directory.parent / "vmlinuz")
    path.symlink_to("../vmlinuz")
    return "vmlinuz has changed"


@pytest.mark.parametrize(
    "harm", [flipped_with_its_times, replaced_with_its_times, changed_through_a_mapping, added, gone, linked]
)
def test_a_change_is_seen_although_it_was_intact_before(home: Path, harm: Callable[[Artefact], str]) -> None:
    wanted = harm(kernel(home))
    [said] = used(home)
    assert wanted in said and said.endswith("it is made again")
    time.sleep(0.05)
    assert used(home) == []


def test_the_next_start_of_the_host_and_the_next_day_read_again(
    home: Path, reads: list[Artefact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(known_intact, "_now", lambda: now + known_intact.AT_MOST + 60)
    assert used(home) == [] and len(reads) == 1
    monkeypatch.setattr(known_intact, "_now", lambda: now)  # younger than what was just remembered
    assert used(home) == [] and len(reads) == 2
    assert used(home) == [] and len(reads) == 2
    (tmp_path / "boot").write_text("another\n")
    monkeypatch.setattr(known_intact, "BOOT_ID", tmp_path / "boot")
    assert used(home) == [] and len(reads) == 3


def test_what_has_just_been_written_is_not_remembered(tmp_path: Path, reads: list[Artefact]) -> None:
    """Another change could have the same ctime."""
    Store(tmp_path).obtain("kernel", INPUTS, fill)
    for times in (1, 2):
        assert used(tmp_path) == [] and len(reads) == times


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"null", b'{"at": "x"}', b'{"at": []}', b"\xff", b"9" * 9000])
def test_a_damaged_memory_is_none(home: Path, reads: list[Artefact], text: bytes) -> None:
    [record] = (home / "cache" / "intact").iterdir()
    sound = read_bytes(record)
    record.write_bytes(text)
    assert used(home) == [] and len(reads) == 1
    record.write_bytes(sound)
    assert used(home) == [] and len(reads) == 1


def test_a_store_that_cannot_be_written_is_read_each_time(
    home: Path, reads: list[Artefact], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(home / "cache" / "intact")
    (home / "cache" / "intact").write_text("in the way")
    for times in (1, 2):
        assert used(home) == [] and len(reads) == times


def below_the_filesystem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a byte of which the filesystem knows nothing: the kernel says of the file what it said before."""
    state = known_intact.FileState.of(kernel(home).directory)
    path = kernel(home) / "vmlinuz"
    path.write_bytes(b"!" + path.read_bytes()[1:])
    monkeypatch.setattr(known_intact.FileState, "of", lambda directory: state)


def test_what_a_guest_reads_is_read_before_whatever_is_remembered_of_it(
    home: Path, reads: list[Artefact], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = [kernel(home).directory, home, Path("/nowhere")]
    store = Store(home)
    for _ in range(2):
        store.read(place)
    assert len(reads) == 1
    store.read(place, again=True)
    assert len(reads) == 2
    below_the_filesystem(home, monkeypatch)
    store.read(place)  # this process has read it
    assert not used(home)
    with pytest.raises(DamagedArtefact, match="vmlinuz has changed"):
        Store(home).read(place)
    assert [line for line in used(home) if line.endswith("it is made again")]
    assert not kernel(home).damage()
