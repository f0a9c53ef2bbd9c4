"""What is on a stand-in, as the data file beside this module says it, each figure with its origin."""

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from agelab.model.base import Frozen, Origin
from agelab.scenario import files

Text = Literal["packed", "prose"]
"""Whether content looks like compressed data or like text."""


class Stated(Frozen):
    """Anything with an origin, and in ``why`` what it is and what speaks for it."""

    origin: Origin
    why: str


class Figure(Stated):
    """One number; ``why`` begins with its unit."""

    value: int = Field(ge=0)


class Weights(Stated):
    """How likely each of several cases is; without ``names`` the cases are 1, 2, 3 ..."""

    weights: tuple[int, ...] = Field(min_length=1)
    names: tuple[str, ...] = ()


class Sizes(Stated):
    """A distribution of file sizes, as points (thousandths of the files, bytes), linear in between."""

    text: Text
    sizes: tuple[tuple[int, int], ...] = Field(min_length=2)

    @model_validator(mode="after")
    def rising(self) -> Self:
        """A distribution goes from 0 to 1000 and never down."""
        shares, sizes = [point[0] for point in self.sizes], [point[1] for point in self.sizes]
        if shares[0] != 0 or shares[-1] != 1000 or shares != sorted(set(shares)) or sizes != sorted(sizes):
            raise ValueError("the points of sizes must rise from 0 to 1000")
        return self

    def total(self, files: int) -> int:
        """The bytes that so many files come to, on average."""
        pairs = pairwise(self.sizes)
        return files * sum((b[0] - a[0]) * (a[1] + b[1]) for a, b in pairs) // 2000

    def at(self, place: int, whole: int) -> int:
        """The size, in bytes, that ``place`` of ``whole`` files stay below."""
        for (low, small), (high, large) in pairwise(self.sizes):
            if place * 1000 <= high * whole:
                return small + (large - small) * (place * 1000 - low * whole) // ((high - low) * whole)
        return self.sizes[-1][1]


class Packages(Sizes):
    """The binary packages: they take the bytes that nothing else has a share of."""

    per_source: Weights
    letters: Weights


class Group(Sizes):
    """Files of one sort: their number grows with the corpus, their sizes do not."""

    name: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    suffix: str
    directories: tuple[tuple[str, int], ...] = Field(description="with weights; none: the packages' own")


class Single(Stated):
    """A file that a CD has once: its size grows with the corpus."""

    path: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    text: Text


class Definition(Frozen):
    """A whole stand-in."""

    kind: str
    title: str
    volume: str = Field(pattern=r"^[A-Z0-9_]{1,32}$")
    date: Figure
    cap: Figure
    packages: Packages
    groups: tuple[Group, ...]
    singles: tuple[Single, ...]


@cache
def definition(kind: str) -> Definition:
    """The stand-in of that kind. Raises InputError when its file is wrong."""
    return files.read(Path(__file__).with_name(f"{kind}.toml"), Definition)
