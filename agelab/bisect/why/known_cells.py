"""Find cells that runs of the store have measured already: what was asked for once is not run again."""

from collections.abc import Collection
from typing import Any

from agelab.analysis.cells import CellResult, RunResult, load
from agelab.base.errors import InputError
from agelab.bisect.why.baseline import Baseline, narrowed
from agelab.kernel import canonical
from agelab.results import run_lookup
from agelab.results.conditions import CHOSEN, EFFORT, KERNEL, SEEDS, Conditions, files_of
from agelab.results.run_directory import RunDirectory
from agelab.run.plan.cell_inputs import drive_sources, parts_of_files
from agelab.run.plan.cell_spec import CellSpec
from agelab.run.prepare.planned import planned_cells
from agelab.run.request.options import RunOptions
from agelab.scenario.seeds import CellName
from agelab.store.artefacts import Store

NO_EFFECT = {
    "directory", "name", "filesystem", "layout", "seeds", "corpora", "design", "jobs", "timing", "boot", "erase",
    "blocks", "prove_all", "keep_disk", "profile", "until_decided", "ask", "budget", "fresh", "check",
}  # fmt: skip
"""Options that choose cells, or change none of their digits."""
VARIES = KERNEL | CHOSEN | SEEDS | EFFORT | {"profiles"}
"""Conditions in which runs may differ whose cells are held against each other; ``_asked`` says what a setting has."""


class KnownCells:
    """The cells that this store measured, of its runs of one scenario, newest runs first."""

    def __init__(self, store: Store, baseline: Baseline) -> None:
        self._baseline = baseline
        self._runs: list[tuple[dict[str, Any], RunDirectory]] = []
        for directory in run_lookup.all_runs(store.runs):
            self.add(directory)

    def add(self, directory: RunDirectory) -> bool:
        """Take a run into account; return whether it can be held against the baseline. A damaged one cannot."""
        try:
            plan = directory.plan()
            theirs = Conditions.of(plan, plan.cells[0] if plan.cells else None, directory.guest())
            if self._baseline.run.conditions[0].differences(theirs, VARIES):
                return False
            self._runs.insert(0, (self._asked(RunOptions.from_plan(plan)), directory))
        except InputError:
            return False
        return True

    def find(
        self, options: RunOptions, wanted: Collection[CellName]
    ) -> tuple[list[RunResult], set[CellName]]:
        """Return runs with the finished ones of these cells, each cell once, and the cells that none has.

        Raises InputError where a drive is not to be had or too small.
        """
        missing, found, asked = set(wanted), list[RunResult](), self._asked(options)
        specs = {one.name: one for one in planned_cells(options)}
        for words, directory in self._runs:
            if not missing or words != asked:
                continue
            try:
                run = load(directory)
            except InputError:
                continue
            there = {
                name: one
                for one in run.cells
                if one.finished
                and directory.is_own(one.number)
                and (name := one.cell.name) in specs
                and _is_of_today(one, specs[name])
            }
            if take := missing & set(there):
                found.append(narrowed(run, (there[name] for name in sorted(take))))
                missing -= take
        return found, missing

    def _asked(self, options: RunOptions) -> dict[str, Any]:
        """Return the options that shape digits, with what stands for those that are not given."""
        return {
            **options.model_dump(exclude=NO_EFFECT),
            "kernel": canonical(options.kernel),
            "scale": options.scale or "quick",
            "defaults": options.defaults or self._baseline.scenario.defaults,
            "clock": options.guest_clock,
        }


def _is_of_today(one: CellResult, spec: CellSpec) -> bool:
    """Return whether a cell was run with the machine, the drives and the modelled drive as they are now."""
    now = files_of({**parts_of_files(spec), "drive_module": {"sources": drive_sources()}}, None)
    was = files_of(one.inputs, None)
    return all(was.get(name, content) == content for name, content in now.items())
