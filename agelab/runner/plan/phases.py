"""The phases of a cell: which steps run on which disks, and where the disk is forked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agelab.corpus import Corpus
from agelab.model.metrics import METRICS
from agelab.model.scenario import Scenario
from agelab.model.step import CONTROL_COPY, PREPARING, Action, Cycle
from agelab.model.step_id import AGED, CONTROL, CURVE, PREPARED, ForkName, StepId
from agelab.runner.plan.power_cut import PowerCut

MAKING = "making"
DAYS = 100
"""From the first boot of a phase to the first one of the next, in days of guest time."""


@dataclass(frozen=True)
class Phase:
    """A series of boots on disks of its own."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    """As the guest's plan has them, each repetition by itself."""
    day: int
    """The date of its first boot, in days after the cell's first."""
    fork_of: str | None = None
    """The fork that its disk begins as; None: its disk is made anew."""
    source: bool = False
    """Whether a fork of the aged disk is there to be copied from."""
    forks: Mapping[int, str] | None = None
    """Forks to take of its disk once it is unmounted: the index of the step that would be next, and a name."""

    @property
    def fresh(self) -> bool:
        """Whether its disk is made anew."""
        return self.fork_of is None

    @property
    def in_samples(self) -> str:
        """The phase as its steps' names in samples have it: nothing while the disk is made."""
        return "" if self.name == MAKING else self.name

    @property
    def file_prefix(self) -> str:
        """What its files in the cell's directory begin with."""
        return "" if self.name == MAKING else self.name.replace("/", "-") + "-"

    def fork_before(self, step: int) -> str | None:
        """The name of the fork to take before that step."""
        return (self.forks or {}).get(step)


def phases(
    scenario: Scenario,
    corpus: Corpus,
    *,
    curve: bool = False,
    real: bool = False,
    crash: PowerCut | None = None,
) -> tuple[Phase, ...]:
    """The phases of a scenario's cells, in their order.

    ``curve``: fork the disk at the points of its curve as well.
    ``real``: the disk cannot be forked, so there is no control, and each experiment prepares its own.
    ``crash``: the power cut that ends it. Raises InputError where no step is there for it.
    """
    if crash:
        return (Phase(MAKING, crash.ending(making(scenario, corpus, curve=False)[0]), 0),)
    if scenario.experiments:
        return experiments(scenario, corpus, real=real)
    made, points = making(scenario, corpus, curve=curve)
    end = {len(made): AGED}
    if scenario.tests_at_points:
        return (Phase(MAKING, made, 0, forks=end | points),)
    found = [Phase(MAKING, made, 0, forks=points | end)]
    tests = tuple(
        step(test, turn + 1, corpus) for test in scenario.tests for turn in range(repeated(test, corpus))
    )
    if tests:
        found.append(Phase(AGED, tests, DAYS, fork_of=AGED))
    if scenario.control and not real:
        first = tests[:1] and ({**tests[0], "caches": "reboot"},)
        steps = (step(copying(scenario), 1, corpus), *first, *tests[1:])
        found.append(Phase(CONTROL, steps, 2 * DAYS, source=True, forks={1: CONTROL}))
    return tuple(found)


def copying(scenario: Scenario) -> Action:
    """The step by which a control gets its tree."""
    wanted = scenario.control
    assert wanted is not None
    return Action(name=CONTROL_COPY, run=wanted.run, deadline=wanted.deadline, sync=True, origin="inferred")


def experiments(scenario: Scenario, corpus: Corpus, *, real: bool = False) -> tuple[Phase, ...]:
    """What prepares the experiments, once for all that are prepared alike, and each of them in boots of its own."""
    prepared: dict[str, str] = {}
    found: list[Phase] = []
    passes: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [((), None)]
    passes += [((trace.name,), trace.options) for trace in scenario.traces]
    for within, options in passes:
        for one in scenario.experiments:
            if options is not None and not one.traced:
                continue
            name = str(StepId(one.name, within))
            action = Action(
                name=one.name, run=one.perform, moves=one.moves, deadline=one.deadline, origin=one.origin
            )
            perform = {**step(action, 1, corpus), "name": name, "trace": list(options) if options else None}
            first: tuple[dict[str, Any], ...] = ()
            if one.prepare:
                action = Action(name=PREPARING, run=one.prepare, deadline=one.deadline, origin=one.origin)
                first = (step(action, 1, corpus),)
            if first and not real:
                if one.prepare not in prepared:
                    fork = prepared[one.prepare] = str(ForkName(PREPARED, len(prepared) + 1))
                    found.append(Phase(fork, first, DAYS * len(found), forks={1: fork}))
                first = ()
            steps = (*first, {**perform, "caches": "reboot"} if first else perform)
            found.append(
                Phase(name, steps, DAYS * len(found), fork_of=None if real else prepared.get(one.prepare))
            )
    return tuple(found)


def making(
    scenario: Scenario, corpus: Corpus, *, curve: bool
) -> tuple[tuple[dict[str, Any], ...], dict[int, str]]:
    """The steps that make the disk, and the forks on the way: the step after each of them is a new boot's first."""
    flat = []
    for entry in scenario.steps:
        if isinstance(entry, Cycle):
            for turn in range(entry.repeat):
                for action in entry.cycle:
                    times = repeated(action, corpus)
                    flat += [step(action, turn * times + again + 1, corpus) for again in range(times)]
        else:
            flat += [step(entry, again + 1, corpus) for again in range(repeated(entry, corpus))]
    points: dict[int, str] = {}
    wanted = scenario.curve
    if wanted and (curve or scenario.tests_at_points):
        kind = AGED if scenario.tests_at_points else CURVE
        for index, done in enumerate(flat, start=1):
            if wanted.has(done["name"], done["repetition"]):
                points[index] = str(ForkName(kind, done["repetition"]))
                if index < len(flat):
                    flat[index]["caches"] = "reboot"
    return tuple(flat), points


def repeated(action: Action, corpus: Corpus) -> int:
    """How often a step is carried out, in a cycle each time."""
    return corpus.parts or 0 if action.repeat == "parts" else action.repeat


def step(action: Action, repetition: int, corpus: Corpus) -> dict[str, Any]:
    """One repetition of a step as the guest's plan has it."""
    return {
        "name": action.name,
        "repetition": repetition,
        "run": action.run,
        "caches": action.caches,
        "sync": action.sync,
        "pause": action.pause,
        "expect": list(action.expect),
        "refuses": list(action.refuses),
        "deadline": action.deadline,
        "moves": corpus.content_bytes if action.moves == "corpus" else None,
        "disk": 0,
        "trace": None,
        "records": [[metric, METRICS[metric].unit] for metric in action.records],
        **({"cut_after": list(action.cut_after)} if action.cut_after else {}),
    }
