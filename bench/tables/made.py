"""What a maker makes of runs, and how one is called."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from agelab.results.run_directory import RunDirectory
from bench.tables.catalogue import Table


@dataclass(frozen=True)
class Made:
    """The text of a block, and pictures: path from docs/ to content."""

    text: str
    files: Mapping[Path, bytes] = field(default_factory=dict)


class Maker(Protocol):
    """The function ``made`` of a maker's module. Raises InputError for runs that make no table."""

    def __call__(self, table: Table, runs: Sequence[RunDirectory]) -> Made: ...


def maker(table: Table) -> Maker:
    """Return what makes a table of its runs."""
    return cast(Maker, importlib.import_module(f"bench.{table.maker}").made)
