"""Results on a terminal."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from agelab.cli import measures
from agelab.cli.syscalls import print_syscalls, traced
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.model.scenario import IMPLICIT
from agelab.results.rundir import RunDirectory

RATE, SEEKS = "\nMB/s", "\nseeks"
COLUMNS = (
    " step",
    "elapsed\ns",
    RATE,
    "%\nuser",
    "%\nsys",
    "%\nwait",
    "%\nidle",
    "MB\nread",
    "MB\nwritten",
    "MB\nused",
    SEEKS,
)
WIDE = 160
"""Characters of a line where nobody watches."""
RECORDED = {"space_left": "left for data", "content_bytes": "in all files"}
"""What steps have found themselves."""
CPU = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_idle")


def print_run(run: RunDirectory) -> None:
    """Every cell of the run: its steps, and below them its key and digest."""
    console = _console()
    plan, going_on, samples = run.plan(), run.going_on(), run.samples()
    console.print(f"\n{plan.run}: {plan.scenario}, scale {plan.scale}, {clock_of(plan)}", style="bold")
    console.print(f"  kernel {plan.provenance.get('kernel')}; {plan.provenance.get('qemu')}", soft_wrap=True)
    console.print(f"  {plan.provenance.get('model')}", soft_wrap=True)
    for number, cell in enumerate(plan.cells):
        _print_cell(console, cell, run.end(number), samples.get(number, []), going_on)
        for picture in sorted(run.cell(number).glob("maps/*.svg")):
            console.print(f"  picture     {picture}", soft_wrap=True)
    if plan.unstated:
        console.print("\nwhat the study leaves open, or is not reproduced:")
        for line in plan.unstated:
            console.print(f"  - {line}", soft_wrap=True)
    console.print(f"\nthe whole result: agelab show {plan.run} --json", soft_wrap=True)


def clock_of(plan: RunPlan) -> str:
    """The clock, and whether what it measured is an emulated processor's time."""
    emulated = plan.clock == "wall" and any(cell.accelerator != "kvm" for cell in plan.cells)
    return f"{plan.clock} clock" + (", EMULATED" if emulated else "")


def status_of(end: End | None, going_on: bool) -> str:
    """The cell's status, or that its run has not come to its end yet."""
    if end is None or end.status is Status.INTERRUPTED:
        return "running" if going_on else Status.INTERRUPTED.value
    return end.status.value


def _print_cell(
    console: Console, cell: Cell, end: End | None, samples: Sequence[Sample], going_on: bool
) -> None:
    console.print(
        f"\n{cell.variant}, {cell.layout} on {', '.join(cell.drives)}, {cell.machine}, "
        f"{cell.defaults} defaults, seed {cell.seed}",
        soft_wrap=True,
    )
    if samples:
        phases = (measures.AGED, measures.CONTROL, "curve/")
        apart = traced(samples)
        console.print(
            _steps(
                [one for one in samples if not one.step.startswith(phases) and apart.isdisjoint(_within(one))]
            )
        )
        print_syscalls(console, samples)
        measures.print_measures(console, samples)
        for sample in samples:
            if sample.metric == "throughput_ratio":
                said = sample.not_measured if sample.value is None else f"{sample.value:.3f}"
                console.print(f"  {sample.step}: throughput of the last repetition / of the first: {said}")
            if sample.metric in RECORDED:
                said = sample.not_measured if sample.value is None else f"{sample.value / 1e6:.3f} MB"
                console.print(f"  {sample.step}: {RECORDED[sample.metric]}: {said}", soft_wrap=True)
    status = status_of(end, going_on)
    if end is None or status == "running":
        why = "" if status == "running" else ": it has no end record"
        console.print(f"  status      {status}{why}")
        return
    console.print(f"  status      {status}" + (f": {end.reason}" if end.reason else ""), soft_wrap=True)
    if end.inputs_key:
        digest = end.digest or "none: only a finished cell of the virtual clock has one"
        console.print(f"  inputs_key  {end.inputs_key}\n  digest      {digest}", soft_wrap=True)


def _steps(samples: Sequence[Sample]) -> Table:
    """One row for each step; of a repeated one its first and last repetition."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    # Not every scenario says what its steps move, and only a modelled drive knows its arm.
    measured = {sample.metric for sample in samples}
    left_out = {name for name, metric in ((RATE, "throughput"), (SEEKS, "seeks")) if metric not in measured}
    for name in COLUMNS:
        if name not in left_out:
            table.add_column(name, justify="left" if name == " step" else "right", no_wrap=True)
    by_step: dict[str, dict[int, dict[str, Sample]]] = {}
    for sample in samples:
        repetitions = by_step.setdefault(_shortened(sample.step), {})
        repetitions.setdefault(sample.repetition, {}).setdefault(sample.metric, sample)
    for step, repetitions in by_step.items():
        timed = {number: metrics for number, metrics in repetitions.items() if "elapsed" in metrics}
        numbers = sorted(timed)
        for number in dict.fromkeys(numbers[:1] + numbers[-1:]):
            label = " " + step if len(numbers) == 1 else f" {step} {number}/{len(numbers)}"
            cells = zip(COLUMNS, (label, *_row(timed[number])), strict=True)
            table.add_row(*(cell for name, cell in cells if name not in left_out))
    return table


def _within(sample: Sample) -> set[str]:
    """Its step, and what it is a part of: an experiment's mkfs, a step's system call."""
    return {sample.step, sample.step.rpartition("/")[0]}


def _shortened(step: str) -> str:
    """What every experiment begins with has one row: its first."""
    last = step.rpartition("/")[2]
    return last if last in IMPLICIT else step


def _row(metrics: dict[str, Sample]) -> list[str]:
    cpu = [_value(metrics, name) for name in CPU]
    total = sum(value for value in cpu if value is not None)
    shares = [f"{100 * value / total:.0f}" if value is not None and total else "-" for value in cpu]
    return [
        _shown(metrics, "elapsed", 1, 6),
        _shown(metrics, "throughput", 1e6, 1),
        *shares,
        _shown(metrics, "bytes_read", 1e6, 1),
        _shown(metrics, "bytes_written", 1e6, 1),
        _shown(metrics, "space_used", 1e6, 1),
        _shown(metrics, "seeks", 1, 0),
    ]


def _value(metrics: dict[str, Sample], name: str) -> float | None:
    return metrics[name].value if name in metrics else None


def _shown(metrics: dict[str, Sample], name: str, unit: float, decimals: int) -> str:
    """A dash where the step has no such metric, a question mark where it could not be measured."""
    if name not in metrics:
        return "-"
    value = metrics[name].value
    return "?" if value is None else f"{value / unit:.{decimals}f}"


def _console() -> Console:
    """A program that reads it, or a pager, gets whole lines."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDE)


def print_runs(runs: Sequence[RunDirectory]) -> None:
    """One line for each run: how its cells ended."""
    console = _console()
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("run", "scale", "clock", "layout", "drives", "how its cells ended"):
        table.add_column(name, no_wrap=name != "drives", overflow="fold")
    for run in runs:
        plan, going_on = run.plan(), run.going_on()
        ends = [run.end(number) for number in range(len(plan.cells))]
        statuses = [status_of(end, going_on) for end in ends]
        counted = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
        layouts = ", ".join(dict.fromkeys(cell.layout for cell in plan.cells))
        drives = ", ".join(dict.fromkeys(drive for cell in plan.cells for drive in cell.drives))
        clock = clock_of(plan).replace(" clock", "")
        table.add_row(plan.run, plan.scale, clock, layouts, drives, counted)
    console.print(table)
