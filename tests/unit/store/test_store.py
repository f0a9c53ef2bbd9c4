"""The content-addressed store."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from agelab.base.errors import HostError
from agelab.base.hashing import canonical_json, key_of
from agelab.store.artefacts import MANIFEST, Artefact, Store, file_hash, tree_hashes
from tests.build.waiting import until

INPUTS = {"suite": "bookworm", "packages": ["a", "b"]}
processes = multiprocessing.get_context("spawn")


def fill(directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "sub/data").write_text("content")
    (directory / "link").symlink_to("sub/data")


def refuse(directory: Path) -> None:
    raise AssertionError("built a second time")


def test_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": [True, "é"]}) == canonical_json({"a": [True, "é"], "b": 1})
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()


def test_the_key_is_the_hash_of_kind_and_inputs(store: Store) -> None:
    made = store.obtain("image", INPUTS, fill)
    assert made.key == key_of({"kind": "image", **INPUTS})
    assert made.directory == store.root / "image" / made.key
    assert store.obtain("image", dict(reversed(INPUTS.items())), refuse) == made
    assert store.obtain("corpus", INPUTS, fill).key != made.key
    assert store.obtain("image", {**INPUTS, "suite": "trixie"}, fill).key != made.key


def test_the_manifest_names_inputs_and_hashes_of_every_file(store: Store) -> None:
    made = store.obtain("image", INPUTS, fill)
    assert made.manifest.inputs == INPUTS
    assert made.manifest.files == {"link": "-> sub/data", "sub/data": file_hash(made / "sub/data")}
    assert made.manifest.files == {k: v for k, v in tree_hashes(made.directory).items() if k != MANIFEST}


def test_equal_files_have_equal_content_whatever_the_inputs(store: Store) -> None:
    one, other = (store.obtain("image", {"n": n}, fill) for n in (1, 2))
    assert one.key != other.key
    assert one.manifest.content == other.manifest.content


def test_a_build_that_fails_leaves_nothing_and_can_be_repeated(store: Store) -> None:
    def stops_half_way(directory: Path) -> None:
        fill(directory)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.obtain("image", INPUTS, stops_half_way)
    assert list((store.root / "image").iterdir()) == []
    assert store.all("image") == []
    assert (store.obtain("image", INPUTS, fill) / "link").read_text() == "content"


def hang_in_build(home: Path, half_made: Path) -> None:
    def build(directory: Path) -> None:
        fill(directory)
        (directory / MANIFEST).write_text('{"kind": "image", "inputs": {}, "files": {}}')
        half_made.touch()
        time.sleep(60)

    Store(home).obtain("image", INPUTS, build)


def test_what_a_killed_build_left_is_never_taken_for_finished(store: Store, tmp_path: Path) -> None:
    half_made = tmp_path / "half-made"
    builder = processes.Process(target=hang_in_build, args=(store.home, half_made))
    builder.start()
    try:
        until(half_made.exists)
        assert store.all("image") == []
    finally:
        builder.kill()
        builder.join()
    assert builder.exitcode == -signal.SIGKILL
    assert list((store.root / "image").iterdir()), "the killed build should have left something"
    assert store.all("image") == []
    assert store.find("image", key_of({"kind": "image", **INPUTS})) is None
    made = store.obtain("image", INPUTS, fill)
    assert store.all("image") == [made]


def test_a_directory_without_a_manifest_is_made_anew(store: Store) -> None:
    made = store.obtain("image", INPUTS, fill)
    (made / MANIFEST).unlink()
    (made / "sub/data").write_text("changed")
    assert (store.obtain("image", INPUTS, fill) / "sub/data").read_text() == "content"


def build_slowly(home: Path, log: Path) -> None:
    def build(directory: Path) -> None:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.5)
        fill(directory)

    assert (Store(home).obtain("image", INPUTS, build) / "link").read_text() == "content"


def test_concurrent_builds_of_one_key_do_the_work_once(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log"
    builders = [processes.Process(target=build_slowly, args=(store.home, log)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert [builder.exitcode for builder in builders] == [0, 0, 0]
    assert len(log.read_text().splitlines()) == 1


def test_all_lists_oldest_first(store: Store) -> None:
    made = [store.obtain("image", {"n": n}, fill) for n in range(3)]
    for age, artefact in enumerate(reversed(made)):
        os.utime(artefact / MANIFEST, (1000 + age, 1000 + age))
    assert store.all("image") == made[::-1]


@pytest.mark.parametrize("text", ["", "{", '{"kind":"image"}', '{"kind":"image","inputs":{},"files":{},"x":1}'])
def test_a_damaged_manifest_is_named_with_the_way_out(store: Store, text: str) -> None:
    made = store.obtain("image", INPUTS, fill)
    (made / MANIFEST).write_text(text)
    with pytest.raises(HostError, match="is damaged") as caught:
        store.find("image", made.key)
    assert str(made.directory) in caught.value.hint


def obtain_failing(store: Store, number: int) -> Artefact:
    def build(directory: Path) -> None:
        raise OSError(number, os.strerror(number), str(directory / "disk.img"))

    return store.obtain("image", INPUTS, build)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_disk_that_is_full_or_closed_is_the_hosts_fault(store: Store, number: int) -> None:
    with pytest.raises(HostError, match=os.strerror(number)) as caught:
        obtain_failing(store, number)
    assert "AGELAB_HOME" in caught.value.hint


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.EINVAL])
def test_any_other_system_error_is_a_bug_and_passes(store: Store, number: int) -> None:
    with pytest.raises(OSError) as caught:
        obtain_failing(store, number)
    assert caught.value.errno == number


def test_nothing_is_created_by_looking(store: Store) -> None:
    assert store.all("image") == []
    assert store.find("image", "0" * 64) is None
    assert not store.home.exists()


def test_a_relative_home_stays_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(Path("here"))
    monkeypatch.chdir("/")
    assert store.cache("debs") == tmp_path / "here/cache/debs"
