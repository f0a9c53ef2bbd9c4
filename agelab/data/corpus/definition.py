"""The definitions of stand-ins, read from the data files beside this module: each figure has its origin."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from agelab.base import places
from agelab.base.errors import InputError, unknown
from agelab.base.types import Frozen, WithOrigin
from agelab.data.corpus.random_content import ContentKind
from agelab.scenario import toml_files

CD = "debian-iso"
"""The kind without a study's size: its files are shares of any size."""


class CorpusFigure(WithOrigin):
    """One number; ``why`` begins with its unit."""

    value: int = Field(ge=0)


class Weights(WithOrigin):
    """The relative frequency of several cases; without ``names`` the cases are 1, 2, 3 ..."""

    weights: tuple[int, ...] = Field(min_length=1)
    names: tuple[str, ...] = ()


class Sizes(WithOrigin):
    """A distribution of file sizes, as points (thousandths of the files, bytes) with lines between them."""

    text: ContentKind
    sizes: tuple[tuple[int, int], ...] = Field(min_length=2)

    @model_validator(mode="after")
    def rising(self) -> Self:
        """Raise ValueError unless the points rise from 0 to 1000."""
        shares, sizes = [point[0] for point in self.sizes], [point[1] for point in self.sizes]
        if shares[0] != 0 or shares[-1] != 1000 or shares != sorted(set(shares)) or sizes != sorted(sizes):
            raise ValueError("the points of sizes must rise from 0 to 1000")
        return self

    def total(self, files: int) -> int:
        """Return the total bytes of so many files, on average."""
        pairs = pairwise(self.sizes)
        return files * sum((b[0] - a[0]) * (a[1] + b[1]) for a, b in pairs) // 2000

    def at(self, place: int, whole: int) -> int:
        """Return the size, in bytes, below which ``place`` of ``whole`` files lie."""
        for (low, small), (high, large) in pairwise(self.sizes):
            if place * 1000 <= high * whole:
                return small + (large - small) * (place * 1000 - low * whole) // ((high - low) * whole)
        return self.sizes[-1][1]


class PackageFiles(Sizes):
    """The binary packages, which take the bytes that no other share takes."""

    per_source: Weights
    letters: Weights


class FileGroup(Sizes):
    """Files of one sort, whose number grows with the corpus and whose sizes do not."""

    name: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    suffix: str
    directories: tuple[tuple[str, int], ...] = Field(description="with weights; none: those of the packages")


class CdFile(WithOrigin):
    """A single file of a CD, whose size grows with the corpus."""

    path: str
    share: int = Field(gt=0, description="parts per 100000 of the corpus")
    text: ContentKind


class FileSort(Sizes):
    """Files of one sort in a tree of a study: their number and total bytes at the study's size.

    A smaller corpus has either fewer of them or smaller ones.
    """

    files: CorpusFigure
    bytes: CorpusFigure
    smaller: Literal["number", "sizes"] = Field(description="what is smaller in a smaller corpus")
    endings: tuple[tuple[str, int], ...] = Field(min_length=1, description="endings of names, with weights")


class Nesting(WithOrigin):
    """The depth of files in a tree: weights of 0, 1, 2 ... directories above them; ``each``: files per directory."""

    weights: tuple[int, ...] = Field(min_length=1)
    each: int = Field(ge=1)


class DirectoryTree(Frozen):
    """A directory tree. The shares of files at each depth, and the files per directory, are the same at any size."""

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
    """A single file of a study, whose size shrinks with the corpus."""

    path: str
    text: ContentKind
    bytes: int = Field(gt=0)


class CorpusDefinition(Frozen):
    """A stand-in."""

    kind: str
    title: str
    volume: str = Field(pattern=r"^[A-Z0-9_]{1,32}$")
    date: CorpusFigure

    def with_files(self, files: Mapping[str, int]) -> Self:
        """Return it with other numbers of files in some trees. Raises InputError for a tree that it has not."""
        if files:
            raise InputError(f"corpus {self.kind}: files: it has no trees of a study")
        return self


class Cd(CorpusDefinition):
    """The stand-in for a CD of packages, of any size."""

    cap: CorpusFigure
    packages: PackageFiles
    groups: tuple[FileGroup, ...]
    singles: tuple[CdFile, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names at the top that a scenario may rely on: none, scenarios copy whatever is there."""
        return ()


class StudyCorpus(CorpusDefinition):
    """The stand-in for a study's data, defined at the study's size and scaled down from it."""

    trees: tuple[DirectoryTree, ...] = ()
    archives: tuple[TarArchive, ...] = ()
    singles: tuple[SingleFile, ...] = ()

    @property
    def bytes(self) -> int:
        """The size at which every figure is the study's."""
        trees = sum(sort.bytes.value for tree in self.trees for sort in tree.sorts)
        archives = sum(archive.bytes.value for archive in self.archives)
        return trees + archives + sum(single.bytes for single in self.singles)

    def with_files(self, files: Mapping[str, int]) -> Self:
        """Return it with so many files in these trees, of one sort each; their bytes together stay.

        Raises InputError for a tree that it has not, and for a number that its bytes do not make.
        """
        single = {tree.path: tree for tree in self.trees if len(tree.sorts) == 1}
        if strange := [path for path in files if path not in single]:
            raise InputError(f"corpus {self.kind}: files: {unknown('tree of one sort', strange[0], [*single])}")
        trees = []
        for tree in self.trees:
            [*sorts] = tree.sorts
            if tree.path in files:
                most = sorts[0].bytes.value
                if not 1 <= files[tree.path] <= most:
                    raise InputError(
                        f"corpus {self.kind}: files: {tree.path}: {files[tree.path]} files are not 1 to {most}, "
                        "one for each of its bytes"
                    )
                count = sorts[0].files.model_copy(update={"value": files[tree.path]})
                sorts = [sorts[0].model_copy(update={"files": count})]
            trees.append(tree.model_copy(update={"sorts": tuple(sorts)}))
        return self.model_copy(update={"trees": tuple(trees)})

    @property
    def names(self) -> tuple[str, ...]:
        """Names at the top that a scenario may rely on, directories with a slash."""
        paths = [archive.path for archive in self.archives] + [single.path for single in self.singles]
        return tuple(sorted([*paths, *(f"{tree.path}/" for tree in self.trees)]))


@cache
def definition(kind: str) -> Cd | StudyCorpus:
    """Read the stand-in of a kind. Raises InputError when its file is wrong."""
    path = places.CORPORA / f"{kind}.toml"
    return toml_files.read(path, Cd) if kind == CD else toml_files.read(path, StudyCorpus)
