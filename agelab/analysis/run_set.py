"""Runs of one question, whose cells can stand in one table: their groups by seeds, and their hosts' noise."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agelab.analysis.cells import CellResult, RunResult, SeedGroup, group_cells
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.results.conditions import CHOSEN, EFFORT, KERNEL, SEEDS, apart, grouped
from agelab.results.result import Cell, RunKernel, RunPlan
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Place

VARIES = KERNEL | SEEDS | CHOSEN | EFFORT
"""Conditions in which runs in one table differ; each group has a name by them."""
REF = 8
"""Characters of a git ref in a kernel's name."""
_REF = re.compile(r"tree:[^,]*@([^,@]+)(,.*)?")


@dataclass(frozen=True)
class RunSet:
    """Runs of one question that differ in kernel, variants, machine, drives and seeds alone."""

    runs: tuple[RunResult, ...]
    apart: str = ""
    """What keeps them from earlier runs of the same question; empty where there are none."""

    @property
    def plan(self) -> RunPlan:
        """The first run's plan: what belongs to the question is the same in all."""
        return self.runs[0].plan

    @cached_property
    def host(self) -> HostNoise:
        """The noise of their hosts; sums and means of several steps have the largest of any step."""
        return noise_of_runs(self.runs, widest=True)

    @cached_property
    def groups(self) -> tuple[SeedGroup, ...]:
        """The cells by everything but their seeds, in the order of the plans, each group with a name of its own."""
        kernels = tuple(dict.fromkeys(run.plan.kernel for run in self.runs if run.plan.kernel))
        names = dict(zip(kernels, kernel_names(kernels), strict=True))

        def key(run: RunResult, cell: Cell) -> tuple[str, ...]:
            kernel = names[run.plan.kernel] if run.plan.kernel else cell.kernel
            drives = " + ".join(cell.drives)
            return (cell.variant, cell.layout, kernel, cell.defaults, cell.machine, drives)

        found = group_cells(self.runs, key)
        return tuple(
            replace(group, name=name, host=self.host)
            for name, group in zip(distinct_names([*found]), found.values(), strict=True)
        )

    @property
    def cells(self) -> list[tuple[SeedGroup, CellResult]]:
        return [(group, one) for group in self.groups for one in group.results]

    @cached_property
    def places(self) -> list[Place]:
        """All places measured, in the order in which the first group that has them measured them."""
        return list(dict.fromkeys(place for group in self.groups for place in group.series))

    @property
    def seeds(self) -> list[Seeds]:
        """The seeds of all cells, corpus by corpus."""
        return sorted({one.seeds for run in self.runs for one in run.cells})


def run_sets(runs: Iterable[RunResult]) -> list[RunSet]:
    """Put runs of the same question together, in their order."""
    groups = grouped(runs, VARIES)
    why = apart(groups, VARIES)
    return [RunSet(tuple(group), why.get(at, "")) for at, group in enumerate(groups)]


def kernel_names(kernels: Sequence[RunKernel]) -> list[str]:
    """Name each kernel by its release; several of one release by their git ref, too, or by a number."""
    names = [kernel.release.removesuffix("-amd64") for kernel in kernels]
    refs = [_REF.fullmatch(kernel.spec) for kernel in kernels]
    named = [
        f"{name}@{ref[1][:REF]}" if ref and names.count(name) > 1 else name
        for name, ref in zip(names, refs, strict=True)
    ]
    return [
        f"{name}#{named[:at].count(name) + 1}" if named.count(name) > 1 else name
        for at, name in enumerate(named)
    ]


def distinct_names(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Name each by its first word, and by as many more as tell it from the others."""
    names = [key[0] for key in keys]
    for axis in range(1, max(map(len, keys), default=0)):
        for name in dict.fromkeys(names):
            alike = [at for at, one in enumerate(names) if one == name]
            if len({keys[at][axis] for at in alike}) > 1:
                for at in alike:
                    names[at] = f"{name} {keys[at][axis]}"
    return names
