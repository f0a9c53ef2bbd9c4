"""Read a TOML file into a frozen type, every error at once, each with its place in the file."""

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agelab import places
from agelab.errors import InputError, unknown
from agelab.model.base import Frozen
from agelab.model.figure import Figure, Whole

SCENARIOS = places.SCENARIOS
"""Where the data files of the project are."""

FIGURES = (Figure.__name__, Whole.__name__)

AnyFrozen = TypeVar("AnyFrozen", bound=Frozen)


def read(path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    """The file's content as ``kind``. Raises InputError that lists every error with its place."""
    return parse(read_text(path), path, kind)


def read_text(path: Path) -> str:
    """What a file of text says. Raises InputError where it cannot be read or is none."""
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def parse(said: str, path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    """The text of the file ``path`` as ``kind``. Raises InputError that lists every error with its place."""
    try:
        raw = tomllib.loads(said)
    except (ValueError, RecursionError) as error:  # of TOML, of numbers too long to be read, of depth
        raise InputError(f"{path}: not valid TOML: {error}") from error
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise InputError("\n".join(error_lines(path, error))) from error


def error_lines(path: Path, error: ValidationError) -> list[str]:
    """One line for each error: file, place in it, what is wrong.

    An error of a whole that only follows from an error of one of its parts is left out.
    """
    found = {_key_path(item["loc"]): item for item in error.errors(include_url=False)}
    lines = []
    for place, item in found.items():
        if place and any(other.startswith((f"{place}.", f"{place}[")) for other in found):
            continue
        lines.append(f"{path}: {place + ': ' if place else ''}{_describe_error(item)}")
    return lines


def _describe_error(item: ErrorDetails) -> str:
    """What is wrong, and of a value of another kind than is wanted how it is written."""
    value = item["input"]
    match item["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a known key"
        case "model_type" if item["ctx"]["class_name"] in FIGURES:
            return f'is no figure, which says where it is from: {{ value = {value!r:.60}, origin = "estimated" }}'
        case "model_type":
            return f"is no table of keys and values (it is {value!r:.60})"
        case "tuple_type" if isinstance(value, str):
            return f"is no list: [{value!r:.60}]"
    said = item["msg"].removeprefix("Value error, ")
    return said if isinstance(value, dict) else f"{said} (it is {value!r:.60})"


def _key_path(location: tuple[int | str, ...]) -> str:
    """``("steps", 0, "~cycle", "run")`` to ``steps[0].run``: a word with a mark names a type, not a place."""
    words = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if str(part)[0] != "~"]
    return "".join(words).lstrip(".")


def read_named(directory: str, name: str, kind: type[AnyFrozen], what: str) -> AnyFrozen:
    """The file ``scenarios/<directory>/<name>.toml``.

    Raises InputError naming the nearest valid names, or where the file calls itself by another.
    """
    names = [path.stem for path in (SCENARIOS / directory).glob("*.toml")]
    if name not in names:
        raise unknown(what, name, names)
    return _read_checked(SCENARIOS / directory / f"{name}.toml", kind)


def _read_checked(path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    found = read(path, kind)
    if wrong := name_problem(path, getattr(found, "name", path.stem)):
        raise InputError(wrong)
    return found


def name_problem(path: Path, name: str) -> str:
    """What is wrong with the name that a file gives itself, or nothing."""
    return "" if name == path.stem else f"{path}: name: is {name!r}, the file's name is {path.stem!r}"


def read_all(directory: str, kind: type[AnyFrozen]) -> list[AnyFrozen]:
    """All files of ``scenarios/<directory>/``, sorted by name."""
    return [_read_checked(path, kind) for path in sorted((SCENARIOS / directory).glob("*.toml"))]
