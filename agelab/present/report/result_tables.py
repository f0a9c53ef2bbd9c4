"""Tables of a group of runs: layouts, system calls, all results."""

from collections.abc import Iterator

from agelab.analysis.cells import RunSet
from agelab.evaluate.derived_samples import WAITING
from agelab.present.report import charts
from agelab.present.report.model import Block, Heading, Results, Table, TableCell, headings
from agelab.present.report.numbers import median_cell
from agelab.present.report.step_selection import traced_steps
from agelab.scenario.step import AGED_MAP, CONTROL_MAP, StepId
from agelab.stats.formatting import json_number

LAYOUT = (
    ("layout_score", "layout score"),
    ("fragmented_files", "files in pieces, share"),
    ("extents_per_file", "extents a file"),
    ("locality_score", "files that follow the one before, share"),
    ("locality_distance", "distance to the file before, MB"),
    ("free_extents", "pieces of free space"),
    ("free_usable_1mib", "free in runs of 1 MiB and more, share"),
)
MIN_SHARE = 0.005
"""Smallest share of time of a system call; smaller ones are only in the table of all results."""
MAX_COLOURED_CALLS = 7
"""System calls with a colour of their own."""


def layout_tables(group: RunSet, where: str) -> Iterator[Table]:
    """Return a row for each subject: measures of the map at the history's end, aged and control."""
    last = max((at[1] for at in group.places if at[0] == AGED_MAP), default=None)
    if last is None:
        return
    there = {at[2] for at in group.places if at[0] == AGED_MAP}
    measures = [(metric, name) for metric, name in LAYOUT if metric in there]
    columns = (Heading("filesystem"), Heading("disk"), *(Heading(name, True) for _, name in measures))
    rows = [
        (
            TableCell(subject.name),
            TableCell(disk),
            *(median_cell(subject.series.get((step, last, metric)), 4) for metric, _ in measures),
        )
        for subject in group.groups
        if subject.counted
        for step, disk in ((AGED_MAP, "aged"), (CONTROL_MAP, "unaged"))
    ]
    caption = "Where things lie: medians, in brackets the spread over the seeds (docs/measures.md)"
    yield Table(f"{where}-layouts", caption, columns, tuple(rows))


def syscall_tables(group: RunSet, where: str) -> Iterator[Block]:
    """Return the system calls of each step under strace: shares as charts, times and counts as a table."""
    rows = []
    parts: dict[str, dict[str, dict[str, float]]] = {}
    for step in traced_steps(group):
        for subject in group.groups:
            for place, series in subject.series.items():
                traced_step = StepId.parse(place[0])
                call = traced_step.name
                if traced_step.group != step or place[2] != "syscall_seconds":
                    continue
                share = subject.series.get((place[0], place[1], "syscall_share"))
                known = share.summary if share else None
                if known:
                    parts.setdefault(step, {}).setdefault(subject.name, {})[call] = float(known.median)
                    if known.median < MIN_SHARE:
                        continue
                elif call not in WAITING:
                    continue
                counts = ("syscall_calls", "syscall_errors")
                others = (subject.series.get((place[0], place[1], metric)) for metric in counts)
                rows.append(
                    (
                        TableCell(step), TableCell(subject.name), TableCell(call, code=True), median_cell(series, 6),
                        TableCell(f"{100 * float(known.median):.1f}", float(known.median))
                        if known else TableCell("waits"),
                        *(median_cell(one) for one in others),
                    )
                )  # fmt: skip
    if not rows:
        return
    note = (
        "Shares of the time of all calls but those that wait for another process. strace counts the processor's time "
        "in the kernel, strace -w (pass strace-w) the time from a call's begin to its end."
    )
    yield from charts.share_charts("System calls of each traced step", parts, MAX_COLOURED_CALLS, note, str)
    numbers = ("s", "%", "calls", "errors")
    columns = headings("pass and step", "filesystem", "call", *numbers, numbers=numbers)
    caption = f"System calls with {100 * MIN_SHARE:g} % of their step's time and more"
    yield Table(f"{where}-traced", caption, columns, tuple(rows))


def all_results(group: RunSet, where: str) -> Results:
    """Return a row for each series: every number of the runs."""
    rows: list[tuple[str | float | None, ...]] = []
    for subject in group.groups:
        for (step, repetition, metric), series in subject.series.items():
            summary, unit = series.summary, "" if series.unit == "1" else series.unit
            if summary is None:
                why = series.missing[0][1] if series.missing else "not measured"
                rows.append((subject.name, step, repetition, metric, None, None, None, None, 0, unit, why))
                continue
            several = summary.n > 1
            numbers = (summary.median, summary.interval.low, summary.interval.high, summary.spread)
            shown = [json_number(one) for one in numbers]
            rows.append(
                (
                    subject.name, step, repetition, metric, shown[0],
                    shown[1] if several else None, shown[2] if several else None,
                    shown[3] if several else None, summary.n, unit, "",
                )
            )  # fmt: skip
    columns = headings(
        "filesystem", "step", "repetition", "metric", "median", "from", "to", "spread", "seeds", "unit", "reason",
        numbers=("repetition", "median", "from", "to", "spread", "seeds"),
    )  # fmt: skip
    caption = "Every result: the median over the seeds, the interval that holds it, the spread (largest less smallest)"
    return Results(f"{where}-results", caption, columns, tuple(rows))


def cell_table(group: RunSet, where: str) -> Table:
    """Return status, key and digest of each cell."""
    rows = []
    for subject, entry in group.cells:
        end, corpus = entry.end, entry.seeds.corpus
        rows.append(
            (
                TableCell(subject.name), TableCell(str(entry.seed), entry.seed), TableCell(str(corpus), corpus),
                TableCell(entry.status),
                TableCell(end.why if end else ""),
                TableCell((end and end.inputs_key) or "–", code=True),
                TableCell((end and end.digest) or "–", code=True),
                TableCell(f"{entry.run} {entry.number}"),
            )
        )  # fmt: skip
    names = ("filesystem", "seed", "corpus", "status", "reason", "inputs_key", "digest", "run and cell")
    caption = "Every cell: equal inputs_key, equal digest, on any host"
    return Table(f"{where}-cells", caption, headings(*names, numbers=("seed", "corpus")), tuple(rows))
