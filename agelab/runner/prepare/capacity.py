"""Check that the host has room for a run."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from agelab.corpus import Corpus
from agelab.errors import HostError
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.plan.guest_plan import MAP_MEMORY_MIB
from agelab.vm import host

HEADROOM = 512 * MIB
"""Bytes of disk, and of memory, to leave on the host beside what the cells take; QEMU's own memory is part of it."""
COMPANION_OVERHEAD = 1.2
"""Bytes that the companion disk takes on the host for each byte of data in it, at most."""


def require_capacity(
    specs: Sequence[CellSpec],
    corpora: Sequence[Corpus],
    home: Path,
    *,
    at_once: int,
    copies: int,
    kept: int = 0,
    kernels: int = 1,
) -> str:
    """Return what the cells take of the host, as a text. Raises HostError where the host has less.

    A full host kills QEMU in the middle of a run. ``at_once`` cells run side by side, each with ``copies`` copies of
    its disk, as full as it can be; ``kept`` disks stay when their cells have ended. ``kernels`` is how many times the
    cells are there.
    """
    cells = min(at_once, len(specs) * kernels)
    several = f"{cells} cells at once" if cells > 1 else "a cell"
    beside = (
        int(corpora[0].content_bytes * COMPANION_OVERHEAD) if any(spec.companion for spec in specs) else 0
    )
    needed = (cells * copies + kept) * max(spec.host_bytes for spec in specs) + beside + HEADROOM
    free = shutil.disk_usage(home).free
    if free < needed:
        raise HostError(
            f"{home} has {free / 1e9:.1f} GB free, {several} would take up to {needed / 1e9:.1f} GB",
            hint="free some space, choose --scale quick, or move the store with AGELAB_HOME=<directory>",
        )
    guests = (
        spec.memory_mib(corpus) + spec.more_memory_at_points(corpus.parts or 0)
        for spec, corpus in zip(specs, corpora, strict=True)
    )
    memory = cells * max(MAP_MEMORY_MIB, *guests) * MIB + HEADROOM
    available = host.memory_available()
    if available < memory:
        raise HostError(
            f"this host has {available / 1e9:.1f} GB of memory available, {several} would take {memory / 1e9:.1f} GB",
            hint="end something that uses memory, or choose a smaller scale or fewer --jobs",
        )
    return f"{several}: up to {needed / 1e9:.1f} GB of disk and {memory / 1e9:.1f} GB of memory"
