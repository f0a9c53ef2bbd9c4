"""Build stored disks."""

from pathlib import Path

from agelab.base import process
from agelab.store.stored_disk import DiskRecipe

MIB = 1 << 20


SIZE = 8 * MIB


def recipe(**changes: object) -> DiskRecipe:
    whole = {
        "makes": "aged", "scenario": "aging", "scale": "quick", "variant": "ext4", "filesystem": "ext4",
        "layout": "single", "defaults": "period", "machine": "pentium4-2800", "drives": ("model:none",),
        "kernel": "debian:6.1", "run_seed": 1, "corpus_seed": 1, "sizes": (SIZE,), "command": "agelab age aging-ext4",
    }  # fmt: skip
    return DiskRecipe.model_validate(whole | changes)


def filesystem(path: Path) -> Path:
    """An image of an empty ext4."""
    process.run(["mke2fs", "-q", "-F", "-t", "ext4", str(path), "2M"])
    return path
