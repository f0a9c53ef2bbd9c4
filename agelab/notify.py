"""Callbacks that take one line for the user."""

from collections.abc import Callable

Notify = Callable[[str], None]
"""Called with one short line at the start of each stage that takes a while."""


def silent(line: str) -> None:
    """Ignore the line."""
