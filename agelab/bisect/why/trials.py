"""Try each setting: take the cells that are known, run the others, and have the claim judged by them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agelab.analysis.cells import RunResult, load
from agelab.analysis.published.verdict import JudgedClaim, out_of_reach
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.bisect.why.baseline import Baseline
from agelab.bisect.why.factors import Factor, Setting
from agelab.bisect.why.known_cells import KnownCells
from agelab.results.conditions import EFFORT, SEEDS, Differences
from agelab.results.result import Cell
from agelab.results.run_directory import RunDirectory
from agelab.run.execute.runner import UNFIT_KERNEL
from agelab.run.prepare.planned import cell_of, planned_cells
from agelab.run.request.options import RunOptions
from agelab.scenario.seeds import CellName

RunOne = Callable[[RunOptions], RunDirectory]


@dataclass(frozen=True)
class PlannedTrial:
    """A setting with the runs that it takes."""

    factor: Factor
    setting: Setting
    known: tuple[RunResult, ...] = ()
    to_run: tuple[RunOptions, ...] = ()
    cells: tuple[Cell, ...] = ()
    """The cells of those runs."""
    reason: str = ""
    """The reason why it is not tried; empty where it is."""

    @property
    def name(self) -> str:
        return f"{self.factor.name} {self.setting.to}"


@dataclass(frozen=True)
class Trial:
    """A setting and what the claim came to with it."""

    factor: Factor
    setting: Setting
    judged: JudgedClaim | None = None
    """None where it was not tried."""
    reason: str = ""
    """The reason why it was not tried."""
    runs: tuple[str, ...] = ()
    also: Differences = field(default_factory=dict)
    """Conditions that differ from the baseline's and are not the factor's."""

    @property
    def name(self) -> str:
        return f"{self.factor.name} {self.setting.to}"


def plan_trial(
    baseline: Baseline, factor: Factor, setting: Setting, known: KnownCells, jobs: int | str = 1
) -> PlannedTrial:
    """Say what a setting takes: nothing where it cannot be tried, or the claim cannot be tested with it."""
    first, changes = baseline.cells[0].cell, setting.changes
    kernel, defaults = setting.release or first.kernel, changes.get("defaults", first.defaults)
    reason = setting.reason or out_of_reach(baseline.claim, baseline.run.plan.scale, defaults, kernel)
    if reason:
        return PlannedTrial(factor, setting, reason=reason)
    try:
        options = baseline.options.changed(**changes, jobs=jobs, keep_disk=False, timing=False)
        wanted = {one.cell.name for one in baseline.cells}
        found, missing = known.find(options, wanted)
        groups = [(layout, corpus) for layout in baseline.layouts for corpus in options.corpora]
        to_run = [one for group in groups for one in _runs(baseline, options, *group, missing)]
        specs = [spec for one in to_run for spec in planned_cells(one)]
    except InputError as error:
        return PlannedTrial(factor, setting, reason=str(error).splitlines()[0])
    cells = tuple(cell_of(spec, kernel) for spec in specs)
    return PlannedTrial(factor, setting, tuple(found), tuple(to_run), cells)


def carry_out(baseline: Baseline, planned: PlannedTrial, run: RunOne) -> Trial:
    """Make the runs of a setting, and judge the claim by them.

    What goes wrong with a setting alone, as a kernel that does not build or boot, is its reason. Raises HostError for
    what concerns every setting.
    """
    factor, setting = planned.factor, planned.setting
    if planned.reason:
        return Trial(factor, setting, reason=planned.reason)
    try:
        made = [load(run(options)) for options in planned.to_run]
    except AgelabError as error:
        if isinstance(error, HostError) and not isinstance(error, UNFIT_KERNEL):
            raise
        return Trial(factor, setting, reason=str(error).splitlines()[0])
    runs = [*planned.known, *(baseline.narrow(one) for one in made)]
    also = _other_conditions(baseline, factor, runs)
    return Trial(factor, setting, baseline.judge(runs), runs=tuple(one.name for one in runs), also=also)


def _runs(
    baseline: Baseline, options: RunOptions, layout: str, corpus: int, missing: Iterable[CellName]
) -> list[RunOptions]:
    """Return the run of the missing cells in one layout and of one corpus, if there are any.

    Options choose one variant, or those of some filesystems: what they cannot leave out is run, too.
    """
    here = [
        (variant, seeds.run) for variant, where, seeds in missing if (where, seeds.corpus) == (layout, corpus)
    ]
    if not here:
        return []
    scenario = baseline.run.plan.scenario
    variants, seeds = sorted({variant for variant, _ in here}), tuple(sorted({seed for _, seed in here}))
    chosen: dict[str, str | None] = {"name": f"{scenario}-{variants[0]}", "filesystem": None}
    if len(variants) > 1:
        filesystems = {one.cell.filesystem for one in baseline.cells if one.cell.variant in variants}
        chosen = {"name": scenario, "filesystem": ",".join(sorted(filesystems))}
    return [options.changed(**chosen, layout=layout).of_seeds(seeds, (corpus,))]


def _other_conditions(baseline: Baseline, factor: Factor, runs: Sequence[RunResult]) -> Differences:
    """Return in what the cells differ from the baseline's, without what the factor moves."""
    before = {one.cell.name: baseline.run.conditions_of(one) for one in baseline.cells}
    pairs = [
        (before[one.cell.name], run.conditions_of(one))
        for run in runs
        for one in run.cells
        if one.cell.name in before
    ]
    varies = factor.moves | SEEDS | EFFORT | {"profiles"}
    return {name: both for ours, now in pairs for name, both in ours.differences(now, varies).items()}
