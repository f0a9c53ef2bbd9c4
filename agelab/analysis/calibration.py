"""A/A of the wall clock: what the same thing, run twice on a host, differs by, as ``agelab calibrate`` recorded it.

``<home>/floors/<host>.json`` has all that was recorded of one host: docs/chance.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, Field

from agelab.base.errors import InputError, name_some
from agelab.base.hashing import key_of
from agelab.base.types import Frozen, Label
from agelab.results import checksummed
from agelab.results.conditions import jobs_of
from agelab.results.result import MAX_MAGNITUDE, Count, RunPlan
from agelab.stats.phrasing import several
from agelab.stats.series import SeriesPair, exact, summary
from agelab.stats.verdict import ComparedSeries
from agelab.store.artefacts import Store

SCHEMA = 2
DIRECTORY = "floors"
CALIBRATE = "agelab calibrate <scenario>-<variant> --clock wall"
"""The command that records a host's floors."""

AA_SEEDS = 5
"""Run seeds that A and A' have each: with fewer what they differ by bounds later runs too rarely (``aa_coverage``)."""

Value = Annotated[float | int, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]
Values = Annotated[tuple[Value, ...], Field(min_length=AA_SEEDS)]
NAMED = 6
"""Steps to name in one line."""


class MeasuredHost(Frozen):
    """The parts of a host that decide how long work takes in real time; one that changes makes it another host."""

    kernel: Label = Field(description="system, release and architecture, as uname -srm says")
    processor: Label = Field(description="how many of which model, and the clocksource")
    qemu: Label
    accelerator: Label = Field(description="kvm, or tcg: EMULATED")

    @classmethod
    def of(cls, plan: RunPlan) -> Self:
        facts = {name: str(plan.provenance.get(name, "")) for name in ("host", "qemu", "accelerator")}
        kernel, _, processor = facts["host"].partition(", ")
        return cls(kernel=kernel, processor=processor, qemu=facts["qemu"], accelerator=facts["accelerator"])

    @property
    def key(self) -> str:
        """The name of its record."""
        return key_of(self.model_dump())[:16]


class HostLoad(Frozen):
    """What a run puts on its host, which decides how noisy it is there."""

    vcpus: Count
    jobs: Count = Field(description="cells at a time, which disturb each other")
    drives: tuple[Label, ...] = Field(description="of a cell, as its result names them")

    @classmethod
    def of(cls, plan: RunPlan) -> Self:
        drives = sorted({drive for cell in plan.cells for drive in cell.drives})
        vcpus = _count(plan.provenance.get("vcpus"))
        return cls(vcpus=vcpus, jobs=jobs_of(plan), drives=tuple(drives))

    def covers(self, other: "HostLoad") -> bool:
        """Return whether floors found under these hold under the others: those of more drives are the widest of all."""
        same = (self.vcpus, self.jobs) == (other.vcpus, other.jobs)
        return same and set(other.drives) <= set(self.drives)

    def __str__(self) -> str:
        counts = ((self.vcpus, "vcpu"), (self.jobs, "job"))
        return ", ".join([*(several(n, what) for n, what in counts), *self.drives])


def _count(count: object) -> int:
    """Return a number of a run's plan; one where it says none."""
    return count if isinstance(count, int) and 0 < count < MAX_MAGNITUDE else 1


class PairedSample(Frozen):
    """One metric of one repetition of a step of a variant, run twice."""

    variant: Label
    layout: Label
    repetition: Count
    first: Values = Field(description="of A, by run seed")
    second: Values = Field(description="of A', which is A again")

    @cached_property
    def share(self) -> Fraction | None:
        """Largest less smallest of all values / their median, or None where that is zero and the values are not."""
        return _share(summary([exact(value) for value in (*self.first, *self.second)]).spread, self)

    @cached_property
    def shift(self) -> Fraction | None:
        """The difference between the medians of A and A', as a share of the median of both."""
        first, second = (summary(list(map(exact, side))).median for side in (self.first, self.second))
        return _share(abs(first - second), self)


def _share(difference: Fraction, seen: PairedSample) -> Fraction | None:
    median = summary([exact(value) for value in (*seen.first, *seen.second)]).median
    return difference / abs(median) if median else None if difference else Fraction(0)


class StepFloor(Frozen):
    """One metric of a step, in all variants and repetitions."""

    step: Label
    metric: Label
    unit: Label
    places: Annotated[int, Field(ge=1)] = Field(description="repetitions of the step, in all variants")
    widest: PairedSample = Field(description="the one with the largest spread, as a share of its median: the floor")
    farthest: PairedSample = Field(description="the one whose two medians lie farthest apart")

    @property
    def share(self) -> Fraction:
        """The floor: how far values spread by chance here, as a share of their median."""
        return self.widest.share or Fraction(0)


class Calibration(Frozen):
    """One scenario, run twice."""

    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    agelab: Label
    runs: tuple[Label, Label] = Field(description="A and A'")
    scenario: Label
    scale: Label
    kernel: Label = Field(description="the guest's")
    variants: tuple[Label, ...]
    seeds: tuple[Count, ...]
    conditions: HostLoad
    floors: tuple[StepFloor, ...] = Field(min_length=1)

    @property
    def question(self) -> tuple[object, ...]:
        """Its question: a newer calibration with the same one replaces it."""
        return (self.scenario, self.scale, self.kernel, self.variants, self.conditions)


class _Versioned(BaseModel):
    """The schema of a record, whatever else is in it."""

    version: int = Field(alias="schema")


class HostRecord(Frozen):
    """Everything recorded of one host."""

    version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    host: MeasuredHost
    calibrations: tuple[Calibration, ...] = Field(min_length=1)


@dataclass(frozen=True)
class HostFloors:
    """The noise of a host in real time, by step and metric."""

    shares: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    """Step and metric to the floor of a difference of medians, as a share of the larger."""
    why: str = ""
    """Why no floor is known of this host under these conditions, and what to do; empty where one is."""


def aa_coverage(seen: int, later: int) -> Fraction:
    """Return a bound of the chance that two later samples have medians no farther apart than an earlier one's ends.

    It says how likely later runs stay within what A/A has shown of the host. All are draws from one population,
    whatever it is: ``seen`` values, and twice ``later``. Medians farther apart than the largest and the smallest of the
    seen values cannot both lie between these: one of the two is above the largest or below the smallest. A median of m
    values is above the largest of N others only if at least half of the m are, h = ceil(m/2): then the h last of all
    N + m in rank order are among the m, which C(m, h) of the C(N+m, h) equally likely choices are. There are two
    medians and two ends: 1 - 4 * C(m, h) / C(N+m, h).
    """
    half = (later + 1) // 2
    return max(Fraction(0), 1 - Fraction(4 * comb(later, half), comb(seen + later, half)))


def host_floors(home: Path, plan: RunPlan) -> HostFloors:
    """Look up the floors of a run's host, for runs like it: the largest of all calibrations.

    Raises InputError for a record that is damaged or of another schema.
    """
    host, load = MeasuredHost.of(plan), HostLoad.of(plan)
    record = _of_host(home, host)
    if record is None:
        return HostFloors(why=_unknown(home, host))
    fitting = [calibration for calibration in record.calibrations if calibration.conditions.covers(load)]
    if not fitting:
        return HostFloors(why=f"no A/A of this host with {load}: {CALIBRATE}")
    shares: dict[tuple[str, str], Fraction] = {}
    for floor in (floor for calibration in fitting for floor in calibration.floors):
        place = (floor.step, floor.metric)
        shares[place] = max(floor.share, shares.get(place, Fraction(0)))
    return HostFloors(shares)


def read_records(home: Path) -> list[HostRecord]:
    """Read the records of all hosts. Raises InputError for a record that is damaged or of another schema."""
    return [_read(path) for path in sorted((home / DIRECTORY).glob("[!.]*.json"))]


def record_calibration(store: Store, host: MeasuredHost, calibration: Calibration) -> Path:
    """Record a calibration in place of an older one of the same question; return the file."""
    path = _path(store.home, host)
    with store.lock(DIRECTORY):
        before = _of_host(store.home, host)
        known = before.calibrations if before else ()
        kept = [earlier for earlier in known if earlier.question != calibration.question]
        path.parent.mkdir(parents=True, exist_ok=True)
        checksummed.write_sealed(path, HostRecord(schema=SCHEMA, host=host, calibrations=(*kept, calibration)))
    return path


def _path(home: Path, host: MeasuredHost) -> Path:
    return home / DIRECTORY / f"{host.key}.json"


def _of_host(home: Path, host: MeasuredHost) -> HostRecord | None:
    path = _path(home, host)
    return _read(path) if path.exists() else None


def _read(path: Path) -> HostRecord:
    """Read one record. Raises InputError that names the file."""
    try:
        version = checksummed.read(path, _Versioned).version
        if version != SCHEMA:
            raise InputError(f"{path} is of schema {version}; this agelab reads schema {SCHEMA}")
        record = checksummed.read(path, HostRecord)
        if record.host.key != path.stem:
            raise InputError(f"{path} is damaged: it is another host's")
    except InputError as error:
        raise InputError(str(error), hint=f"rm {path}; {CALIBRATE} makes a new one") from error
    return record


def _unknown(home: Path, host: MeasuredHost) -> str:
    """Say why a host has no record: none was made, or it was made before the host changed."""
    for record in read_records(home):
        before = record.host
        if (before.processor, before.accelerator) == (host.processor, host.accelerator):
            changed = [name for name in ("kernel", "qemu") if getattr(before, name) != getattr(host, name)]
            differences = ", ".join(f"{name} was {getattr(before, name)}" for name in changed)
            return f"the A/A of this host is stale ({differences}): {CALIBRATE}"
    return f"no A/A of this host: {CALIBRATE}"


@dataclass(frozen=True)
class HostNoise:
    """The noise that A/A has shown of the hosts of some runs; empty for runs of the virtual clock."""

    known: tuple[HostFloors, ...] = ()
    """One for each run of the wall clock."""
    widest: bool = False
    """Give a step that no A/A has measured (a sum of steps above all) the largest floor of any step, and not none."""

    @property
    def unknown(self) -> list[str]:
        """Labels for hosts whose noise is not known, with the reason."""
        labels = (f"without a floor of the host: {floors.why}" for floors in self.known if floors.why)
        return list(dict.fromkeys(labels))

    def share(self, step: str, metric: str) -> Fraction | None:
        """Return how far values of a step spread by chance, as a share of their median; None where unknown."""
        shares = [floors.shares[step, metric] for floors in self.known if (step, metric) in floors.shares]
        if not shares and self.widest:
            shares = [share for floors in self.known for at, share in floors.shares.items() if at[1] == metric]
        return max(shares, default=None)

    def __call__(self, pair: SeriesPair) -> Fraction | None:
        """Return the share of a pair's step."""
        return self.share(pair.left.step, pair.left.metric)

    def labels(self, rows: Sequence[ComparedSeries]) -> list[str]:
        """List the labels of a table of these rows: whose noise is not known, and which verdicts no A/A covers."""
        uncovered = dict.fromkeys(
            f"{compared.row.left.metric} of {compared.row.left.step}"
            for compared in rows
            if self.known and not self.unknown and compared.differs and self(compared.row) is None
        )
        label = f"without a floor of the host, for no A/A of it has it: {name_some(list(uncovered), NAMED)}"
        return [*self.unknown, *([label] if uncovered else [])]
