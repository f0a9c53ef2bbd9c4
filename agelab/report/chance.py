"""What hosts show by chance in real time (``agelab calibrate --clock wall``): a floor that run seeds do not have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from agelab.model.result import RunPlan
from agelab.results.aa import HostFloors, host_floors
from agelab.results.kinds import Kinds, of_cell
from agelab.results.rundir import RunDirectory
from agelab.stats.series import Row


@dataclass(frozen=True)
class Chance:
    """Of the hosts on which runs were carried out; of runs of the virtual clock nothing."""

    known: tuple[HostFloors, ...] = ()
    kinds: Kinds = field(default_factory=lambda: Kinds({}))

    @property
    def why(self) -> list[str]:
        """Why a host's chance is in no floor."""
        return list(dict.fromkeys(one.why for one in self.known if one.why))

    def __call__(self, row: Row) -> Fraction | None:
        """A difference of medians that chance makes, as a share of the median.

        Of what is no single step of a cell, as the mean of all tests, it is the largest of any kind of step.
        """
        metric = row.left.metric
        kind = self.kinds.of(row.left.step)
        found = [one.floor(kind, metric) for one in self.known]
        if all(one is None for one in found):
            found = [
                share for one in self.known for (_, other), share in one.shares.items() if other == metric
            ]
        return max((share for share in found if share is not None), default=None)


def of(runs: Sequence[tuple[Path, RunPlan]]) -> Chance:
    """Of runs and where they lie. Raises InputError for a host's record that is damaged."""
    real = [(path, plan) for path, plan in runs if plan.clock == "wall"]
    inputs = next((said for path, plan in real for said in _inputs(path, plan)), {})
    return Chance(tuple(host_floors(path.parent.parent, plan) for path, plan in real), of_cell(inputs))


def _inputs(path: Path, plan: RunPlan) -> Iterator[dict[str, object]]:
    for number in range(len(plan.cells)):
        if found := RunDirectory(path).inputs(number):
            yield found
