"""What the verbs print. Here is the choice of colours alone, which every verb takes: it imports nothing heavy."""

import os

DUMB_TERMINALS = ("dumb", "unknown")
"""Values of TERM whose terminals understand no control sequences."""


def colour_unwanted() -> bool:
    """Return True if the user wants no colours and no bold text (no-color.org), or the terminal has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in DUMB_TERMINALS
