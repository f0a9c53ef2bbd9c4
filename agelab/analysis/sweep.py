"""One scenario on several kernels: each metric by filesystem and kernel, and what changed from one to the next."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from agelab.analysis.cells import groups
from agelab.analysis.comparability import data
from agelab.analysis.host_noise import HostNoise, noise_of_runs
from agelab.analysis.judge import judge
from agelab.errors import InputError
from agelab.kernel.versions import is_version, sort_key
from agelab.model.result import RunKernel, RunPlan, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.stats.order_statistics import exact
from agelab.stats.series import Place, Series, SeriesPair, series
from agelab.stats.verdict import ComparedSeries

TOTAL: Place = ("all steps", 1, "elapsed")
"""The sum of what all steps of a cell took."""
DEFAULT = (("aged/map", "layout_score"), ("", "slowdown"))
"""Step and metric of what is shown unasked, beside the sum; without a step those of every step."""

REF = 8
"""Characters of a git ref in a kernel's name."""
_REF = re.compile(r"tree:[^,]*@([^,@]+)(,.*)?")


@dataclass(frozen=True)
class SweepCell:
    """A variant on a kernel."""

    measured: Mapping[Place, Series]
    why: str
    """Why there is nothing, or less than there should be: the status and its reason."""
    unsupported: bool


@dataclass(frozen=True)
class Sweep:
    """The runs of one scenario, kernel by kernel in the order of their versions."""

    kernels: tuple[RunKernel, ...]
    """The columns."""
    entries: Mapping[tuple[str, str], tuple[SweepCell | None, ...]]
    """Variant and layout to what there is on each kernel; None where it was not asked for."""
    host: HostNoise = field(default_factory=HostNoise)
    """The noise of the hosts; the sum of all steps has the largest floor of any of them."""

    @property
    def names(self) -> list[str]:
        """What each column is called: the kernel's release, and where several have it, the git ref or a number."""
        names = [kernel.release.removesuffix("-amd64") for kernel in self.kernels]
        refs = [_REF.fullmatch(kernel.spec) for kernel in self.kernels]
        named = [
            f"{name}@{ref[1][:REF]}" if ref and names.count(name) > 1 else name
            for name, ref in zip(names, refs, strict=True)
        ]
        return [
            f"{name}#{named[:at].count(name) + 1}" if named.count(name) > 1 else name
            for at, name in enumerate(named)
        ]

    def places(self) -> list[Place]:
        """What is shown unasked, of what was measured."""
        every = dict.fromkeys(
            place for row in self.entries.values() for entry in row if entry for place in entry.measured
        )
        wanted = [
            place
            for step, metric in DEFAULT
            for place in every
            if place[2] == metric and step in ("", place[0])
        ]
        return [*wanted, *([TOTAL] if TOTAL in every else [])]

    def series(self, row: tuple[str, str], column: int, place: Place) -> Series | None:
        """What was measured there, or None."""
        entry = self.entries[row][column]
        found = entry.measured.get(place) if entry else None
        return found if found and found.values else None

    def changes(self, place: Place) -> dict[tuple[tuple[str, str], int], ComparedSeries]:
        """Row and column to what changed since the last kernel before that has a value; all are one family."""
        found: dict[tuple[tuple[str, str], int], SeriesPair] = {}
        for row in self.entries:
            before: Series | None = None
            for column in range(len(self.kernels)):
                now = self.series(row, column, place)
                if now and before:
                    found[row, column] = SeriesPair(before, now)
                before = now or before
        return dict(zip(found, judge([*found.values()], self.host), strict=True))

    def last_seen(self, row: tuple[str, str]) -> str | None:
        """The newest kernel on which a variant ran that a younger one does not support; None for others."""
        entries = self.entries[row]
        if entries[-1] is None or not entries[-1].unsupported:
            return None
        ran = [
            name for name, entry in zip(self.names, entries, strict=True) if entry and not entry.unsupported
        ]
        return ran[-1] if ran else ""


def of(runs: Sequence[RunDirectory]) -> Sweep:
    """The sweep that these runs make. Raises InputError for runs that do not belong into one table."""
    plans = [run.plan() for run in runs]
    if empty := [plan.run for plan in plans if not plan.cells]:
        raise InputError(f"{empty[0]} has no cells: there is nothing to put into a table")
    kinds = {(plan.scenario, plan.scale, plan.clock, plan.cells[0].defaults) for plan in plans}
    if len(kinds) > 1:
        said = "; ".join(", ".join(kind) for kind in sorted(kinds))
        raise InputError(f"these runs do not belong into one table: {said}")
    _must_be_alike(plans)
    by_kernel: dict[RunKernel, list[RunDirectory]] = {}
    for run, plan in zip(runs, plans, strict=True):
        if plan.kernel is None:
            raise InputError(f"{run.name} does not say its kernel in a way that is known here")
        by_kernel.setdefault(plan.kernel, []).append(run)
    kernels = tuple(sorted(by_kernel, key=_age))
    found: dict[tuple[str, str], dict[RunKernel, SweepCell]] = {}
    for kernel in kernels:
        for row, entry in _entries(by_kernel[kernel]).items():
            found.setdefault(row, {})[kernel] = entry
    entries = {row: tuple(map(there.get, kernels)) for row, there in found.items()}
    return Sweep(kernels, entries, noise_of_runs([*zip(runs, plans, strict=True)], widest=True))


def _must_be_alike(plans: Sequence[RunPlan]) -> None:
    """Raise InputError where something else than the kernel would be seen as a kernel's change."""
    said: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in (cell for plan in plans for cell in plan.cells):
        alike = {"machine": cell.machine, "drives": ", ".join(cell.drives), "accelerator": cell.accelerator}
        for what, value in alike.items():
            said.setdefault((cell.variant, cell.layout, what), {})[value] = None
    for (variant, _, what), values in said.items():
        if len(values) > 1:
            raise InputError(
                f"these runs do not belong into one table: {variant} has {what} {'; '.join(values)}"
            )
    known = [one for one in map(data, plans) if one]  # a run of fewer histories has fewer
    if any(not one & known[0] for one in known):
        raise InputError(
            "these runs do not belong into one table: their corpora differ",
            hint="which inputs differ says: agelab compare",
        )


def _age(kernel: RunKernel) -> tuple[int, ...]:
    """By which kernels are sorted: the version; of an image, whose version is its banner, the release."""
    return sort_key(kernel.version if is_version(kernel.version) else kernel.release)


def _entries(runs: Iterable[RunDirectory]) -> dict[tuple[str, str], SweepCell]:
    """Variant and layout to what the runs of one kernel have of it, over all their seeds."""
    cells: dict[tuple[str, str], dict[int, Sequence[Sample]]] = {}
    others: dict[tuple[str, str], list[tuple[Status, str]]] = {}
    for run in runs:
        for group in groups(run):
            row = (group.variant, group.layout)
            cells.setdefault(row, {}).update({seed: summed(rows) for seed, rows in group.counted})
            for ran in group.cells.values():
                if not ran.ok:
                    status = ran.end.status if ran.end else Status.INTERRUPTED
                    reason = ran.end.reason if ran.end else None
                    others.setdefault(row, []).append((status, reason or "it has not ended"))
    return {
        row: SweepCell(
            series(ok.items()),
            "; ".join(dict.fromkeys(f"{status}: {why}" for status, why in others.get(row, []))),
            bool(others.get(row)) and all(status is Status.UNSUPPORTED for status, _ in others[row]),
        )
        for row, ok in cells.items()
    }


def summed(rows: Sequence[Sample]) -> Sequence[Sample]:
    """A cell's samples with the sum of its steps."""
    step, repetition, metric = TOTAL
    elapsed = [exact(row.value) for row in rows if row.metric == metric and row.value is not None]
    if not elapsed:
        return rows
    total = float(sum(elapsed, Fraction(0)))
    return [
        *rows,
        Sample(step=step, metric=metric, value=round(total, 6), unit="s", repetition=repetition),
    ]
