"""Stored disks on a terminal and as JSON."""

from collections.abc import Sequence
from typing import Any

from agelab.stored_disk import SHORT_KEY, StoredDisk
from agelab.view.terminal import Head, open_console, print_facts, print_table


def print_disks(disks: Sequence[StoredDisk]) -> None:
    """Print one line for each disk."""
    names = ("disk", "is", "from", "filesystem", "defaults", "layout", "seed", "kernel")
    heads: list[Head] = [
        *((f" {name}", "left") for name in names), *((f" {name}", "right") for name in ("MB", "MB here"))
    ]  # fmt: skip
    rows = []
    for found in disks:
        recipe = found.recipe
        origin = f"{recipe.scenario}-{recipe.variant}, {recipe.scale}" if recipe.scenario else "import"
        seed = "" if recipe.run_seed is None else str(recipe.run_seed)
        cells = (
            *(found.key[:SHORT_KEY], recipe.makes, origin, recipe.filesystem, recipe.defaults, recipe.layout),
            *(
                seed,
                recipe.kernel or "",
                f"{sum(recipe.sizes) / 1e6:.0f}",
                f"{found.occupied_bytes / 1e6:.0f}",
            ),
        )
        rows.append([f" {cell}" for cell in cells])
    print_table(open_console(), heads, rows)


def print_disk(disk: StoredDisk) -> None:
    """Print what a disk is, then whether its content is what was stored. Raises Damaged where it is not."""
    print_facts(disk_json(disk))
    disk.verify()
    print_facts({"content": "verified: it is what was stored"})


def disk_json(disk: StoredDisk) -> dict[str, Any]:
    """Return a disk's key, its recipe and the bytes that it takes here."""
    return {"key": disk.key, **disk.recipe.model_dump(mode="json"), "occupied": disk.occupied_bytes}
