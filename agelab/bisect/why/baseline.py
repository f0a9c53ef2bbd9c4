"""The claim of a run whose verdict is asked about, and the cells that it rests on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agelab.analysis.cells import CellResult, RunResult
from agelab.analysis.published.claim_verdict import ClaimVerdict, JudgedClaim, judge_claim, stand_ins_run
from agelab.analysis.published.claims import Claim
from agelab.analysis.published.run_columns import Key, RunColumn
from agelab.analysis.published.study import Study, study_of_scenario
from agelab.analysis.published.values import OurValues
from agelab.base.errors import InputError, unknown
from agelab.base.places import layout_names
from agelab.base.types import LayoutName
from agelab.machine import qemu
from agelab.results.conditions import text
from agelab.runner.execute.run_plan import profiles_hash, scenario_hash
from agelab.runner.plan.cell_inputs import harness_hash
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells, resolve
from agelab.scenario.scenario import Scenario
from agelab.scenario.seeds import Seeds
from agelab.store.artefacts import Store

SINGLE_USES = ("disk", "fail", "corpus", "log", "control")
"""Options with which a run is not the scenario's own: what is changed beside them means something else."""

COMPANION = ("$SOURCE", "$BESIDE")
"""What a step calls the filesystem beside the disk under test."""


@dataclass(frozen=True)
class Baseline:
    """A claim as a run bears it out, before anything is changed."""

    study: Study
    claim: Claim
    stand_in: str
    """The filesystem of ours that is judged, where the study's own cannot be run."""
    options: RunOptions
    scenario: Scenario
    run: RunResult
    """The run, with the cells of the claim alone."""
    judged: JudgedClaim
    steps: frozenset[str]
    """The steps whose values the claim's test asks for."""

    @property
    def uses_companion(self) -> bool:
        """True if one of the claim's steps reads or writes the filesystem beside the disk under test."""
        scenario = self.scenario
        commands = {action.name: action.run for action in scenario.actions()}
        commands |= {experiment.name: experiment.perform for experiment in scenario.experiments}
        return any(word in commands.get(step, "") for step in self.steps for word in COMPANION)

    @property
    def cells(self) -> tuple[CellResult, ...]:
        return self.run.cells

    @property
    def seeds(self) -> list[Seeds]:
        return sorted({cell.cell.seeds for cell in self.cells})

    @property
    def keys(self) -> list[Key]:
        """Scenario, variant and layout of the claim's cells."""
        return list(dict.fromkeys(_key(self.run, cell) for cell in self.cells))

    @property
    def layouts(self) -> list[LayoutName]:
        return [name for name in layout_names() if any(layout == name for _, _, layout in self.keys)]

    def narrow(self, run: RunResult) -> RunResult:
        """Return a run with the claim's cells alone."""
        return narrowed(
            run, (cell for cell in run.cells if _key(run, cell) in self.keys and cell.cell.seeds in self.seeds)
        )

    def judge(self, runs: Iterable[RunResult]) -> JudgedClaim:
        """Judge the claim by other runs of its cells; what these lack leaves it untested."""
        return _judge(self.study, self.claim, RunColumn(tuple(runs)), self.stand_in)


def find_baseline(run: RunResult, name: str, store: Store, filesystem: str | None = None) -> Baseline:
    """Find a claim by its name, and judge it by a run. Raises InputError where nothing can be asked about it."""
    study = study_of_scenario(run.plan.scenario)
    claim = _claim(study, name, run.name)
    if run.running:
        raise InputError(f"{run.name} is still going on", hint="ask when it has ended: agelab list")
    options = RunOptions.from_plan(run.plan)
    _require_own(run, options)
    stand_in = _stand_in(study, run, filesystem)
    judged = _judge(study, claim, RunColumn((run,)), stand_in)
    if judged.verdict is ClaimVerdict.UNTESTED:
        raise InputError(
            f"claim {name} cannot be tested by {run.name}: {judged.reason}",
            hint=f"claims that can: agelab replicate {run.name}",
        )
    scenario = resolve(options).selection.scenario
    _require_current(run, options, scenario, store)
    keys, steps = asked_for(study, judged, run)
    mine = narrowed(run, (cell for cell in run.cells if _key(run, cell) in keys))
    return Baseline(study, claim, stand_in, options, scenario, mine, judged, steps)


def narrowed(run: RunResult, cells: Iterable[CellResult]) -> RunResult:
    """Return a run with those of its cells alone."""
    kept = tuple(cells)
    plan = run.plan.model_copy(update={"cells": tuple(cell.cell for cell in kept)})
    return replace(run, cells=kept, plan=plan)


def asked_for(study: Study, judged: JudgedClaim, run: RunResult) -> tuple[set[Key], frozenset[str]]:
    """Return scenario, variant and layout of every cell that the claim's test asks for, and the steps."""
    claims = study.claims
    values = OurValues(study.figures, claims, RunColumn((run,)), judged.filesystem if judged.stand_in else "")
    read = [place for place in judged.read if not claims.table(place[0]).untestable]
    steps = (claims.sums.get(step, (step,)) for _, _, _, step, _ in read)
    return {values.key(place) for place in read}, frozenset(name for those in steps for name in those)


def _key(run: RunResult, cell: CellResult) -> Key:
    return run.plan.scenario, cell.cell.variant, cell.cell.layout


def _claim(study: Study, name: str, run: str) -> Claim:
    claims = {claim.id: claim for claim in study.claims.claims}
    if name not in claims:
        error = unknown(f"claim of {study.name}", name, [*claims])
        raise InputError(str(error), hint=f"all of them, with their verdicts: agelab replicate {run}")
    return claims[name]


def _stand_in(study: Study, run: RunResult, filesystem: str | None) -> str:
    """Return which filesystem of ours is judged. Raises InputError where several are, and none is named."""
    there = stand_ins_run(study, RunColumn((run,)))
    if not there:
        if filesystem:
            raise InputError(f"--filesystem {filesystem}: no filesystem stands in for another in {run.name}")
        return ""
    if filesystem is None and len(there) > 1:
        raise InputError(
            f"in {run.name} several stand in for {study.name}'s own filesystem: {', '.join(there)}",
            hint=f"choose one: --filesystem {there[0]}",
        )
    if filesystem and filesystem not in there:
        raise unknown(f"stand-in in {run.name}", filesystem, there)
    return filesystem or there[0]


def _judge(study: Study, claim: Claim, column: RunColumn, stand_in: str) -> JudgedClaim:
    judged = judge_claim(study, claim, column)
    return next((verdict for verdict in judged if verdict.stand_in and verdict.filesystem == stand_in), judged[0])


def _require_own(run: RunResult, options: RunOptions) -> None:
    """Refuse a run of anything but the scenario's own data and disks."""
    if options.real_disks:
        raise InputError(f"{run.name} has real disks: agelab why takes modelled drives")
    if given := [name for name in SINGLE_USES if getattr(options, name)]:
        word = f"--{given[0].replace('_', '-')}"
        raise InputError(f"{run.name} was made with {word}: agelab why takes a run of the study's own scenario")


def _require_current(run: RunResult, options: RunOptions, scenario: Scenario, store: Store) -> None:
    """Refuse a run of another agelab or QEMU: more than one factor would change."""
    now = {
        "harness": harness_hash(),
        "qemu": qemu.obtain(store).version,
        "steps": scenario_hash(scenario),
        "profiles": profiles_hash(planned_cells(options)),
    }
    made = run.conditions[0]
    if other := made.differences(made.model_copy(update=now)):
        raise InputError(
            f"{run.name} was made with other inputs ({text(other)}): what is run now could not be held against it",
            hint="make it again, and ask about the new one",
        )
