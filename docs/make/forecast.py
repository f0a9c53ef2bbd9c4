"""What making tables would take, before anything runs, and what runs of studies have taken."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json
from agelab.present.view.progress import format_time_left, time_left
from agelab.results import run_lookup
from agelab.results.conditions import Conditions, between
from agelab.results.result import Cell, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import (
    VARIES,
    TimeRange,
    Took,
    asked_conditions,
    cells_under,
    planned_conditions,
)
from agelab.runner.plan.cell_inputs import evaluated_by, harness_hash, parts_of_files
from agelab.runner.plan.cell_spec import MIB, CellSpec, cell_of
from agelab.runner.prepare.capacity import COMPANION_OVERHEAD, RunNeeds, copies_of_disk
from agelab.runner.request.options import OPTIONS, RunOptions, make_variable
from agelab.runner.request.request import RunRequest, planned_cells, resolve
from docs.make import block, proof
from docs.make.catalogue import Made, Table
from docs.make.page import grid

AT_ONCE = 2
"""Cells at a time."""
VARIABLES = {"name": "NAME", **{name: variable for name in OPTIONS if (variable := make_variable(name))}}
"""Option -> variable of ``make scenario``."""
HEAD = ("table", "page", "is of", "cells", "known", "time", "GB")


@dataclass(frozen=True)
class Forecast:
    """A table before it is made."""

    table: Table
    block: block.Block
    current: bool
    """Its block is of this code."""
    cells: int
    known: int
    """Cells that have ended in this store, of the same harness, machine, drives and evaluation."""
    unknown: frozenset[str]
    """Names of the others (:func:`docs.make.proof.names_of_cells`)."""
    time: TimeRange | None
    """Of the cells that are not known."""
    disk: int
    """Bytes that the disks of the cells that run at once may take."""

    @property
    def order(self) -> tuple[bool, float]:
        """What is known to be short comes first."""
        return self.time is None, self.time.high if self.time else 0.0

    @property
    def row(self) -> list[str]:
        """What is said of it, column by column."""
        state = "this code" if self.current else f"an earlier one, {self.block.made}"
        if not self.table.runs:
            data = f"takes {self.table.needs}=<directory>" if self.table.needs else "takes no run"
            return [self.table.name, self.table.page, state, "", "", data, ""]
        time = format_time_left(self.time) if self.time else "not known: none has ended here"
        time = "seconds" if self.known == self.cells else time
        counts = [str(self.cells), str(self.known)]
        return [self.table.name, self.table.page, state, *counts, time, f"{self.disk / 1e9:.1f}"]


def forecast(table: Table, runs: Path, jobs: int) -> Forecast:
    """Say what a table would take. Raises InputError for options that make no run."""
    there = block.find(table)
    kernels = [(options, kernel) for options in table.asked for kernel in table.kernels or [options.kernel]]
    parts = [_Part(options.changed(kernel=kernel), runs) for options, kernel in kernels]
    cells = sum(len(part.specs) for part in parts)
    unknown = [cell for part in parts for cell in part.unknown]
    before = [took for part in parts for took in part.before]
    time = time_left(unknown, (), jobs, (), before)
    if time is None and there.seconds is not None:
        rest = there.seconds * len(unknown) / cells / min(jobs, len(unknown))
        time = TimeRange(rest, rest)
    return Forecast(
        table,
        there,
        proof.is_current(table, there),
        cells,
        cells - len(unknown),
        frozenset().union(*(part.names for part in parts)),
        time,
        max((part.disk(jobs) for part in parts), default=0),
    )


class _Part:
    """One run of a table, before it is made."""

    def __init__(self, options: RunOptions, runs: Path) -> None:
        request = resolve(options)
        scenario = request.selection.scenario
        self.specs = planned_cells(options)
        self._request = request
        cells = [cell_of(spec, request.kernel) for spec in self.specs]
        conditions = asked_conditions(scenario.name, request.scale_name, options, cells, "kvm")
        self.before: Took = list(cells_under(conditions, runs))
        ended = set(_ended(self.specs, request.kernel, conditions, runs))
        self.unknown = [cell for at, cell in enumerate(cells) if at not in ended]
        self.names = {name for at, name in enumerate(proof.names_of_cells(options)) if at not in ended}

    def disk(self, jobs: int) -> int:
        return disk_of(self._request, self.specs, jobs)


def disk_of(request: RunRequest, specs: Sequence[CellSpec], jobs: int) -> int:
    """Return the bytes of disk that a run of so many cells at a time says that it may take.

    Its data have the size that the scenario asks for: they need not be made yet.
    """
    copies = copies_of_disk(request, _points(specs))
    data = request.selection.scenario.corpus
    beside = int(COMPANION_OVERHEAD * data.mib.value * MIB / request.shrink(None)) if data else 0
    kept = beside if any(spec.companion for spec in specs) else 0
    needs = RunNeeds(len(specs), copies * max(spec.host_bytes for spec in specs), kept, 0)
    return needs.disk(jobs)


def _points(specs: Sequence[CellSpec]) -> int:
    return max((getattr(spec.history, "points", 0) for spec in specs), default=0)


def _ended(specs: Sequence[CellSpec], kernel: str, conditions: Sequence[Conditions], runs: Path) -> Iterator[int]:
    """Yield the places of the cells that have ended in this store, with all inputs that are known without a guest."""
    shaping = {spec.name: (at, spec) for at, spec in enumerate(specs)}
    for run in run_lookup.all_runs(runs):
        try:
            plan = run.plan()
            if not plan.kernel or plan.kernel.spec != kernel:
                continue
            if between(conditions, planned_conditions(plan), VARIES):
                continue
            for number, cell in enumerate(plan.cells):
                if cell.name in shaping and _is(run, number, cell, shaping[cell.name][1]):
                    yield shaping[cell.name][0]
        except InputError:  # a damaged run
            continue


def _is(run: RunDirectory, number: int, cell: Cell, spec: CellSpec) -> bool:
    end = run.end(number)
    if end is None or end.evaluated_by != evaluated_by(spec) or end.disputes:
        return False
    if end.status is Status.UNSUPPORTED:
        return True
    inputs = run.recorded_inputs(number).get("making") or {}
    expected = {"harness": harness_hash(), **parts_of_files(spec)}
    return cell.defaults == spec.defaults and all(
        canonical_json(inputs.get(name)) == canonical_json(value) for name, value in expected.items()
    )


def takes(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Say what each run takes, for docs/replication.md: its cells, the host's time, and room for their disks."""
    parts = zip(table.runs, table.asked, runs, strict=True)
    return Made(
        "\n".join(
            grid(
                ["", "cells", "time", "GB of disk at most"],
                (_taken(words, options, run) for words, options, run in parts),
            )
        )
    )


def _taken(words: Mapping[str, str | bool], options: RunOptions, run: RunDirectory) -> list[str]:
    """Describe a run: what its cells took one at a time, shared between as many as go at once."""
    command = " ".join(f"{VARIABLES[name]}={value}" for name, value in words.items())
    ends = [end for number in range(len(run.plan().cells)) if (end := run.end(number))]
    lacking = sum(1 for end in ends if end.status is Status.UNSUPPORTED)
    seconds = sum(end.host_seconds for end in ends) / AT_ONCE
    disk = disk_of(resolve(options), planned_cells(options), AT_ONCE)
    return [
        f"`make scenario {command} JOBS={AT_ONCE}`",
        f"{len(ends)}{f', {lacking} unsupported' if lacking else ''}",
        format_time_left(TimeRange(seconds, seconds)),
        f"{disk / 1e9:.1f}",
    ]
