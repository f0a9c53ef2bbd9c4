"""Hashes of code: what a module does counts, not where it lies, nor how it is explained."""

import ast
from pathlib import Path
from typing import Any

import pytest

from agelab.base import hashing
from agelab.base.hashing import ROOT, code_hash, file_code_hash

FILES = {
    "lab/__init__.py": '"""A package."""\n',
    "lab/evaluate/__init__.py": "",
    "lab/evaluate/measures.py": (
        '"""Measures."""\nfrom lab import numbers\nfrom lab.names import NAME\n\n\n'
        'def score(value: float) -> str:\n    """Return the score."""\n'
        "    return NAME + str(round(value, numbers.DIGITS))  # as it is\n"
    ),
    "lab/numbers.py": '"""Numbers."""\nDIGITS = 6\n"""How many."""\n',
    "lab/names.py": 'NAME = "score"\nOTHER = "other"\n',
    "lab/unused.py": "X = 1\n",
}


def made(root: Path, **changes: tuple[str, str]) -> str:
    """Write the package, with a text of some module replaced, and hash what evaluates."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changes.get(path.stem, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
    return code_hash("lab.evaluate", root)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("measures", "Return the score.", "Return how well it lies."),
        ("measures", "  # as it is", "  # rounded"),
        ("measures", "\n\n\ndef", "\n\ndef"),
        ("numbers", '"""Numbers."""\n', ""),
        ("numbers", "How many.", "Digits."),
        ("unused", "X = 1", "X = 2"),
    ],
)
def test_words_about_code_and_code_that_is_not_used_are_not_in_its_hash(
    tmp_path: Path, module: str, old: str, new: str
) -> None:
    assert made(tmp_path / "a") == made(tmp_path / "b", **{module: (old, new)})


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("numbers", "DIGITS = 6", "DIGITS = 7"),
        ("measures", "round(value", "round(-value"),
        ("names", 'NAME = "score"', 'NAME = "mark"'),
        ("measures", "import NAME", "import OTHER as NAME"),
    ],
)
def test_what_a_module_does_or_brings_in_is_in_its_hash(tmp_path: Path, module: str, old: str, new: str) -> None:
    assert made(tmp_path / "a") != made(tmp_path / "b", **{module: (old, new)})


def test_a_module_that_is_moved_changes_no_hash(tmp_path: Path) -> None:
    before, root = made(tmp_path / "a"), tmp_path / "b"
    made(root)
    (root / "lab/base").mkdir()
    (root / "lab/numbers.py").rename(root / "lab/base/digits.py")
    measures = root / "lab/evaluate/measures.py"
    measures.write_text(
        measures.read_text().replace("from lab import numbers", "from lab.base import digits as numbers")
    )
    (root / "lab/evaluate/layout").mkdir()
    measures.rename(root / "lab/evaluate/layout/scores.py")
    hashing._module_hash.cache_clear()
    code_hash.cache_clear()
    assert code_hash("lab.evaluate", root) == before


SYNTAX = """
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class One:
    value: int | None = None

    async def two(self, *words: str, key: bytes = b"x") -> str:
        match words:
            case [first, *_] if first:
                return f"{first!r:>{len(words)}} {self.value=}{'' if key else ...}"
            case _:
                return "a" "b" + (lambda x, /: x)("é")
"""


def test_every_python_gives_a_file_the_same_hash(tmp_path: Path) -> None:
    """Python 3.10 to 3.13 were seen to; a host with another one must not take known cells for unknown."""
    path = tmp_path / "syntax.py"
    path.write_text(SYNTAX)
    assert file_code_hash(path) == "d642f68318b672438b2d35090b6e54ec7b0993170a9eb139857bc8705bdf16c7"


def test_what_only_some_pythons_put_into_a_tree_is_not_in_its_hash() -> None:
    ours, theirs = (ast.parse("def f(x): return f'{x}'") for _ in range(2))
    function: Any = theirs.body[0]
    function._fields = (*function._fields, "type_params")
    function.type_params = []
    function.body[0].value.values.append(ast.Constant(""))
    assert hashing._as_data(theirs) == hashing._as_data(ours)


def test_a_docstring_of_what_evaluates_cells_leaves_their_hash(tmp_path: Path) -> None:
    text = (ROOT / "agelab/evaluate/layout/measures.py").read_text()
    hashes = []
    for name, old, new in (("a", "", ""), ("b", '"""', '"""In other words: '), ("c", "6", "7")):
        path = tmp_path / f"{name}.py"
        path.write_text(text.replace(old, new, 1) if name == "b" else text.replace(old, new))
        hashes.append(file_code_hash(path))
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_evaluates_cells_has_a_hash_that_follows_its_imports() -> None:
    whole = code_hash("agelab.evaluate")
    assert len(whole) == 64
    parts = {code_hash(f"agelab.evaluate.{name}") for name in ("layout", "program_output", "cell_status")}
    assert len(parts) == 3 and whole not in parts
