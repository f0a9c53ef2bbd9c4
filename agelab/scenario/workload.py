"""What a scenario may bring of its own: metrics, Debian packages, and programs whose output is read."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agelab.base.types import Frozen, Name, Pattern, is_empty
from agelab.scenario.metrics import METRICS, Metric
from agelab.scenario.units import time_power

PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$", max_length=100)]
"""Name of a Debian package (deb-control(5))."""
MetricName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]


def _of_known_time(unit: str) -> str:
    time_power(unit)
    return unit


Unit = Annotated[str, Field(pattern=r"^[A-Za-z0-9%/._-]+$", max_length=20), AfterValidator(_of_known_time)]
"""A unit without blanks, as benchmarks print them: s, us/op, MB/sec, IOPS, 1."""
DIRECTIONS: dict[str, Literal["lower", "higher"]] = {"more": "higher", "less": "lower"}
"""A file's word for the better direction, to the registry's."""


TEST, TEST_RESULT = "test", "test_result"
"""The program that runs a user's test, and its metric."""


class OwnMetric(Frozen):
    """A metric that a scenario or a program defines."""

    unit: Unit = Field(description="as the program prints it: s, us/op, MB/sec, IOPS; 1 for a count or a ratio")
    meaning: str = Field(min_length=1, max_length=200, description="what is measured, in one line")
    better: Literal["more", "less"] | None = Field(
        default=None, description="the better direction, given the same work; by default neither"
    )

    @property
    def metric(self) -> Metric:
        """The metric as the registry has its own."""
        return Metric(self.unit, self.meaning, DIRECTIONS[self.better] if self.better else None)


def _one_group(pattern: str) -> str:
    if (groups := re.compile(pattern).groups) != 1:
        raise ValueError(f"must have one group, around the number; it has {groups}")
    return pattern


class PrintedNumber(Frozen):
    """A number in a program's output."""

    metric: MetricName = Field(description="one of the program's metrics")
    pattern: Annotated[Pattern, AfterValidator(_one_group)] = Field(
        description="expression for a line, with one group: the number; of several lines the last counts"
    )
    times: float = Field(default=1, gt=0, allow_inf_nan=False, description="factor to the metric's unit")


class GuestProgram(Frozen):
    """A file of scenarios/programs/."""

    name: Name = Field(description="the file's name, without its ending")
    summary: str = Field(description="what it does, in one line")
    packages: tuple[PackageName, ...] = Field(default=(), description="Debian packages of the guest")
    brought: str = Field(
        default="", pattern=r"^[A-Za-z0-9._+-]*$", description="the program's file, if no package has it"
    )
    ours: str = Field(
        default="",
        exclude_if=is_empty,
        pattern=r"^[a-z-]*$",
        description="the program's file, if it is one of harness/output",
    )
    proof: tuple[str, ...] = Field(default=(), description="command that shows, in the proof of an image, that it runs")
    run: str = Field(
        min_length=1,
        description="given to sh -ec in the mount point, the step's arguments after it; a job file is $JOB",
    )
    job: str = Field(default="", description="what its job file is, without an article; empty if it takes none")
    without_job: str = Field(default="", description="argument that stands for a job file: with it the step needs none")
    include: str = Field(default="", description="word by which a job file includes a file beside it")
    places: tuple[str, ...] = Field(
        default=(),
        description="options, of a job file or among the arguments, whose value is a place that is worked on: it is "
        "on the disk under test",
    )
    inputs: tuple[str, ...] = Field(
        default=(), description="such options whose value is only read: it may also be a file that is brought"
    )
    discards: Pattern = Field(
        default="", description="expression for an option and its value, as in rw=trim, that discards blocks"
    )
    unread: Pattern = Field(
        default="", description="expression for an argument with which nothing is printed that can be read"
    )
    check: tuple[str, ...] = Field(
        default=(),
        description="command of the host that parses a job, {job}: its file and arguments, where the host has it",
    )
    reader: Literal["numbers", "fio", "test"] = Field(
        default="numbers",
        description="reader of its output: the numbers listed here, fio's JSON, or the verdict on a test",
    )
    numbers: tuple[PrintedNumber, ...] = Field(default=(), description="numbers in its output")
    metrics: dict[MetricName, OwnMetric] = Field(min_length=1, description="what its output holds")
    moves: tuple[MetricName, ...] = Field(
        default=(), description="metrics that are above 0 where it read or wrote data"
    )
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        own = f"{self.name.replace('-', '_')}_"
        wrong = [f"metric {name!r} does not begin with {own!r}" for name in self.metrics if name[: len(own)] != own]
        wrong += [
            f"numbers: no metric {number.metric!r}" for number in self.numbers if number.metric not in self.metrics
        ]
        wrong += [f"moves: no metric {name!r}" for name in self.moves if name not in self.metrics]
        if (self.reader == "numbers") != bool(self.numbers):
            wrong.append("numbers are listed for the reader of that name, and for it alone")
        if sum(map(bool, (self.packages, self.brought, self.ours))) != 1:
            wrong.append("either packages, or the file that is brought, or ours")
        if self.packages and not self.proof:
            wrong.append("proof is missing: the command that shows that it runs")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


def metric_problems(metrics: dict[str, OwnMetric]) -> list[str]:
    """Return what is wrong with the names of a scenario's own metrics."""
    return [
        f"metrics.{name}: {name} is one of agelab's metrics already ({METRICS[name].meaning}): choose another name"
        for name in metrics
        if name in METRICS
    ]
