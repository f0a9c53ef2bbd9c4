"""What hosts show by chance in real time (``agelab calibrate --clock wall``): a floor that run seeds do not have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from agelab.analysis.calibration import HostFloors, host_floors
from agelab.analysis.step_kinds import Kinds, of_cell
from agelab.model.result import RunPlan
from agelab.stats.series import SeriesPair
from agelab.stats.verdict import ComparedSeries

NAMED = 6
"""Kinds of steps to name in one line."""


@dataclass(frozen=True)
class HostNoise:
    """Of the hosts on which runs were carried out; of runs of the virtual clock nothing."""

    known: tuple[HostFloors, ...] = ()
    """Of each run."""
    kinds: Kinds = field(default_factory=lambda: Kinds({}))
    """Of the steps of their cells."""
    widest: bool = False
    """Whether what no A/A has measured has the largest floor of any kind of step, and not none."""

    @property
    def unknown(self) -> list[str]:
        """Why a host's chance is in no floor."""
        return list(
            dict.fromkeys(f"floor of the run seeds alone: {one.why}" for one in self.known if one.why)
        )

    def __call__(self, row: SeriesPair) -> Fraction | None:
        """What chance makes of a difference of medians, as a share of the larger one; None where nobody knows."""
        kind, metric = self._kind(row), row.left.metric
        found = [one.shares[kind, metric] for one in self.known if (kind, metric) in one.shares]
        if not found and self.widest:
            found = [share for one in self.known for at, share in one.shares.items() if at[1] == metric]
        return max(found, default=None)

    def uncovered(self, rows: Sequence[ComparedSeries]) -> list[str]:
        """What is called different although no A/A of a host that is known has measured such steps."""
        found = dict.fromkeys(
            f"{one.row.left.metric} of {self._kind(one.row)}"
            for one in rows
            if self.known and not self.unknown and one.differs and self(one.row) is None
        )
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        said = f"{', '.join(list(found)[:NAMED])}{more}"
        return [f"floor of the run seeds alone, for no A/A of this host has it: {said}"] if found else []

    def _kind(self, row: SeriesPair) -> str:
        return self.kinds.of(row.left.step)


def noise_of(
    home: Path, plans: Iterable[RunPlan], inputs: Mapping[str, Any], *, widest: bool = False
) -> HostNoise:
    """Of runs in a store, and of the inputs of one of their cells. Raises InputError for a damaged record."""
    real = [plan for plan in plans if plan.clock == "wall"]
    return HostNoise(tuple(host_floors(home, plan) for plan in real), of_cell(inputs), widest)
