"""JSON files that reveal damage: each object and each line carries a seal, the hash of the rest."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json, key_of

AnyModel = TypeVar("AnyModel", bound=BaseModel)

SEAL = "seal"
"""The key of the hash."""
_SEALED = b',"%s":"' % SEAL.encode()
_BATCH = 10_000
"""Lines that are parsed together."""


def add_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add JSON lines to a file, in place of a last one that was cut short."""
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _whole_lines(file)
        file.truncate(end)
        file.write(b"".join(map(sealed_line, rows)))


def raw_lines(path: Path) -> Iterable[bytes]:
    """Return the lines of a file, which may be missing, without a last one that was cut short.

    Who adds lines waits meanwhile: one that takes the place of a cut one would be read in two halves.
    """
    content = b""
    with suppress(FileNotFoundError):
        content = fileio.read_bytes(path, fileio.LINES, locked=True)
    return BytesIO(content[: content.rfind(b"\n") + 1])


def lines(path: Path) -> list[dict[str, Any]]:
    """Parse the JSON lines of a file, which may be missing. Raises ValueError for one that is not what was written."""
    whole = list(raw_lines(path))
    records: list[dict[str, Any]] = []
    for at in range(0, len(whole), _BATCH):
        records += _parsed(whole[at : at + _BATCH])
    return records


def _parsed(some: Sequence[bytes]) -> list[dict[str, Any]]:
    """Parse lines together, which is faster than one by one; where that fails, one by one, to say which is wrong."""
    with suppress(ValueError, TypeError, AttributeError):
        rows = from_json(b"[" + b",".join(map(unsealed_line, some)) + b"]")
        if len(rows) == len(some):
            return [unseal(row) for row in rows]
    return [unseal(json.loads(line)) for line in some]


def unsealed_line(line: bytes) -> bytes:
    """Return what stands before the seal of a line, where it is the seal of these bytes; else the line as it is."""
    content, _, seal = line.rpartition(_SEALED)
    content += b"}"
    return content if seal == b'%s"}\n' % hashlib.sha256(content).hexdigest().encode() else line


def write(path: Path, text: str) -> None:
    """Write the text and a newline, or leave the old file: never half of it."""
    atomic.write(path, f"{text}\n".encode())


def write_sealed(path: Path, model: BaseModel, **before: Any) -> None:
    """Write a model with its seal, behind further keys."""
    write(path, sealed_text(model, **before))


def sealed_text(model: BaseModel, **before: Any) -> str:
    """Return a model as JSON with its seal, behind further keys."""
    return json.dumps(seal({**before, **json.loads(model.model_dump_json(by_alias=True))}), indent=1)


def read(path: Path, kind: type[AnyModel]) -> AnyModel:
    """Read a model from a JSON file. Raises InputError for one that is damaged or missing."""
    with readable(path):
        return validated(unseal(json.loads(fileio.read_bytes(path))), kind)


def read_if_there(path: Path, kind: type[AnyModel]) -> AnyModel | None:
    """Read a model from a JSON file; None where there is none. Raises InputError for one that is damaged."""
    with readable(path), suppress(FileNotFoundError):
        return validated(unseal(json.loads(fileio.read_bytes(path))), kind)
    return None


def validated(value: Mapping[str, Any], kind: type[AnyModel]) -> AnyModel:
    """Validate a value by the rules of JSON: a list is a tuple, a number no text."""
    return kind.model_validate_json(canonical_json(value))


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of reading a file into InputError that names it."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        raise InputError(f"{path} is damaged: {place}{place and ': '}{first['msg']}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    return {**value, SEAL: key_of(value)}


def sealed_line(row: Mapping[str, Any]) -> bytes:
    """Return the line of a row with its seal, encoded once: the seal is the hash of what stands before it."""
    content = canonical_json(row)
    return b'%s%s%s"}\n' % (content[:-1], _SEALED, hashlib.sha256(content).hexdigest().encode())


def unseal(value: dict[str, Any]) -> dict[str, Any]:
    """Check and remove the seal, if there is one. Raises ValueError where it is not what was written."""
    seal = value.pop(SEAL, None)
    if seal is not None and seal != key_of(value):
        raise ValueError("it is not what was written")
    return value


def _whole_lines(file: BinaryIO) -> int:
    """Return where the last whole line ends."""
    end = file.seek(0, os.SEEK_END)
    if not end:
        return 0
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1
