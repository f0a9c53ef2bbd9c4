"""Seeded numbers and file contents that are the same on every host and in every Python.

The ``random`` module promises no such thing (its methods have changed between releases), floats print
and round differently, so everything here is a hash stream read as integers.
"""

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import Any

# 256 letters in roughly the proportions of English text: a lookup that turns hash bytes into prose,
# which compresses about as little or as much as a manual page does. Four line ends: 64 characters a line.
_OFTEN = "e27 t19 a17 o16 i15 n15 s14 h13 r13 d9 l9 c6 u6 m5 w5 f5 g4 y4 p4 b3 v2"
_LETTERS = "".join(part[0] * int(part[1:]) for part in _OFTEN.split())
_PROSE = (_LETTERS + " " * (256 - 4 - len(_LETTERS)) + "\n" * 4).encode()


def content(seed: int, path: str, size: int) -> bytes:
    """``size`` bytes for the file ``path``, without structure: they compress no better than a .deb does."""
    return hashlib.shake_256(_label(seed, "content", path)).digest(size)


def prose(seed: int, path: str, size: int) -> bytes:
    """``size`` bytes of lower-case text in lines for the file ``path``: they compress as text does."""
    return content(seed, path, size).translate(_PROSE)


class Draws:
    """A stream of whole numbers that depends on the seed and on the name of its purpose alone."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._label = _label(seed, "draws", purpose)
        self._count = 0

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1 (the division has no bias that could be seen)."""
        self._count += 1
        block = hashlib.sha256(self._label + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(block[:16], "big") % limit

    def pick(self, weights: Sequence[int]) -> int:
        """An index of ``weights``, each as likely as its weight says."""
        rest = self.below(sum(weights))
        for index, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return index
        raise AssertionError("weights do not add up")

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Bring ``items`` into a random order (Fisher and Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def _label(seed: int, *parts: str) -> bytes:
    return "\0".join(["agelab corpus", str(seed), *parts]).encode()
