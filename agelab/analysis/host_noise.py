"""The noise of hosts in the wall clock (``agelab calibrate --clock wall``): a floor under every difference there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from agelab.analysis.calibration import HostFloors, host_floors
from agelab.base.errors import name_some
from agelab.results.result import RunPlan
from agelab.results.run_directory import RunDirectory
from agelab.stats.series import SeriesPair
from agelab.stats.verdict import ComparedSeries

NAMED = 6
"""Steps to name in one line."""


@dataclass(frozen=True)
class HostNoise:
    """The noise that A/A has shown of the hosts of some runs; empty for runs of the virtual clock."""

    known: tuple[HostFloors, ...] = ()
    """One for each run of the wall clock."""
    widest: bool = False
    """Give a step that no A/A has measured (a sum of steps above all) the largest floor of any step, and not none."""

    @property
    def unknown(self) -> list[str]:
        """Labels for hosts whose noise is not known, with the reason."""
        return list(
            dict.fromkeys(f"without a floor of the host: {floors.why}" for floors in self.known if floors.why)
        )

    def share(self, step: str, metric: str) -> Fraction | None:
        """Return how far values of a step spread by chance, as a share of their median; None where unknown."""
        shares = [floors.shares[step, metric] for floors in self.known if (step, metric) in floors.shares]
        if not shares and self.widest:
            shares = [
                share for floors in self.known for at, share in floors.shares.items() if at[1] == metric
            ]
        return max(shares, default=None)

    def __call__(self, pair: SeriesPair) -> Fraction | None:
        """Return the share of a pair's step."""
        return self.share(pair.left.step, pair.left.metric)

    def labels(self, rows: Sequence[ComparedSeries]) -> list[str]:
        """List the labels of a table of these rows: whose noise is not known, and which verdicts no A/A covers."""
        return [*self.unknown, *self._uncovered(rows)]

    def _uncovered(self, rows: Sequence[ComparedSeries]) -> list[str]:
        """Name what is called different although no A/A of a known host has measured such steps."""
        uncovered = dict.fromkeys(
            f"{compared.row.left.metric} of {compared.row.left.step}"
            for compared in rows
            if self.known and not self.unknown and compared.differs and self(compared.row) is None
        )
        label = f"without a floor of the host, for no A/A of it has it: {name_some(list(uncovered), NAMED)}"
        return [label] if uncovered else []


class HasPlan(Protocol):
    """A run with its plan (``agelab.analysis.cells.RunResult``)."""

    @property
    def directory(self) -> RunDirectory: ...

    @property
    def plan(self) -> RunPlan: ...


def noise_of_runs(runs: Iterable[HasPlan], *, widest: bool = False) -> HostNoise:
    """Look up the noise of runs of one scenario. Raises InputError for a damaged record."""
    real = [run for run in runs if run.plan.clock == "wall"]
    return HostNoise(tuple(host_floors(run.directory.home, run.plan) for run in real), widest)
