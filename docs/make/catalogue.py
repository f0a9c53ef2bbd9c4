"""The tables of the pages, ``docs/tables.toml``, and what makes each of its runs."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

from pydantic import Field, StringConstraints, model_validator

from agelab.base.errors import InputError, unknown
from agelab.base.types import Frozen
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.scenario import toml_files
from docs.make.page import DOCS, PROJECT

CATALOGUE = DOCS / "tables.toml"

Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]


class Column(Frozen):
    """A column of a table of measures (docs/make/measures.py)."""

    head: str
    of: str = Field(
        pattern=r"^[^:+]+(:\d+)?:\w+( \+ [^:+]+(:\d+)?:\w+)*$",
        description="STEP[:REPETITION]:METRIC, or a sum of such",
    )
    shown: str = Field(default="median", pattern="^(median|range|sum)$", description="what is shown of several seeds")
    decimals: int = 2
    factor: float = 1.0


class Table(Frozen):
    """One block of a page, what makes it, and what it is made of."""

    name: Word
    page: str = Field(description="from the top of the repository")
    maker: str = Field(
        pattern=r"^[a-z_]+(\.[a-z_]+)?(:[a-z_]+)?$",
        description="a module of docs/make, or with its package before it one of validation or bench; "
        "behind a colon its function, where that is not called made",
    )
    runs: tuple[dict[str, str | bool], ...] = Field(
        default=(), description="options of agelab run; without a run the maker is a command with --write"
    )
    kernels: tuple[str, ...] = Field(default=(), description="each run once on each of them")
    of: tuple[str, ...] = Field(default=(), description="files and directories that its text depends on besides")
    needs: str = Field(default="", description="a variable that names data that are not part of agelab")
    lines: tuple[str, ...] = Field(default=(), description="show: the first words of the lines that are shown")
    commands: tuple[str, ...] = Field(
        default=(),
        description="transcript: words of agelab; {0}, {1} and {runs} are runs, {project} comes before a file's path",
    )
    beyond: bool = Field(
        default=False,
        description="transcript: its commands start guests, or tell of the whole store: not made of samples alone",
    )
    metrics: tuple[str, ...] = Field(default=(), description="sweep: STEP[:REPETITION]:METRIC")
    pictures: str = Field(default="", description="directory of its pictures, from docs/")
    columns: tuple[Column, ...] = Field(default=(), description="measures: the columns")

    @cached_property
    def asked(self) -> tuple[RunOptions, ...]:
        """What each run is asked for."""
        return tuple(RunOptions(directory=str(PROJECT), **dict[str, Any](words)) for words in self.runs)

    @property
    def command(self) -> str:
        """What makes it again."""
        return f"make tables NAME={self.name}"

    @property
    def path(self) -> Path:
        return PROJECT / self.page

    @property
    def module(self) -> str:
        name, _, _ = self.maker.partition(":")
        return name if "." in name else f"docs.make.{name}"

    @property
    def function(self) -> "Maker":
        """What makes it of its runs."""
        _, _, name = self.maker.partition(":")
        return cast(Maker, getattr(importlib.import_module(self.module), name or "made"))

    def made(self, runs: Sequence[RunDirectory]) -> "Made":
        """Make it of its runs. Raises InputError for runs that make no table."""
        return self.function(self, runs)


@dataclass(frozen=True)
class Made:
    """The text of a block, and pictures: path from docs/ to content."""

    text: str
    files: Mapping[Path, bytes] = field(default_factory=dict)


class Maker(Protocol):
    """The function of a maker."""

    def __call__(self, table: Table, runs: Sequence[RunDirectory]) -> Made: ...


class Catalogue(Frozen):
    """All of them."""

    tables: tuple[Table, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> "Catalogue":
        names = [table.name for table in self.tables]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two tables are called {twice}")
        return self

    def named(self, names: str) -> list[Table]:
        """Return the tables of these names, with commas between; all without a name. Raises InputError."""
        if not names:
            return list(self.tables)
        tables = {table.name: table for table in self.tables}
        chosen = [name.strip() for name in names.split(",")]
        if strange := next((name for name in chosen if name not in tables), None):
            raise unknown("table", strange, list(tables))
        return [tables[name] for name in chosen]


def read(path: Path = CATALOGUE) -> Catalogue:
    """Read the catalogue. Raises InputError that names each error's place, and for options that make no run."""
    catalogue = toml_files.read(path, Catalogue)
    for table in catalogue.tables:
        try:
            _ = table.asked
        except InputError as error:
            raise InputError(f"{path}: table {table.name}: {error}", hint=error.hint) from error
    return catalogue
