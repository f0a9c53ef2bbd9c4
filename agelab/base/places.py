"""Paths of agelab's own files (guest side, data files, templates) and of the default store.

In a checkout they are beside this package; in a wheel they are inside it, in ``agelab/share`` (pyproject.toml).
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
IMPORTED_FROM = PACKAGE.parent
"""The entry of PYTHONPATH with which another Python can import agelab."""
_SHARE = PACKAGE / "share"
INSTALLED = _SHARE.is_dir()
"""True for an installed copy, which has neither a Makefile nor a .venv."""
_TOP = _SHARE if INSTALLED else PACKAGE.parent

HARNESS = _TOP / "harness"
IMAGES = _TOP / "images"
PACKER = _TOP / "packer"
SCENARIOS = _TOP / "scenarios"
CORPORA = PACKAGE / "data" / "corpus"
DOCS = PACKAGE.parent / "docs"
"""The pages, whose tables show keys and digests of cells; an installed copy has none."""
HOST_PACKAGES = PACKAGE / "host-packages.txt"
PINS = PACKAGE / "pins.toml"


def default_store() -> Path:
    """Return the directory of kernels, images and runs to use when AGELAB_HOME is not set.

    ``.agelab`` in a checkout; for an installed copy ``agelab`` below $XDG_DATA_HOME, by default ``~/.local/share``
    (freedesktop.org, XDG Base Directory Specification 0.8, which says to ignore a relative path there). Raises
    RuntimeError for a user without a home directory.
    """
    if not INSTALLED:
        return PACKAGE.parent / ".agelab"
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "agelab"


def corpus_names() -> list[str]:
    """Return the names of the seeded corpora, one data file each in ``agelab/data/corpus``, sorted."""
    return sorted(path.stem for path in CORPORA.glob("*.toml"))


def layout_names() -> list[str]:
    """Return the names of the layouts, one data file each in ``scenarios/layouts``, sorted; one drive comes first."""
    names = (path.stem for path in (SCENARIOS / "layouts").glob("*.toml"))
    return sorted(names, key=lambda name: (name != "single", name))
