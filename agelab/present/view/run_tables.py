"""Print runs: one in full, or all of them a line each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from rich.console import Console

from agelab.analysis.cells import RunSet, load
from agelab.base.sanitize import escape_controls
from agelab.base.verbs import as_called
from agelab.data.history.report import HistoryReport, report_lines
from agelab.present.view import aging, cell_names, sparkline
from agelab.present.view.aging import format_sample
from agelab.present.view.control_tests import is_of_control_file, print_tests
from agelab.present.view.own_metrics import print_own_metrics
from agelab.present.view.syscalls import print_syscalls, traced_steps
from agelab.present.view.terminal import Head, open_console, print_table, print_wrapped
from agelab.results.block_record import RequestRecord
from agelab.results.result import Cell, End, RunPlan, Sample, Status
from agelab.results.rows import WAITING
from agelab.results.run_directory import RunDirectory
from agelab.scenario.step import DISKS, IMPLICIT, StepId

CPU = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_idle")
COLUMNS: dict[str, tuple[str, float, int]] = {
    "elapsed": ("elapsed\ns", 1, 6),
    "throughput": ("rate\nMB/s", 1e6, 1),
    "cpu_user": ("user\n%", 1, 0),
    "cpu_system": ("sys\n%", 1, 0),
    "cpu_iowait": ("wait\n%", 1, 0),
    "cpu_idle": ("idle\n%", 1, 0),
    "bytes_read": ("read\nMB", 1e6, 1),
    "bytes_written": ("written\nMB", 1e6, 1),
    "space_used": ("used\nMB", 1e6, 1),
    "seeks": ("seeks\n", 1, 0),
}
"""Metric to its heading, divisor and decimals."""
NOT_ALWAYS = ("throughput", "seeks")
"""Metrics without a column where nothing has them: not every scenario says what its steps move, and only a modelled
drive knows its arm."""
DROPPED = ("drives", "layout", "clock")
"""Columns that the list of runs drops, in this order, where the terminal is narrow; agelab show has them."""
SEEDS = ("seeds", "corpora")
"""Columns that are there where a run has others than 1."""
SPLIT = "its cells"
"""The column that is then split over several lines."""
DROPPED_LAST = ("scale", "defaults")
"""Columns that are dropped after that."""
REPORTED = {"space_left": "left for data", "content_bytes": "in all files"}
"""Metrics that steps report themselves, with their labels."""
DISPUTED = "which an earlier cell of this key has: one of them is wrong, and neither is reused any more"
PROMISED = ("files_intact", "files_damaged", "files_missing")
CHANGED = tuple(f"unsynced_{what}" for what in ("whole", "older", "short", "zeros", "garbage", "missing"))


def print_run(run: RunDirectory, *, curves: bool = False) -> None:
    """Print every cell of a run: its steps, and below them its key and digest.

    With ``curves`` also how repeated steps went on from the first to the last repetition.
    """
    console = open_console()
    plan, ends, samples = run.read_all()
    statuses = cell_names.statuses(run, ends)
    print_head(console, plan)
    if is_of_control_file(plan):
        print_tests(console, RunSet((load(run),)))
    for name, report in plan.histories.items():
        console.print(f"\nhistory {name}", style="bold")
        for line in _history(report):
            console.print(f"  {line}", soft_wrap=True)
    empty: dict[str, list[Cell]] = {}
    for number, cell in enumerate(plan.cells):
        if ends[number] is None and number not in samples:
            empty.setdefault(statuses[number], []).append(cell)
            continue
        name = f"{cell.label} on {', '.join(cell.drives)}, {cell.machine}, {cell.defaults} defaults"
        name = f"{name}, {cell_names.name_seeds(cell, plan.cells)}"
        _print_cell(console, name, ends[number], samples.get(number, []), statuses[number], curves)
        if record := run.blocks(number):
            console.print(f"  blocks      {_recorded(run, number, record)}", soft_wrap=True)
        for picture in sorted(run.path.glob(f"cells/{number}/maps/*.svg")):
            console.print(f"  picture     {escape_controls(str(picture))}", soft_wrap=True)
    for status, found in empty.items():
        print_wrapped(
            console,
            f"\n{cell_names.count_cells(len(found))} {status}, nothing measured: "
            f"{cell_names.list_cells(found, plan.cells)}",
        )
    if plan.unstated:
        console.print("\nwhat the study leaves open, or is not reproduced:")
        for line in plan.unstated:
            print_wrapped(console, f"  - {line}", 4)
    click.echo(as_called(f"\nthe whole result: agelab show {escape_controls(run.named)} --json"))


def print_head(console: Console, plan: RunPlan) -> None:
    """Print the run's name, kernel, emulator and clock model."""
    console.print(f"\n{plan.run}: {plan.scenario}, scale {plan.scale}, {clock_of(plan)}", style="bold")
    print_wrapped(console, f"  kernel {plan.provenance.get('kernel')}; {plan.provenance.get('qemu')}", 2)
    print_wrapped(console, f"  {plan.provenance.get('model')}", 2)


def _history(report: Mapping[str, Any]) -> list[str]:
    """Format the report of a history, if this version can read it."""
    try:
        return report_lines(HistoryReport.model_validate(report))
    except ValueError:
        return ["its report is of another version of agelab: agelab show --json has it"]


def describe_run(plan: RunPlan) -> str:
    """Return a run's scenario, scale and clock, and what real time means for its seeds."""
    note = "; real time, each seed one repetition of it" if plan.clock == "wall" else ""
    return f"{plan.scenario}, scale {plan.scale}, {clock_of(plan)}{note}"


def clock_of(plan: RunPlan) -> str:
    """Name the clock, and EMULATED where it timed an emulated processor."""
    return f"{plan.clock} clock" + (", EMULATED" if plan.emulated else "")


def _print_cell(
    console: Console, name: str, end: End | None, samples: Sequence[Sample], status: str, curves: bool
) -> None:
    print_wrapped(console, f"\n{name}", 2)
    if samples:
        labels = aging.drives_at_points(samples)
        phases = {*DISKS, *labels}
        apart = traced_steps(samples)
        steps = [one for one in samples if phases.isdisjoint(one.step_id.within[:1])]
        steps = [one for one in steps if apart.isdisjoint(_within(one))]
        _print_steps(console, steps)
        drawn = {(one.step, one.repetition, one.metric): one.value for one in steps} if curves else {}
        for name, curve in sparkline.curves(drawn, console.encoding).items():
            console.print(f"  {name}: {curve}", soft_wrap=True)
        print_syscalls(console, samples)
        if labels:
            aging.print_points(console, samples, labels)
        else:
            aging.print_measures(console, samples)
        print_own_metrics(console, samples)
        for sample in samples:
            if sample.metric == "throughput_ratio":
                text = sample.not_measured if sample.value is None else f"{sample.value:.3f}"
                console.print(f"  {sample.step}: throughput of the last repetition / of the first: {text}")
            if sample.metric in REPORTED:
                text = sample.not_measured if sample.value is None else f"{sample.value / 1e6:.3f} MB"
                console.print(f"  {sample.step}: {REPORTED[sample.metric]}: {text}", soft_wrap=True)
        for line in recovery_lines(samples):
            console.print(f"  {line}", soft_wrap=True)
    if end is None or status == WAITING:
        why = ": it has no end record" if status == Status.INTERRUPTED else ""
        console.print(f"  status      {status}{why}")
        return
    why = f": {end.why}" if end.why else ""
    print_wrapped(console, f"  status      {status}{why}", 14)
    for task in end.stuck:
        console.print(f"  task        {task.name} ({task.pid}) {task.state} {task.waits_in}", soft_wrap=True)
        for call in task.stack:
            console.print(f"                {call}", soft_wrap=True)
    if end.inputs_key:
        console.print(f"  inputs_key  {end.inputs_key}", soft_wrap=True)
        if end.digest:
            console.print(f"  digest      {end.digest}", soft_wrap=True)
            for line in cell_names.beside_docs([end]):
                console.print(f"  {line}", soft_wrap=True)
        else:
            print_wrapped(
                console, "  digest      none: only a finished cell of the virtual clock has one", 14
            )
    if end.reused:
        print_wrapped(console, f"  reused      {end.reused}", 14)
    if end.disputes:
        print_wrapped(console, f"  disputes    {end.disputes}, {DISPUTED}", 14)


def _print_steps(console: Console, samples: Sequence[Sample]) -> None:
    """Print a row for each step; of a repeated one for its first and last repetition."""
    measured = {sample.metric for sample in samples}
    shown = {name: column for name, column in COLUMNS.items() if name not in NOT_ALWAYS or name in measured}
    heads: list[Head] = [(" step", "left"), *((heading, "right") for heading, _, _ in shown.values())]
    by_step: dict[str, dict[int, dict[str, Sample]]] = {}
    for sample in samples:
        repetitions = by_step.setdefault(_shortened(sample.step), {})
        repetitions.setdefault(sample.repetition, {}).setdefault(sample.metric, sample)
    rows = []
    for step, repetitions in by_step.items():
        timed = {number: metrics for number, metrics in repetitions.items() if "elapsed" in metrics}
        numbers = sorted(timed)
        for number in dict.fromkeys(numbers[:1] + numbers[-1:]):
            label = " " + step if len(numbers) == 1 else f" {step} {number}/{len(numbers)}"
            cells = (_cell(timed[number], name, scale, places) for name, (_, scale, places) in shown.items())
            rows.append([label, *cells])
    print_table(console, heads, rows)


def _within(sample: Sample) -> set[str]:
    """Return its step and the step that it is a part of, as an experiment's mkfs."""
    return {sample.step, sample.step_id.group}


def _shortened(step: str) -> str:
    """Return one name for the steps that every experiment begins with: they share a row."""
    last = StepId.parse(step).name
    return last if last in IMPLICIT else step


def _cell(metrics: Mapping[str, Sample], name: str, divisor: float, decimals: int) -> str:
    """Format a step's value; of the processor's times their share of all of them in per cent."""
    if name not in CPU:
        return format_sample(metrics.get(name), decimals, divisor)
    times = {one: metrics[one].value for one in CPU if one in metrics}
    total, value = sum(filter(None, times.values())), times.get(name)
    return f"{100 * value / total:.0f}" if value is not None and total else "-"


def recovery_lines(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a line for each cut, recovery and check, and for the files that were checked."""
    for one in samples:
        whole, seconds = ("?", "?") if one.value is None else (f"{one.value:.0f}", f"{one.value:.6f}")
        match one.metric:
            case "cut_after":
                after = "?" if one.value is None else f"{one.value:.3f}"
                yield f"{one.step} {one.repetition}: power cut {after} s after its begin"
            case "mount_status" if one.value:
                yield f"{one.step}: the mount failed, exit {whole}"
            case "recovery_time":
                yield f"{one.step}: mounted again after {seconds} s"
            case "fsck_status":
                yield f"{one.step}: " + (f"exit {whole}" if one.value else "clean")
            case "files_synced":
                yield f"{one.step}: {whole} files were synced: {_split(samples, one, PROMISED)}"
            case "files_unsynced":
                yield f"{one.step}: {whole} files had changed since: {_split(samples, one, CHANGED)}"


def _split(samples: Sequence[Sample], of: Sample, metrics: Sequence[str]) -> str:
    """Format how many files each metric counts."""
    place = of.step, of.repetition
    counts = {one.metric: one.value for one in samples if (one.step, one.repetition) == place}
    words = (f"{counts.get(metric) or 0:.0f} {metric.partition('_')[2]}" for metric in metrics)
    return ", ".join(words)


def _recorded(run: RunDirectory, number: int, record: RequestRecord) -> str:
    """Say what was recorded of a cell's requests, and where it is."""
    sent, lost = (sum(getattr(step, name) for step in record.steps) for name in ("requests", "lost"))
    place = escape_controls(str(run.blocks_directory(number)))
    ended = "" if record.status is Status.OK else f"; the pass {record.status}: {record.reason}"
    return f"{sent} requests in {len(record.steps)} steps, {lost} events lost: {place}{ended}"


def print_runs(runs: Sequence[RunDirectory]) -> None:
    """Print a line for each run: what it was, and how its cells ended."""
    console = open_console()
    rows = [_listed(run) for run in runs]
    columns = [name for name in rows[0] if name not in SEEDS or any(row[name] for row in rows)]
    widths = {name: _width(name, rows, parts=name == "drives") for name in columns}

    def drop(names: Sequence[str]) -> None:
        for name in names:
            if sum(widths[one] for one in columns) > console.width:
                columns.remove(name)

    drop(DROPPED)
    if sum(widths[one] for one in columns) > console.width:
        widths[SPLIT] = _width(SPLIT, rows, parts=True)
        rows = [{**row, SPLIT: row[SPLIT].replace(", ", ",\n")} for row in rows]
    drop(DROPPED_LAST)
    console.width = max(console.width, sum(widths[one] for one in columns))
    heads: list[Head] = [(f" {name}", "wrapped" if name == "drives" else "left") for name in columns]
    print_table(console, heads, [[_indented(row[name]) for name in columns] for row in rows])


def _indented(cell: str) -> str:
    return "\n".join(f" {line}" for line in cell.split("\n"))


def _width(column: str, rows: Sequence[dict[str, str]], *, parts: bool) -> int:
    """Return the width of a column with a blank on either side; its ``parts`` may stand below one another."""
    cells = [row[column] for row in rows]
    lines = [part for cell in cells for part in cell.split(", ")] if parts else cells
    return 2 + max(map(len, (column, *lines)))


def _listed(run: RunDirectory) -> dict[str, str]:
    """Return the run's line by column; seeds only where they are not just 1."""
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    statuses = cell_names.statuses(run, ends)
    seeds = sorted({cell.seed for cell in plan.cells})
    corpora = sorted({cell.corpus_seed for cell in plan.cells})
    return {
        "run": plan.run,
        "scale": plan.scale,
        "clock": clock_of(plan).replace(" clock", ""),
        "defaults": ", ".join(dict.fromkeys(cell.defaults for cell in plan.cells)),
        "seeds": cell_names.ranges(seeds) if seeds != [1] else "",
        "corpora": cell_names.ranges(corpora) if corpora != [1] else "",
        "layout": ", ".join(dict.fromkeys(cell.layout for cell in plan.cells)),
        "drives": ", ".join(dict.fromkeys(drive for cell in plan.cells for drive in cell.drives)),
        SPLIT: cell_names.count_statuses(statuses, ends),
    }
