"""Names of data files and a line on each, read without their types: lists and a shell's completion are quick."""

import tomllib

from agelab.base import fileio
from agelab.base.places import CORPORA, PACKAGE, SCENARIOS

FILES = {
    "scenarios": SCENARIOS,
    "filesystems": SCENARIOS / "filesystems",
    "drives": SCENARIOS / "drives",
    "machines": SCENARIOS / "machines",
    "layouts": SCENARIOS / "layouts",
    "programs": SCENARIOS / "programs",
    "recipes": SCENARIOS / "kernels",
    "corpora": CORPORA,
    "profiles": PACKAGE / "data" / "history",
}
"""Directories of data files, by what they hold."""


def names(kind: str) -> list[str]:
    """Return the names of the files of a kind, sorted."""
    return sorted(path.stem for path in FILES[kind].glob("*.toml"))


def lines(kind: str) -> dict[str, str]:
    """Return what each file of a kind says of itself in a line, by its name."""
    texts = {name: fileio.read_text(FILES[kind] / f"{name}.toml") for name in names(kind)}
    tables = {name: tomllib.loads(text) for name, text in texts.items()}
    return {name: str(table.get("summary") or table.get("title", "")) for name, table in tables.items()}
