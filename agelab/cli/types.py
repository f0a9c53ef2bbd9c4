"""Types of arguments and options: sizes, and cells at a time."""

from typing import Any

import click

from agelab.base.sanitize import parse_digits
from agelab.scenario.jobs import Jobs, parse_jobs

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
MAX_SIZE = 10**18


class Size(click.ParamType[int]):
    """A number of bytes: 650000000, or 650M (decimal units k, M, G, T)."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = value.removesuffix("B")
        unit = number[-1:] if number[-1:] in UNITS else ""
        size = parse_digits(number.removesuffix(unit), MAX_SIZE)
        if size is None:
            self.fail(f"{value[:20]!r} is no number of bytes; say for example 40M", param, ctx)
        return size * UNITS[unit]


class CellsAtOnce(click.ParamType["Jobs"]):
    """A number of cells, or ``auto``."""

    name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Jobs:
        try:
            return parse_jobs(value)
        except ValueError as error:
            self.fail(f"{str(value)[:20]!r}: {error}", param, ctx)


SIZE = Size()
JOBS = CellsAtOnce()
MEASURE = "STEP[:REPETITION]:METRIC"
"""How help names a measure (``agelab.results.measure``); without a repetition it is the mean over all."""
