"""Result of a bisect: the first bad kernel, the values before and after, and what shows that again."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import Field

from agelab.analysis import profiles
from agelab.analysis.cells import load
from agelab.analysis.profiles import StepStacks
from agelab.base import templates
from agelab.base.gathered import gathered
from agelab.base.types import Frozen
from agelab.bisect import git_search
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.judges import error_bound
from agelab.bisect.kernel_runs import RunLog, crash_question, options_of
from agelab.bisect.measurements import Decision, FoundChange, KernelOutcome, KernelVerdict, OutcomeKind
from agelab.bisect.rules import SEEDS_NEEDED
from agelab.results import checksummed
from agelab.runner.execute import runner
from agelab.stats.formatting import UnitScale, decimals_for_spread, format_decimal, unit_scale
from agelab.store.artefacts import Store

ANSWER_FILE = "answer.json"
MAX_REMARKS = 3
"""Contradictions listed of each kind; the rest are counted."""


class KernelPoint(Frozen):
    """A kernel and its measurements."""

    kernel: str
    name: str
    decision: Decision
    kind: OutcomeKind
    values: tuple[int | float, ...] = ()
    unit: str = ""
    reason: str = ""
    note: str = ""
    runs: tuple[str, ...] = ()

    @property
    def median(self) -> Fraction | None:
        return Fraction(median(Fraction(str(value)) for value in self.values)) if self.values else None


class BisectAnswer(Frozen):
    """Result of a bisect and its error bounds."""

    format: Literal[1] = 1
    bisect: str
    what: str = Field(description="the metric or symptom that tells good from bad")
    possible: tuple[str, ...] = Field(description="the first bad kernel; several if those between were skipped")
    names: tuple[str, ...] = Field(description="names of the possible kernels")
    details: dict[str, str] = Field({}, description="author, date and name of the commit found")
    before: KernelPoint
    after: KernelPoint
    good: KernelPoint
    bad: KernelPoint
    judged: tuple[KernelPoint, ...] = Field(description="kernels judged, in that order")
    steps: int = Field(description="kernels judged between the two ends")
    skipped: int
    undecided: int = Field(description="skipped kernels that were measured but could be called neither good nor bad")
    floor: float | None = Field(description="the larger spread of run seeds of the two ends; null in the wall clock")
    error: float | None = Field(
        description="upper bound on the probability of a wrong answer; null where the rule has none"
    )
    remarks: tuple[str, ...] = Field(description="evidence against a single change between good and bad")
    script: str = Field(description="script that runs both neighbours again")

    @property
    def found(self) -> bool:
        """True if a single kernel was found."""
        return len(self.possible) == 1


def kernel_label(question: BisectQuestion, kernel: str) -> str:
    """Return a kernel's name for users: short commit and subject, or version."""
    if question.tree:
        return git_search.commit_subject(question.tree, question.tree.commit_of(kernel))
    return kernel.removeprefix("debian:")


def write_answer(directory: BisectDirectory, change: FoundChange) -> BisectAnswer:
    """Write answer.json and the script that reproduces it into the bisect's directory, and return the answer."""
    question = directory.question()
    verdicts = directory.rows("verdicts", KernelVerdict)
    outcomes = gathered((outcome.kernel, outcome) for outcome in directory.rows("measured", KernelOutcome))

    def point(kernel: str, verdict: KernelVerdict | None = None) -> KernelPoint:
        verdict = verdict or next((recorded for recorded in verdicts if recorded.kernel == kernel), None)
        return _point(question, kernel, outcomes.get(kernel, []), verdict)

    good, bad = point(question.kernels[0]), point(question.kernels[-1])
    judged = tuple(point(verdict.kernel, verdict) for verdict in verdicts)
    decided = [step for step in judged if step.decision is not Decision.UNDECIDED]
    skipped = [step for step in judged if step.decision is Decision.UNDECIDED]
    wall = question.clock == "wall" and not question.symptom
    floor = None if wall or question.symptom else max(_spread(good), _spread(bad))
    one_only = len(change.possible) == 1
    details = {}
    if question.tree and one_only:
        details = git_search.commit_details(question.tree, question.tree.commit_of(change.after))
    answer = BisectAnswer(
        bisect=directory.name,
        what=question.criterion,
        possible=change.possible,
        names=tuple(kernel_label(question, kernel) for kernel in change.possible),
        details=details,
        before=point(change.before),
        after=point(change.after),
        good=good,
        bad=bad,
        judged=judged,
        steps=len(judged),
        skipped=len(skipped),
        undecided=sum(step.kind is OutcomeKind.MEASURED for step in skipped),
        floor=None if floor is None else float(floor),
        error=float(error_bound(question, len(decided))) if wall else None,
        remarks=tuple(_remarks(question, good, bad, judged, floor)),
        script=str(directory.path / SCRIPT_FILE),
    )
    script = reproduce_script(directory.path.parents[1], question, change.before, change.after, answer.names[-1])
    (directory.path / SCRIPT_FILE).write_text(script, encoding="utf-8")
    checksummed.write(directory.path / ANSWER_FILE, answer.model_dump_json(indent=1))
    return answer


def _point(
    question: BisectQuestion, kernel: str, outcomes: Sequence[KernelOutcome], verdict: KernelVerdict | None
) -> KernelPoint:
    measured = [outcome for outcome in outcomes if outcome.kind is OutcomeKind.MEASURED and outcome.value is not None]
    end = Decision.GOOD if kernel == question.kernels[0] else Decision.BAD
    last = outcomes[-1] if outcomes else None
    return KernelPoint(
        kernel=kernel,
        name=kernel_label(question, kernel),
        decision=verdict.decision if verdict else end,
        kind=verdict.kind if verdict else last.kind if last else OutcomeKind.NOT_MEASURED,
        values=tuple(outcome.value for outcome in measured if outcome.value is not None),
        unit=measured[0].unit if measured else "",
        reason=verdict.reason if verdict else last.summary if last else "",
        note=verdict.note if verdict else "",
        runs=tuple(dict.fromkeys(outcome.run for outcome in outcomes if outcome.run)),
    )


def _spread(point: KernelPoint) -> Fraction:
    values = [Fraction(str(value)) for value in point.values]
    return max(values) - min(values) if values else Fraction(0)


@dataclass(frozen=True)
class ValueFormat:
    """Format of the values of one answer: one unit, with the digits that the floor allows."""

    unit: UnitScale
    places: int

    @classmethod
    def of(cls, points: Sequence[KernelPoint], floor: float | None) -> "ValueFormat":
        unit = unit_scale(points[0].unit)
        spread = max(map(_spread, points)) if floor is None else Fraction(str(floor))
        medians = [point.median / unit.divisor for point in points if point.median is not None]
        return cls(unit, decimals_for_spread(unit.decimals, spread / unit.divisor, *medians))

    def format_value(self, value: Fraction) -> str:
        name = "" if self.unit.name == "1" else f" {self.unit.name}"
        return format_decimal(value / self.unit.divisor, self.places) + name

    def format_point(self, point: KernelPoint) -> str:
        """Return the median and the number of runs, or why there is no value."""
        if point.median is None:
            return "runs to its end" if point.kind is OutcomeKind.MEASURED else point.reason
        count = len(point.values)
        return f"{self.format_value(point.median)} ({count} run{'s' if count > 1 else ''})"


def _remarks(
    question: BisectQuestion, good: KernelPoint, bad: KernelPoint, judged: Sequence[KernelPoint], floor: Fraction | None
) -> list[str]:
    """Return the evidence against a single change between good and bad."""
    noted = [f"  {point.name}: {point.note}" for point in judged if point.note]
    remarks = []
    if noted:
        remarks = ["more than one change lies between good and bad; this is one of them:", *_first_lines(noted)]
    if floor is None:
        return remarks
    sign = 1 if (bad.median or 0) > (good.median or 0) else -1
    points = [good, *(point for point in judged if point.values), bad]
    wrong = []
    for first, second in combinations(points, 2):
        for early, late in ((first, second), (second, first)):
            excess = sign * ((early.median or Fraction()) - (late.median or Fraction()))
            if excess > floor and _is_earlier(question, early.kernel, late.kernel):
                wrong.append((excess, early, late))
    wrong.sort(key=lambda pair: pair[0], reverse=True)
    if wrong:
        figures = ValueFormat.of(points, float(floor))
        remarks.append("not monotonic: an earlier kernel is nearer to bad than a later one, by more than the floor:")
        remarks += _first_lines(
            [
                f"  {early.name}, {figures.format_point(early)}, comes before {late.name}, {figures.format_point(late)}"
                for _, early, late in wrong
            ]
        )
    return remarks


def _first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first MAX_REMARKS lines and the number of those left out."""
    more = [f"  and {len(lines) - MAX_REMARKS} more"] if len(lines) > MAX_REMARKS else []
    return [*lines[:MAX_REMARKS], *more]


def _is_earlier(question: BisectQuestion, early: str, late: str) -> bool:
    if question.tree:
        commits = [question.tree.commit_of(kernel) for kernel in (early, late)]
        return early != late and git_search.is_ancestor(git_search.tree_repository(question.tree), *commits)
    return question.kernels.index(early) < question.kernels.index(late)


SCRIPT_FILE = "reproduce.sh"


def reproduce_script(home: Path, question: BisectQuestion, before: str, after: str, name: str) -> str:
    """Return the script in POSIX sh. In the virtual clock it reproduces the digits, as the images are the same."""
    seeds = 1 if question.symptom else SEEDS_NEEDED
    options = options_of(question).changed(seeds=tuple(range(1, seeds + 1)))
    options = options.changed(fresh=options.guest_clock == "virtual")  # it runs again what the bisect has run
    change = f"The first bad kernel between {question.good} and {question.bad}: {name}"
    return templates.fill(
        "reproduce.sh",
        {},
        summary=" ".join(change.split()),
        agelab=str(Path(sys.executable).with_name("agelab")),
        home=home,
        directory=question.directory,
        before=before,
        after=after,
        run=shlex.join(options.arguments()),
        real_disks=options.real_disks,
        metric=shlex.join(["--metric", question.criterion]) if question.metric else "",
        crash=shlex.join(crash_question(question, after, 1).arguments) if question.crash else "",
        step=question.profiled_step,
    )


SEED = 1
"""The run seed of both profiles: one is enough, since samples repeat."""


def take_profiles(directory: BisectDirectory, store: Store, answer: BisectAnswer) -> tuple[StepStacks, StepStacks]:
    """Profile the judged step with the kernels before and after the change; return its stacks on both sides.

    Cells that the bisect has run are not run again; only the profiling pass is. Raises InputError where a kernel's pass
    gave no stacks of the step.
    """
    question = directory.question()
    options = options_of(question).changed(seeds=(SEED,), profile=True)
    stacks = []
    for point in (answer.before, answer.after):
        directory.log_line(f"profile: {point.name}")
        run = runner.run(options.changed(kernel=point.kernel), store, RunLog(directory.log_detail))
        stacks.append(profiles.of_step(point.name, load(run).cells, question.profiled_step))
    before, after = stacks
    after.require_comparable(before)
    return before, after
