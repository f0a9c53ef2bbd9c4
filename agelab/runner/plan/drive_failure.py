"""A modelled drive that stops answering in the middle of a step, as the user asks for it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agelab.base.errors import InputError, unknown
from agelab.runner.plan import step_moment
from agelab.runner.plan.disk_layout import DiskLayout
from agelab.runner.plan.step_plan import StepPlan
from agelab.scenario.layout import Layout
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import CHECKING, REBUILDING

_FORM = re.compile(
    r"(?P<drive>[0-9])@(?P<step>[a-z0-9][a-z0-9_-]*)(:(?P<repetition>[0-9]{1,9}))?(\+(?P<seconds>[0-9]{1,9}(\.[0-9]{1,9})?))?"
)
OPTION = "--fail"


@dataclass(frozen=True)
class DriveFailure:
    """A drive of the disk under test stops answering some guest seconds after a repetition of a step has begun."""

    drive: int
    """Which of its members' drives, from 0."""
    step: str
    repetition: int
    seconds: float

    def __str__(self) -> str:
        return f"{OPTION} {self.drive}@{self.step}:{self.repetition}+{self.seconds:g}"

    @classmethod
    def parse(cls, text: str) -> "DriveFailure":
        """Read ``1@copy:3+0.3``, or less: ``1@copy`` as the first repetition begins. Raises InputError."""
        found = _FORM.fullmatch(text)
        if not found or not int(found["repetition"] or 1):
            raise InputError(
                f"{OPTION} {text!r}: say DRIVE@STEP, DRIVE@STEP:REPETITION or DRIVE@STEP:REPETITION+SECONDS, like "
                "1@copy:3+0.3; drives count from 0, repetitions from 1"
            )
        repetition, seconds = int(found["repetition"] or 1), float(found["seconds"] or 0)
        return cls(int(found["drive"]), found["step"], repetition, seconds)

    def applied_to(self, scenario: Scenario) -> Scenario:
        """Return the scenario without tests, control, maps and ratios: the rebuilt disk is checked in their place.

        Raises InputError where the scenario has no such step, or boots on the way.
        """
        steps = {action.name: action for action in scenario.actions()}
        if scenario.experiments or self.step in (test.name for test in scenario.tests):
            raise InputError(
                f"{OPTION}: a drive fails in a step that makes the disk: {', '.join(steps) or 'there is none'}"
            )
        if self.step not in steps:
            raise unknown(f"step for {OPTION} in {scenario.name}", self.step, list(steps))
        if self.seconds >= (deadline := steps[self.step].deadline):
            raise InputError(f"{self}: a step that has not ended after {deadline:g} s counts as hung")
        if scenario.has_power_cuts:
            raise InputError(f"{OPTION}: scenario {scenario.name} cuts the power: one of both at a time")
        if reboots := [one.name for one in scenario.actions()[1:] if one.caches == "reboot"]:
            raise InputError(f"{OPTION}: step {reboots[0]} boots anew, and with it the drive that has failed")
        if taken := [name for name in (REBUILDING, CHECKING) if name in steps]:
            raise InputError(f"{OPTION}: a step cannot be called {taken[0]!r}: there is one after the last")
        return step_moment.without_measuring(scenario)

    def require_drive(self, layout: Layout, disk: DiskLayout) -> None:
        """Raise InputError where the layout does not survive it, or the drive is not modelled."""
        if layout.replacement is None:
            raise InputError(
                f"{OPTION}: layout {layout.name} does not survive the loss of a drive: choose raid1 or raid5"
            )
        if self.drive >= len(disk.members):
            raise InputError(f"{self}: layout {layout.name} has {len(disk.members)} members, from 0")
        drive = disk.drives[disk.members[self.drive][0]]
        if drive.profile is None:
            raise InputError(
                f"{self}: {drive.spec} is not modelled: only a modelled drive can stop answering"
            )

    def mark(self, steps: Sequence[StepPlan]) -> tuple[StepPlan, ...]:
        """Say in which repetition it happens. Raises InputError where there is no such repetition."""
        at = step_moment.index_of(steps, self.step, self.repetition, self)
        return (*steps[:at], replace(steps[at], fail_after=self.seconds), *steps[at + 1 :])
