"""The phases of a cell: which steps run on which disks, and where the disk is forked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agelab.data.corpus import Corpus
from agelab.runner.plan.steps import DriveFailure, StepPlan
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import (
    AGED,
    CONTROL,
    CONTROL_COPY,
    CURVE,
    PREPARED,
    PREPARING,
    Action,
    Cycle,
    Experiment,
    ForkName,
    StepId,
)

MAKING = "making"
DAYS = 100
"""Days of guest time from the first boot of a phase to that of the next."""


@dataclass(frozen=True)
class Phase:
    """A series of boots on disks of its own."""

    name: str
    steps: tuple[StepPlan, ...]
    day: int
    """The date of its first boot, in days after the cell's first."""
    fork_of: str | None = None
    """The fork that its disk starts as; None for a new filesystem."""
    source: bool = False
    """True if a fork of the aged disk is attached, to be copied from."""
    forks: Mapping[int, str] = field(default_factory=dict)
    """Forks to take while the disk is unmounted: index of the step that would be next, to the fork's name."""

    @property
    def in_samples(self) -> str:
        """The phase in the names of its samples' steps: nothing while the disk is made."""
        return "" if self.name == MAKING else self.name

    @property
    def file_prefix(self) -> str:
        """The prefix of its files' names in the cell's directory."""
        return "" if self.name == MAKING else self.name.replace("/", "-") + "-"

    def cuts(self, from_step: int = 0) -> bool:
        """Return whether the power is cut in one of its steps, from that one on."""
        return any(step.cut_after for step in self.steps[from_step:])

    def expanded(self, expand: Callable[[StepPlan], Sequence[StepPlan]]) -> "Phase":
        """Return the phase with other steps in the place of each; forks stay where they are."""
        steps: list[StepPlan] = []
        first: dict[int, int] = {}
        for index, step in enumerate(self.steps):
            first[index] = len(steps)
            steps += expand(step)
        first[len(self.steps)] = len(steps)
        forks = {first[index]: name for index, name in self.forks.items()}
        return replace(self, steps=tuple(steps), forks=forks)


def phases(
    scenario: Scenario, corpus: Corpus, *, curve: bool = False, real: bool = False, failure: DriveFailure | None = None
) -> tuple[Phase, ...]:
    """Return the phases of a scenario's cells, in their order.

    ``curve``: fork the disk at the points of its curve as well.
    ``real``: the disk cannot be forked, so there is no control, and each experiment prepares its own.
    ``failure``: the drive that fails on the way. Raises InputError where the scenario has no such step.
    """
    if failure:
        return (Phase(MAKING, failure.mark(_making_steps(scenario, corpus)), 0),)
    if scenario.experiments:
        return _experiment_phases(scenario, corpus, real=real)
    at_points = scenario.tests_at_points
    making = _making(scenario, corpus, forked=curve or at_points)
    if at_points:
        return (making,)
    planned = [making]
    tests = tuple(step for test in scenario.tests for step in _repetitions(test, corpus))
    if tests:
        planned.append(Phase(AGED, tests, DAYS, fork_of=AGED))
    if scenario.control and not real:
        planned.append(_control(scenario, corpus, tests))
    return tuple(planned)


def copying(scenario: Scenario) -> Action:
    """Return the step in which a control gets its tree."""
    control = scenario.control
    assert control is not None
    return Action(name=CONTROL_COPY, run=control.run, deadline=control.deadline, sync=True, origin="inferred")


def _control(scenario: Scenario, corpus: Corpus, tests: tuple[StepPlan, ...]) -> Phase:
    """Return the control's phase: the tests begin with a boot, as they do on the aged disk."""
    copy = StepPlan.of(copying(scenario), 1, corpus)
    rebooted = tuple(replace(test, caches="reboot") for test in tests[:1])
    return Phase(CONTROL, (copy, *rebooted, *tests[1:]), 2 * DAYS, source=True, forks={1: CONTROL})


def _making(scenario: Scenario, corpus: Corpus, *, forked: bool) -> Phase:
    """Return the phase that makes the disk, forked at its end and, if ``forked``, at the points of its curve.

    The step after each fork is a boot's first.
    """
    steps = list(_making_steps(scenario, corpus))
    end = len(steps)
    points: dict[int, str] = {}
    if forked and scenario.curve:
        kind = AGED if scenario.tests_at_points else CURVE
        for index, done in enumerate(steps, start=1):
            if scenario.curve.has(done.name, done.repetition):
                points[index] = str(ForkName(kind, done.repetition))
        for index in points.keys() - {end}:
            steps[index] = replace(steps[index], caches="reboot")
    # A point at the end of a history is its last fork; the disk that is tested later is always called aged.
    forks = {end: AGED} | points if scenario.tests_at_points else points | {end: AGED}
    return Phase(MAKING, tuple(steps), 0, forks=forks)


def _making_steps(scenario: Scenario, corpus: Corpus) -> tuple[StepPlan, ...]:
    """Return every repetition of the steps that make the disk, in their order."""
    steps: list[StepPlan] = []
    for entry in scenario.steps:
        if isinstance(entry, Cycle):
            for turn in range(entry.repeat):
                for action in entry.cycle:
                    steps += _repetitions(action, corpus, turn)
        else:
            steps += _repetitions(entry, corpus)
    return tuple(steps)


def _repetitions(action: Action, corpus: Corpus, turn: int = 0) -> list[StepPlan]:
    """Return the repetitions of a step; in a cycle those of one turn, numbered through all turns."""
    times = corpus.parts or 0 if action.repeat == "parts" else action.repeat
    return [StepPlan.of(action, turn * times + again + 1, corpus) for again in range(times)]


def _experiment_phases(scenario: Scenario, corpus: Corpus, *, real: bool) -> tuple[Phase, ...]:
    """Return the phases of experiments: each preparation once, then each experiment on a fork of it.

    A real disk cannot be forked: each experiment prepares it again.
    """
    forks: dict[str, str] = {}
    planned: list[Phase] = []
    for name, experiment, trace in _passes(scenario):
        perform = replace(_performing(experiment, corpus), name=name, trace=trace)
        day = DAYS * len(planned)
        if not experiment.prepare:
            planned.append(Phase(name, (perform,), day))
        elif real:
            steps = (_preparing(experiment, corpus), replace(perform, caches="reboot"))
            planned.append(Phase(name, steps, day))
        else:
            if experiment.prepare not in forks:
                fork = forks[experiment.prepare] = str(ForkName(PREPARED, len(forks) + 1))
                planned.append(Phase(fork, (_preparing(experiment, corpus),), day, forks={1: fork}))
            fork = forks[experiment.prepare]
            planned.append(Phase(name, (perform,), DAYS * len(planned), fork_of=fork))
    return tuple(planned)


def _passes(scenario: Scenario) -> list[tuple[str, Experiment, tuple[str, ...] | None]]:
    """Return name, experiment and strace options: each experiment untraced, then the traced ones in each trace."""
    passes: list[tuple[str, Experiment, tuple[str, ...] | None]] = [
        (experiment.name, experiment, None) for experiment in scenario.experiments
    ]
    for trace in scenario.traces:
        traced = [experiment for experiment in scenario.experiments if experiment.traced]
        passes += [(str(StepId(experiment.name, (trace.name,))), experiment, trace.options) for experiment in traced]
    return passes


def _performing(experiment: Experiment, corpus: Corpus) -> StepPlan:
    action = Action(
        name=experiment.name,
        run=experiment.perform,
        moves=experiment.moves,
        deadline=experiment.deadline,
        origin=experiment.origin,
    )
    return StepPlan.of(action, 1, corpus)


def _preparing(experiment: Experiment, corpus: Corpus) -> StepPlan:
    action = Action(name=PREPARING, run=experiment.prepare, deadline=experiment.deadline, origin=experiment.origin)
    return StepPlan.of(action, 1, corpus)
