"""What is on a stand-in, as the data file beside this module says it, each figure with its origin."""

from functools import cache
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from agelab import places
from agelab.corpus.random_content import ContentKind
from agelab.model.base import Frozen, Origin
from agelab.scenario import toml_files

CD = "debian-iso"
"""The kind whose size is no figure of a study: it has shares of any size instead of bytes."""


class WithOrigin(Frozen):
    """Anything with an origin, and in ``why`` what it is and what speaks for it."""

    origin: Origin
    why: str


class CorpusFigure(WithOrigin):
    """One number; ``why`` begins with its unit."""

    value: int = Field(ge=0)


class Weights(WithOrigin):
    """How likely each of several cases is; without ``names`` the cases are 1, 2, 3 ..."""

    weights: tuple[int, ...] = Field(min_length=1)
    names: tuple[str, ...] = ()


class Sizes(WithOrigin):
    """A distribution of file sizes, as points (thousandths of the files, bytes), linear in between."""

    text: ContentKind
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


class PackageFiles(Sizes):
    """The binary packages: they take the bytes that nothing else has a share of."""

    per_source: Weights
    letters: Weights


class FileGroup(Sizes):
    """Files of one sort: their number grows with the corpus, their sizes do not."""

    name: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    suffix: str
    directories: tuple[tuple[str, int], ...] = Field(description="with weights; none: the packages' own")


class CdFile(WithOrigin):
    """A file that a CD has once: its size grows with the corpus."""

    path: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    text: ContentKind


class FileSort(Sizes):
    """Files of one sort in a tree of a study: so many of so many bytes together at the study's size.

    In a smaller corpus either their number is smaller and they are as large, or they are as many and smaller.
    """

    files: CorpusFigure
    bytes: CorpusFigure
    smaller: Literal["number", "sizes"] = Field(description="what a smaller corpus has less of")
    endings: tuple[tuple[str, int], ...] = Field(min_length=1, description="of names, with weights")


class Nesting(WithOrigin):
    """Where the files of a tree lie: weights of 0, 1, 2 ... directories above them; ``each``: files in one."""

    weights: tuple[int, ...] = Field(min_length=1)
    each: int = Field(ge=1)


class DirectoryTree(Frozen):
    """A directory and what is below it. At every size as many of its files lie as deep, as many in one place."""

    path: str
    nesting: Nesting
    sorts: tuple[FileSort, ...] = Field(min_length=1)


class TarArchive(Frozen):
    """A tar archive of a tree, entries in the order of their names."""

    path: str
    gzip: bool
    bytes: CorpusFigure
    tree: DirectoryTree


class SingleFile(WithOrigin):
    """A single file: a smaller corpus has a smaller one."""

    path: str
    text: ContentKind
    bytes: int = Field(gt=0)


class CorpusDefinition(Frozen):
    """A whole stand-in."""

    kind: str
    title: str
    volume: str = Field(pattern=r"^[A-Z0-9_]{1,32}$")
    date: CorpusFigure


class Cd(CorpusDefinition):
    """The stand-in for a CD of packages, in shares of any size."""

    cap: CorpusFigure
    packages: PackageFiles
    groups: tuple[FileGroup, ...]
    singles: tuple[CdFile, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What a scenario may count on at the top: nothing, whatever lies there is copied."""
        return ()


class StudyCorpus(CorpusDefinition):
    """The stand-in for a study's data, in the study's bytes; other sizes are parts of that."""

    trees: tuple[DirectoryTree, ...] = ()
    archives: tuple[TarArchive, ...] = ()
    singles: tuple[SingleFile, ...] = ()

    @property
    def bytes(self) -> int:
        """The size at which every figure is the study's."""
        trees = sum(sort.bytes.value for tree in self.trees for sort in tree.sorts)
        archives = sum(archive.bytes.value for archive in self.archives)
        return trees + archives + sum(single.bytes for single in self.singles)

    @property
    def names(self) -> tuple[str, ...]:
        """What a scenario may count on at the top, directories with a slash."""
        found = [archive.path for archive in self.archives] + [single.path for single in self.singles]
        return tuple(sorted([*found, *(f"{tree.path}/" for tree in self.trees)]))


@cache
def definition(kind: str) -> Cd | StudyCorpus:
    """The stand-in of that kind. Raises InputError when its file is wrong."""
    path = places.CORPORA / f"{kind}.toml"
    return toml_files.read(path, Cd) if kind == CD else toml_files.read(path, StudyCorpus)
