"""Where agelab's files are: the guest side, the data files, the templates, and the store where nobody has moved it.

In a checkout they lie beside this package; a wheel has them inside it, in ``agelab/share`` (pyproject.toml).
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORTED_FROM = PACKAGE.parent
"""What another Python needs on its path to import agelab."""
_SHARE = PACKAGE / "share"
INSTALLED = _SHARE.is_dir()
"""Whether this is an installed copy, of which there is no make and no .venv."""
_TOP = _SHARE if INSTALLED else PACKAGE.parent

HARNESS = _TOP / "harness"
IMAGES = _TOP / "images"
PACKER = _TOP / "packer"
SCENARIOS = _TOP / "scenarios"
CORPORA = PACKAGE / "corpus"
HOST_PACKAGES = PACKAGE / "host-packages.txt"


def store() -> Path:
    """The directory of kernels, images and runs where AGELAB_HOME names none.

    ``.agelab`` in the checkout; of an installed copy ``agelab`` below $XDG_DATA_HOME, by default ``~/.local/share``
    (freedesktop.org, XDG Base Directory Specification 0.8, by which a relative path there counts for nothing). Raises
    RuntimeError for a user without a home directory.
    """
    if not INSTALLED:
        return PACKAGE.parent / ".agelab"
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "agelab"
