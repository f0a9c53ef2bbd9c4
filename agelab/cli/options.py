"""What the verbs share: where the store is, and options that mean the same everywhere."""

import json
import os
import re
import stat
from pathlib import Path

import click

from agelab.errors import InputError
from agelab.store import Store, default_home

UNFIT = re.compile(r"[\s,'\"\\{}]")
"""What a path must not hold that becomes part of a QEMU option."""

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

json_option = click.option("--json", "as_json", is_flag=True, help="Print a versioned JSON object instead.")


def open_store() -> Store:
    """The store below AGELAB_HOME, or where it is without that; nothing is created yet.

    Raises InputError when that is not a directory, or somebody else's.
    """
    home = default_home()
    if bad := UNFIT.search(str(home)):
        raise InputError(
            f"the store cannot be in {home}: QEMU's options cannot carry a path with {bad.group()!r}",
            hint="move it with AGELAB_HOME=<a directory without spaces, commas and quotes>",
        )
    if home.exists() and not home.is_dir():
        raise InputError(f"the store cannot be in {home}, which is not a directory")
    if whose := _others(home):
        raise InputError(
            f"the store is in {home}, {whose}: what lies in it (a library for QEMU, compilers) is run as you",
            hint="use one of your own that nobody else may write to: AGELAB_HOME=<directory>",
        )
    return Store(home, lambda line: click.echo(f"agelab: {line}", err=True))


def _others(home: Path) -> str:
    """Who else decides on what is in a store; nothing where nobody does, or where there is none yet."""
    if not home.exists():
        return ""
    found = home.stat()
    if found.st_uid not in (0, os.geteuid()):
        return f"which belongs to the user {found.st_uid}"
    return "to which anybody may write" if found.st_mode & stat.S_IWOTH else ""


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


def size(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """The number of bytes that ``value`` means: 650000000, or 650M (decimal units k, M, G, T)."""
    number = value.removesuffix("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    digits = number.removesuffix(unit)
    if not (digits.isascii() and digits.isdigit()):
        raise click.BadParameter(f"{value!r} is no number of bytes; say for example 40M", ctx, param)
    return int(digits) * UNITS[unit]
