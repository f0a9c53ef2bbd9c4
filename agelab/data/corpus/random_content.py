"""Seeded numbers and file contents that are the same on every host and in every Python.

The ``random`` module does not guarantee that (its methods have changed between releases) and floats round and print
differently, so everything here is integers from a hash stream.
"""

import hashlib
from collections.abc import Iterator, MutableSequence, Sequence
from functools import cache
from itertools import product
from typing import Any, Literal

ContentKind = Literal["packed", "prose", "source"]
"""Kinds of content: like compressed data, like a manual's text, or like program text with repeated phrases."""

PIECE = 16 << 20
"""Bytes of a file that are made at a time; each further piece of a file has its own stream."""

# 256 letters in roughly the proportions of English text: a lookup that turns hash bytes into prose,
# which compresses about as little or as much as a manual page does. Four line ends: 64 characters a line.
_OFTEN = "e27 t19 a17 o16 i15 n15 s14 h13 r13 d9 l9 c6 u6 m5 w5 f5 g4 y4 p4 b3 v2"
_LETTERS = "".join(part[0] * int(part[1:]) for part in _OFTEN.split())
_PROSE = (_LETTERS + " " * (256 - 4 - len(_LETTERS)) + "\n" * 4).encode()
# Beginnings, vowels and endings of syllables; an ending is often empty.
_SOUNDS = "b,c,d,f,g,k,l,m,n,p,r,s,t,v,x,st,gr,ch,pl,tr a,e,i,o,u,ea,io ,,,n,r,s,t,x,ck,nd"
_SYLLABLE = [part.split(",") for part in _SOUNDS.split(" ")]
_SYLLABLES = ["".join(parts) for parts in product(*_SYLLABLE)]
_SHORTEST = 8
"""Bytes of the shortest phrase of program text."""


def content(seed: int, path: str, size: int) -> bytes:
    """Return ``size`` bytes without structure for the file ``path``: as incompressible as a .deb."""
    return hashlib.shake_256(_label(seed, "content", path)).digest(size)


def prose(seed: int, path: str, size: int) -> bytes:
    """Return ``size`` bytes of lower-case text in lines for the file ``path``, as compressible as prose."""
    return content(seed, path, size).translate(_PROSE)


def source(seed: int, path: str, size: int) -> bytes:
    """Return ``size`` bytes of 256 phrases for the file ``path``: gzip reduces them to a sixth."""
    picked = content(seed, path, size // _SHORTEST + 1)
    return b"".join(map(_phrases().__getitem__, picked))[:size]


def pieces(seed: int, path: str, size: int, text: ContentKind) -> Iterator[bytes]:
    """Yield the content of the file ``path`` in pieces."""
    make = {"packed": content, "prose": prose, "source": source}[text]
    for number in range(-(-size // PIECE)):
        part = f"{path}\0{number}" if number else path
        yield make(seed, part, min(PIECE, size - number * PIECE))


class SeededRandom:
    """A stream of integers that depends only on the seed and the name of its purpose."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._label = _label(seed, "draws", purpose)
        self._count = 0

    def below(self, limit: int) -> int:
        """Draw an integer from 0 to ``limit`` - 1 (the bias of the modulo is negligible)."""
        self._count += 1
        block = hashlib.sha256(self._label + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(block[:16], "big") % limit

    def pick(self, weights: Sequence[int]) -> int:
        """Draw an index of ``weights``, with probabilities in proportion to them."""
        rest = self.below(sum(weights))
        for index, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return index
        raise AssertionError("weights do not add up")

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle ``items`` in place (Fisher and Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]

    def word(self) -> str:
        """Draw a pronounceable word of one to three syllables."""
        syllables = 1 + self.below(3)
        return "".join(part[self.below(len(part))] for _ in range(syllables) for part in _SYLLABLE)

    def name(self) -> str:
        """Draw a word of two syllables and a number, in one draw because some trees need hundreds of thousands."""
        rest, number = divmod(self.below(10**24), 100)
        rest, first = divmod(rest, len(_SYLLABLES))
        return f"{_SYLLABLES[first]}{_SYLLABLES[rest % len(_SYLLABLES)]}{number}"


@cache
def _phrases() -> list[bytes]:
    """Return 256 phrases like those of program text; the same for every seed."""
    draws = SeededRandom(0, "phrases")
    phrases: list[bytes] = []
    while len(phrases) < 256:
        words = draws.word()
        for _ in range(draws.below(2)):
            words += (" ", "_", " = ", "/", "(", ", ", "\t")[draws.below(7)] + draws.word()
        phrase = (words + (";\n", "\n", " ", ")\n")[draws.below(4)]).encode()
        if len(phrase) >= _SHORTEST:
            phrases.append(phrase)
    return phrases


def _label(seed: int, *parts: str) -> bytes:
    return "\0".join(["agelab corpus", str(seed), *parts]).encode()
