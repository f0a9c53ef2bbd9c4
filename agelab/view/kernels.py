"""Kernels on a terminal and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from agelab.kernel import Kernel
from agelab.kernel.provenance import Provenance, identity
from agelab.model.filesystem import Filesystem
from agelab.store import Store
from agelab.view.terminal import Head, open_console, print_table


def kernel_rows(store: Store, offered: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the mirror's kernels, then those that only the store has, as JSON objects."""
    stored = {artefact.key: identity(artefact) for artefact in store.all("kernel")}
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
        where, note = row["suite"] or "the store alone", row["key"][:12] if row["spec"] is None else ""
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
    """Return what identifies a kernel."""
    return {
        "spec": found.spec,
        "release": found.release,
        "version": found.version,
        "suite": found.suite or None,
        "key": found.key,
        "directory": str(found.directory),
    }
