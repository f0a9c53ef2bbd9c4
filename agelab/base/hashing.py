"""Hashes of data and of code: what keys are made of."""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from agelab.base import fileio

ROOT = Path(__file__).parents[2]
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def canonical_json(value: object) -> bytes:
    """Encode a value as JSON with sorted keys and no spaces: equal values give equal bytes."""
    return _CANONICAL.encode(value).encode()


def key_of(value: object) -> str:
    """Return the sha256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_code_hash(path: Path) -> str:
    """Return the hash of what a Python file does: of its syntax tree without docstrings and other loose strings.

    Comments, the file's name and its place are no part of it.
    """
    return key_of(_as_data(_syntax(path)))


@cache
def code_hash(name: str, root: Path = ROOT) -> str:
    """Return the hash of what a module does, or all modules of a package, and all that these import below ``root``.

    An import counts by the hash of what it brings, not by its name: a module that is moved changes nothing. Imports
    must not go in circles, which a test forbids.
    """
    place = root.joinpath(*name.split("."))
    if place.is_dir():
        modules = [path.relative_to(root).with_suffix("") for path in place.rglob("*.py")]
        return key_of(sorted(_module_hash(".".join(module.parts), root) for module in modules))
    return _module_hash(name, root)


@cache
def _module_hash(name: str, root: Path) -> str:
    return key_of(_as_data(_Imports(root).visit(_syntax(root.joinpath(*name.split(".")).with_suffix(".py")))))


def _as_data(part: Any) -> Any:
    """Return a part of a syntax tree as data that every Python tells alike.

    ``ast.dump`` differs between versions: 3.12 has fields that 3.11 has not, and empty ends of f-strings; 3.13 leaves
    empty fields out.
    """
    if isinstance(part, ast.JoinedStr):
        return {"JoinedStr": [_as_data(value) for value in part.values if getattr(value, "value", None) != ""]}
    if isinstance(part, ast.AST):
        fields = {name: _as_data(value) for name, value in ast.iter_fields(part) if value not in (None, [])}
        return {type(part).__name__: fields}
    return list(map(_as_data, part)) if isinstance(part, list) else repr(part)


def _syntax(path: Path) -> ast.Module:
    """Parse a file, and leave out every string that stands by itself: docstrings, and those of fields."""
    tree = ast.parse(fileio.read_bytes(path))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            node.body = [part for part in node.body if not _is_loose_string(part)] or [ast.Pass()]
    return tree


def _is_loose_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Imports(ast.NodeTransformer):
    """Puts the hash of each module below a root in place of its name, where it is imported."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            if self._is_module(alias.name):
                alias.name, alias.asname = _module_hash(alias.name, self.root), alias.asname or alias.name
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for alias in node.names:
            name, inner = node.module or "", f"{node.module}.{alias.name}"
            if self._is_module(inner):
                statements.append(ast.Import([ast.alias(_module_hash(inner, self.root), alias.asname or alias.name)]))
            elif self._is_module(name) or self._is_module(f"{name}.__init__"):
                of = name if self._is_module(name) else f"{name}.__init__"
                statements.append(ast.ImportFrom(_module_hash(of, self.root), [alias], node.level))
            else:
                statements.append(ast.ImportFrom(node.module, [alias], node.level))
        return statements

    def _is_module(self, name: str) -> bool:
        return self.root.joinpath(*name.split(".")).with_suffix(".py").is_file()
