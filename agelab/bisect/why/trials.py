"""Try each setting of a factor, and pairs of them: run the claim's cells so, judge the claim, and say what follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import log

from agelab.analysis.cells import RunResult, load
from agelab.analysis.published.claim_verdict import ClaimVerdict, JudgedClaim, out_of_reach
from agelab.analysis.published.outcome import ClaimComparison
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.bisect.why.baseline import Baseline
from agelab.bisect.why.factors import Factor, Setting
from agelab.results.conditions import EFFORT, SEEDS, Differences
from agelab.results.result import Cell
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.runner import UNFIT_KERNEL
from agelab.runner.plan.cell_spec import cell_of
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from agelab.scenario.unstated import reading_names

RunOne = Callable[[RunOptions], RunDirectory]
DECIDED = (ClaimVerdict.REPLICATED, ClaimVerdict.NOT)
"""Verdicts that say yes or no."""


@dataclass(frozen=True)
class Trial:
    """A setting with the runs that it takes, and once these are made, what the claim came to with it."""

    factor: Factor
    setting: Setting
    to_run: tuple[RunOptions, ...] = ()
    cells: tuple[Cell, ...] = ()
    """The cells of those runs."""
    reason: str = ""
    """The reason why it is not tried; empty where it is."""
    judged: JudgedClaim | None = None
    """None where it was not tried."""
    runs: tuple[str, ...] = ()
    also: Differences = field(default_factory=dict)
    """Conditions that differ from the baseline's and are not the factor's."""

    @property
    def name(self) -> str:
        return f"{self.factor.name} {self.setting.to}"

    @property
    def called(self) -> str:
        """It in a sentence."""
        return self.setting.called or self.name

    @property
    def verdict(self) -> ClaimVerdict:
        return self.judged.verdict if self.judged else ClaimVerdict.UNTESTED


def plan_trial(baseline: Baseline, factor: Factor, setting: Setting, jobs: int | str = 1) -> Trial:
    """Say what a setting takes: nothing where it cannot be tried, or the claim cannot be tested with it."""
    first, changes = baseline.cells[0].cell, setting.changes
    kernel, defaults = setting.release or first.kernel, changes.get("defaults", first.defaults)
    reason = setting.reason or out_of_reach(baseline.claim, baseline.run.plan.scale, defaults, kernel)
    if reason:
        return Trial(factor, setting, reason=reason)
    try:
        options = baseline.options.changed(
            **changes, jobs=jobs, keep_disk=False, timing=False, fresh=False, verify=None
        )
        groups = [(layout, corpus) for layout in baseline.layouts for corpus in options.corpora]
        to_run = [run for group in groups for run in _runs(baseline, options, *group)]
        specs = [spec for run in to_run for spec in planned_cells(run)]
    except InputError as error:
        return Trial(factor, setting, reason=str(error).splitlines()[0])
    return Trial(factor, setting, tuple(to_run), tuple(cell_of(spec, kernel) for spec in specs))


def carry_out(baseline: Baseline, planned: Trial, run: RunOne) -> Trial:
    """Make the runs of a setting, and judge the claim by them.

    What goes wrong with a setting alone, as a kernel that does not build or boot, is its reason. Raises HostError for
    what concerns every setting.
    """
    if planned.reason:
        return planned
    try:
        runs = [baseline.narrow(load(run(options))) for options in planned.to_run]
    except AgelabError as error:
        if isinstance(error, HostError) and not isinstance(error, UNFIT_KERNEL):
            raise
        return replace(planned, reason=str(error).splitlines()[0])
    also = _other_conditions(baseline, planned.factor, runs)
    names = tuple(result.name for result in runs)
    return replace(planned, judged=baseline.judge(runs), runs=names, also=also)


def _runs(baseline: Baseline, options: RunOptions, layout: str, corpus: int) -> list[RunOptions]:
    """Return the run of the claim's cells in one layout and of one corpus, if there are any.

    Options choose one variant, or those of some filesystems: what they cannot leave out is run, too.
    """
    cells = [cell.cell for cell in baseline.cells if (cell.cell.layout, cell.cell.corpus_seed) == (layout, corpus)]
    if not cells:
        return []
    scenario, variants = baseline.run.plan.scenario, {cell.variant for cell in cells}
    chosen: dict[str, str | None] = {"name": f"{scenario}-{cells[0].variant}", "filesystem": None}
    if len(variants) > 1:
        chosen = {"name": scenario, "filesystem": ",".join(sorted({cell.filesystem for cell in cells}))}
    return [options.changed(**chosen, layout=layout).of_seeds(tuple(sorted({c.seed for c in cells})), (corpus,))]


def _other_conditions(baseline: Baseline, factor: Factor, runs: Sequence[RunResult]) -> Differences:
    """Return in what the cells differ from the baseline's, without what the factor moves."""
    before = {cell.cell.name: baseline.run.conditions_of(cell) for cell in baseline.cells}
    pairs = [
        (before[cell.cell.name], run.conditions_of(cell))
        for run in runs
        for cell in run.cells
        if cell.cell.name in before
    ]
    varies = factor.moves | SEEDS | EFFORT | {"profiles"}
    return {name: both for ours, now in pairs for name, both in ours.differences(now, varies).items()}


@dataclass(frozen=True)
class ClaimAnswer:
    """The trials of one claim."""

    baseline: Baseline
    trials: tuple[Trial, ...]

    @property
    def tested(self) -> list[Trial]:
        """The trials with which the claim could be tested."""
        return [trial for trial in self.trials if trial.verdict is not ClaimVerdict.UNTESTED]

    @property
    def untested(self) -> list[Trial]:
        return [trial for trial in self.trials if trial not in self.tested]

    def flips(self, trial: Trial) -> bool:
        """Return whether a trial says yes or no, and not what the run itself says; within the band, anything else."""
        unknown = trial.verdict is ClaimVerdict.UNKNOWN and not trial.factor.known
        return (trial.verdict in DECIDED or unknown) and trial.verdict is not self.baseline.judged.verdict

    @property
    def flipped(self) -> list[Trial]:
        return [trial for trial in self.trials if self.flips(trial)]

    @property
    def known(self) -> bool:
        """False where the verdict changes within what is known of the machine."""
        return all(trial.factor.known for trial in self.flipped)

    @property
    def shown(self) -> int:
        """The comparison of the claim to show: one that a setting turns round, else one that speaks against it."""
        ours = comparisons_of(self.baseline.judged)
        others = [comparisons_of(trial.judged) for trial in self.flipped or self.tested]
        turned = (
            at
            for at, comparison in enumerate(ours)
            if any(other[at].holds not in (None, comparison.holds) for other in others if at < len(other))
        )
        against = (at for at, comparison in enumerate(ours) if comparison.holds is False)
        return next(turned, next(against, 0))

    @property
    def sentence(self) -> str:
        """Say which factor flips the verdict, or that none does alone."""
        own, flipped = self.baseline.judged.verdict, self.flipped
        if not self.tested:
            return f"{own}, and no factor could be tried"
        if not flipped:
            return self._unmoved
        beyond = [trial for trial in flipped if trial.factor.known]
        if not self.known:
            within = ", ".join(trial.name for trial in flipped if not trial.factor.known)
            others = f"; it flips with {_settings(beyond)}, too" if beyond else ""
            return f"not known: the verdict changes within the band of what an instruction costs ({within}){others}"
        if own is ClaimVerdict.NOT:
            return f"not replicated because of {_factors(beyond)}: it is with {_settings(beyond)}"
        if own is ClaimVerdict.REPLICATED:
            return f"replicated because of {_factors(beyond)}: it is not with {_settings(beyond)}"
        by_verdict = {word: [trial for trial in beyond if trial.verdict is word] for word in DECIDED}
        elsewhere = (f"{word} with {_settings(trials)}" for word, trials in by_verdict.items() if trials)
        return f"{own} as it was run; {', '.join(elsewhere)}"

    @property
    def _unmoved(self) -> str:
        own, tested = self.baseline.judged.verdict, self.tested
        pairs = [trial for trial in tested if trial.setting.pair]
        single = [trial for trial in tested if not trial.setting.pair]
        alike = [trial for trial in single if trial.verdict is own]
        changes = "the one change that" if len(single) == 1 else f"each of {len(single)} changes that"
        if len(alike) < len(single):
            changes = f"{len(alike)} of {len(single)} changes that"
        rest = f"; {len(self.untested)} could not" if self.untested else ""
        both = f", nor do {len(pairs)} pairs of those that moved it most" if pairs else ""
        return f"no factor alone flips it{both}: {own} with {changes} could be tested{rest}"


def comparisons_of(judged: JudgedClaim | None) -> tuple[ClaimComparison, ...]:
    """Return the comparisons that a claim is judged by in our run; none where it could not be judged."""
    return judged.ours.comparisons if judged and judged.ours else ()


def _factors(trials: Sequence[Trial]) -> str:
    """Name the factors, each of which flips the verdict alone: ``the kernel or the defaults``."""
    return " or ".join(dict.fromkeys(f"the {trial.factor.called or trial.factor.name}" for trial in trials))


def _settings(trials: Sequence[Trial]) -> str:
    return " or ".join(trial.called for trial in trials)


def could_be(baseline: Baseline, planned: Sequence[Trial], most: int) -> int:
    """Return how many pairs are tried at most, of these settings."""
    if baseline.judged.verdict is not ClaimVerdict.NOT:
        return 0
    tried = [trial for trial in planned if trial.to_run and trial.factor.known]
    return min(most, sum(_go_together(one, other) for one, other in combinations(tried, 2)))


def pairs_of(answer: ClaimAnswer, most: int) -> list[tuple[Factor, Setting]]:
    """Return the pairs to try: none where a setting alone says otherwise than a run that does not replicate."""
    if answer.flipped or answer.baseline.judged.verdict is not ClaimVerdict.NOT:
        return []
    moved = [(_moved(answer.baseline, trial), trial) for trial in answer.tested if trial.factor.known]
    couples = [couple for couple in combinations(moved, 2) if _go_together(couple[0][1], couple[1][1])]
    ranked = sorted(couples, key=lambda couple: -couple[0][0] - couple[1][0])
    return [_both(answer.baseline, one, other) for (_, one), (_, other) in ranked[:most]]


def _go_together(one: Trial, other: Trial) -> bool:
    return one.factor is not other.factor


def _moved(baseline: Baseline, trial: Trial) -> float:
    """Return how far a setting moved the claim: what turned round, then by what factors its figures changed."""
    both = list(zip(comparisons_of(baseline.judged), comparisons_of(trial.judged), strict=True))
    turned = sum(own.holds != now.holds for own, now in both)
    figures = [(own.figure, now.figure) for own, now in both]
    return turned + sum(abs(log(now / own)) for own, now in figures if own and now and own * now > 0)


def _both(baseline: Baseline, one: Trial, other: Trial) -> tuple[Factor, Setting]:
    first, second = one.setting, other.setting
    changes = {**first.changes, **second.changes}
    if "instead" in changes:
        own = {*reading_names(baseline.options.instead)}
        sides = [
            {*reading_names(setting.changes.get("instead", baseline.options.instead))} for setting in (first, second)
        ]
        changes["instead"] = ",".join(sorted(own ^ ((own ^ sides[0]) | (own ^ sides[1]))))
    names = [trial.factor.called or trial.factor.name for trial in (one, other)]
    factor = Factor(
        f"{one.factor.name} + {other.factor.name}",
        f"{one.factor.about}; {other.factor.about}",
        one.factor.settings,
        one.factor.moves | other.factor.moves,
        called=" together with the ".join(names),
    )
    setting = Setting(
        f"{first.to} + {second.to}",
        changes,
        release=first.release or second.release,
        called=f"{one.called} and {other.called}",
        remark=first.remark or second.remark,
        pair=True,
    )
    return factor, setting
