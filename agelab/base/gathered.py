"""Values by what they have in common."""

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, both in the order in which they come."""
    values: dict[Key, list[Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values
