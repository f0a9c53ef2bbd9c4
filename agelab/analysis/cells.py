"""What differs between two cells: first their inputs, by name, then their samples. And which cells to compare."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from agelab.model.result import Cell, End, Sample, Status
from agelab.results.run_directory import RunDirectory

HEADLINES = (
    "elapsed",
    "throughput_ratio",
    "slowdown",
    "layout_score",
    "dynamic_layout_score",
    "locality_score",
    "extents",
    "fragmented_files",
    "free_extents",
    "free_usable_1mib",
    "space_used",
)
"""The metrics that a table of statistics shows, in its order; programs and ``--all`` get every metric."""

PHASES = ("making", "measuring")
"""What a cell's inputs are sorted by, before their own names."""


@dataclass(frozen=True)
class ValueDifference:
    """One place in which two cells differ; None stands for what one of them does not have."""

    place: str
    left: Any
    right: Any

    @property
    def name(self) -> str:
        """The input that the place is in: ``making.qemu`` of ``making.qemu.command[12]``."""
        words = [word.partition("[")[0] for word in self.place.split(".")]
        return ".".join(words[: 2 if words[0] in PHASES else 1])

    @property
    def words(self) -> tuple[list[Any], list[Any]] | None:
        """Of two lists what the right one lacks, and what it has instead or besides; None where they are no lists."""
        if not (isinstance(self.left, list) and isinstance(self.right, list)):
            return None
        one, other = ([str(word) for word in side] for side in (self.left, self.right))
        removed: list[Any] = []
        added: list[Any] = []
        for _, a, b, c, d in (
            c for c in SequenceMatcher(None, one, other, False).get_opcodes() if c[0] != "equal"
        ):
            removed += self.left[a:b]
            added += self.right[c:d]
        return removed, added


def inputs(left: Any, right: Any, place: str = "") -> Iterator[ValueDifference]:
    """Each differing leaf of two input records, with its place: ``seeds.run``, ``qemu.command[12]``.

    Lists of different length are one difference; its ``words`` tell what came and what went. 1, 1.0 and true are three
    values: a cell's key is the hash of what is written.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}):
            yield from inputs(left.get(key), right.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from inputs(one, other, f"{place}[{number}]")
    elif type(left) is not type(right) or left != right:
        yield ValueDifference(place, left, right)


def samples(left: Sequence[Sample], right: Sequence[Sample]) -> list[ValueDifference]:
    """Each sample that one has and the other has not, or has with another value."""

    def table(rows: Sequence[Sample]) -> dict[tuple[str, int, str], Any]:
        return {(row.step, row.repetition, row.metric): row.value for row in rows}

    one, other = table(left), table(right)
    return [
        ValueDifference(
            f"{step} {repetition} {metric}",
            one.get((step, repetition, metric)),
            other.get((step, repetition, metric)),
        )
        for step, repetition, metric in dict.fromkeys([*one, *other])
        if one.get((step, repetition, metric)) != other.get((step, repetition, metric))
    ]


@dataclass(frozen=True)
class CellResult:
    """A cell as its run left it."""

    run: str
    virtual: bool
    """Whether its time is the guest's own, so that equal inputs must give equal samples."""
    cell: Cell
    end: End | None
    inputs: Mapping[str, Any]
    samples: tuple[Sample, ...]

    @property
    def finished(self) -> bool:
        """Whether it said all that it had to say: only then are its samples what its inputs make."""
        return self.end is not None and self.end.status is not Status.INTERRUPTED

    @property
    def ok(self) -> bool:
        """Whether its samples count in a statistic."""
        return self.end is not None and self.end.status is Status.OK

    @property
    def why(self) -> str:
        """Why they do not count, where they do not."""
        if self.end is None:
            return "not ended" if self.inputs else "not begun"
        return " ".join((self.end.reason or self.end.status.value).split())

    @property
    def ended(self) -> str:
        """How it ended, with the reason; or that it has not."""
        return f"{self.end.status}: {self.why}" if self.end and self.end.reason else self.why


@dataclass(frozen=True)
class CellPair:
    """Two cells side by side: one cell in two runs, the same cell carried out twice (A/A), or two variants."""

    left: CellResult
    right: CellResult

    @cached_property
    def inputs(self) -> list[ValueDifference]:
        """The leaves of their inputs that differ."""
        return list(inputs(self.left.inputs, self.right.inputs))

    @cached_property
    def samples(self) -> list[ValueDifference]:
        """The samples that differ."""
        return samples(self.left.samples, self.right.samples)

    @property
    def compared(self) -> int:
        """How many samples there are on either side."""
        return len(
            {(row.step, row.repetition, row.metric) for ran in (self.left, self.right) for row in ran.samples}
        )

    @property
    def unfinished(self) -> list[str]:
        """The runs in which the cell did not come to its end."""
        return [ran.run for ran in (self.left, self.right) if not ran.finished]

    @property
    def virtual(self) -> bool:
        return self.left.virtual and self.right.virtual

    @cached_property
    def endings(self) -> list[ValueDifference]:
        """What differs of how they ended: status, digest, hashes of what came back."""
        left, right = (
            ran.end.model_dump(mode="json", include={"status", "digest", "maps"}) if ran.end else {}
            for ran in (self.left, self.right)
        )
        return list(inputs(left, right))

    @property
    def equal(self) -> bool:
        """Whether they are finished and nothing at all differs: inputs, every sample, how they ended."""
        return not (self.unfinished or self.inputs or self.samples or self.endings)

    @property
    def broken(self) -> bool:
        """Whether finished cells of equal inputs differ in guest time, which must not be."""
        return not self.unfinished and self.virtual and not self.inputs and not self.equal


@dataclass(frozen=True)
class SeedGroup:
    """The cells of one run that differ in nothing but their run seed."""

    run: RunDirectory
    variant: str
    layout: str
    cells: Mapping[int, CellResult]
    """Run seed to cell."""

    @property
    def counted(self) -> list[tuple[int, Sequence[Sample]]]:
        """Run seed and samples of the cells that are ok."""
        return [(seed, ran.samples) for seed, ran in self.cells.items() if ran.ok]

    @property
    def begun(self) -> bool:
        """Whether any of them has: before that there are not even inputs to compare."""
        return any(ran.inputs or ran.end for ran in self.cells.values())

    @property
    def cell(self) -> Cell:
        """What they are, but for the seed."""
        return next(iter(self.cells.values())).cell

    @property
    def name(self) -> str:
        return f"{self.variant}, {self.layout}"


def groups(run: RunDirectory) -> list[SeedGroup]:
    """The run's cells by what they are, their run seed apart."""
    plan, ends, found = run.read_all()
    sorted_out: dict[Cell, dict[int, CellResult]] = {}
    for number, cell in enumerate(plan.cells):
        rows = tuple(found.get(number, ()))
        ran = CellResult(run.name, plan.clock == "virtual", cell, ends[number], run.inputs(number), rows)
        sorted_out.setdefault(cell.model_copy(update={"seed": 0}), {})[cell.seed] = ran
    return [SeedGroup(run, cell.variant, cell.layout, cells) for cell, cells in sorted_out.items()]


def pairs(
    ours: Sequence[SeedGroup], theirs: Sequence[SeedGroup], named: bool
) -> list[tuple[SeedGroup, SeedGroup]]:
    """The groups that belong together: of equal variant and layout, or else of equal variant.

    ``named``: the user has named the variant on each side, so that they need not be equal.
    """

    rest, found = list(theirs), dict[int, SeedGroup]()
    for same_layout in (True, False):
        for place, one in enumerate(ours):
            fitting = (
                other
                for other in rest
                if (named or one.variant == other.variant) and (one.layout == other.layout or not same_layout)
            )
            if place not in found and (other := next(fitting, None)):
                rest.remove(other)
                found[place] = other
    return [(ours[place], other) for place, other in sorted(found.items())]


def by_seed(one: SeedGroup, other: SeedGroup) -> list[CellPair]:
    """The cells of equal run seed; where no seed is equal, the first of each."""
    common = [CellPair(cell, other.cells[seed]) for seed, cell in one.cells.items() if seed in other.cells]
    return common or [CellPair(next(iter(one.cells.values())), next(iter(other.cells.values())))]
