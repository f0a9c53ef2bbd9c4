"""Stored disks: kept once, forked sparsely, verified when used, exported and taken in."""

import hashlib
import json
import os
import subprocess
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.base import process
from agelab.base.errors import HostError, InputError
from agelab.cli import agelab
from agelab.cli.disk import disk as command
from agelab.results.result import Sample
from agelab.runner.prepare.prepare import _start_disk
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.store import disk_import, stored_disk
from agelab.store.artefacts import Store, content_hash, file_hash
from agelab.store.stored_disk import SLOT_BYTES, StoredDisk
from tests.build.disk_builder import MIB, SIZE, filesystem, recipe

SAMPLE = Sample(step="copy", metric="elapsed", value=1.5, unit="s")
INPUTS = {"seeds": {"run": 1}}


def image(path: Path) -> Path:
    """Content with holes, and with zeros that take space."""
    with path.open("wb") as file:
        file.write(os.urandom(MIB))
        file.seek(2 * MIB)
        file.write(bytes(MIB))
        file.seek(5 * MIB)
        file.write(os.urandom(MIB))
        file.truncate(SIZE)
    return path


def plainly_hashed(content: bytes) -> str:
    """A disk's hash as docs/design.md has it."""
    digest = hashlib.sha256(len(content).to_bytes(8, "big"))
    for at in range(0, len(content), 65536):
        piece = content[at : at + 65536]
        if any(piece):
            digest.update(at.to_bytes(8, "big") + piece)
    return f"sparse:{digest.hexdigest()}"


@pytest.fixture
def kept(store: Store, tmp_path: Path) -> StoredDisk:
    return stored_disk.save(store, INPUTS, recipe(), [image(tmp_path / "disk-2")], [SAMPLE])


def test_what_is_kept_is_the_content_without_its_zeros_and_the_samples(kept: StoredDisk, tmp_path: Path) -> None:
    [member] = kept.members
    assert member.stat().st_size == SLOT_BYTES[0]
    assert content_hash(member, SIZE) == content_hash(tmp_path / "disk-2")
    assert kept.occupied_bytes <= 2 * MIB + 65536
    assert kept.samples() == [SAMPLE]
    assert kept.inputs == INPUTS
    kept.verify()


def test_a_disks_hash_is_of_its_content_wherever_the_host_keeps_holes(tmp_path: Path) -> None:
    holes = image(tmp_path / "holes")
    content = holes.read_bytes()
    full = tmp_path / "full"
    full.write_bytes(content)
    assert full.stat().st_blocks > holes.stat().st_blocks
    assert content_hash(holes) == content_hash(full) == plainly_hashed(content)
    others = {"longer": content + bytes(512), "moved": bytes(65536) + content[:-65536], "cut": content[:-512]}
    for name, other in others.items():
        (tmp_path / name).write_bytes(other)
    hashes = {content_hash(tmp_path / name) for name in ("full", *others)}
    assert len(hashes) == 4


def test_a_disk_of_which_little_is_used_is_hashed_at_once(tmp_path: Path) -> None:
    """Reading the zeros of the 300 GB beside fedorchuk-2008's disk took minutes."""
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.write(b"first")
        file.seek(200 << 30)
        file.write(b"middle")
        file.truncate(300 << 30)
    started = time.process_time()
    content_hash(large)
    assert time.process_time() - started < 1


def test_a_disk_that_was_stored_with_plain_hashes_is_sound(kept: StoredDisk) -> None:
    for member in kept.members:
        os.truncate(member, 4 * MIB)  # disks of then had no slots
    plain = {name: file_hash(kept.artefact / name) for name in kept.artefact.manifest.files}
    manifest = kept.artefact.manifest.model_copy(update={"files": plain})
    older = replace(kept, artefact=replace(kept.artefact, manifest=manifest))
    older.verify()
    older.members[0].write_bytes(b"other")
    with pytest.raises(HostError, match="is damaged"):
        older.verify()


def test_a_fork_is_equal_and_sparse_and_leaves_the_disk_alone(kept: StoredDisk, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    stored_disk.sparse_copy(kept.members[0], fork)
    assert content_hash(fork) == content_hash(kept.members[0])
    assert 512 * fork.stat().st_blocks <= 2 * MIB + 65536
    with fork.open("r+b") as file:
        file.write(b"written")
    kept.verify()


def test_the_same_inputs_are_kept_once(kept: StoredDisk, store: Store, tmp_path: Path) -> None:
    again = stored_disk.save(store, INPUTS, recipe(), [image(tmp_path / "other")], [])
    assert again.key == kept.key and again.samples() == [SAMPLE]
    assert len(stored_disk.list_disks(store)) == 1


@pytest.mark.parametrize("name", ["disk-0", "samples.jsonl"])
def test_a_damaged_disk_is_refused_with_what_to_do(kept: StoredDisk, name: str) -> None:
    with (kept.artefact / name).open("r+b") as file:
        file.write(b"\0\1")
    with pytest.raises(HostError, match=f"{kept.key[:12]} is damaged: .*{name} has changed") as error:
        kept.verify()
    assert "agelab disk rm" in error.value.hint and "agelab age aging-ext4" in error.value.hint


def test_a_changed_manifest_is_damage(kept: StoredDisk, store: Store) -> None:
    manifest = kept.artefact / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"run": 1', '"run": 2'))
    with pytest.raises(HostError, match=r"manifest\.json cannot be read"):
        stored_disk.find(store, kept.key)
    assert [artefact.key for artefact in stored_disk.list_damaged(store)] == [kept.key]
    stored_disk.remove(stored_disk.find_artefact(store, kept.key))
    assert not stored_disk.list_damaged(store) and not stored_disk.list_disks(store)


def test_a_disk_whose_recipe_is_lost_stands_in_nobodys_way(
    kept: StoredDisk, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = stored_disk.save(store, {"x": 1}, recipe(), [image(tmp_path / "other")], [])
    (kept.artefact / "recipe.json").write_text("garbage")
    assert [disk.key for disk in stored_disk.list_disks(store)] == [other.key]
    assert stored_disk.find(store, other.key).key == other.key
    with pytest.raises(HostError, match=r"recipe\.json cannot be read"):
        stored_disk.find(store, kept.key)
    monkeypatch.setenv("AGELAB_HOME", str(store.home))
    listed = CliRunner().invoke(agelab, ["list", "disks"]).output
    assert f"{kept.key[:12]}  DAMAGED" in listed and other.key[:12] in listed
    assert CliRunner().invoke(command, ["rm", kept.key]).exit_code == 0
    assert not stored_disk.list_damaged(store)


def test_what_can_never_be_a_disk_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    empty, odd = tmp_path / "empty", tmp_path / "odd"
    empty.touch()
    odd.write_bytes(bytes(MIB))
    with pytest.raises(InputError, match="is empty"):
        disk_import.import_images(store, [empty], "ext4", "single", "today", "x")
    with pytest.raises(InputError, match="a member of an array cannot grow"):
        disk_import.import_images(store, [odd, odd], "ext4", "raid0", "today", "x")


@pytest.mark.parametrize("named", ["backing", "data"])
def test_an_image_that_names_another_file_is_not_taken_in(store: Store, tmp_path: Path, named: str) -> None:
    """qemu-img would read that file, whosever it is, as far as this user may."""
    secret, image = tmp_path / "secret", tmp_path / "image.qcow2"
    secret.write_bytes(b"secret" * 1000)
    more = ["-b", str(secret), "-F", "raw"] if named == "backing" else ["-o", f"data_file={tmp_path}/data"]
    process.run(["qemu-img", "create", "-q", "-f", "qcow2", *more, str(image), "1M"])
    with pytest.raises(InputError, match=r"is not whole|Could not open .*data': No such file") as raised:
        disk_import.import_images(store, [image], "ext4", "single", "today", "x")
    assert raised.value.hint == "make it whole first: qemu-img convert -O qcow2"
    assert not stored_disk.list_disks(store)


def test_a_disk_whose_key_does_not_say_what_is_on_it_begins_no_cell_that_has_a_digest(
    store: Store, tmp_path: Path
) -> None:
    """Made twice in the wall clock it has one key: its cells would answer for each other, also in a cache."""
    for clock, moment in (("virtual", 1577836800), ("wall", None)):
        inputs = {"plan": {"booted_at": moment}}
        made = stored_disk.save(store, inputs, recipe(), [image(tmp_path / clock)], [SAMPLE])
        options = RunOptions(name="aging-ext4", disk=made.key, defaults="period")
        with ExitStack() as held:
            if clock == "virtual":
                assert _start_disk(resolve(options), store, Progress(), held) == made
                continue
            with pytest.raises(InputError, match="was made in the wall clock: made again it is another"):
                _start_disk(resolve(options), store, Progress(), held)
            assert _start_disk(resolve(options.changed(clock="wall")), store, Progress(), held) == made


def test_a_lost_file_is_damage(kept: StoredDisk) -> None:
    kept.members[0].unlink()
    with pytest.raises(HostError, match="is damaged"):
        kept.verify()


def test_a_disk_is_found_by_how_its_key_begins(kept: StoredDisk, store: Store) -> None:
    assert stored_disk.find(store, kept.key[:8]).key == stored_disk.find(store, f"sha256:{kept.key}").key == kept.key
    with pytest.raises(InputError, match="no stored disk"):
        stored_disk.find(store, "zzz")
    for nothing in ("", "sha256:"):  # as of a variable that is not set
        with pytest.raises(InputError, match=f"no stored disk '{nothing}'"):
            stored_disk.find(store, nothing)


def test_without_any_it_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        stored_disk.find(Store(tmp_path), "abc")
    assert "agelab age" in error.value.hint


def test_export_writes_the_image_and_its_recipe_and_nothing_over_anything(kept: StoredDisk, tmp_path: Path) -> None:
    target = tmp_path / "out.img"
    written = stored_disk.export(kept, target, "raw")
    assert written == [target, tmp_path / "out.img.recipe.json"]
    assert target.read_bytes() == (tmp_path / "disk-2").read_bytes()
    told = json.loads(written[1].read_text())
    assert told["recipe"]["command"] == "agelab age aging-ext4" and told["inputs"] == INPUTS
    assert told["files"]["disk-0"] == plainly_hashed(target.read_bytes())
    with pytest.raises(InputError, match="exists already"):
        stored_disk.export(kept, target, "raw")
    with pytest.raises(InputError, match="is not a directory"):
        stored_disk.export(kept, tmp_path / "none" / "out.img", "raw")


def test_a_qcow2_image_comes_back_as_it_went(store: Store, tmp_path: Path) -> None:
    made = [filesystem(tmp_path / "disk-2")]
    kept = stored_disk.save(store, INPUTS, recipe(sizes=(2 * MIB,)), made, [SAMPLE])
    target = tmp_path / "out.qcow2"
    stored_disk.export(kept, target, "qcow2")
    assert target.read_bytes()[:4] == b"QFI\xfb"
    back = disk_import.import_images(store, [target], "ext4", "single", "today", "agelab disk import out.qcow2")
    assert content_hash(back.members[0]) == content_hash(kept.members[0])
    assert back.key != kept.key and back.recipe.scenario is None and back.samples() == []


def test_an_odd_size_is_filled_up_with_zeros(store: Store, tmp_path: Path) -> None:
    raw = filesystem(tmp_path / "raw")
    with raw.open("ab") as file:
        file.write(b"x" * (MIB + 512))
    taken = disk_import.import_images(store, [raw], "ext4", "single", "today", "x")
    assert taken.recipe.sizes == (4 * MIB,)
    whole = raw.read_bytes() + bytes(MIB - 512)
    assert content_hash(taken.members[0], 4 * MIB) == plainly_hashed(whole)


def test_a_disk_of_an_earlier_agelab_is_refused_for_a_run_and_can_be_exported(kept: StoredDisk, tmp_path: Path) -> None:
    kept.require_slots()
    os.truncate(kept.members[0], SIZE)
    with pytest.raises(InputError, match="is of an earlier agelab") as raised:
        kept.require_slots()
    assert "agelab disk export" in raised.value.hint and kept.recipe.command in raised.value.hint


def test_a_file_that_holds_another_filesystem_or_none_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    """Any file passes for a raw image: a run that started from it would tell hours later that it cannot be mounted."""
    with pytest.raises(InputError, match="/etc/passwd: no ext4; nothing there is known") as raised:
        disk_import.import_images(store, [Path("/etc/passwd")], "ext4", "single", "today", "x")
    assert "name the filesystem that is on it" in raised.value.hint
    image = filesystem(tmp_path / "image")
    with pytest.raises(InputError, match="no xfs; there is ext4"):
        disk_import.import_images(store, [image], "xfs", "single", "today", "x")
    with pytest.raises(InputError, match="no xfs; there is ext4"):
        disk_import.import_images(store, [image, image], "xfs", "raid0", "today", "x")
    assert not stored_disk.list_disks(store)
    # One driver serves them all.
    assert disk_import.import_images(store, [image], "ext2", "single", "today", "x").recipe.filesystem == "ext2"


@pytest.mark.parametrize("name", ["btrfs", "xfs"])
def test_an_image_of_the_filesystem_that_is_named_is_taken_in(store: Store, tmp_path: Path, name: str) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(400 * MIB)
    process.run([f"mkfs.{name}", "-q", str(image)])
    assert disk_import.import_images(store, [image], name, "single", "today", "x").recipe.filesystem == name


def test_what_is_no_file_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        disk_import.import_images(store, [tmp_path / "none"], "ext4", "single", "today", "x")


def test_a_disk_in_use_stays(kept: StoredDisk, store: Store) -> None:
    with stored_disk.in_use(kept), pytest.raises(InputError, match="is in use by a run"):
        stored_disk.remove(kept.artefact)
    assert stored_disk.list_disks(store) == [kept]
    stored_disk.remove(kept.artefact)
    assert stored_disk.list_disks(store) == []


def test_the_verbs(kept: StoredDisk, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(store.home))
    runner = CliRunner()
    listed = runner.invoke(agelab, ["list", "disks"]).output
    assert kept.key[:12] in listed and "aging-ext4, quick" in listed
    assert json.loads(runner.invoke(agelab, ["list", "disks", "--json"]).output)["disks"][0]["key"] == kept.key
    assert "verified: it is what was stored" in runner.invoke(command, ["show", kept.key[:6]]).output
    target = tmp_path / "x.img"
    assert str(target) in runner.invoke(command, ["export", kept.key, str(target)]).output
    assert "agelab age aging-ext4" in runner.invoke(command, ["rm", kept.key[:12]]).output
    assert "no stored disks yet" in runner.invoke(agelab, ["list", "disks"]).output


def test_an_exported_filesystem_can_be_mounted(store: Store, tmp_path: Path) -> None:
    """The raw image is the filesystem itself: its own checker takes it."""
    disk = tmp_path / "ext4"
    with disk.open("wb") as file:
        file.truncate(SIZE)
    process.run(["mke2fs", "-q", "-F", "-t", "ext4", str(disk)])
    found = stored_disk.save(store, {"x": 1}, recipe(), [disk], [])
    stored_disk.export(found, tmp_path / "out.img", "raw")
    check = subprocess.run(["e2fsck", "-f", "-n", str(tmp_path / "out.img")], capture_output=True, check=False)
    assert check.returncode == 0, check.stderr
