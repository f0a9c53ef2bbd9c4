"""A study's two files: its figures as it printed them, ``<study>.csv``, and its claims, ``<study>.claims.toml``."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, Field, PositiveFloat, ValidationError, model_validator

from agelab.base.errors import InputError
from agelab.base.types import Defaults, Frozen, LayoutName, Name, ScaleName
from agelab.scenario import toml_files
from agelab.scenario.metrics import METRICS

HEADER = ("study", "table", "filesystem", "variant", "layout", "step", "metric", "value", "unit")
StepName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9/_-]*$")]
"""A step, with its phase before it where it has one: ``copy``, ``aged/read``."""
TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Place = tuple[str, str, str, str, str]
"""Table, variant, layout, step, metric."""


class PublishedFigure(Frozen):
    """One line: a figure that the study printed."""

    study: Name
    table: TableName
    filesystem: Name
    variant: Name
    layout: LayoutName
    step: StepName
    metric: str
    value: Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
    unit: str

    @model_validator(mode="after")
    def _metric_is_known(self) -> Self:
        if self.metric not in METRICS:
            raise ValueError(f"no metric {self.metric!r}")
        if self.unit != METRICS[self.metric].unit:
            raise ValueError(f"{self.metric} is in {METRICS[self.metric].unit!r}, not in {self.unit!r}")
        return self

    @property
    def place(self) -> Place:
        return (self.table, self.variant, self.layout, self.step, self.metric)

    @property
    def exact(self) -> Fraction:
        """The value as it was printed."""
        return Fraction(self.value)


@dataclass(frozen=True)
class PublishedTables:
    """All figures of a study, in the order of its file."""

    study: str
    by_place: Mapping[Place, PublishedFigure]

    def filesystem(self, variant: str) -> str:
        """Return the filesystem of a variant of the study."""
        return next(figure.filesystem for figure in self.by_place.values() if figure.variant == variant)

    def of(self, table: str) -> list[PublishedFigure]:
        return [figure for figure in self.by_place.values() if figure.table == table]


def read_tables(path: Path) -> PublishedTables:
    """Read the figures of a file. Raises InputError that lists every error with file and line."""
    lines = toml_files.read_text(path).splitlines()
    if not lines or tuple(lines[0].split(",")) != HEADER:
        raise InputError(f"{path}:1: the first line is not {','.join(HEADER)}")
    wrong: list[str] = []
    figures: dict[Place, PublishedFigure] = {}
    at: dict[Place, int] = {}
    systems: dict[str, str] = {}
    for number, row in enumerate(_rows(lines[1:], path), start=2):
        where = f"{path}:{number}"
        if len(row) != len(HEADER):
            wrong.append(f"{where}: has {len(row)} fields, not {len(HEADER)}")
            continue
        try:
            figure = PublishedFigure.model_validate(dict(zip(HEADER, row, strict=True)))
        except ValidationError as error:
            wrong += [f"{where}: {line}" for line in _complaints(error)]
            continue
        if figure.study != path.stem:
            wrong.append(f"{where}: study: is {figure.study!r}, the file's name is {path.stem!r}")
        if systems.setdefault(figure.variant, figure.filesystem) != figure.filesystem:
            wrong.append(f"{where}: filesystem: variant {figure.variant!r} is {systems[figure.variant]!r} above")
        if figure.place in figures:
            wrong.append(f"{where}: is line {at[figure.place]} once more: {' '.join(figure.place)}")
        figures[figure.place] = figure
        at[figure.place] = number
    if wrong:
        raise InputError("\n".join(wrong))
    if not figures:
        raise InputError(f"{path}: has no figures")
    return PublishedTables(path.stem, figures)


def _rows(lines: list[str], path: Path) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:  # a field of more than 131,072 characters
        raise InputError(f"{path}: not valid CSV: {error}") from error


def _complaints(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False):
        place = ".".join(str(part) for part in item["loc"])
        value = f" (it is {item['input']!r:.60})" if place else ""
        yield f"{place + ': ' if place else ''}{item['msg'].removeprefix('Value error, ')}{value}"


SUBJECT = re.compile(r"([a-z0-9][a-z0-9_-]*)(?:@(single|raid0))?(?:#([A-Za-z0-9-]+))?")


class ClaimSubject(NamedTuple):
    """The subject of a claim: a variant, with its layout and table where they matter."""

    variant: str
    layout: str
    table: str


@cache
def subject(text: str) -> ClaimSubject:
    """Parse ``xfs``, ``xfs@raid0``, ``xfs#I``; parts left out are empty."""
    match = SUBJECT.fullmatch(text)
    if match is None:
        raise ValueError("not like xfs, xfs@raid0 or xfs#II (a variant, its layout, its table)")
    return ClaimSubject(match[1], match[2] or "", match[3] or "")


def _as_subject(text: str) -> str:
    subject(text)
    return text


Ref = Annotated[str, AfterValidator(_as_subject)]
"""A subject as a file has it."""
Refs = Annotated[tuple[Ref, ...], Field(min_length=1)]
AnyBanded = TypeVar("AnyBanded", bound=Frozen)


class ClaimTest(Frozen):
    """The fields of every test: where to look, and of how many of its comparisons it must be true."""

    steps: tuple[StepName, ...] = Field(min_length=1, description="of the scenario, or sums of them")
    metric: str = Field(default="elapsed", description="what is compared")
    table: TableName | None = Field(default=None, description="the study's first table where none is named")
    layouts: tuple[LayoutName, ...] = Field(default=("single",), min_length=1, description="in which layouts")
    over: Literal["every", "most", "some"] = Field(
        default="every", description="of its comparisons: all, more than half, at least one"
    )

    @model_validator(mode="after")
    def _metric_is_known(self) -> Self:
        if self.metric not in METRICS:
            raise ValueError(f"no metric {self.metric!r}")
        return self


class Pairs(ClaimTest):
    """Comparisons of two subjects: each of ``of`` with each of ``to``, or the pairs as listed."""

    of: tuple[Ref, ...] = Field(default=(), description="the ones")
    to: tuple[Ref, ...] = Field(default=(), description="the others")
    pairs: tuple[tuple[Ref, Ref], ...] = Field(default=(), description="in place of both: one and other")

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if bool(self.pairs) == bool(self.of and self.to) or bool(self.of) != bool(self.to):
            raise ValueError("needs either of and to, or pairs")
        return self

    @property
    def couples(self) -> list[tuple[str, str]]:
        return [*self.pairs, *((first, second) for first in self.of for second in self.to)]


class ExpectedRatio(Pairs):
    """The ratio of one value to the other lies in a band."""

    kind: Literal["ratio"] = Field(description="which test it is")
    to_step: StepName | None = Field(default=None, description="the other's step, where it is another one")
    at_least: PositiveFloat | None = Field(default=None, description="the band's lower end")
    at_most: PositiveFloat | None = Field(default=None, description="its upper end")

    @model_validator(mode="after")
    def _has_a_band(self) -> Self:
        return _banded(self, self.at_least, self.at_most)


class Same(Pairs):
    """No difference: the larger value exceeds the smaller one by no more than a share of it."""

    kind: Literal["same"] = Field(description="which test it is")
    within: PositiveFloat = Field(description="the share")


class Amount(ClaimTest):
    """The value itself lies in a band."""

    kind: Literal["value"] = Field(description="which test it is")
    of: Refs = Field(description="whose value")
    at_least: PositiveFloat | None = Field(default=None, description="the band's lower end")
    at_most: PositiveFloat | None = Field(default=None, description="its upper end")

    @model_validator(mode="after")
    def _has_a_band(self) -> Self:
        return _banded(self, self.at_least, self.at_most)


class Extreme(ClaimTest):
    """Each of ``of`` is lower (higher) than each of ``among``, by the factor ``margin`` or more."""

    kind: Literal["lowest", "highest"] = Field(description="which test it is")
    of: Refs = Field(description="those that are so")
    among: Refs = Field(description="the others")
    margin: float = Field(default=1, ge=1, description="the factor between them, at least")


class ExpectedOrder(ClaimTest):
    """Nothing in a group is higher than anything in the next one."""

    kind: Literal["order"] = Field(description="which test it is")
    groups: tuple[Refs, ...] = Field(min_length=2, description="the lowest first")


class Kept(ClaimTest):
    """The lowest, the highest, or the whole order is the same in two layouts."""

    kind: Literal["kept"] = Field(description="which test it is")
    what: Literal["lowest", "highest", "order"] = Field(description="that is the same")
    among: Refs = Field(description="of which")
    between: tuple[LayoutName, LayoutName] = Field(default=("single", "raid0"), description="the two layouts")


class Gain(ClaimTest):
    """From one layout to the other nothing gains as much as ``of``: as a factor, or in the metric's unit."""

    kind: Literal["gain"] = Field(description="which test it is")
    of: Ref = Field(description="what gains the most")
    among: Refs = Field(description="the others")
    measure: Literal["ratio", "difference"] = Field(default="ratio", description="how a gain is counted")
    between: tuple[LayoutName, LayoutName] = Field(default=("single", "raid0"), description="the two layouts")


class Spread(ClaimTest):
    """Highest over lowest of ``of`` is less than that of ``than``."""

    kind: Literal["spread"] = Field(description="which test it is")
    of: Refs = Field(description="those that lie together")
    than: Refs = Field(description="those that lie apart")


AnyTest = Annotated[
    ExpectedRatio | Same | Amount | Extreme | ExpectedOrder | Kept | Gain | Spread, Field(discriminator="kind")
]


def _banded(test: AnyBanded, low: float | None, high: float | None) -> AnyBanded:
    if low is None and high is None:
        raise ValueError("needs at_least, at_most or both")
    if low is not None and high is not None and low > high:
        raise ValueError(f"at_least {low} is more than at_most {high}")
    return test


class NoLongerPossible(Frozen):
    """The reason why a younger kernel cannot behave like that any more, whatever its options."""

    since: Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")] = Field(description="the first such release")
    why: str = Field(min_length=1, description="what has changed")


class Conflict(Frozen):
    """A contradiction of the claim in the study itself."""

    against: str = Field(description="'table', or the id of another claim")
    note: str = Field(min_length=1, description="what it says")


class Claim(Frozen):
    """One finding that the study states."""

    id: Name = Field(description="its name among the study's claims")
    says: str = Field(min_length=1, description="in our own words")
    test: AnyTest | None = Field(default=None, description="what must be true of values")
    scale: ScaleName = Field(default="quick", description="the smallest that can show it")
    defaults: Defaults | Literal["either"] = Field(default="either", description="those that can show it")
    unprinted: str = Field(
        default="", description="why the study's own table cannot show it: a chart without figures, say"
    )
    untestable: str = Field(default="", description="why no run of ours can show it")
    gone: NoLongerPossible | None = Field(default=None, description="the kernel since which it cannot be so")
    conflict: Conflict | None = Field(default=None, description="what in the study speaks against it")

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if self.test is None and not self.untestable:
            raise ValueError("needs a test, or the reason why it is untestable")
        if self.test is None and (self.unprinted or self.gone):
            raise ValueError("without a test neither unprinted nor gone says anything")
        return self


class TableUse(Frozen):
    """The use of one table: what it is, and which of our values belong beside it."""

    id: TableName = Field(description="as the figures' file has it")
    about: str = Field(description="what it is a table of")
    scenario: Name | None = Field(
        default=None, description="whose runs have it, where that is not the study's own scenario"
    )
    repetition: Literal["mean", "first", "last", "growth"] = Field(
        default="mean", description="of our repetitions; growth is the last one over the first"
    )
    compares: str = Field(
        default="", description="the metric that the table's percentages compare; empty where it has none"
    )
    relative_to: Name | None = Field(
        default=None, description="the variant to which they compare; none: each to its own start"
    )
    untestable: str = Field(default="", description="why no run of ours can be compared with it")


class Uncounted(Frozen):
    """Steps whose figures say nothing: printed with a mark, and neither judged nor counted."""

    kind: Literal["circle", "undetermined"] = Field(
        description="an input of ours was derived from them; what the study does not say decides them"
    )
    steps: tuple[StepName, ...] = Field(min_length=1, description="whose figures they are")
    metric: str = Field(default="elapsed", description="which of their figures")
    why: str = Field(min_length=1, description="what was derived from them, or what decides them")

    @property
    def mark(self) -> str:
        return "in a circle" if self.kind == "circle" else self.kind

    def __str__(self) -> str:
        return f"{self.mark}: {self.why}"


class Disproportionate(Frozen):
    """Steps whose time does not follow the size of the data, so that a smaller one cannot stand for it."""

    steps: tuple[StepName, ...] = Field(min_length=1, description="which")
    variants: tuple[Name, ...] = Field(default=(), description="of which variants; none: of all")
    why: str = Field(min_length=1, description="how it follows")


class StandIns(Frozen):
    """Filesystems of ours in place of one that no run can have."""

    filesystems: tuple[Name, ...] = Field(min_length=1, description="ours")
    why: str = Field(min_length=1, description="why the study's own filesystem cannot be run")


class Claims(Frozen):
    """One file: the study's tables, and its claims about them."""

    study: Name = Field(description="the file's name, without its endings")
    about: str = Field(description="whose it is, of when, on what")
    resolution: float = Field(
        default=0, ge=0, description="by how much two printed values may differ and yet be one, in their unit"
    )
    tables: tuple[TableUse, ...] = Field(min_length=1, description="the study's, the first one the default")
    sums: dict[StepName, tuple[StepName, ...]] = Field(
        default={}, description="steps that are the sum of others, where a test or a table has them"
    )
    stand_ins: StandIns | None = Field(default=None, description="where its own filesystem cannot be run")
    uncounted: tuple[Uncounted, ...] = Field(default=(), description="figures that say nothing of ours")
    disproportionate: tuple[Disproportionate, ...] = Field(
        default=(), description="steps that a smaller scale does not shorten in proportion"
    )
    claims: tuple[Claim, ...] = Field(min_length=1, description="its findings")

    @model_validator(mode="after")
    def _names_hold_together(self) -> Self:
        problems = [f"{what} {name!r} is defined twice" for what, name in self._twice()]
        tables = {table.id for table in self.tables}
        ids = {claim.id for claim in self.claims}
        for claim in self.claims:
            asked = [claim.test.table] if claim.test and claim.test.table else []
            problems += [f"claim {claim.id!r}: no table {name!r}" for name in asked if name not in tables]
            if claim.conflict and claim.conflict.against not in {"table", *ids} - {claim.id}:
                problems.append(f"claim {claim.id!r}: conflict: no claim {claim.conflict.against!r}")
        problems += [
            f"table {table.id!r}: no metric {table.compares!r}"
            for table in self.tables
            if table.compares and table.compares not in METRICS
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _twice(self) -> Iterator[tuple[str, str]]:
        names = [("table", table.id) for table in self.tables] + [("claim", claim.id) for claim in self.claims]
        yield from (which for which, count in Counter(names).items() if count > 1)

    @property
    def ranked(self) -> frozenset[str]:
        """The variants that any test compares for the lowest or highest."""
        tests = [claim.test for claim in self.claims if isinstance(claim.test, Extreme)]
        return frozenset(subject(ref).variant for test in tests for ref in (*test.of, *test.among))

    def why_uncounted(self, step: str, metric: str) -> Uncounted | None:
        """Return why the study's figures of that step and metric say nothing of ours; None where they do."""
        marks = (mark for mark in self.uncounted if step in mark.steps and metric == mark.metric)
        return next(marks, None)

    def out_of_proportion(self, step: str, variant: str) -> str:
        """Return why the step does not follow the size of the data on that variant; empty where it does."""
        reasons = (
            entry.why
            for entry in self.disproportionate
            if step in entry.steps and (not entry.variants or variant in entry.variants)
        )
        return next(reasons, "")

    def table(self, name: str | None) -> TableUse:
        """Return the table of that name; the first one without a name."""
        return next((table for table in self.tables if table.id == name), self.tables[0])
