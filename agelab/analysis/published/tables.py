"""Read a study's figures as it printed them: ``scenarios/published/<study>.csv``."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.types import Frozen, LayoutName, Name
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
    try:
        lines = fileio.read_text(path, fileio.FORM).splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not lines or tuple(lines[0].split(",")) != HEADER:
        raise InputError(f"{path}:1: the first line is not {','.join(HEADER)}")
    wrong: list[str] = []
    found: dict[Place, PublishedFigure] = {}
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
            wrong.append(
                f"{where}: filesystem: variant {figure.variant!r} is {systems[figure.variant]!r} above"
            )
        if figure.place in found:
            wrong.append(f"{where}: is line {at[figure.place]} once more: {' '.join(figure.place)}")
        found[figure.place] = figure
        at[figure.place] = number
    if wrong:
        raise InputError("\n".join(wrong))
    if not found:
        raise InputError(f"{path}: has no figures")
    return PublishedTables(path.stem, found)


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
