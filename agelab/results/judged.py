"""A comparison's tables: what may be said of each step, and what must stand beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from agelab.errors import InputError
from agelab.results import comparable, kinds
from agelab.results.aa import HostFloors, host_floors
from agelab.results.compare import Group
from agelab.results.sides import Comparison
from agelab.stats.compared import Compared, against
from agelab.stats.series import Row, by_step, series

NAMED = 6
"""Groups, or kinds of steps, to name in one line."""


@dataclass(frozen=True)
class Judged:
    """One side against the base."""

    steps: list[Compared]
    """A row for each step and metric: of a step that is repeated the mean."""
    repetitions: list[Compared]
    """A row for each repetition of those; nothing where they were not asked for."""

    @property
    def rows(self) -> list[Compared]:
        """All of it."""
        return [*self.steps, *self.repetitions]


@dataclass(frozen=True)
class HostFloor:
    """What chance makes of a difference in real time, on the hosts on which the sides were measured."""

    home: Path
    base: Group
    others: Sequence[Group]
    known: list[HostFloors] = field(init=False)
    """Of each run; nothing in the virtual clock."""

    def __post_init__(self) -> None:
        plans = {group.run.name: group.run.plan() for group in (self.base, *self.others)}
        real = [plan for plan in plans.values() if plan.clock == "wall"]
        object.__setattr__(self, "known", [host_floors(self.home, plan) for plan in real])

    @property
    def unknown(self) -> list[str]:
        """Why a host's chance is in no floor below."""
        return list(
            dict.fromkeys(f"floor of the run seeds alone: {one.why}" for one in self.known if one.why)
        )

    def __call__(self, row: Row) -> Fraction | None:
        """The largest of the step's kind, as a share of the larger median."""
        found = [one.floor(self._kind(row), row.left.metric) for one in self.known]
        return max((share for share in found if share is not None), default=None)

    def uncovered(self, rows: Sequence[Compared]) -> list[str]:
        """What is called different although no A/A of a host that is known has measured such steps."""
        found = dict.fromkeys(
            f"{one.row.left.metric} of {self._kind(one.row)}"
            for one in rows
            if self.known and not self.unknown and one.differs and self(one.row) is None
        )
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        said = f"{', '.join(list(found)[:NAMED])}{more}"
        return [f"floor of the run seeds alone, for no A/A of this host has it: {said}"] if found else []

    def _kind(self, row: Row) -> str:
        return self._kinds.of(row.left.step)

    @cached_property
    def _kinds(self) -> kinds.Kinds:
        return kinds.of_cell(next(iter(self.base.cells.values())).inputs)


def judged(one: Comparison, host: HostFloor, everything: bool) -> list[Judged]:
    """Of each other side what may be said of it; of each repetition with ``everything`` alone."""
    tables = [series(group.counted) for group in (one.base, *one.others)]
    base, *others = map(by_step, tables)
    steps = against(base, others, host)
    repeated = {(step, metric) for table in tables for step, turn, metric in table if turn > 1}
    base, *others = (
        {place: found for place, found in table.items() if everything and (place[0], place[2]) in repeated}
        for table in tables
    )
    return [Judged(*both) for both in zip(steps, against(base, others, host), strict=True)]


def labels(one: Group, other: Group, anyway: bool) -> list[str]:
    """What a table of these two must be labelled with. Raises InputError for what is not comparable, unless told."""
    ours, theirs = one.run.plan(), other.run.plan()
    unlike = comparable.unlike(ours, theirs)
    if unlike and not anyway:
        raise InputError(
            f"{one.run.name} and {other.run.name} are not comparable: {'; '.join(unlike)}",
            hint="--anyway compares them all the same, and labels the tables",
        )
    found = [f"NOT COMPARABLE: {line}" for line in unlike]
    if ours.clock == theirs.clock == "wall":
        found += comparable.real_time(ours, theirs)
    if one.run.name == other.run.name and one.cell == other.cell:
        found.append("A and B are the same cells: no difference can show, the floor is their spread")
    return found


def nothing_counts(found: Sequence[Comparison], of_one: bool) -> InputError:
    """The error where no side has an ok cell to compare with the base's: which have none, and why.

    ``of_one``: all sides are of one run, which has other ones for a base.
    """
    empty = [group for one in found for group in (one.base, *one.others) if not group.counted]
    why: dict[tuple[str, str], list[str]] = {}
    for group in empty:
        reasons = "; ".join(dict.fromkeys(ran.ended for ran in group.cells.values()))
        why.setdefault((group.run.name, reasons), []).append(group.name)
    lines = []
    for (run, reasons), names in why.items():
        named = list(dict.fromkeys(names))
        more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        lines.append(f"no cell of {'; '.join(named[:NAMED])}{more} of {run} is ok ({reasons})")
    ok = [group for one in found for group in one.others if group.counted]
    hint = "agelab list shows how far a run is" if any(group.run.going_on() for group in empty) else ""
    if len(ok) > 1 and of_one:
        hint = f"--base {ok[0].variant}: that one has ok cells, and is not alone in it"
    return InputError(". ".join(lines), hint=hint)
