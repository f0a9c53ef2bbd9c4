"""The steps of a cell as the guest's plan has them, and what the user has happen in the middle of one."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agelab.base.errors import InputError, unknown
from agelab.data.corpus import Corpus
from agelab.runner.plan.disk_layout import DiskLayout
from agelab.scenario.layout import Layout
from agelab.scenario.metrics import METRICS
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import CHECKING, REBUILDING, Action, Caches

HOST_ONLY = ("output",)
"""Fields of which the guest is told nothing."""


@dataclass(frozen=True)
class StepOutput:
    """What the host reads of what a step prints."""

    program: str | None = None
    """The program that printed it; None for the numbers of ``records``."""
    records: tuple[str, ...] = ()

    @classmethod
    def of(cls, action: Action) -> "StepOutput | None":
        """Return what is read of a step; None where the guest reports the whole numbers of registered metrics, and
        where nobody keeps what it prints."""
        if action.program is not None:
            return cls(program=action.program)
        own = action.keep or any(metric not in METRICS for metric in action.records)
        return cls(records=action.records) if own else None


@dataclass(frozen=True)
class StepPlan:
    """One repetition of a step. The fields are the guest's (harness/plan.py)."""

    name: str
    repetition: int
    run: str
    caches: Caches
    sync: bool
    pause: float
    expect: tuple[int, ...]
    refuses: tuple[str, ...]
    deadline: float
    moves: int | None
    records: tuple[tuple[str, str], ...]
    disk: int = 0
    trace: tuple[str, ...] | None = None
    cut_after: tuple[float, float] | None = None
    """The window in which the power is cut; the guest is told the moment."""
    fail_after: float | None = None
    """Seconds after which a drive stops answering."""
    output: StepOutput | None = None
    """What the host reads of what it prints; None for nothing."""

    @classmethod
    def of(cls, action: Action, repetition: int, corpus: Corpus) -> "StepPlan":
        output = StepOutput.of(action)
        reported = () if output else action.records
        return cls(
            name=action.name,
            repetition=repetition,
            run=action.run,
            caches=action.caches,
            sync=action.sync,
            pause=action.pause,
            expect=action.expect,
            refuses=action.refuses,
            deadline=action.deadline,
            moves=corpus.content_bytes if action.moves == "corpus" else None,
            records=tuple((metric, METRICS[metric].unit) for metric in reported),
            cut_after=action.cut_after,
            output=output,
        )

    def to_json(self, cut_at: float | None) -> dict[str, Any]:
        """Return the step of a plan, its power cut after so many seconds; without a cut or a drive that
        fails there is no such field."""
        fields = asdict(self) | {"cut_after": cut_at}
        return {
            name: value
            for name, value in fields.items()
            if name not in HOST_ONLY and (name not in ("cut_after", "fail_after") or value is not None)
        }


def index_of(steps: Sequence[StepPlan], step: str, repetition: int, asked: object) -> int:
    """Return the place of a repetition of a step. Raises InputError, which says who asked, where there is none."""
    times = [(step_plan.name, step_plan.repetition) for step_plan in steps]
    if (step, repetition) not in times:
        last = max(number for name, number in times if name == step)
        raise InputError(f"{asked}: step {step} has {last} repetitions")
    return times.index((step, repetition))


_FAILURE_FORM = re.compile(
    r"(?P<drive>[0-9])@(?P<step>[a-z0-9][a-z0-9_-]*)(:(?P<repetition>[0-9]{1,9}))?(\+(?P<seconds>[0-9]{1,9}(\.[0-9]{1,9})?))?"
)
FAIL = "--fail"


@dataclass(frozen=True)
class DriveFailure:
    """A drive of the disk under test stops answering some guest seconds after a repetition of a step has begun."""

    drive: int
    """Which of its members' drives, from 0."""
    step: str
    repetition: int
    seconds: float

    def __str__(self) -> str:
        return f"{FAIL} {self.drive}@{self.step}:{self.repetition}+{self.seconds:g}"

    @classmethod
    def parse(cls, text: str) -> "DriveFailure":
        """Read ``1@copy:3+0.3``, or less: ``1@copy`` as the first repetition begins. Raises InputError."""
        match = _FAILURE_FORM.fullmatch(text)
        if not match or not int(match["repetition"] or 1):
            raise InputError(
                f"{FAIL} {text!r}: say DRIVE@STEP, DRIVE@STEP:REPETITION or DRIVE@STEP:REPETITION+SECONDS, like "
                "1@copy:3+0.3; drives count from 0, repetitions from 1"
            )
        repetition, seconds = int(match["repetition"] or 1), float(match["seconds"] or 0)
        return cls(int(match["drive"]), match["step"], repetition, seconds)

    def applied_to(self, scenario: Scenario) -> Scenario:
        """Return the scenario without tests, control, maps and ratios: the rebuilt disk is checked in their place.

        Raises InputError where the scenario has no such step, or boots on the way.
        """
        steps = {action.name: action for action in scenario.actions()}
        if scenario.experiments or self.step in (test.name for test in scenario.tests):
            raise InputError(
                f"{FAIL}: a drive fails in a step that makes the disk: {', '.join(steps) or 'there is none'}"
            )
        if self.step not in steps:
            raise unknown(f"step for {FAIL} in {scenario.name}", self.step, list(steps))
        if self.seconds >= (deadline := steps[self.step].deadline):
            raise InputError(f"{self}: a step that has not ended after {deadline:g} s counts as hung")
        if scenario.has_power_cuts:
            raise InputError(f"{FAIL}: scenario {scenario.name} cuts the power: one of both at a time")
        if reboots := [action.name for action in scenario.actions()[1:] if action.caches == "reboot"]:
            raise InputError(f"{FAIL}: step {reboots[0]} boots again, and with it the drive that has failed")
        if taken := [name for name in (REBUILDING, CHECKING) if name in steps]:
            raise InputError(f"{FAIL}: a step cannot be called {taken[0]!r}: there is one after the last")
        nothing = {"tests": (), "control": None, "measures": (), "curve": None, "ratios": ()}
        return scenario.model_copy(update=nothing)

    def require_drive(self, layout: Layout, disk: DiskLayout) -> None:
        """Raise InputError where the layout does not survive it, or the drive is not modelled."""
        if layout.replacement is None:
            raise InputError(
                f"{FAIL}: layout {layout.name} does not survive the loss of a drive: choose raid1 or raid5"
            )
        if self.drive >= len(disk.members):
            raise InputError(f"{self}: layout {layout.name} has {len(disk.members)} members, from 0")
        drive = disk.drives[disk.members[self.drive][0]]
        if drive.profile is None:
            raise InputError(f"{self}: {drive.spec} is not modelled: only a modelled drive can stop answering")

    def mark(self, steps: Sequence[StepPlan]) -> tuple[StepPlan, ...]:
        """Say in which repetition it happens. Raises InputError where there is no such repetition."""
        at = index_of(steps, self.step, self.repetition, self)
        return (*steps[:at], replace(steps[at], fail_after=self.seconds), *steps[at + 1 :])
