"""Whether output may have colours. Imports nothing, so that every verb can ask."""

import os

DUMB_TERMINALS = ("dumb", "unknown")
"""Values of TERM whose terminals understand no control sequences."""


def is_unwanted() -> bool:
    """Whether the user wants no colours and no bold text (no-color.org), or the terminal has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in DUMB_TERMINALS
