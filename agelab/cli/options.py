"""The store, options with their types, and output that several verbs share."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls, parse_digits
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.scenario.jobs import Jobs, parse_jobs
from agelab.store import home
from agelab.store.artefacts import Store

if TYPE_CHECKING:
    from agelab.present.report.blocks import Block

FORCE = "--force"
PAGE_MARK, PAGE_HEAD = b'<meta name="generator" content="agelab ', 4096
"""What a page of agelab has in its first bytes, and how many of them are looked at."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print a versioned JSON object instead.")


UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
MAX_SIZE = 10**18


class Size(click.ParamType[int]):
    """A number of bytes: 650000000, or 650M (decimal units k, M, G, T)."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = value.removesuffix("B")
        unit = number[-1:] if number[-1:] in UNITS else ""
        size = parse_digits(number.removesuffix(unit), MAX_SIZE)
        if size is None:
            self.fail(f"{value[:20]!r} is not a size; write for example 40M", param, ctx)
        return size * UNITS[unit]


class CellsAtOnce(click.ParamType[Jobs]):
    """A number of cells, or ``auto``."""

    name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Jobs:
        try:
            return parse_jobs(value)
        except ValueError as error:
            self.fail(f"{str(value)[:20]!r}: {error}", param, ctx)


SIZE = Size()
JOBS = CellsAtOnce()
MEASURE = "STEP[:REPETITION]:METRIC"
"""How help names a measure (``agelab.results.measure``); without a repetition it is the mean over all."""


def open_store() -> Store:
    """Open the user's store; it names each damaged artefact that is made again on standard error.

    Raises InputError where there can be none.
    """
    from agelab.runner.reuse.artefacts import CachedArtefacts

    def warn(line: str) -> None:
        say(f"agelab: {line}")

    return home.open_store(warn=warn, shared=CachedArtefacts(warn))


def _take_force(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[FORCE] = value


force_option = click.option(
    FORCE,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_take_force,
    help="Write over a file that is there.",
)


class OutputFile(click.Path):
    """A file that a verb writes: one that is there needs --force, but a page of agelab in the place of ``pages``."""

    def __init__(self, *, pages: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self._pages = pages

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        require_output(path, pages=self._pages)
        return path


OUTPUT, PAGE = OutputFile(), OutputFile(pages=True)


def require_output(path: Path, *, pages: bool = False) -> None:
    """Raise InputError unless a whole file can be put there, and nobody's is lost: one that is there needs --force.

    With ``pages`` a page that agelab wrote is replaced. A device (/dev/null) is refused, and a link (/dev/stdout): a
    file would replace it.
    """
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: {path.parent} is not a directory")
    if path.is_symlink():
        raise InputError(f"{path} cannot be written: it is a link", hint=f"name the file: {path.resolve()}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it exists and is not a regular file")
    if path.exists() and not click.get_current_context().meta.get(FORCE) and not (pages and _is_page(path)):
        what = ", and no page of agelab" if pages else ""
        raise InputError(f"{path} is there already{what}", hint=f"name another file, or write over it: {FORCE}")


def require_directory(path: Path) -> None:
    """Make a directory with those above it. Raises InputError where there can be none."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a directory: {error.strerror}") from error


def _is_page(path: Path) -> bool:
    """Return True if a file begins as a page of agelab does (agelab/present/report/templates/page.html)."""
    with suppress(OSError), fileio.opened(path) as file:
        return PAGE_MARK in file.read(PAGE_HEAD)
    return False


def write_output(path: Path, data: bytes, *, pages: bool = False) -> None:
    """Write a verb's output, all of it or nothing, as ``require_output`` has it now: the work may have taken long."""
    require_output(path, pages=pages)
    try:
        atomic.write(path, data)
    except PermissionError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def say(line: str) -> None:
    """Tell the user how the work goes on, on standard error: files and versions may be called anything."""
    click.echo(escape_controls(line), err=True)


def print_blocks(blocks: Iterable["Block"]) -> None:
    """Print a document on standard output; what draws it is loaded with the first."""
    from agelab.present.view import terminal

    terminal.print_blocks(blocks)


def print_json(value: object) -> None:
    """Print JSON with its keys in the order given."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False, default=dump))


def dump(value: Any) -> Any:
    """Return what JSON has of a frozen type, its fields; of a fraction, a float."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else float(value)


def find_runs(names: Iterable[str]) -> list[RunDirectory]:
    """Find runs by names, their beginnings, paths or ``latest``, each once.

    Raises InputError for an unknown one, and for two of one name: in tables and files they could not be told apart.
    """
    runs = open_store().runs
    by_path = {run.path: run for run in (run_lookup.find(runs, name) for name in names)}
    called: dict[str, RunDirectory] = {}
    for run in by_path.values():
        if (other := called.setdefault(run.name, run)) is not run:
            raise InputError(
                f"{other.path} and {run.path} have the same name", hint="rename the directory of one of them"
            )
    return [*by_path.values()]
