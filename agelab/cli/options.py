"""What the verbs share: where the store is, and options that mean the same everywhere."""

import json
from pathlib import Path

import click

from agelab import store
from agelab.errors import InputError
from agelab.store import Store

json_option = click.option("--json", "as_json", is_flag=True, help="Print a versioned JSON object instead.")


def open_store() -> Store:
    """The user's store; a damaged artefact that is made again is named on standard error.

    Raises InputError where there can be none.
    """
    return store.open_store(warn=lambda line: click.echo(f"agelab: {line}", err=True))


def replaceable(path: Path) -> Path:
    """A place for a whole file: one that is there gives way to it. Raises InputError for what is no place for one.

    A device (/dev/null, /dev/stdout) is none: a file put in its place would be the end of it.
    """
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: {path.parent} is not a directory")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it is there and no file")
    return path


def print_json(value: object) -> None:
    """Print a JSON value for programs: keys in the order given, one stable layout."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False))
