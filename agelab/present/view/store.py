"""The store's content on a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from agelab.base.errors import name_some
from agelab.base.verbs import as_called
from agelab.present.view.terminal import Head, open_console, print_table
from agelab.store.stored_disk import SHORT_KEY
from agelab.store.usage import Pruned, StoredItem, StoreUsage, total_size

SCHEMA = 1
MAX_NAMED = 2
"""Runs and disks to name beside an artefact."""


def kinds(usage: StoreUsage) -> dict[str, list[StoredItem]]:
    """Group the items by kind, artefacts first."""
    found: dict[str, list[StoredItem]] = {}
    for item in sorted(usage.items, key=lambda item: (not item.is_artefact, item.kind)):
        found.setdefault(item.kind, []).append(item)
    return found


def print_usage(usage: StoreUsage) -> None:
    """Print number, size and last use of each kind, and the sum."""
    heads: list[Head] = [(" kind", "left"), ("number", "right"), ("MB", "right"), (" last use", "left")]
    rows = [
        (f" {name}", "" if number is None else str(number), _megabytes(size), _day(moment))
        for name, number, size, moment in _usage_rows(usage)
    ]
    rows.append((" all", "", _megabytes(usage.size), ""))
    print_table(open_console(), heads, rows)
    if total_size(item.files for item in usage.items) < sum(item.size for item in usage.items):
        click.echo("a file that several artefacts share counts in each, and once in all")
    _print_damaged(usage)


def print_items(usage: StoreUsage, items: Sequence[StoredItem]) -> None:
    """Print one line for each item, the least recently used first."""
    heads: list[Head] = [(" key", "left"), ("MB", "right"), (" last use", "left"), (" named by", "wrapped")]
    rows = []
    for item in _by_use(items):
        names = usage.named_by.get(item.path, ())
        said = name_some(names, MAX_NAMED)
        rows.append((f" {_short(item)}", _megabytes(item.size), _day(item.last_use), f" {said}"))
    print_table(open_console(), heads, rows)
    _print_damaged(usage)


def print_pruned(pruned: Pruned, limit: int, *, dry_run: bool) -> None:
    """Print what was removed, how much that freed, and why the rest stays where it is more than the limit."""
    verb = "would remove" if dry_run else "removed"
    downloads: dict[str, list[int]] = {}
    for item, freed in pruned.removed:
        if item.is_artefact:
            last_use = _day(item.last_use)
            click.echo(f"{verb} {item.kind} {_short(item)}, {_megabytes(freed)} MB, last used{last_use}")
        else:
            downloads.setdefault(item.kind, []).append(freed)
    for kind, sizes in downloads.items():
        click.echo(f"{verb} {len(sizes)} of {kind}, {_megabytes(sum(sizes))} MB")
    verb = "would free" if dry_run else "freed"
    click.echo(f"{verb} {_megabytes(pruned.freed)} MB; {_megabytes(pruned.left)} MB are left")
    if pruned.left > limit:
        click.echo(f"that is more than {_megabytes(limit)} MB, and the rest stays:")
        for reason, items in pruned.kept.items():
            click.echo(f"  {_megabytes(_size(items))} MB, {len(items)} artefacts or downloads: {reason}")
        click.echo(as_called("remove stored disks with agelab disk rm, runs by removing their directories"))


def _print_damaged(usage: StoreUsage) -> None:
    for name in usage.damaged_runs:
        click.echo(f"run {name} cannot be read: what it names is not known, so no artefact is pruned")


def usage_json(usage: StoreUsage) -> dict[str, Any]:
    rows = [
        {"kind": name, "number": number, "bytes": size, "last_use": _moment(moment)}
        for name, number, size, moment in _usage_rows(usage)
    ]
    return {
        "schema": SCHEMA, "bytes": usage.size, "kinds": rows, "damaged_runs": list(usage.damaged_runs)
    }  # fmt: skip


def items_json(usage: StoreUsage, items: Sequence[StoredItem]) -> dict[str, Any]:
    rows = [
        {**_item_json(item), "named_by": list(usage.named_by.get(item.path, ()))} for item in _by_use(items)
    ]
    return {"schema": SCHEMA, "items": rows, "damaged_runs": list(usage.damaged_runs)}


def pruned_json(pruned: Pruned, limit: int, *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "limit": limit,
        "left": pruned.left,
        "freed": pruned.freed,
        "removed": [{**_item_json(item), "freed": freed} for item, freed in pruned.removed],
        "kept": {
            reason.value: {"number": len(items), "bytes": _size(items)}
            for reason, items in pruned.kept.items()
        },
    }


def _item_json(item: StoredItem) -> dict[str, Any]:
    return {
        "kind": item.kind, "key": item.name, "bytes": item.size, "last_use": _moment(item.last_use)
    }  # fmt: skip


def _usage_rows(usage: StoreUsage) -> Iterator[tuple[str, int | None, int, float | None]]:
    """Yield name, number, bytes and last use of each kind, then of what is no item; that has no number."""
    for kind, items in kinds(usage).items():
        yield kind, len(items), _size(items), max(item.last_use for item in items)
    for name, files in usage.rest.items():
        yield f"{name} (never pruned)" if name == "cache" else name, None, total_size([files]), None


def _size(items: Sequence[StoredItem]) -> int:
    return total_size(item.files for item in items)


def _by_use(items: Sequence[StoredItem]) -> list[StoredItem]:
    return sorted(items, key=lambda item: item.last_use)


def _short(item: StoredItem) -> str:
    return item.name[:SHORT_KEY] if item.is_artefact else item.name


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _day(moment: float | None) -> str:
    """Format a moment in this host's time, with a blank before it; a damaged artefact has none."""
    if moment is None:
        return ""
    return f" {datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}" if moment else " damaged"


def _moment(moment: float | None) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else None
