"""Check that the modelled drives do in a guest what their profiles say: `.venv/bin/python -m validation.validate`.

Every drive of scenarios/drives/ is made in one guest of the virtual clock and measured there as a benchmark would
measure a real one. Exit code 1 when a figure is more than 2 % from the one that the drive's settings were derived
from. --write rewrites the block of docs/validation.md and docs/validation.svg; the page says how each is measured.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agelab import kernel as kernels
from agelab.base.errors import AgelabError
from agelab.base.hashing import key_of
from agelab.cli.options import open_store
from agelab.runner.bench import Bench, bench
from agelab.runner.plan import cell_inputs
from agelab.scenario import selection
from agelab.scenario.drive import Drive, Flash, RotatingDisk, SolidState
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.command import Answer
from docs.make.page import DOCS
from validation.figures import drives
from validation.validate_job import (
    DEEP_READS,
    PLACE,
    RANDOM_READS,
    SMALL,
    STEADY_NS,
    STREAM,
    WINDOW,
    Tracks,
    distances,
    job,
    places,
    rows,
)
from validation.validate_report import Curve, Figure, Report, document

PROGRAM = Path(__file__).with_name("validate_guest.py")
MACHINE = "core2duo-3000"
"""The fastest: what the guest's own work takes of a drive's time is least there."""
WRITE_CACHE = 16 << 20
"""The most that a drive keeps for writes in the guest's memory."""
SHARE = 0.9
"""Share of the guest's maximal request rate; above it the guest's processor affects the figure."""
SPARE_MIB = 300

Results = dict[str, Any]
"""The guest's results of each step for one drive."""


@dataclass(frozen=True)
class Guest:
    """The guest's own time, measured on a drive whose every command takes the same time."""

    path_us: float
    """Time that the guest adds to a small read."""
    most: float
    """Small reads a second that it can hand over."""

    @classmethod
    def of(cls, results: Results) -> "Guest":
        path = results["random"] / RANDOM_READS - STEADY_NS
        return cls(path / 1e3, DEEP_READS * 1e9 / results["deep"])


def memory_mib(drives: Sequence[Drive]) -> int:
    """Return the memory that the guest needs: it holds the write caches of its disks."""
    disks = [drive for drive in drives if isinstance(drive.medium, RotatingDisk)]
    return SPARE_MIB + (sum(min(WRITE_CACHE, drive.cache.kib.value << 10) for drive in disks) >> 20)


def measured(place: Bench, guest_job: object, memory: int) -> dict[str, Results]:
    """Return the guest's results by drive name. Raises AgelabError when the guest did not finish."""
    window = [place.disk(WINDOW >> 20)]
    boot = place.boot(PROGRAM.read_bytes(), guest_job, selection.machine(MACHINE), memory, window)
    if reason := boot.only("end")["reason"]:
        raise AgelabError(f"the guest failed: {reason}\n{boot.tail}")
    by_drive: dict[str, Results] = {}
    for line in boot.events:
        if line["event"] == "result":
            by_drive.setdefault(line["drive"], {})[line["step"]] = line["value"]
    return by_drive


def _rate(drive: Drive, size: int, took: int) -> float:
    """MB/s of a row of the largest requests."""
    return rows(drive, size)[0] * (drive.max_request_kib.value << 10) * 1e3 / took


def disk_figures(drive: Drive, disk: RotatingDisk, results: Results) -> list[Figure]:
    """Data sheet and measurement of a disk."""
    outer, inner = disk.outer_mb_s.value, disk.inner_mb_s.value
    # The rate falls linearly from track to track, so the mean of 1 / rate over random tracks is that of this one.
    typical = (outer - inner) / log(outer / inner) if outer > inner else outer
    overhead, half = drive.overhead_us.value / 1e3, 30e3 / disk.rpm.value
    random = overhead + disk.average_ms.value + half + SMALL / typical / 1e3
    stroke = overhead + disk.full_stroke_ms.value + SMALL / outer / 1e3
    return [
        Figure(drive.name, "outer rate, MB/s", outer, _rate(drive, STREAM, results["outer"])),
        Figure(drive.name, "inner rate, MB/s", inner, _rate(drive, STREAM, results["inner"])),
        Figure(drive.name, "random reads/s", 1e3 / random, RANDOM_READS * 1e9 / results["random"]),
        Figure(drive.name, "full stroke, ms", stroke, results["stroke"] / 1e6),
    ]


def flash_figures(drive: Drive, flash: Flash, results: Results, guest: Guest) -> list[Figure]:
    """Data sheet and measurement of flash."""
    interface = drive.interface.mb_per_s.value
    read, write = (min(rate.value, interface) for rate in (flash.read_mb_s, flash.write_mb_s))
    latency = drive.overhead_us.value + flash.read_us.value + SMALL / read
    deep = 1e6 / max(flash.read_us.value / flash.channels.value, SMALL / read, latency / drive.queue_depth.value)
    return [
        Figure(drive.name, "read rate, MB/s", read, _rate(drive, STREAM, results["read"])),
        Figure(drive.name, "write rate, MB/s", write, _rate(drive, STREAM, results["write"])),
        Figure(drive.name, "random read, us", latency, results["random"] / RANDOM_READS / 1e3 - guest.path_us),
        Figure(drive.name, "deep reads/s", deep, DEEP_READS * 1e9 / results["deep"], deep < SHARE * guest.most),
    ]


def curve(drive: Drive, disk: RotatingDisk, results: Results) -> Curve:
    """Collect a disk's seek times and rates for the plot."""
    cylinders = Tracks.of(drive, disk).cylinders
    overhead = drive.overhead_us.value / 1e3
    seeks = [
        (distance / (cylinders - 1), took / 1e6 - overhead)
        for distance, took in zip(distances(cylinders), results["seeks"], strict=True)
    ]
    whole = places(drive)[-1]
    rates = [
        (first / whole, _rate(drive, PLACE, took)) for first, took in zip(places(drive), results["rates"], strict=True)
    ]
    return Curve(drive, disk, seeks, rates)


def figures(drives: Sequence[Drive], by_drive: dict[str, Results]) -> list[Figure]:
    """Data sheet and measurement of all drives."""
    guest = Guest.of(by_drive["steady"])
    compared: list[Figure] = []
    for number, drive in enumerate(drives):
        mine, medium = by_drive[f"drive{number}"], drive.medium
        if isinstance(medium, RotatingDisk):
            compared += disk_figures(drive, medium, mine)
        elif isinstance(medium, Flash):
            compared += flash_figures(drive, medium, mine, guest)
    return compared


def _short(key: str) -> str:
    return key.removeprefix("sha256:")[:16]


def validate(store: Store, kernel: str, every: Sequence[Drive]) -> Report:
    """Measure these drives in one guest, but for solid-state ones, whose figures are the flash's and not the drive's.

    Raises AgelabError where that cannot be done.
    """
    drives = [drive for drive in every if not isinstance(drive.medium, SolidState)]
    with (
        TemporaryDirectory(prefix="agelab-validate-") as directory,
        bench(store, kernel, Path(directory)) as place,
    ):
        by_drive = measured(place, job(drives), memory_mib(drives))
        booted, emulator = place.image.kernel, place.emulator
    guest = Guest.of(by_drive["steady"])
    return Report(
        versions=f"Linux {booted.release} ({booted.version}), {emulator.version},\n"
        f"drive module of the sources {_short(cell_inputs.drive_sources())}",
        digest=_short(key_of(by_drive)),
        machine=selection.machine(MACHINE),
        path_us=guest.path_us,
        most=SHARE * guest.most,
        late_us=sum(mine["copy_late_ns"] for mine in by_drive.values()) / 1e3,
        figures=figures(drives, by_drive),
        curves=[
            curve(drive, drive.medium, by_drive[f"drive{number}"])
            for number, drive in enumerate(drives)
            if isinstance(drive.medium, RotatingDisk)
        ],
    )


def measure(options: argparse.Namespace) -> Answer:
    """Measure all drives; 1 when a figure is beyond the limit."""
    report = validate(open_store(), options.kernel, selection.drives())
    if options.write:
        (DOCS / "validation.svg").write_text(drives(report.curves))
    for figure in report.beyond:
        print(f"{figure.drive}: {figure.name} is {figure.deviation:+.2%} off", file=sys.stderr)
    return Answer({"validation": document(report)}, status=1 if report.beyond else 0)


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--kernel", default=kernels.DEFAULT)
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
