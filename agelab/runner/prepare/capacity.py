"""Check that the host has room for a run, and say how many of its cells it can run at a time."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base import limits
from agelab.base.errors import HostError
from agelab.data.corpus import Corpus
from agelab.machine.vm import host
from agelab.machine.vm.guest import Clock
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.plan.guest_plan import MAP_MEMORY_MIB
from agelab.runner.plan.phases import phases
from agelab.runner.request.request import RunRequest
from agelab.scenario.jobs import MAX_JOBS

HEADROOM = 512 * MIB
"""Bytes of disk, and of memory, to leave on the host beside what the cells take; QEMU's own memory is part of it."""
DISKS_VARIABLE = "AGELAB_DISKS"
"""The environment variable that keeps disks in files."""
COMPANION_OVERHEAD = 1.2
"""Bytes that the companion disk takes on the host for each byte of data in it, at most."""


@dataclass(frozen=True)
class RunNeeds:
    """The bytes that cells take of the host, at most."""

    cells: int
    disks: int
    """Of disk, while a cell runs: the copies of its disk, as full as they can be."""
    kept: int
    """Of disk, beside the cells that run: disks that stay when their cells have ended, and the companion disks."""
    memory: int
    """Of memory, for each guest."""
    beside: int = 0
    """Guests that a cell may have beside its first."""
    copy: int = 0
    """Of disk, for each of those."""

    @property
    def cell_bytes(self) -> int:
        """Bytes of memory that one cell takes where its disks lie there, too."""
        return self.memory + self.disks

    def disk(self, jobs: int = 1) -> int:
        """Return the bytes of disk that so many guests at a time take, at most."""
        return self._disks(jobs) + self.kept + HEADROOM

    def guests(self, jobs: int = 1) -> int:
        """Return the bytes of memory that so many guests at a time take, at most."""
        return self._guests(jobs) * self.memory + HEADROOM

    def _guests(self, jobs: int) -> int:
        return min(jobs, self.cells * (1 + self.beside))

    def _disks(self, jobs: int) -> int:
        cells = min(jobs, self.cells)
        return cells * self.disks + (self._guests(jobs) - cells) * self.copy

    def at_once(self, home: Path, clock: Clock) -> tuple[int, str]:
        """Return how many guests the host can run at a time, one at least, and a line that says why so many."""
        if clock == "wall":
            return 1, "1 at a time: in the wall clock cells disturb each other"
        processors = host.processors()
        in_memory = max(0, host.memory_available() - HEADROOM) // self.memory
        free = max(0, shutil.disk_usage(home).free - HEADROOM - self.kept)
        on_disk = free // self.disks
        if on_disk >= self.cells and self.beside:
            on_disk = self.cells + (free - self.cells * self.disks) // self.copy
        jobs = max(1, min(self._guests(MAX_JOBS), processors, in_memory, on_disk))
        bounds = f"processors: {processors}; room for {in_memory} in memory, for {on_disk} on disk"
        return jobs, f"{jobs} at a time (cells: {self.cells}; {bounds})"

    def require(self, home: Path, jobs: int) -> str:
        """Return what so many cells at a time take, as a text. Raises HostError where the host has less.

        A full host kills QEMU in the middle of a run, and one that cannot draw ends a cell when all is measured.
        """
        limits.require_to_draw()
        cells, guests = min(jobs, self.cells), self._guests(jobs)
        several = f"{cells} cells at once" if cells > 1 else "a cell"
        several += f" with {guests} guests" if guests > cells else ""
        needed = self.disk(jobs)
        free = shutil.disk_usage(home).free
        if free < needed:
            raise HostError(
                f"{home} has {free / 1e9:.1f} GB free, {several} would take up to {needed / 1e9:.1f} GB",
                hint="free some space, choose --scale quick, or move the store with AGELAB_HOME=<directory>",
            )
        memory = self.guests(jobs)
        available = host.memory_available()
        if available < memory:
            raise HostError(
                f"this host has {available / 1e9:.1f} GB of memory available, {several} would take "
                f"{memory / 1e9:.1f} GB",
                hint="end something that uses memory, or choose a smaller scale or fewer --jobs",
            )
        return f"{several}: up to {needed / 1e9:.1f} GB of disk and {memory / 1e9:.1f} GB of memory"

    def fit_in_memory(self, jobs: int, clock: Clock) -> tuple[bool, str]:
        """Return whether the disks of so many cells at a time are to lie in memory, and a line that says why.

        With the guests they take half of what is available at most: what lies there cannot be written out, and other
        programs want memory, too.
        """
        needed = self._guests(jobs) * self.memory + self._disks(jobs)
        available = host.memory_available()
        sizes = f"up to {needed / 1e9:.1f} GB with the guests, of {available / 1e9:.1f} GB"
        if os.environ.get(DISKS_VARIABLE) == "files":
            return False, f"disks in files: {DISKS_VARIABLE} asks for it"
        if clock == "wall":
            return False, "disks in files: in the wall clock the host's memory would be measured"
        if host.memory_is_limited():
            return False, "disks in files: a control group limits the memory of this process"
        if needed > available // 2:
            return False, f"disks in files: in memory they would take {sizes}"
        return True, f"disks in memory: {sizes}"


def needs(
    specs: Sequence[CellSpec],
    corpora: Sequence[Corpus],
    *,
    copies: int,
    kept: int = 0,
    kernels: int = 1,
    beside: int = 0,
) -> RunNeeds:
    """Return what cells need, each with ``copies`` copies of its disk while it runs.

    ``kept`` disks stay when their cells have ended. ``kernels`` is how many times the cells are there, ``beside`` how
    many guests each may have beside its first.
    """
    guests = (
        spec.memory_mib(corpus) + spec.more_memory_at_points(corpus.parts or 0)
        for spec, corpus in zip(specs, corpora, strict=True)
    )
    disk = max(spec.host_bytes for spec in specs)
    companions = any(spec.companion for spec in specs)
    content = sum({corpus.sha256: corpus.content_bytes for corpus in corpora}.values())
    companion = int(content * COMPANION_OVERHEAD) if companions else 0
    return RunNeeds(
        cells=len(specs) * kernels,
        disks=copies * disk + max(spec.record_bytes for spec in specs),
        kept=kept * disk + companion,
        memory=max(MAP_MEMORY_MIB, *guests) * MIB,
        beside=beside,
        copy=disk,
    )


def needs_of(request: RunRequest, specs: Sequence[CellSpec], corpora: Sequence[Corpus], kernels: int = 1) -> RunNeeds:
    """Return what the cells of a request take of the host."""
    copies = copies_of_disk(request, max((corpus.parts or 0 for corpus in corpora), default=0))
    kept = len(specs) if request.options.keep_disk else 0
    beside = 0
    if request.options.guest_clock == "virtual" and request.options.measure:
        alike = {(id(spec.scenario), corpus.parts): (spec, corpus) for spec, corpus in zip(specs, corpora, strict=True)}
        beside = max(_beside(spec, corpus) for spec, corpus in alike.values())
    return needs(specs, corpora, copies=copies, kept=kept, kernels=kernels, beside=beside)


def _beside(spec: CellSpec, corpus: Corpus) -> int:
    """Return how many guests may follow the making of a cell's disk side by side, beside the first."""
    scenario = spec.scenario
    after = len(phases(scenario, corpus, failure=spec.failure)) - 1
    return max(0, after + bool(scenario.tests_at_points) + bool(scenario.measures) - 1)


def copies_of_disk(request: RunRequest, points: int) -> int:
    """Count the copies of its disk that a cell has at once: itself, its fork or the control, the control's fork.

    Its history, if it has one, has so many ``points``. Where the power is cut, it is also there as it was before.
    """
    options, scenario = request.options, request.selection.scenario
    if prepared := {experiment.prepare for experiment in scenario.experiments} - {""}:
        return 1 + len(prepared)
    if scenario.tests_at_points and options.measure:
        return 1 + 2 * points
    curve = scenario.curve if options.curve else None
    mapped = len(curve.after) if curve and curve.after != "each" else 0
    before = scenario.has_power_cuts
    return 1 + mapped + before + (2 if options.measure and (scenario.tests or scenario.measures) else 0)
