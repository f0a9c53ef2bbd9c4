"""The differences between two cells: their inputs by name, their samples, and how they ended."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from agelab.analysis.cells import CellResult, SeedGroup
from agelab.results.conditions import PHASES
from agelab.results.result import Sample


@dataclass(frozen=True)
class ValueDifference:
    """One place in which two cells differ; None stands for a value that one of them does not have."""

    place: str
    left: Any
    right: Any

    @property
    def name(self) -> str:
        """The input that the place is in: ``making.qemu`` of ``making.qemu.command[12]``."""
        words = [word.partition("[")[0] for word in self.place.split(".")]
        return ".".join(words[: 2 if words[0] in PHASES else 1])

    @property
    def list_changes(self) -> tuple[list[Any], list[Any]] | None:
        """Items removed from and added to the right-hand list; None where the values are no lists."""
        if not (isinstance(self.left, list) and isinstance(self.right, list)):
            return None
        before, after = ([str(word) for word in side] for side in (self.left, self.right))
        removed: list[Any] = []
        added: list[Any] = []
        for _, a, b, c, d in (c for c in SequenceMatcher(None, before, after, False).get_opcodes() if c[0] != "equal"):
            removed += self.left[a:b]
            added += self.right[c:d]
        return removed, added


def diff_inputs(left: Any, right: Any, place: str = "") -> Iterator[ValueDifference]:
    """Yield each differing leaf of two input records with its place: ``seeds.run``, ``qemu.command[12]``.

    Lists of different length are one difference, with its ``list_changes``. 1, 1.0 and true are three values: a cell's
    key is the hash of the text.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}):
            yield from diff_inputs(left.get(key), right.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (left_part, right_part) in enumerate(zip(left, right, strict=True)):
            yield from diff_inputs(left_part, right_part, f"{place}[{number}]")
    elif type(left) is not type(right) or left != right:
        yield ValueDifference(place, left, right)


def diff_samples(left: Sequence[Sample], right: Sequence[Sample]) -> list[ValueDifference]:
    """List each sample that only one side has, or that has another value on the other side."""

    ours, theirs = _values(left), _values(right)
    return [
        ValueDifference(" ".join(map(str, place)), ours.get(place), theirs.get(place))
        for place in dict.fromkeys([*ours, *theirs])
        if ours.get(place) != theirs.get(place)
    ]


def _values(samples: Sequence[Sample]) -> dict[tuple[str, int, str], Any]:
    return {(sample.step, sample.repetition, sample.metric): sample.value for sample in samples}


@dataclass(frozen=True)
class CellPair:
    """Two cells side by side: one cell in two runs, the same cell run twice (A/A), or two variants."""

    left: CellResult
    right: CellResult

    @cached_property
    def inputs(self) -> list[ValueDifference]:
        """The leaves of their inputs that differ."""
        return list(diff_inputs(self.left.inputs, self.right.inputs))

    @cached_property
    def samples(self) -> list[ValueDifference]:
        return diff_samples(self.left.samples, self.right.samples)

    @property
    def compared(self) -> int:
        """The number of samples on either side."""
        return len(_values((*self.left.samples, *self.right.samples)))

    @property
    def unfinished(self) -> list[str]:
        """The runs in which the cell did not come to its end."""
        return [cell.run for cell in (self.left, self.right) if not cell.finished]

    @property
    def virtual(self) -> bool:
        return self.left.virtual and self.right.virtual

    @cached_property
    def endings(self) -> list[ValueDifference]:
        """The differences of their end records: status, digest, hashes of maps."""
        left, right = (
            cell.end.model_dump(mode="json", include={"status", "digest", "maps"}) if cell.end else {}
            for cell in (self.left, self.right)
        )
        return list(diff_inputs(left, right))

    @property
    def equal(self) -> bool:
        """True if both are finished and nothing differs: no input, no sample, no end record."""
        return not (self.unfinished or self.inputs or self.samples or self.endings)

    @property
    def proven(self) -> bool:
        """True if the same cell run twice (A/A) measured something, and the same both times."""
        return self.equal and self.compared > 0

    @property
    def broken(self) -> bool:
        """True if finished cells of equal inputs differ in guest time, which breaks the promise of agelab."""
        return not self.unfinished and self.virtual and not self.inputs and not self.equal


def pair_by_seed(left: SeedGroup, right: SeedGroup) -> list[CellPair]:
    """Pair the cells of equal seeds; where none are equal, the first of each."""
    common = [CellPair(cell, right.cells[at]) for at, cell in left.cells.items() if at in right.cells]
    return common or [CellPair(next(iter(left.cells.values())), next(iter(right.cells.values())))]
