"""Short texts about the cells of a run: statuses, counts and names."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from agelab.base import fileio, places
from agelab.base.gathered import gathered
from agelab.results.result import Cell, End, Status
from agelab.results.rows import GOING, status_of
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text

ORDER = (*map(str, Status), *GOING)
SHOWN = re.compile(r"inputs_key +(sha256:[0-9a-f]{64})\n +digest +(sha256:[0-9a-f]{64})")
"""The key and the digest of a cell, as the pages and ``agelab show`` print them."""


def statuses(run: RunDirectory, ends: Sequence[End | None]) -> list[str]:
    """List each cell's status; while the run goes on, cells without an end are running or waiting."""
    going_on = run.is_running()
    return [status_of(end, run.path / "cells" / str(number), going_on) for number, end in enumerate(ends)]


def with_origin(status: str, end: End | None) -> str:
    """Add to a status that the cell was not run: ``ok (reused)``."""
    return f"{status} (reused)" if end and end.reused else status


def beside_docs(ends: Iterable[End | None]) -> list[str]:
    """Say for each ended cell whose key the docs know whether its digest is the one there."""
    digests = _shown_in(places.DOCS)
    return [
        f"the digest of the docs: {'yes' if end.digest == digest else f'no, that is {digest}'}"
        for end in ends
        if end and end.inputs_key and end.digest and (digest := digests.get(end.inputs_key))
    ]


@cache
def _shown_in(docs: Path) -> dict[str, str]:
    """Return the digests that the README and the pages show, by inputs key."""
    pages = [path for path in (docs.parent / "README.md", *docs.rglob("*.md")) if path.is_file()]
    return {key: digest for page in pages for key, digest in SHOWN.findall(fileio.read_text(page))}


def count_cells(number: int) -> str:
    """Format a number of cells: ``1 cell``, ``2 cells``."""
    return "1 cell" if number == 1 else f"{number} cells"


def count_capsules(number: int) -> str:
    return "1 capsule" if number == 1 else f"{number} capsules"


def count_reproduced(same: int, cells: int, whole: int, capsules: int) -> str:
    """Say how many of the cells reproduced, and of how many capsules all of them."""
    return f"reproduced: {same} of {count_cells(cells)}; {whole} of {count_capsules(capsules)}"


def count_statuses(statuses: Sequence[str], ends: Sequence[End | None] = ()) -> str:
    """Count the cells of each status, and of ``ends`` those that were not run: ``60 ok (3 reused), 5 unsupported``."""
    reused = Counter(status for status, end in zip(statuses, ends, strict=False) if end and end.reused)
    words = []
    for status in sorted(set(statuses), key=ORDER.index):
        count, known = statuses.count(status), reused[status]
        words.append(f"{count} {status}" + (f" ({'' if known == count else f'{known} '}reused)" if known else ""))
    return ", ".join(words)


def list_cells(some: Iterable[Cell], every: Iterable[Cell]) -> str:
    """Name some cells: ``ext4, xfs (seeds 2,3)``; seeds only where they are not all of the run's."""
    seeds = {cell.seeds for cell in every}
    by_label = gathered((cell.short_label, cell.seeds) for cell in some)
    words = [label if seeds <= set(of) else f"{label} ({seeds_text(of, seeds)})" for label, of in by_label.items()]
    return ("; " if any(", " in word for word in words) else ", ").join(words)


def name_seeds(cell: Cell, every: Iterable[Cell]) -> str:
    """Name a cell's seeds: ``seed 3``, or ``seed 3 of corpus 2`` where cells have several corpora."""
    return seeds_text([cell.seeds], [run_cell.seeds for run_cell in every])
