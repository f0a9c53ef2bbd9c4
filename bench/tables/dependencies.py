"""The hash of the code and data that a table is of, found without a run, a guest or a network.

It has what can be read from this checkout of what shapes the digits: the guest side, the plan of a boot, the corpora
and histories, each cell's scenario, filesystem, drives and machine, what evaluates samples, and what makes the table
of them. Kernels, Debian's packages and QEMU are not in it: the runs' own keys have them, and the block says them in
words.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agelab.base import places
from agelab.base.errors import InputError
from agelab.base.hashing import file_code_hash, key_of
from agelab.run.execute import evaluation
from agelab.run.plan.cell_spec import CellSpec
from agelab.run.prepare.planned import planned_cells
from agelab.run.request.options import RunOptions
from agelab.store.artefacts import file_hash
from bench.tables.catalogue import PROJECT, Table

GUEST = (places.HARNESS, places.IMAGES, places.PACKER)
HOST = (
    "corpus/*.py",
    "corpus/*.toml",
    "history/*.py",
    "history/*.toml",
    "image/root.py",
    "kernel/initramfs.py",
    "qemu/*.c",
    "runner/plan/*.py",
    "vm/domain.py",
    "vm/guest.py",
)
"""Modules and data of agelab/ by which data are made and guests are planned and begun."""
JUDGING = ("analysis", "evaluate", "published", "stats", "vega", "view")
"""Rooms of agelab/ whose modules, where a maker imports them, are part of its tables."""
DIGITS = 16
"""Hexadecimal digits of a hash in a page."""


def key(table: Table) -> str:
    """Return the hash of what a table is of. Raises InputError for files or options that there are not."""
    said = table.model_dump(mode="json", exclude={"page", "needs", "commands"})
    parts: dict[str, Any] = {"table": said, "maker": _maker(table.maker), "of": _files(table.of)}
    if table.commands:
        parts["commands"] = table.commands
    if table.runs:
        cells = [_cells(options) for options in table.asked]
        parts |= {"guest": guest(), "host": host(), "cells": cells}
    return key_of(parts)[:DIGITS]


@cache
def guest() -> dict[str, str]:
    return _hashes(path for place in GUEST for path in place.rglob("*"))


@cache
def host() -> dict[str, str]:
    package = places.PACKAGE
    files = _hashes(path for pattern in HOST for path in package.glob(pattern))
    return {**files, "evaluation": key_of(evaluation.code())}


@cache
def _cells(options: RunOptions) -> str:
    return key_of([cell(spec) for spec in planned_cells(options)])


def cell(spec: CellSpec) -> dict[str, Any]:
    """Return a cell that is planned, as data: all of its parts that are known before it is prepared."""
    return {**_plain(spec), "disk": _plain(spec.disk), "evaluated_by": evaluation.evaluated_by(spec)}


def _plain(value: Any) -> Any:
    """Return data of frozen types as JSON has them."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str | int | float | None) else str(value)


@cache
def _maker(name: str) -> dict[str, str]:
    """Hash the module of a maker, those of bench/ that it imports, and what these import of the judging rooms."""
    found: set[Path] = set()
    waiting = [PROJECT / "bench" / f"{name}.py"]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.is_relative_to(PROJECT / "bench"):
            waiting += [one for one in _imported(path) if not one.is_relative_to(Path(__file__).parent)]
    return _hashes(found)


def _imported(path: Path) -> list[Path]:
    """List the files of bench/ and of the judging rooms that a module imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    rooms = ("bench", *(f"agelab.{room}" for room in JUDGING))
    wanted = (name for name in names if name.startswith(tuple(f"{room}." for room in rooms)) or name in rooms)
    files = (PROJECT / f"{name.replace('.', '/')}.py" for name in wanted)
    return [one for one in files if one.exists()]


def _files(names: Iterable[str]) -> dict[str, str]:
    found: list[Path] = []
    for name in names:
        path = PROJECT / name
        if not path.exists():
            raise InputError(f"docs/tables.toml: a table is of {name}, which there is not")
        found += path.rglob("*") if path.is_dir() else [path]
    return _hashes(found)


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    """Hash files, by their places in the repository, and together what our own modules do, wherever they lie.

    Compiled modules and hidden files are passed over.
    """
    files = [
        path
        for path in sorted(paths)
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    ]
    found = {str(path.relative_to(PROJECT)): file_hash(path) for path in files if not _is_code(path)}
    return {**found, "code": key_of(sorted(file_code_hash(path) for path in files if _is_code(path)))}


def _is_code(path: Path) -> bool:
    """Return True if a file is Python that runs on the host: what guests run is in their keys with its whole text."""
    return path.suffix == ".py" and path.relative_to(PROJECT).parts[0] in ("agelab", "bench")
