"""Read a TOML file into a frozen type; report all errors at once, each with its place in the file."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agelab.base import fileio, places
from agelab.base.errors import InputError, unknown
from agelab.base.types import Frozen

SCENARIOS = places.SCENARIOS
"""Directory of the project's data files."""

MAX_DOTS = 100
"""Dots in one line of a file at most."""
MAX_ERRORS = 100
"""Errors to name at most."""

AnyFrozen = TypeVar("AnyFrozen", bound=Frozen)


def read(path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    """Read a file as ``kind``. Raises InputError that lists every error with its place."""
    return parse(read_text(path), path, kind)


def read_text(path: Path) -> str:
    """Read a text file. Raises InputError if it cannot be read or is not UTF-8."""
    try:
        return fileio.read_text(path, fileio.FORM)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def parse(text: str, path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    """Parse the text of the file ``path`` as ``kind``. Raises InputError that lists every error with its place."""
    return cast(AnyFrozen, _parsed(text, path, kind))


@lru_cache(256)  # each cell of a run names the files of its filesystem, machine and drives
def _parsed(text: str, path: Path, kind: type[Frozen]) -> Frozen:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS:  # tomllib takes time by the square of a key's length
            raise InputError(f"{path}:{number}: has more than {MAX_DOTS} dots: no key is that long")
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # invalid TOML, numbers too long to parse, or nesting too deep
        raise InputError(f"{path}: not valid TOML: {error}") from error
    name = kind.model_fields.get("name")
    if name and not name.is_required():
        raw.setdefault("name", path.stem)
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise InputError("\n".join(error_lines(path, error))) from error


def error_lines(path: Path, error: ValidationError) -> list[str]:
    """Return one line for each error: file, place, problem.

    An error of a whole that only follows from an error of one of its parts is left out.
    """
    errors = {_key_path(item["loc"]): item for item in error.errors(include_url=False)}
    wholes = {
        whole
        for place, item in errors.items()
        for length in range(1, len(item["loc"]))
        if (whole := _key_path(item["loc"][:length])) != place
    }
    lines: list[str] = []
    for place, item in errors.items():
        if place in wholes:
            continue
        if len(lines) == MAX_ERRORS:
            return [*lines, f"{path}: and more"]
        lines.append(f"{path}: {place + ': ' if place else ''}{_describe_error(item)}")
    return lines


def _describe_error(item: ErrorDetails) -> str:
    """Describe an error; for a value of the wrong type, say how to write it."""
    value = item["input"]
    match item["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a known key"
        case "model_type":
            return f"must be a table (it is {value!r:.60})"
        case "tuple_type" if isinstance(value, str):
            return f"must be a list: [{value!r:.60}]"
    message = item["msg"].removeprefix("Value error, ")
    return message if isinstance(value, dict) else f"{message} (it is {value!r:.60})"


def _key_path(location: tuple[int | str, ...]) -> str:
    """Convert ``("steps", 0, "~cycle", "run")`` to ``steps[0].run``: a part that begins with ~ names a type, not a
    place."""
    words = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if str(part)[0] != "~"]
    return "".join(words).lstrip(".")


def place_of(directory: str, name: str) -> Path:
    """Return the path of ``scenarios/<directory>/<name>.toml``."""
    return SCENARIOS / directory / f"{name}.toml"


def read_named(directory: str, name: str, kind: type[AnyFrozen], what: str) -> AnyFrozen:
    """Read the file ``scenarios/<directory>/<name>.toml``.

    Raises InputError that suggests the nearest valid names, or if the file's own name differs.
    """
    path = place_of(directory, name)
    if path.parent != SCENARIOS / directory or not path.is_file():
        raise unknown(what, name, [file.stem for file in (SCENARIOS / directory).glob("*.toml")])
    return _read_checked(path, kind)


def _read_checked(path: Path, kind: type[AnyFrozen]) -> AnyFrozen:
    content = read(path, kind)
    if wrong := name_problem(path, getattr(content, "name", path.stem)):
        raise InputError(wrong)
    return content


def name_problem(path: Path, name: str) -> str:
    """Return what is wrong with the name that a file gives itself, or ""."""
    return "" if name == path.stem else f"{path}: name: is {name!r}, the file's name is {path.stem!r}"


def read_all(directory: str, kind: type[AnyFrozen]) -> list[AnyFrozen]:
    """Read all files of ``scenarios/<directory>/``, sorted by name."""
    return [_read_checked(path, kind) for path in sorted((SCENARIOS / directory).glob("*.toml"))]
