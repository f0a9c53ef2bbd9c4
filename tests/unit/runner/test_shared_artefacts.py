"""Artefacts that machines share through the cache: whatever it answers, what is used is what was made for the key."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agelab.base.hashing import key_of
from agelab.debian import Package, buildroot
from agelab.debian.buildroot import BuildRoot
from agelab.machine.image import tools
from agelab.results.checksummed import sealed_line
from agelab.runner.reuse import artefacts
from agelab.runner.reuse.artefacts import PIECE, ArtefactRecord, CachedArtefacts
from agelab.runner.reuse.cache import DirectoryPlace
from agelab.store import parcel
from agelab.store.artefacts import Artefact, Store
from agelab.store.parcel import Kind, PackedFile, Parcel, PlaceUnreachable
from tests.build.capsule_builder import key_asked
from tests.build.kernel_builder import WHOLE

INPUTS = {"package": "linux-image", "version": "6.1"}
NOISE = random.Random(1).randbytes(70_000)
"""Cannot be packed, so it takes two pieces."""


def fill(directory: Path) -> None:
    (directory / "modules/fs").mkdir(parents=True)
    for name, content in WHOLE.items():
        (directory / name).write_bytes(content)
    (directory / "modules/fs/ext4.ko").write_bytes(b"ext4")
    (directory / "empty").touch()
    (directory / "vmlinux").write_bytes(NOISE)
    (directory / "replay").write_bytes(b"program")
    (directory / "replay").chmod(0o755)


def refuse(directory: Path) -> None:
    raise AssertionError("made, though the cache has it")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "PIECE_BYTES", 1 << 16)


class Machine:
    """A machine with a store of its own."""

    def __init__(self, home: Path, cache: Path, blobs: DirectoryPlace | None = None) -> None:
        cache.mkdir(exist_ok=True)
        self.said: list[str] = []
        self.blobs = blobs or DirectoryPlace(cache)
        self.store = Store(home, shared=CachedArtefacts(self.said.append, self.blobs))

    def kernel(self, build: Callable[[Path], None] = fill, *, shared: bool = True) -> Artefact:
        return self.store.obtain("kernel", INPUTS, build, shared=shared)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with the kernel that a first machine has made."""
    Machine(tmp_path / "first", tmp_path / "cache").kernel()
    return tmp_path / "cache"


def entry(cache: Path) -> Path:
    [found] = cache.glob("ac/*/*")
    return found


def listed(cache: Path) -> dict[str, PackedFile]:
    return parcel.parse(entry(cache).read_bytes(), Parcel[ArtefactRecord]).files


def content(cache: Path, name: str) -> Path:
    sha256 = listed(cache)[name].sha256
    return cache / "cas" / sha256[:2] / sha256


def record_of(cache: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(entry(cache).read_bytes())["manifest"]
    return record


def put_record(cache: Path, record: dict[str, Any]) -> None:
    """Put a record of somebody's own in place of the entry's, under a seal that fits."""
    whole = json.loads(entry(cache).read_bytes())
    del whole["seal"]
    entry(cache).write_bytes(sealed_line({**whole, "manifest": record}))


def files_of(cache: Path) -> dict[str, int]:
    """Name and inode of each file: what is written again has another."""
    return {str(path.relative_to(cache)): path.stat().st_ino for path in cache.rglob("*") if path.is_file()}


def test_what_one_machine_has_made_another_takes_from_the_cache(tmp_path: Path, cache: Path) -> None:
    machine = Machine(tmp_path / "second", cache)
    taken, made = (
        machine.kernel(refuse),
        Store(tmp_path / "first").find("kernel", key_of({"kind": "kernel", **INPUTS})),
    )
    assert made and taken.manifest == made.manifest and not taken.damage()
    assert (taken / "vmlinux").read_bytes() == NOISE
    assert os.access(taken / "replay", os.X_OK) and not os.access(taken / "empty", os.X_OK)
    size = sum(file.size for file in listed(cache).values())
    assert machine.said == [f"kernel {taken.key[:12]} is taken from the cache, {size / 1e6:.1f} MB"]


def test_an_identity_takes_no_file_of_the_artefact(tmp_path: Path, cache: Path) -> None:
    for piece in range(2):
        content(cache, PIECE.format(piece)).unlink()
    machine = Machine(tmp_path / "second", cache)
    found = machine.store.identity("kernel", INPUTS)
    assert found and found.inputs == INPUTS and "vmlinux" in found.files
    assert not machine.said and not machine.store.root.exists()
    assert machine.store.identity("kernel", {**INPUTS, "version": "6.2"}) is None


def test_what_is_there_is_not_written_again_and_what_lacks_is_put_from_the_store(tmp_path: Path, cache: Path) -> None:
    before = files_of(cache)
    Machine(tmp_path / "first", cache).kernel(refuse)
    assert files_of(cache) == before
    Machine(tmp_path / "first", tmp_path / "other").kernel(refuse)
    assert set(files_of(tmp_path / "other")) == set(before)


def test_what_is_not_to_be_shared_and_what_not_everybody_may_read_is_not_put_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", tmp_path / "cache")
    machine.kernel(shared=False)
    machine.store.obtain("corpus", INPUTS, fill, readable_by=0o700, shared=True)
    assert not [*(tmp_path / "cache").rglob("*")]


def test_a_library_for_qemu_is_never_taken(tmp_path: Path, cache: Path) -> None:
    """An artefact that is not shared is made here even where the cache has one of its key."""
    made: list[Path] = []

    def build(directory: Path) -> None:
        made.append(directory)
        fill(directory)

    Machine(tmp_path / "second", cache).kernel(build, shared=False)
    assert made


def damage_piece(cache: Path) -> None:
    path = content(cache, PIECE.format(1))
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def lose_piece(cache: Path) -> None:
    content(cache, PIECE.format(1)).unlink()


def end_too_soon(cache: Path) -> None:
    whole = json.loads(entry(cache).read_bytes())
    del whole["seal"], whole["files"][PIECE.format(1)]
    entry(cache).write_bytes(sealed_line(whole))


def no_list(cache: Path) -> None:
    entry(cache).write_bytes(b"<html>404")


def no_record(cache: Path) -> None:
    put_record(cache, {})


def changed(**fields: object) -> Callable[[Path], None]:
    """The record with other fields."""

    def change(cache: Path) -> None:
        record = record_of(cache)
        put_record(cache, {**record, **fields})

    return change


def of_another_key(cache: Path) -> None:
    record = record_of(cache)
    record["manifest"]["inputs"]["version"] = "6.2"
    put_record(cache, record)


def other_content(cache: Path) -> None:
    """What the manifest says is not what the pieces hold."""
    record = record_of(cache)
    record["manifest"]["files"]["vmlinux"] = "0" * 64
    put_record(cache, record)


def named(name: str) -> Callable[[Path], None]:
    def rename(cache: Path) -> None:
        record = record_of(cache)
        record["manifest"]["files"][name] = record["manifest"]["files"].pop("empty")
        record["sizes"][name] = record["sizes"].pop("empty")
        put_record(cache, record)

    return rename


SIZES = {
    **{name: len(data) for name, data in WHOLE.items()},
    "empty": 0,
    "modules/fs/ext4.ko": 4,
    "replay": 7,
    "vmlinux": 5,
}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (damage_piece, "files-0001 has another hash than its name says"),
        (end_too_soon, "ended before the end-of-stream marker"),
        (no_list, "its list is not what was written"),
        (no_record, "its list: 'manifest.manifest: Field required"),
        (of_another_key, "it is of another key"),
        (other_content, "its file vmlinux has another hash than its manifest says"),
        (changed(sizes={"vmlinux": 1}), "its list of files is not that of its manifest"),
        (changed(programs=["sh"]), "its list of files is not that of its manifest"),
        (changed(sizes={**SIZES, "vmlinux": 1 << 40}), "it has more than 4 GiB"),
        (changed(sizes={**SIZES, "empty": -1}), "it has more than 4 GiB"),
        (named("../../escaped"), "it names the file '../../escaped'"),
        (named("/etc/passwd"), "it names the file '/etc/passwd'"),
        (named("manifest.json"), "it names the file 'manifest.json'"),
        (named("modules"), "it names the file 'modules'"),
        (named(""), "it names the file ''"),
        (named("a\n" * 500), "it names the file "),
    ],
)  # fmt: skip
def test_an_entry_that_is_not_of_the_key_is_told_in_a_line_and_the_artefact_is_made_here(
    tmp_path: Path, cache: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(cache)
    machine = Machine(tmp_path / "second", cache)
    made = machine.kernel()
    assert not made.damage() and (made / "vmlinux").read_bytes() == NOISE
    told, *then = machine.said
    assert (
        then == [f"kernel {made.key[:12]} is put into the cache"]
        and why in told
        and f"ac/{entry(cache).name}, of a kernel, is not used: " in told
        and "\n" not in told
    )
    assert not (tmp_path / "escaped").exists() and not [*machine.store.root.glob("kernel/.*")]


def test_a_piece_that_a_cache_has_dropped_is_put_there_again(tmp_path: Path, cache: Path) -> None:
    lose_piece(cache)
    before = files_of(cache)
    Machine(tmp_path / "second", cache).kernel()
    assert files_of(cache).items() > before.items()
    assert not Machine(tmp_path / "third", cache).kernel(refuse).damage()


class Gone(DirectoryPlace):
    """A cache that cannot be reached from some request on."""

    def __init__(self, directory: Path, left: int) -> None:
        super().__init__(directory)
        self.left, self.asked = left, 0

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        self.asked += 1
        if self.asked > self.left:
            raise PlaceUnreachable("it does not answer in time")
        return super().get(kind, sha256)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_cache_that_goes_away_is_told_once_and_not_asked_again(tmp_path: Path, cache: Path, left: int) -> None:
    blobs = Gone(cache, left)
    machine = Machine(tmp_path / "second", cache, blobs)
    assert not machine.kernel().damage()
    machine.store.obtain("root", INPUTS, fill, shared=True)
    assert machine.said == [f"cache {cache}: it does not answer in time; kernels and images are made here"]
    assert blobs.asked == left + 1


def test_the_guests_tools_of_the_cache_need_no_compiler(tmp_path: Path) -> None:
    """Their key says which packages would make it: neither these nor the build root are fetched."""
    package = Package(name="gcc", version="12", filename="gcc_12_amd64.deb", size=1, sha256="0" * 64)
    packages = BuildRoot(suite="bookworm", packages=(package,))
    key = key_asked(lambda store: buildroot.resolve_compiler(store, "bookworm"))
    resolutions = {key: packages.model_dump(mode="json")}
    source = tmp_path / "sources"
    source.mkdir()
    (source / "replay.c").write_text("int main(void) { return 0; }\n")

    def store(home: str) -> Store:
        blobs = DirectoryPlace(tmp_path / "cache")
        return Store(tmp_path / home, resolutions=resolutions, shared=CachedArtefacts(lambda line: None, blobs))

    (tmp_path / "cache").mkdir()
    first, inputs = store("first"), []

    def keep(kind: str, given: dict[str, object], *rest: object, **words: object) -> Artefact:
        inputs.append((kind, given))
        raise InterruptedError

    first.obtain = keep  # type: ignore[method-assign, assignment]
    with pytest.raises(InterruptedError):
        tools.obtain(first, sources=source)
    [(kind, given)] = inputs
    store("first").obtain(kind, given, lambda directory: (directory / "replay").write_text("it"), shared=True)  # type: ignore[arg-type]
    found = tools.obtain(store("second"), sources=source)
    assert found["replay"].read_text() == "it"
    assert not (tmp_path / "second/store/buildroot").exists()
