"""Print runs: one in full, or all of them a line each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agelab.analysis.cells import RunSet, load
from agelab.base.errors import name_some
from agelab.base.gathered import gathered
from agelab.base.sanitize import escape_controls
from agelab.base.verbs import as_called
from agelab.data.history.report import HistoryReport, report_lines
from agelab.evaluate import derived_samples
from agelab.present.report import tables
from agelab.present.report.blocks import Block, Column, Heading, Line, Table, Text, headings
from agelab.present.report.numbers import with_spread
from agelab.present.view import cell_names, sparkline
from agelab.present.view.terminal import open_console
from agelab.results.records import BLOCKS, RequestRecord
from agelab.results.result import Cell, End, RunPlan, Sample, Status
from agelab.results.rows import WAITING
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import ranges
from agelab.scenario.step import AGED, AGED_MAP, CONTROL, CONTROL_COPY, CONTROL_MAP, DISKS, IMPLICIT, StepId
from agelab.stats.formatting import unit_scale

NO_TESTS = (*IMPLICIT, CONTROL_COPY)
"""Steps on both disks that are none of the scenario's tests."""
MAP_ROWS: dict[str, tuple[str, float, int]] = {
    "files": ("files", 1, 0),
    "extents": ("extents", 1, 0),
    "extents_per_file": ("extents a file", 1, 4),
    "fragmented_files": ("files in several pieces, %", 0.01, 1),
    "layout_score": ("layout score", 1, 4),
    "extent_length_p50": ("median extent, KiB", 1024, 0),
    "locality_score": ("files that follow the one before, share", 1, 4),
    "locality_distance": ("distance to the file before, KiB", 1024, 0),
    "free_bytes": ("free, MB", 1e6, 1),
    "free_extents": ("free extents", 1, 0),
    "free_extent_largest": ("largest free extent, MB", 1e6, 1),
    "free_usable_1mib": ("free in runs of 1 MiB and more, %", 0.01, 1),
}
"""Metric of a map to its label, divisor and decimals."""

PointColumn = tuple[str, str, str, float, int]
"""Heading, step, metric, divisor, decimals."""


def measures_blocks(samples: Sequence[Sample]) -> Iterator[Block]:
    """Yield the tests' times on both disks with the slowdown, then the measures of both layouts."""
    values = _by_place(samples)
    tests = dict.fromkeys(
        (sample.step_id.name, sample.repetition)
        for sample in samples
        if (sample.step_id.within, sample.metric) == ((AGED,), "elapsed") and sample.step_id.name not in NO_TESTS
    )
    if tests:
        yield from _tests_blocks(values, list(tests))
    rows = []
    for metric, (label, scale, decimals) in MAP_ROWS.items():
        both = [values.get((step, metric, 1)) for step in (AGED_MAP, CONTROL_MAP)]
        if both[0]:
            rows.append((f" {label}", *(format_sample(sample, decimals, scale) for sample in both)))
    if rows:
        yield Table([Column(" layout"), Column("aged", "right"), Column("control", "right")], rows)
        for reason, places in _gaps(samples).items():
            yield Line(f"  not measured: {name_some(places, 1)}: {reason}")


def _tests_blocks(values: Mapping[tuple[str, str, int], Sample], tests: Sequence[tuple[str, int]]) -> Iterator[Block]:
    """Yield a row for each test: its time on the aged disk and on the control, slowdown, dynamic layout scores."""
    scores = (f"dynamic layout\nscore, {disk}" for disk in (AGED, CONTROL))
    names = ("aged\ns", "control\ns", "slowdown\n", *scores)
    heads = [Column(" test"), *(Column(name, "right") for name in names)]
    rows = []
    for test, number in tests:
        label = f" {test}" if sum(name == test for name, _ in tests) == 1 else f" {test} {number}"
        aged, control = (str(StepId.parse(test).on(disk)) for disk in (AGED, CONTROL))
        cells = (
            (aged, "elapsed", 6), (control, "elapsed", 6), (test, "slowdown", 3),
            (aged, "dynamic_layout_score", 4), (control, "dynamic_layout_score", 4),
        )  # fmt: skip
        shown = ((values.get((step, metric, number)), decimals) for step, metric, decimals in cells)
        rows.append((label, *(format_sample(*pair) for pair in shown)))
    yield Table(heads, rows)


def drives_at_points(samples: Sequence[Sample]) -> list[str]:
    """Name the drives that were tested at points of a history; none in other scenarios."""
    steps = (sample.step_id for sample in samples)
    return list(dict.fromkeys(step.label for step in steps if step.on_aged_disk and step.label))


def points_blocks(samples: Sequence[Sample], labels: Sequence[str]) -> Iterator[Block]:
    """Yield a row for each point: slowdowns against the point's control, layout scores, free space."""
    columns = list(_point_columns(samples, labels))
    values = _by_place(samples)
    points = sorted({sample.repetition for sample in samples if sample.metric == "slowdown" or sample.step == AGED_MAP})
    heads = [Column(" point"), *(Column(heading, "right") for heading, *_ in columns)]
    rows = []
    for point in points:
        cells = (
            format_sample(values.get((step, metric, point)), decimals, scale)
            for _, step, metric, scale, decimals in columns
        )
        rows.append((f" {point}", *cells))
    yield Table(heads, rows)
    for reason in _gaps(samples):
        yield Line(f"  not measured: {reason}")


def _point_columns(samples: Sequence[Sample], labels: Sequence[str]) -> Iterator[PointColumn]:
    for label in labels:
        for test in _tests(samples, label):
            yield f"slowdown\n{label}\n{test}", str(StepId(test, (label,))), "slowdown", 1, 3
    for test in _tests(samples, labels[0])[:1]:
        step = str(StepId(test, (labels[0], AGED)))
        yield f"dynamic\n{labels[0]}\n{test}", step, "dynamic_layout_score", 1, 4
    for step, disk in ((AGED_MAP, AGED), (CONTROL_MAP, CONTROL)):
        yield f"layout\nscore\n{disk}", step, "layout_score", 1, 4
    for step, disk in ((AGED_MAP, AGED), (CONTROL_MAP, CONTROL)):
        yield f"% free in\n>= 1 MiB\n{disk}", step, "free_usable_1mib", 0.01, 1
    for step in dict.fromkeys(sample.step for sample in samples if sample.metric == "refused"):
        yield f"refused\n{step}", step, "refused", 1, 0


def _tests(samples: Sequence[Sample], label: str) -> list[str]:
    tests = (sample.step_id for sample in samples if sample.metric == "slowdown")
    return list(dict.fromkeys(test.name for test in tests if test.label == label))


def _by_place(samples: Sequence[Sample]) -> Mapping[tuple[str, str, int], Sample]:
    return {(sample.step, sample.metric, sample.repetition): sample for sample in samples}


def format_sample(sample: Sample | None, decimals: int, scale: float = 1) -> str:
    """Format a value: a dash where there is no sample, a question mark where it was not measured."""
    if sample is None:
        return "-"
    return "?" if sample.value is None else f"{sample.value / scale:.{decimals}f}"


def _gaps(samples: Sequence[Sample]) -> dict[str, list[str]]:
    """Return the reasons for gaps in maps and slowdowns, each with the steps and metrics that it explains."""
    return _reasons(sample for sample in samples if sample.step_id.is_map or sample.metric == "slowdown")


def _reasons(samples: Iterable[Sample]) -> dict[str, list[str]]:
    return gathered(
        (sample.not_measured, f"{sample.step} {sample.metric}") for sample in samples if sample.not_measured
    )


FIGURES = 6
"""Figures of a value to show; exports have all."""

OwnPlace = tuple[str, int, str]
"""Step without its disk, repetition, metric."""


def own_metrics_blocks(samples: Sequence[Sample]) -> Iterator[Block]:
    """Yield a row for each metric that the registry does not have; nothing where there is none."""
    own = [sample for sample in samples if sample.metric not in METRICS]
    if not own:
        return
    by_place: dict[OwnPlace, dict[str, Sample]] = {}
    for sample in own:
        step_id, disk = sample.step_id, sample.step_id.disk
        step = StepId(step_id.name, step_id.within[:-1] if disk in DISKS else step_id.within)
        by_place.setdefault((str(step), sample.repetition, sample.metric), {})[disk] = sample
    repeated = {step for step, number, _ in by_place if number > 1}
    plain = {line: by for line, by in by_place.items() if set(by) == {""}}
    aged = {line: by for line, by in by_place.items() if line not in plain}
    if plain:
        yield from _own_blocks(("value",), plain, repeated, ("",))
    if aged:
        yield from _own_blocks((AGED, CONTROL, f"{AGED} /\n{CONTROL}"), aged, repeated, (AGED, CONTROL))
    for reason, places in _reasons(own).items():
        yield Line(f"  not measured: {name_some(places, 1)}: {reason}")
    for caveat in dict.fromkeys(sample.caveat for sample in own if sample.caveat):
        yield Text(f"  * {caveat}", 4)


def _own_blocks(
    names: Iterable[str], lines: Mapping[OwnPlace, Mapping[str, Sample]], repeated: set[str], disks: Sequence[str]
) -> Iterator[Block]:
    heads = [Column(" step"), Column("metric"), Column("unit")]
    heads += [Column(name, "right") for name in names]
    rows = []
    for (step, repetition, metric), by_disk in lines.items():
        label = f" {step} {repetition}" if step in repeated else f" {step}"
        scale = unit_scale(next(iter(by_disk.values())).unit)
        values = [by_disk[disk].value if disk in by_disk else None for disk in disks]
        marks = ["*" if disk in by_disk and by_disk[disk].caveat else "" for disk in disks]
        cells = [f"{mark}{_figures(value, scale.divisor)}" for mark, value in zip(marks, values, strict=True)]
        if len(disks) > 1:
            first, second = values
            cells.append(f"{first / second:.3f}" if first is not None and second else "-")
        rows.append([label, metric, scale.name, *cells])
    yield Table(heads, rows)


def _figures(value: float | None, divisor: int) -> str:
    if value is None:
        return "?"
    return f"{value / divisor:.{FIGURES}g}"


SMALLEST_SHARE = 0.005
"""Calls with a smaller share of their step's time share a row."""
CALL_NUMBERS = ("s", "%", "calls", "errors")
CALL_COLUMNS = headings(" system call", *CALL_NUMBERS, numbers=CALL_NUMBERS)
CALL_METRICS = ("syscall_seconds", "syscall_calls", "syscall_errors")

Calls = Mapping[str, Mapping[str, Sample]]


def traced_steps(samples: Sequence[Sample]) -> set[str]:
    return {sample.step_id.group for sample in samples if sample.metric in CALL_METRICS}


def syscalls_blocks(samples: Sequence[Sample]) -> Iterator[Block]:
    """Yield for each step the calls that took the most time, then those that wait for a process."""
    steps: dict[str, dict[str, dict[str, Sample]]] = {}
    took = {sample.step: sample.value for sample in samples if sample.metric == "elapsed"}
    for sample in samples:
        if sample.metric.startswith("syscall_"):
            call = sample.step_id
            steps.setdefault(call.group, {}).setdefault(call.name, {})[sample.metric] = sample
    if not steps:
        return
    rows: list[tuple[str, ...]] = []
    for step, calls in steps.items():
        rows += [(f" {step}, {took.get(step) or 0:.6f} s in all", "", "", "", ""), *_call_rows(calls)]
    yield Table(CALL_COLUMNS, rows)


def _call_rows(calls: Calls) -> list[tuple[str, ...]]:
    shares = {
        name: of["syscall_share"].value or 0 if "syscall_share" in of else 0.0
        for name, of in calls.items()
        if name not in derived_samples.WAITING
    }
    ranked = sorted(shares, key=lambda name: -shares[name])
    large = [name for name in ranked if shares[name] >= SMALLEST_SHARE]
    small = [name for name in ranked if shares[name] < SMALLEST_SHARE]
    waiting = [name for name in calls if name in derived_samples.WAITING]
    rows = [_call_row(name, [calls[name]], f"{100 * shares[name]:.1f}") for name in large]
    if small:
        rest = sum(shares[name] for name in small)
        rows.append(_call_row(f"{len(small)} others", [calls[name] for name in small], f"{100 * rest:.1f}"))
    return rows + [_call_row(name, [calls[name]], "waits") for name in waiting]


def _call_row(label: str, calls: Sequence[Mapping[str, Sample]], share: str) -> tuple[str, ...]:
    seconds, count, errors = (sum(of[metric].value or 0 for of in calls if metric in of) for metric in CALL_METRICS)
    return f"   {label}", f"{seconds:.6f}", share, f"{count:.0f}", f"{errors:.0f}"


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


def is_of_control_file(plan: RunPlan) -> bool:
    """Return True where the cells are the lines of a control file."""
    return plan.repeatable and bool(plan.command["options"].get("control"))


def tests_blocks(group: RunSet) -> Iterator[Block]:
    """Yield the median of each test on each filesystem, the spread of its repetitions in brackets."""
    medians: dict[tuple[str, str], str] = {}
    for subject in group.groups:
        for (step, metric), series in subject.steps.items():
            # A variant is called <filesystem>-<test>, and its test's step as the test.
            if metric == "elapsed" and series.summary and subject.variant.endswith(f"-{step}"):
                name = subject.variant.removesuffix(f"-{step}")
                medians[step, name] = with_spread(series.summary, "s", 6)
    if not medians:
        return
    tests, filesystems = (list(dict.fromkeys(names)) for names in zip(*medians, strict=True))
    heads = [Column(" test, s"), *(Column(name, "right") for name in filesystems)]
    yield Line("")
    rows = [(f" {test}", *(medians.get((test, name), "-") for name in filesystems)) for test in tests]
    yield Table(heads, rows)
    if any(len(subject.counted) > 1 for subject in group.groups):
        yield Text("medians; in brackets the spread over the repetitions")


def run_blocks(run: RunDirectory, *, curves: bool = False) -> Iterator[Block]:
    """Yield every cell of a run: its steps, and below them its key and digest.

    With ``curves`` also how repeated steps went on from the first to the last repetition.
    """
    plan, ends, samples = run.read_all()
    statuses = cell_names.statuses(run, ends)
    yield from head_blocks(plan)
    if is_of_control_file(plan):
        yield from tests_blocks(RunSet((load(run),)))
    for name, report in plan.histories.items():
        yield Heading(f"history {name}")
        for line in _history(report):
            yield Line(f"  {line}")
    empty: dict[str, list[Cell]] = {}
    for number, cell in enumerate(plan.cells):
        if ends[number] is None and number not in samples:
            empty.setdefault(statuses[number], []).append(cell)
            continue
        name = f"{cell.label} on {', '.join(cell.drives)}, {cell.machine}, {cell.defaults} defaults"
        name = f"{name}, {cell_names.name_seeds(cell, plan.cells)}"
        yield from _cell_blocks(name, ends[number], samples.get(number, []), statuses[number], curves)
        if record := run.beside(number, RequestRecord):
            yield Line(f"  blocks      {_recorded(run, number, record)}")
        for picture in sorted(run.path.glob(f"cells/{number}/maps/*.svg")):
            yield Line(f"  picture     {escape_controls(str(picture))}")
    for table in tables.flash_tables(RunSet((load(run),)), ""):
        yield Line("")
        yield table
    for status, cells in empty.items():
        yield Text(
            f"\n{cell_names.count_cells(len(cells))} {status}, nothing measured: "
            f"{cell_names.list_cells(cells, plan.cells)}"
        )
    if plan.unstated:
        yield Line("\nwhat the study leaves open, or is not reproduced:")
        for line in plan.unstated:
            yield Text(f"  - {line}", 4)
    yield Line(as_called(f"\nthe whole result: agelab show {escape_controls(run.named)} --json"))


def head_blocks(plan: RunPlan) -> Iterator[Block]:
    """Yield the run's name, kernel, emulator and clock model."""
    yield Heading(f"{plan.run}: {plan.scenario}, scale {plan.scale}, {clock_of(plan)}")
    yield Text(f"  kernel {plan.provenance.get('kernel')}; {plan.provenance.get('qemu')}", 2)
    yield Text(f"  {plan.provenance.get('model')}", 2)
    for name, why in plan.unhonoured.items():
        yield Text(f"  {name} ran without {why}", 2)


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


def _cell_blocks(name: str, end: End | None, samples: Sequence[Sample], status: str, curves: bool) -> Iterator[Block]:
    yield Text(f"\n{name}", 2)
    if samples:
        labels = drives_at_points(samples)
        phases = {*DISKS, *labels}
        apart = traced_steps(samples)
        steps = [sample for sample in samples if phases.isdisjoint(sample.step_id.within[:1])]
        steps = [sample for sample in steps if apart.isdisjoint((sample.step, sample.step_id.group))]
        yield from _steps_blocks(steps)
        repeated = steps if curves else []
        drawn = {(sample.step, sample.repetition, sample.metric): sample.value for sample in repeated}
        for name, curve in sparkline.curves(drawn, open_console().encoding).items():
            yield Line(f"  {name}: {curve}")
        yield from syscalls_blocks(samples)
        if labels:
            yield from points_blocks(samples, labels)
        else:
            yield from measures_blocks(samples)
        yield from own_metrics_blocks(samples)
        for sample in samples:
            if sample.metric == "throughput_ratio":
                text = sample.not_measured if sample.value is None else f"{sample.value:.3f}"
                yield Line(f"  {sample.step}: throughput of the last repetition / of the first: {text}")
            if sample.metric in REPORTED:
                text = sample.not_measured if sample.value is None else f"{sample.value / 1e6:.3f} MB"
                yield Line(f"  {sample.step}: {REPORTED[sample.metric]}: {text}")
        for line in recovery_lines(samples):
            yield Line(f"  {line}")
    if end is None or status == WAITING:
        why = ": it has no end record" if status == Status.INTERRUPTED else ""
        yield Line(f"  status      {status}{why}")
        return
    why = f": {end.why}" if end.why else ""
    yield Text(f"  status      {status}{why}", 14)
    for task in end.stuck:
        yield Line(f"  task        {task.name} ({task.pid}) {task.state} {task.waits_in}")
        for call in task.stack:
            yield Line(f"                {call}")
    if end.inputs_key:
        yield Line(f"  inputs_key  {end.inputs_key}")
        if end.digest:
            yield Line(f"  digest      {end.digest}")
            for line in cell_names.beside_docs([end]):
                yield Line(f"  {line}")
        else:
            yield Text("  digest      none: only a finished cell of the virtual clock has one", 14)
    if end.reused:
        yield Text(f"  reused      {end.reused}", 14)
    if end.disputes:
        yield Text(f"  disputes    {end.disputes}, {DISPUTED}", 14)


def _steps_blocks(samples: Sequence[Sample]) -> Iterator[Block]:
    """Yield a row for each step; of a repeated one for its first and last repetition."""
    measured = {sample.metric for sample in samples}
    shown = {name: column for name, column in COLUMNS.items() if name not in NOT_ALWAYS or name in measured}
    heads = [Column(" step"), *(Column(heading, "right") for heading, _, _ in shown.values())]
    by_step: dict[str, dict[int, dict[str, Sample]]] = {}
    for sample in samples:
        last = sample.step_id.name  # what every experiment begins with shares a row
        repetitions = by_step.setdefault(last if last in IMPLICIT else sample.step, {})
        repetitions.setdefault(sample.repetition, {}).setdefault(sample.metric, sample)
    rows = []
    for step, repetitions in by_step.items():
        timed = {number: metrics for number, metrics in repetitions.items() if "elapsed" in metrics}
        numbers = sorted(timed)
        for number in dict.fromkeys(numbers[:1] + numbers[-1:]):
            label = " " + step if len(numbers) == 1 else f" {step} {number}/{len(numbers)}"
            cells = (_cell(timed[number], name, scale, places) for name, (_, scale, places) in shown.items())
            rows.append([label, *cells])
    yield Table(heads, rows)


def _cell(metrics: Mapping[str, Sample], name: str, divisor: float, decimals: int) -> str:
    """Format a step's value; of the processor's times their share of all of them in per cent."""
    if name not in CPU:
        return format_sample(metrics.get(name), decimals, divisor)
    times = {metric: metrics[metric].value for metric in CPU if metric in metrics}
    total, value = sum(filter(None, times.values())), times.get(name)
    return f"{100 * value / total:.0f}" if value is not None and total else "-"


def recovery_lines(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a line for each cut, recovery and check, and for the files that were checked."""
    for sample in samples:
        whole, after, seconds = (format_sample(sample, decimals) for decimals in (0, 3, 6))
        match sample.metric:
            case "cut_after":
                yield f"{sample.step} {sample.repetition}: power cut {after} s after its begin"
            case "mount_status" if sample.value:
                yield f"{sample.step}: the mount failed, exit {whole}"
            case "recovery_time":
                yield f"{sample.step}: mounted again after {seconds} s"
            case "fsck_status":
                yield f"{sample.step}: " + (f"exit {whole}" if sample.value else "clean")
            case "files_synced":
                yield f"{sample.step}: {whole} files were synced: {_split(samples, sample, PROMISED)}"
            case "files_unsynced":
                yield f"{sample.step}: {whole} files had changed since: {_split(samples, sample, CHANGED)}"


def _split(samples: Sequence[Sample], of: Sample, metrics: Sequence[str]) -> str:
    """Format how many files each metric counts."""
    place = of.step, of.repetition
    counts = {sample.metric: sample.value for sample in samples if (sample.step, sample.repetition) == place}
    words = (f"{counts.get(metric) or 0:.0f} {metric.partition('_')[2]}" for metric in metrics)
    return ", ".join(words)


def _recorded(run: RunDirectory, number: int, record: RequestRecord) -> str:
    """Say what was recorded of a cell's requests, and where it is."""
    sent, lost = (sum(getattr(step, name) for step in record.steps) for name in ("requests", "lost"))
    place = escape_controls(str(run.path / "cells" / str(number) / BLOCKS))
    ended = "" if record.status is Status.OK else f"; the pass {record.status}: {record.reason}"
    return f"{sent} requests in {len(record.steps)} steps, {lost} events lost: {place}{ended}"


def runs_blocks(runs: Sequence[RunDirectory]) -> Iterator[Block]:
    """Yield a line for each run: what it was, and how its cells ended; fewer columns on a narrow terminal."""
    width = open_console().width
    rows = [_listed(run) for run in runs]
    columns = [name for name in rows[0] if name not in SEEDS or any(row[name] for row in rows)]
    widths = {name: _width(name, rows, parts=name == "drives") for name in columns}

    def drop(names: Sequence[str]) -> None:
        for name in names:
            if sum(widths[column] for column in columns) > width:
                columns.remove(name)

    drop(DROPPED)
    if sum(widths[column] for column in columns) > width:
        widths[SPLIT] = _width(SPLIT, rows, parts=True)
        rows = [{**row, SPLIT: row[SPLIT].replace(", ", ",\n")} for row in rows]
    drop(DROPPED_LAST)
    heads = [Column(f" {name}", "wrapped" if name == "drives" else "left") for name in columns]
    lines = [[row[name].split("\n") for name in columns] for row in rows]
    yield Table(heads, [["\n".join(f" {line}" for line in cell) for cell in row] for row in lines])


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
        "seeds": ranges(seeds) if seeds != [1] else "",
        "corpora": ranges(corpora) if corpora != [1] else "",
        "layout": ", ".join(dict.fromkeys(cell.layout for cell in plan.cells)),
        "drives": ", ".join(dict.fromkeys(drive for cell in plan.cells for drive in cell.drives)),
        SPLIT: cell_names.count_statuses(statuses, ends),
    }
