"""The choice of colours in output. Imports nothing heavy: every verb uses it."""

import os

DUMB_TERMINALS = ("dumb", "unknown")
"""Values of TERM whose terminals understand no control sequences."""


def is_unwanted() -> bool:
    """Tell whether the user wants no colours and no bold text (no-color.org), or the terminal has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in DUMB_TERMINALS
