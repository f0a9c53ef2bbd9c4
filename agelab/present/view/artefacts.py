"""Kernels, guest images, corpora and stored disks on a terminal and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from agelab.base.verbs import as_called
from agelab.data.corpus import Corpus
from agelab.kernel import Kernel
from agelab.kernel.stored_kernel import Provenance, release_and_version
from agelab.machine.image import Image
from agelab.present.view.terminal import Head, open_console, print_facts, print_table
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Store
from agelab.store.stored_disk import SHORT_KEY, StoredDisk


def kernel_rows(store: Store, offered: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the mirror's kernels, then those that only the store has, as JSON objects."""
    stored = {artefact.key: release_and_version(artefact) for artefact in store.all("kernel")}
    keys = {named: key for key, named in stored.items()}
    rows = []
    for one in offered:
        key = keys.get((one["release"], one["version"]))
        rows.append({"spec": f"debian:{one['release']}", **one, "stored": key is not None, "key": key})
    there = {(one["release"], one["version"]) for one in offered}
    for key, (release, version) in stored.items():
        if (release, version) not in there:
            row = {"spec": None, "release": release, "version": version, "suite": None, "headers": None}
            rows.append({**row, "stored": True, "key": key})
    return rows


def print_kernels(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line for each row of ``kernel_rows``."""
    table = []
    for row in rows:
        mark = "*" if row["stored"] else " "
        where, note = row["suite"] or "the store alone", row["key"][:SHORT_KEY] if row["spec"] is None else ""
        note = "no headers: model:none alone" if row["headers"] is False else note
        table.append((f"{mark} {row['spec'] or row['release']}", row["version"], where, note))
    heads: list[Head] = [("", "left"), ("", "left"), ("", "wrapped"), ("", "wrapped")]
    print_table(open_console(), heads, table, named=False)
    click.echo("* in the store")


def print_provenance(
    found: Kernel, source: Provenance, filesystems: Sequence[Filesystem], served: Mapping[str, str]
) -> None:
    """Print where a kernel came from, and how it serves each filesystem."""
    click.echo(f"{found.spec} is {found.release} ({found.version})")
    lines = [
        ("key", found.key),
        ("in", str(found.directory)),
        ("suite", found.suite or "none of Debian's"),
        *(
            (source.kind.removesuffix("s"), f"{one.name} {one.version}".rstrip() + f", sha256 {one.sha256}")
            for one in source.sources
        ),
        ("commit", source.commit),
        *(("patch", f"{one.name}, sha256 {one.sha256}") for one in source.patches),
        ("config", f"sha256 {source.config}" if source.config else "not known"),
        ("compiler", source.compiler or "not known"),
        ("banner", source.banner),
        ("options", " ".join(f"{name}={value}" for name, value in source.highlights.items())),
        *((one.name, served[one.name] + _serving_module(one)) for one in filesystems),
    ]
    for name, value in lines:
        if value:
            click.echo(f"  {name:<10} {value}")


def _serving_module(filesystem: Filesystem) -> str:
    """Name the module that serves a filesystem, where its name is another."""
    first = filesystem.modules[:1]
    return "" if first in ((), (filesystem.name,)) else f" ({first[0]})"


def kernel_json(found: Kernel) -> dict[str, Any]:
    return {
        "spec": found.spec,
        "release": found.release,
        "version": found.version,
        "suite": found.suite or None,
        "key": found.key,
        "directory": str(found.directory),
    }


def print_images(images: Sequence[Image]) -> None:
    """Print each image with what it proved in a guest."""
    for one in images:
        click.echo(f"image {one.key[:SHORT_KEY]} of {one.kernel.release} ({one.kernel.version})")
        click.echo(f"  content  {one.content}")
        click.echo(f"  in       {one.artefact.directory}")
        for (filesystem, defaults), proof in one.proof.items():
            reason = f": {proof.reason}" if proof.reason else ""
            click.echo(f"  {filesystem:<10} {defaults:<7} {proof.status}{reason}")


def images_json(images: Sequence[Image]) -> list[dict[str, Any]]:
    return [{"key": one.key, "content": one.content, **one.description.model_dump()} for one in images]


def print_corpora(corpora: Sequence[Corpus]) -> None:
    rows = [
        (one.key[:SHORT_KEY], f" {one.size / 1e6:8.1f} MB ", f" {one.files:7d} files ", one.description)
        for one in corpora
    ]
    if rows:
        heads: list[Head] = [("", "left"), ("", "left"), ("", "left"), ("", "wrapped")]
        print_table(open_console(), heads, rows, named=False)
    else:
        click.echo(as_called("none yet; a run makes what it needs, or: agelab corpus make"))


def print_corpus(one: Corpus) -> None:
    print_facts(
        {
            name.replace("_bytes", ""): f"{value} bytes" if name in ("size", "content_bytes") else value
            for name, value in corpus_json(one).items()
        }
    )


def corpus_json(one: Corpus) -> dict[str, Any]:
    """Return what is known of a corpus; sizes in bytes."""
    return {
        "key": one.key,
        "description": one.description,
        "image": str(one.image),
        "size": one.size,
        "sha256": one.sha256,
        "files": one.files,
        "content_bytes": one.content_bytes,
    }


def print_disks(disks: Sequence[StoredDisk]) -> None:
    corpora = any(found.recipe.corpus_seed not in (None, 1) for found in disks)
    names = (
        "disk",
        "is",
        "from",
        "filesystem",
        "defaults",
        "layout",
        "seed",
        *["corpus"] * corpora,
        "kernel",
    )
    heads: list[Head] = [
        *((f" {name}", "left") for name in names), *((f" {name}", "right") for name in ("MB", "MB here"))
    ]  # fmt: skip
    rows = []
    for found in disks:
        recipe = found.recipe
        origin = f"{recipe.scenario}-{recipe.variant}, {recipe.scale}" if recipe.scenario else "import"
        seeds = [recipe.run_seed, *[recipe.corpus_seed] * corpora]
        cells = (
            found.key[:SHORT_KEY],
            recipe.makes,
            origin,
            recipe.filesystem,
            recipe.defaults,
            recipe.layout,
            *("" if seed is None else str(seed) for seed in seeds),
        )
        sizes = (f"{size / 1e6:.0f}" for size in (sum(recipe.sizes), found.occupied_bytes))
        rows.append([f" {cell}" for cell in (*cells, recipe.kernel or "", *sizes)])
    print_table(open_console(), heads, rows)


def print_disk(disk: StoredDisk) -> None:
    """Print what a disk is, then whether its content is what was stored. Raises Damaged where it is not."""
    print_facts(disk_json(disk))
    disk.verify()
    print_facts({"content": "verified: it is what was stored"})


def disk_json(disk: StoredDisk) -> dict[str, Any]:
    """Return a disk's key, its recipe and the bytes that it takes here."""
    return {"key": disk.key, **disk.recipe.model_dump(mode="json"), "occupied": disk.occupied_bytes}
