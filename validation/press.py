"""The modelled drives against what was measured of the real ones in their day: access time, rates at the edges.

    .venv/bin/python -m validation.press [--write]

Reads press_measured.csv, measures the same of the drive's C files, compiled for the host (no guest), and prints
both beside what the figures of the drive's file alone give. So it tells whether the sheet is off or the model of it.
Nothing is fitted to these figures. With --write the table goes into docs/validation.md.
"""

import csv
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from agelab.base.errors import InputError
from agelab.base.types import Frozen
from agelab.machine.drive import geometry
from agelab.scenario import selection
from agelab.scenario.drive import SECTOR, Drive, RotatingDisk
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid
from tests.model.native import Library, Native, compiled

MEASURED = Path(__file__).with_name("press_measured.csv")
What = Literal["access", "outer", "inner"]
UNITS: Mapping[str, Mapping[str, float]] = {
    "access": {"ms": 1},
    "outer": {"MB/s": 1, "MiB/s": 1.048576},
    "inner": {"MB/s": 1, "MiB/s": 1.048576},
}
NAMES: Mapping[What, str] = {
    "access": "random read, ms",
    "outer": "outer rate, MB/s",
    "inner": "inner rate, MB/s",
}
READS = 4000
RATE_SECTORS = (64 << 20) // SECTOR
WARM_SECTORS = (1 << 20) // SECTOR
NEAR = 5
"""Percent within which a figure counts as met: specimens of one model differ by about so much."""


@dataclass(frozen=True)
class Measurement:
    """One figure of a real drive, in milliseconds or millions of bytes a second."""

    drive: Drive
    disk: RotatingDisk
    specimen: str
    """The model that was measured: the drive's own or another capacity of its family."""
    what: What
    value: float
    program: str
    by: str
    source: str


@dataclass(frozen=True)
class Comparison:
    """A measured figure beside the one of the drive's file and the one of the model."""

    measured: Measurement
    sheet: float
    model: float

    @property
    def sheet_off(self) -> float:
        """Percent by which the sheet lies above the measured figure."""
        return (self.sheet / self.measured.value - 1) * 100

    @property
    def model_off(self) -> float:
        """Percent by which the model lies above the measured figure."""
        return (self.model / self.measured.value - 1) * 100

    @property
    def off(self) -> str:
        """Say what is off: neither, the model, the sheet or both."""
        if abs(self.model_off) <= NEAR:
            return "neither"
        if abs(self.sheet_off) <= NEAR:
            return "the model"
        return "the sheet" if abs(self.model / self.sheet - 1) * 100 <= NEAR else "both"


class Row(Frozen):
    """A line of the file."""

    drive: str
    specimen: str = Field(min_length=1)
    what: What
    value: float = Field(gt=0, allow_inf_nan=False)
    unit: str
    program: str = Field(min_length=1)
    by: str = Field(min_length=1)
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _unit_fits(self) -> "Row":
        if self.unit not in UNITS[self.what]:
            raise ValueError(f"unit: {self.unit!r} is none of {', '.join(UNITS[self.what])}")
        return self

    def measurement(self) -> Measurement:
        """Return it as a figure of a drive. Raises InputError where that has no platters, or there is none."""
        drive = selection.drive(self.drive)
        if not isinstance(drive.medium, RotatingDisk):
            raise InputError(f"{self.drive} has no platters")
        value = self.value * UNITS[self.what][self.unit]
        return Measurement(drive, drive.medium, self.specimen, self.what, value, self.program, self.by, self.source)


def read(path: Path = MEASURED) -> list[Measurement]:
    """Read the measured figures. Raises InputError for a line that is none, with its number."""
    measured = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                measured.append(Row.model_validate(row).measurement())
            except (ValidationError, InputError) as error:
                raise InputError(f"{path.name}, line {number}: {error}", hint="correct it, or remove it") from error
    return measured


def of_sheet(measurement: Measurement) -> float:
    """Return what the drive's file alone gives: for a read overhead, average seek, half a revolution, transfer."""
    drive, disk = measurement.drive, measurement.disk
    rates = {"outer": disk.outer_mb_s.value, "inner": disk.inner_mb_s.value}
    if measurement.what in rates:
        return rates[measurement.what]
    transfer = SECTOR / (sum(rates.values()) / 2 * 1e3)
    half = geometry.revolution_ns(disk) / 2e6
    return drive.overhead_us.value / 1e3 + disk.average_ms.value + half + transfer


def of_model(library: Library, measurement: Measurement) -> float:
    """Measure the same of the C files."""
    native = library.drive(geometry.module_parameters(measurement.drive, name="drive0", run_seed=1, index=0))
    measure: Mapping[What, Callable[[Native, Drive], float]] = {
        "access": access_ms,
        "outer": lambda native, drive: rate_mb_s(native, drive, 0),
        "inner": lambda native, drive: rate_mb_s(native, drive, drive.sectors.value - RATE_SECTORS - WARM_SECTORS),
    }
    return measure[measurement.what](native, measurement.drive)


def access_ms(native: Native, drive: Drive) -> float:
    """Return the mean of reads of a sector, one behind the other, at places drawn uniformly over all sectors."""
    random, now = Random(1), 0
    for _ in range(READS):
        now = native.read(random.randrange(drive.sectors.value), 1, now)
    return now / READS / 1e6


def rate_mb_s(native: Native, drive: Drive, first: int) -> float:
    """Return the rate of 64 MiB in the largest requests from a sector on, after 1 MiB that is not timed."""
    size = drive.max_request_kib.value * 1024 // SECTOR
    timed, now, began = first + WARM_SECTORS, 0, 0
    for begin, sectors in ((first, WARM_SECTORS), (timed, RATE_SECTORS)):
        began = now
        for at in range(begin, begin + sectors, size):
            now = native.read(at, min(size, begin + sectors - at), now)
    return RATE_SECTORS * SECTOR / (now - began) * 1e3


def compare(measured: Sequence[Measurement]) -> list[Comparison]:
    """Measure the model for each figure."""
    with tempfile.TemporaryDirectory() as directory:
        library = Library(compiled(Path(directory) / "drive.so", "-O2", "-shared", "-fPIC"))
        return [
            Comparison(measurement, of_sheet(measurement), of_model(library, measurement)) for measurement in measured
        ]


HEAD = ("drive", "figure", "measured", "sheet", "model", "sheet / measured", "model / measured", "off")


def cells(comparison: Comparison) -> list[str]:
    """Write a comparison's row."""
    figures = [f"{value:.4g}" for value in (comparison.measured.value, comparison.sheet, comparison.model)]
    ratios = [f"{100 + off:.1f} %" for off in (comparison.sheet_off, comparison.model_off)]
    measured = comparison.measured
    return [f"`{measured.drive.name}`", NAMES[measured.what], *figures, *ratios, comparison.off]


def page_table(comparisons: Sequence[Comparison]) -> str:
    """Write the table of docs/validation.md and the sources below it."""
    lines = [*grid(HEAD, map(cells, comparisons), ["---", "---", *["---:"] * 5, "---"]), ""]
    for measurement in (comparison.measured for comparison in comparisons):
        by = f"{measurement.specimen}, {measurement.program}, by {measurement.by}"
        lines.append(f"- `{measurement.drive.name}`, {measurement.what}: {by}: {measurement.source}.")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Return the exit code."""
    return command.run(command.parser(__doc__), lambda _: Answer({"press": page_table(compare(read()))}))


if __name__ == "__main__":
    sys.exit(main())
