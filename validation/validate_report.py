"""Write the results of validation/validate.py as a block of a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agelab.scenario.drive import Drive, RotatingDisk
from agelab.scenario.machine import Machine

LIMIT = 0.02
TEXT = """\
Furthest off is the figure {worst}. Made with
{versions}, machine
`{machine}`, at {instruction} ns an instruction the fastest there is: what the guest itself takes is least there.
Digest over every nanosecond measured: {digest}.

## Disks

{disks}

![Seek times and rates of four disks: profile, model and measurement](validation.svg)

The average seek is a mean over all distances: its ring stands where the curve has that time. The rate falls in 16
zones, so the measured ones are steps about the line, up to 5 % off it; only its ends are compared.

- **rates**: 64 MiB with O_DIRECT in the largest requests, one behind the other, from sector 0 on and up to the last
  one, after 1 MiB that is not timed. In the figure 2 MiB each at 40 places.
- **random reads**: 4,000 of 4 KiB, one behind the other, at places drawn uniformly over the *tracks*, as the data
  sheet's average seek is meant. Expected is 1 / (overhead + average seek + half a revolution + transfer), each from
  the drive's file.
- **full stroke**: reads of 4 KiB in turns on the last cylinder and the first, never where the drive's cache could
  have it; the shortest of 320, in which next to no rotation is left. Expected is overhead + full stroke + transfer at
  the outer edge.
- **seek curve** (the figure): for each of 60 distances the mean of 12 reads to and fro, less the overhead, and less
  the rotation and the transfer that the drive itself counts for them.

## Flash

{flash}

- **rates**: 64 MiB in the largest requests, all handed over at once (`io_submit`): one by one, each would wait for
  the chips.
- **random read**: the mean of 4,000 of 4 KiB at depth 1, less the {path:.1f} us that the guest itself takes for one.
  These are measured in the same guest on a drive whose every command takes 100 us exactly.
- **deep reads**: 8,000 of 4 KiB, all handed over at once, so that the drive has as many as it takes. From
  about {most:,.0f} a second on they measure the guest's processor.{beyond}

A real drive's DMA moves the data beside the processor; here the processor copies it, while the drive's own time
passes. In all measurements together it came {late:,.0f} us too late with that (`copy_late_ns`).
"""


@dataclass(frozen=True)
class Figure:
    """One figure of a drive."""

    drive: str
    name: str
    sheet: float
    measured: float
    reachable: bool = True
    """True when the guest's processor issues requests fast enough; otherwise the figure is not the drive's."""

    @property
    def deviation(self) -> float:
        """Share of the profile's figure."""
        return self.measured / self.sheet - 1

    @property
    def deviation_text(self) -> str:
        """The deviation, where it is one."""
        # No minus before a zero.
        return f"{round(self.deviation * 100, 2) + 0.0:+.2f} %" if self.reachable else "the guest's limit"

    @property
    def row(self) -> list[str]:
        """For a table."""
        return [self.drive, self.name, number(self.sheet), number(self.measured), self.deviation_text]


@dataclass(frozen=True)
class Curve:
    """A disk's seek times and rates as they were measured."""

    drive: Drive
    disk: RotatingDisk
    seeks: Sequence[tuple[float, float]]
    """Share of the full stroke, milliseconds."""
    rates: Sequence[tuple[float, float]]
    """Share of the drive's sectors, MB/s."""


@dataclass(frozen=True)
class Report:
    """All of it."""

    versions: str
    digest: str
    """Over everything that the guest measured, in nanoseconds."""
    machine: Machine
    path_us: float
    """Time that the guest adds to a small read, in microseconds."""
    most: float
    """Small reads a second that it can hand over."""
    late_us: float
    """Microseconds by which copying data exceeded the drives' own time, over all measurements."""
    figures: Sequence[Figure]
    curves: Sequence[Curve]

    @property
    def beyond(self) -> list[Figure]:
        """The figures whose deviation is above the limit."""
        return [figure for figure in self.figures if figure.reachable and abs(figure.deviation) > LIMIT]


def number(value: float) -> str:
    """With four digits, or all before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _table(figures: Iterable[Figure]) -> list[str]:
    """Write one line for each drive, with three columns for each figure."""
    drives: dict[str, list[Figure]] = {}
    for figure in figures:
        drives.setdefault(figure.drive, []).append(figure)
    names = [figure.name for figure in next(iter(drives.values()))]
    lines = [
        "| drive |" + "".join(f" {name} | measured | off |" for name in names),
        "|---|" + "---:|---:|---:|" * len(names),
    ]
    for drive, of_drive in drives.items():
        cells = (
            f" {number(figure.sheet)} | {number(figure.measured)} | {figure.deviation_text} |" for figure in of_drive
        )
        lines.append(f"| `{drive}` |" + "".join(cells))
    return lines


def document(report: Report) -> str:
    """Write the block of docs/validation.md on disks and flash."""
    disks = {curve.drive.name for curve in report.curves}
    worst = max((figure for figure in report.figures if figure.reachable), key=lambda figure: abs(figure.deviation))
    beyond = [
        f"\n  `{figure.drive}` can {number(figure.sheet)}, of which the guest shows {number(figure.measured)}: "
        "not counted."
        for figure in report.figures
        if not figure.reachable
    ]
    return TEXT.format(
        worst=f"{worst.name} of `{worst.drive}`, {worst.deviation_text}",
        versions=report.versions,
        digest=report.digest,
        machine=report.machine.name,
        instruction=2**report.machine.shift,
        disks="\n".join(_table(figure for figure in report.figures if figure.drive in disks)),
        flash="\n".join(_table(figure for figure in report.figures if figure.drive not in disks)),
        path=report.path_us,
        most=round(report.most, -3),
        beyond="".join(beyond),
        late=report.late_us,
    )
