"""The store, options and output that several verbs share."""

import json
from collections.abc import Iterable
from pathlib import Path

import click

from agelab import home
from agelab.errors import InputError
from agelab.model.sanitize import escape_controls
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.store import Store

json_option = click.option("--json", "as_json", is_flag=True, help="Print a versioned JSON object instead.")


def open_store() -> Store:
    """Open the user's store; it names each damaged artefact that is made again on standard error.

    Raises InputError where there can be none.
    """
    from agelab.reuse.shared_artefacts import CachedArtefacts

    def warn(line: str) -> None:
        say(f"agelab: {line}")

    return home.open_store(warn=warn, shared=CachedArtefacts(warn))


def replaceable(path: Path) -> Path:
    """Return the path if a whole file can be put there, in place of one that exists. Raises InputError otherwise.

    A device (/dev/null) is refused, and a link (/dev/stdout): a file would replace it.
    """
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: {path.parent} is not a directory")
    if path.is_symlink():
        raise InputError(f"{path} cannot be written: it is a link", hint=f"name the file: {path.resolve()}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it is there and no file")
    return path


def say(line: str) -> None:
    """Tell the user how the work goes on, on standard error: files and versions may be called anything."""
    click.echo(escape_controls(line), err=True)


def print_json(value: object) -> None:
    """Print JSON with its keys in the order given, and fractions as floats."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False, default=float))


def find_runs(names: Iterable[str]) -> list[RunDirectory]:
    """Find runs by their names, their beginnings or ``latest``, each once. Raises InputError for an unknown one."""
    runs = open_store().runs
    return list({run.name: run for run in (run_lookup.find(runs, name) for name in names)}.values())
