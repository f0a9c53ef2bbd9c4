"""Disk usage of the store, the users of its artefacts, and which may be removed."""

import os
import shutil
from pathlib import Path
from typing import Self

import pytest

from agelab.base import atomic, process
from agelab.results.result import Cell, RunPlan
from agelab.results.run_directory import RunDirectory
from agelab.store import stored_disk
from agelab.store.artefacts import Artefact, Store
from agelab.store.stored_disk import DiskRecipe
from agelab.store.usage import Protection, StoreUsage, disk_usage, prune, survey
from tests.build.cli import Cli

SIZE = 100_000


pytestmark = pytest.mark.usefixtures("home")


def artefact(home: Path, kind: str, name: str, day: int, **inputs: str) -> Artefact:
    """Make an artefact of SIZE bytes in a process that has ended, last used on that day."""

    def build(directory: Path) -> None:
        (directory / "content").write_text(name.ljust(SIZE))

    made = Store(home).obtain(kind, {"name": name, **inputs}, build)
    os.utime(made.directory, (day * 86400, day * 86400))
    return made


def run(home: Path, **provenance: str) -> RunDirectory:
    made = RunDirectory.create(home / "runs", "small")
    plan = RunPlan(run=made.name, scenario="small", scale="quick", clock="virtual", cells=(), provenance=provenance)
    made.write_plan(plan)
    return made


def there(*artefacts: Artefact) -> list[bool]:
    return [one.directory.exists() for one in artefacts]


def test_the_least_recently_used_goes_first_and_no_more_than_needed(home: Path) -> None:
    new, old, older = (artefact(home, "image", name, day) for name, day in (("c", 30), ("b", 20), ("a", 10)))
    before = survey(Store(home)).size
    pruned = prune(Store(home), before - 1)
    assert [item.name for item, _ in pruned.removed] == [older.key]
    assert there(new, old, older) == [True, True, False]
    assert pruned.left == survey(Store(home)).size == before - pruned.freed
    assert pruned.freed >= SIZE


def test_a_crash_run_goes_as_what_can_be_made_again_but_not_while_it_is_looked_at(home: Path) -> None:
    runs = [home / "crashes" / name for name in ("20261127-203259-ext4", "20261127-203300-xfs")]
    for path in runs:
        path.mkdir(parents=True)
        (path / "log").write_bytes(bytes(range(256)) * (SIZE // 256))
    usage = survey(Store(home))
    assert [(item.kind, item.name) for item in usage.items] == [("crash", path.name) for path in runs]
    held = os.open(runs[0] / "lock", os.O_RDWR | os.O_CREAT)
    assert atomic.try_lock(held)
    pruned = prune(Store(home), 0)
    os.close(held)
    assert [path.exists() for path in runs] == [True, False]
    assert [len(items) for items in pruned.kept.values()] == [1] and Protection.IN_USE in pruned.kept


def test_finding_an_artefact_is_a_use_and_changes_neither_it_nor_its_age(home: Path) -> None:
    first, second = artefact(home, "image", "first", 10), artefact(home, "image", "second", 20)
    manifest = (first / "manifest.json").stat().st_mtime_ns
    Store(home).obtain("image", {"name": "first"}, lambda directory: pytest.fail("it is there"))
    assert (first / "manifest.json").stat().st_mtime_ns == manifest
    assert [item.name for item, _ in prune(Store(home), survey(Store(home)).size - 1).removed] == [second.key]
    assert there(first, second) == [True, False]


def test_a_run_keeps_what_it_names_and_what_that_was_made_of(home: Path) -> None:
    root = artefact(home, "root", "root", 1)
    kernel = artefact(home, "kernel", "kernel", 2)
    image = artefact(home, "image", "image", 3, root=root.key, kernel=kernel.key)
    corpus = artefact(home, "corpus", "corpus", 4)
    unnamed = artefact(home, "corpus", "unnamed", 40)
    named = run(home, image=image.key, corpus_sha256=corpus.manifest.files["content"])
    pruned = prune(Store(home), 0)
    assert there(root, kernel, image, corpus, unnamed) == [True, True, True, True, False]
    assert len(pruned.kept[Protection.NAMED]) == 4
    usage = survey(Store(home))
    assert usage.named_by[root.directory] == (f"run {named.name}",)


def test_a_cell_names_by_its_inputs(home: Path) -> None:
    tools, emulator = artefact(home, "tools", "tools", 1), artefact(home, "qemu", "qemu", 2)
    made = run(home)
    inputs = {"tools": {"replay": tools.manifest.files["content"]}, "qemu": {"files": emulator.manifest.content}}
    made.write_inputs(0, {"making": inputs})
    prune(Store(home), 0)
    assert there(tools, emulator) == [True, True]


def test_a_stored_disk_stays_with_what_it_names(home: Path) -> None:
    corpus = artefact(home, "corpus", "corpus", 1)
    member = home / "member"
    member.write_bytes(bytes(4096))
    recipe = DiskRecipe(
        makes="aged", scenario=None, scale=None, variant=None, filesystem="ext4", layout="single",
        defaults="today", machine=None, drives=(), kernel=None, run_seed=None, corpus_seed=None, sizes=(4096,),
        command="agelab age",
    )  # fmt: skip
    inputs = {"corpus": {"sha256": corpus.manifest.files["content"]}}
    disk = stored_disk.save(Store(home), inputs, recipe, [member], [])
    prune(Store(home), 0)
    assert there(corpus, disk.artefact) == [True, True]
    assert survey(Store(home)).named_by[corpus.directory] == (f"disk {disk.key[:12]}",)
    stored_disk.remove(disk.artefact)  # a store that made it does not hold it
    prune(Store(home), 0)
    assert there(corpus) == [False]


@pytest.mark.parametrize("file", ["plan.json", "cells/0/end.json"])
def test_a_run_that_cannot_be_read_keeps_every_artefact(home: Path, file: str) -> None:
    image = artefact(home, "image", "image", 1)
    made = run(home, image=image.key)
    plan = made.plan()
    cell = Cell(
        variant="ext4", filesystem="ext4", layout="single", kernel="6.1", machine="m", drives=("model:none",),
        defaults="period", seed=1, accelerator="tcg",
    )  # fmt: skip
    made.write_plan(plan.model_copy(update={"cells": (cell,)}))
    made.cell_directory(0)
    (made.path / file).write_text("{")
    pruned = prune(Store(home), 0)
    assert there(image) == [True]
    assert survey(Store(home)).damaged_runs == (made.name,)
    if file == "plan.json":
        assert [item.name for item in pruned.kept[Protection.DAMAGED_RUN]] == [image.key]


def test_what_a_process_uses_stays_until_it_has_ended(home: Path) -> None:
    image = artefact(home, "image", "image", 1)
    process = Store(home)
    process.obtain("image", {"name": "image"}, lambda directory: None)
    debs = process.cache("debs")
    (debs / "a.deb").write_text("a" * SIZE)
    pruned = prune(Store(home), 0)
    assert there(image) == [True] and (debs / "a.deb").exists()
    assert {item.kind for item in pruned.kept[Protection.IN_USE]} == {"image", "cache debs"}
    del process
    prune(Store(home), 0)
    assert there(image) == [False] and not (debs / "a.deb").exists()


def test_what_is_being_built_or_was_used_since_it_was_looked_at_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = artefact(home, "image", "image", 1)
    with Store(home).lock(f"image-{image.key}"):
        prune(Store(home), 0)
    assert there(image) == [True]
    usage = survey(Store(home))
    os.utime(image.directory)
    monkeypatch.setattr("agelab.store.usage.survey", lambda store: usage)
    prune(Store(home), 0)
    assert there(image) == [True]


def test_an_artefact_is_in_use_from_before_it_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = artefact(home, "image", "image", 1)

    def read(self: Artefact) -> list[str]:
        assert not prune(Store(home), 0).removed
        return []

    monkeypatch.setattr(Artefact, "damage", read)
    assert Store(home).obtain("image", {"name": "image"}, lambda directory: pytest.fail("it is there"))
    assert there(image) == [True]


def test_a_run_that_ends_while_the_store_is_looked_at_keeps_what_it_names(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, other = artefact(home, "image", "image", 1), artefact(home, "image", "other", 2)

    def survey_then_run(store: Store) -> StoreUsage:
        usage = survey(store)
        run(home, image=image.key)  # by a process that took the image before, and has ended
        return usage

    monkeypatch.setattr("agelab.store.usage.survey", survey_then_run)
    pruned = prune(Store(home), 0)
    assert there(image, other) == [True, False]
    assert [item.name for item in pruned.kept[Protection.NAMED]] == [image.key]


def test_files_that_are_no_artefacts_stay(home: Path) -> None:
    notes = home / "store" / "my-notes" / "2026"
    notes.mkdir(parents=True)
    (notes / "manifest.json").write_text('{"name": "web app"}')
    (home / "mine").write_text("mine")
    pruned = prune(Store(home), 0)
    assert not pruned.removed and (notes / "manifest.json").exists() and (home / "mine").exists()
    assert pruned.left >= 4096


def test_what_others_remove_while_the_store_is_measured_is_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artefact(home, "image", "image", 1)
    objects = Store(home).cache("kernels") / "source"
    (objects / "build").mkdir(parents=True)
    (objects / "log").touch()
    scandir = os.scandir
    listed = [*scandir(objects)]
    shutil.rmtree(objects / "build")
    (objects / "log").unlink()

    class Listing:
        """A directory's entries; those of ``objects`` are gone when the list is used."""

        def __init__(self, path: str | Path | int) -> None:
            self._entries = iter(listed if str(path) == str(objects) else [*scandir(path)])

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def __iter__(self) -> Self:
            return self

        def __next__(self) -> os.DirEntry[str]:
            return next(self._entries)

    monkeypatch.setattr("os.scandir", Listing)
    assert {item.kind for item in survey(Store(home)).items} == {"image", "cache kernels"}


def test_an_artefact_that_was_removed_meanwhile_is_made_again(home: Path) -> None:
    first = artefact(home, "image", "image", 1)
    store, made = Store(home), []

    def build(directory: Path) -> None:
        made.append(directory)
        (directory / "content").write_text("new")

    prune(Store(home), 0)
    assert store.obtain("image", {"name": "image"}, build).key == first.key
    assert made
    prune(Store(home), 0)
    assert there(first) == [True]  # a store holds what it has just made


def test_a_damaged_artefact_goes_first_and_answers_about_versions_stay(home: Path) -> None:
    old, damaged = artefact(home, "image", "old", 10), artefact(home, "image", "damaged", 20)
    (damaged / "manifest.json").write_text("{")
    answer = Store(home).cache("resolved") / "kernel.json"
    answer.write_text("x" * SIZE)
    removed = [item.name for item, _ in prune(Store(home), 0).removed]
    assert removed == [damaged.key, old.key] and answer.exists()


def test_a_file_that_two_artefacts_share_counts_once_and_is_free_with_the_second(home: Path) -> None:
    first, second = artefact(home, "root", "one", 1), artefact(home, "image", "two", 2)
    (second / "content").unlink()
    (second / "content").hardlink_to(first / "content")
    usage = survey(Store(home))
    assert usage.size < sum(item.size for item in usage.items)
    [(_, one), (_, two)] = prune(Store(home), 0).removed
    assert one < SIZE <= two


def test_sparse_files_count_as_what_they_take(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**9)
    assert sum(disk_usage(tmp_path / "sparse").values()) < 10**6


def test_prune_says_what_it_removes_and_a_dry_run_removes_nothing(home: Path, cli: Cli) -> None:
    image, kept = artefact(home, "image", "image", 1), artefact(home, "image", "kept", 2)
    run(home, image=kept.key)
    out = cli.out("store", "prune", "--to", "1k", "--dry-run", code=1)
    assert f"would remove image {image.key[:12]}" in out and there(image) == [True]
    assert "that is more than 0.0 MB" in out and "named by runs or stored disks" in out
    told = cli.json("store", "prune", "--to", "150k", "--json")
    assert [item["key"] for item in told["removed"]] == [image.key] and there(image, kept) == [False, True]
    assert told["freed"] == sum(item["freed"] for item in told["removed"])
    assert cli.out("store", "prune", "--to", "1M").startswith("freed 0.0 MB")
    cli.run("store", "prune", "--to", "much", code=2)


def test_list_says_what_there_is_and_what_names_it(home: Path, cli: Cli) -> None:
    cli.run("store")
    image, other = artefact(home, "image", "image", 1), artefact(home, "image", "other", 2)
    named = run(home, image=image.key)
    words = [line.split() for line in cli.out("store").splitlines()]
    assert next(line for line in words if line[0] == "image")[1] == "2"
    told = cli.json("store", "list", "--kind", "image", "--json")
    assert [(item["key"], item["named_by"]) for item in told["items"]] == [
        (image.key, [f"run {named.name}"]),
        (other.key, []),
    ]
    assert f"run {named.name}" in cli.out("store", "list", "--kind", "image")
    told = cli.json("store", "list", "--json")
    assert {row["kind"] for row in told["kinds"]} == {"image", "runs", "other"}
    assert "did you mean image?" in cli.err("store", "list", "--kind", "imgae")


def test_directories_of_somebody_else_may_lie_as_deep_as_they_like(tmp_path: Path) -> None:
    """A run that was unpacked into runs/: the store can be listed, and pruned."""
    top = tmp_path / "deep"
    try:
        process.run(["mkdir", "-p", f"{top}/{'a/' * 1500}"])
        found = disk_usage(top)
    finally:
        process.run(["rm", "-rf", "--", str(top)])
    assert len(found) == 1501
