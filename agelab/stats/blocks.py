"""Two sides block by block: a block is a corpus that both have measured, for only values of one corpus are compared."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from agelab.scenario.seeds import Seeds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """The values of A and of B on one corpus; neither is empty."""

    corpus: int
    left: tuple[Fraction, ...]
    right: tuple[Fraction, ...]

    @property
    def size(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    @cached_property
    def floats(self) -> "tuple[Floats, Floats]":
        """Both sides as floats, for their order alone: equal fractions are equal floats."""
        import numpy as np

        return np.array(self.left, float), np.array(self.right, float)


def common_blocks(
    left: Iterable[tuple[Seeds, Fraction]], right: Iterable[tuple[Seeds, Fraction]]
) -> tuple[Block, ...]:
    """Sort the values of two sides by corpus, and leave out what only one of them has."""
    sides: tuple[dict[int, list[Fraction]], dict[int, list[Fraction]]] = ({}, {})
    for found, values in zip(sides, (left, right), strict=True):
        for seeds, value in values:
            found.setdefault(seeds.corpus, []).append(value)
    ours, theirs = sides
    return tuple(
        Block(corpus, tuple(ours[corpus]), tuple(theirs[corpus]))
        for corpus in sorted(ours.keys() & theirs.keys())
    )
