"""Print the end of a run: the whole cell, or of several cells a summary."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from agelab.analysis.cells import RunSet, SeedGroup, load, main_measures
from agelab.analysis.judge import Ranked, rank_by_median
from agelab.base.verbs import as_called
from agelab.present.report.answer import headline
from agelab.present.report.numbers import with_spread
from agelab.present.report.step_selection import repeated_steps
from agelab.present.view import cell_names, sparkline
from agelab.present.view.control_tests import is_of_control_file, print_tests
from agelab.present.view.run_tables import DISPUTED, print_head, print_run
from agelab.present.view.terminal import WHOLE, Head, open_console, print_table, print_wrapped
from agelab.results.measure import ALL_STEPS
from agelab.results.result import Cell, End
from agelab.results.rows import origins
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import seeds_text

BAR = 16
"""Characters of the longest bar."""
ORDERED_BY = {"content_bytes": "MB that it holds", "elapsed": "s, all steps"}
"""The head of the bars, by the metric that orders them; else it is a slowdown."""
SHORT = len("sha256:") + 12
"""Characters of a shortened digest."""
REASONS = 3
"""Reasons to print for an answer; the report has all."""
MAX_LINES = 16
"""The most cells that have a line each."""


def print_result(run: RunDirectory) -> None:
    """Print a run of one cell in full, one of several as a summary."""
    plan = run.plan()
    if len(plan.cells) == 1:
        print_run(run)
        return
    console, group = open_console(), RunSet((load(run),))
    print_head(console, plan)
    # A cut comes at another moment with each run seed: times say little of it.
    if is_of_control_file(plan):
        print_tests(console, group)
    elif all(metric != "cut_after" for _, _, metric in group.places):
        for one in headline.answers(group):
            console.print(f"\n{one.question}", style="bold")
            print_wrapped(console, f"{one.named}. {one.verdict}" if one.named else one.verdict)
            if one.sure:
                print_wrapped(console, one.sure)
            if one.settled_by:
                console.print(f"  {as_called(one.settled_by)}", soft_wrap=True, markup=False)
            # Where nothing ended ok the cells below say why.
            for line in one.because[:REASONS] if any(subject.counted for subject in group.groups) else ():
                print_wrapped(console, f"- {line}", 2)
        _print_bars(console, group)
    console.print()
    (_print_each if len(plan.cells) <= MAX_LINES else _print_together)(console, run)
    _print_reuse(console, run)
    for line, count in Counter(cell_names.beside_docs(end for _, _, end in _ended(run))).items():
        print_wrapped(console, f"{cell_names.count_cells(count)}: {line}", 2)
    print_wrapped(console, f"\nevery sample, key and digest: agelab show {run.name}")


def _ordered(group: RunSet) -> tuple[str, str, Ranked]:
    """Return the metric that orders the variants, as in the report, its unit and the order."""
    for measure in main_measures(group.groups):
        found = [(one, one.measured(measure)) for one in group.groups]
        if (order := rank_by_median(found, highest=measure != ALL_STEPS)).order:
            name = ORDERED_BY.get(measure.metric, f"slowdown of {measure.step}")
            return name, METRICS[measure.metric].unit, order
    return "", "1", rank_by_median([])


def _print_bars(console: Console, group: RunSet) -> None:
    """Print for each variant its median, the spread where there is a floor, and a bar from zero."""
    name, unit, order = _ordered(group)
    if not order.order:
        return
    most = max(float(summary.median) for _, summary in order.order)
    steps = repeated_steps(group)[:1]
    drawn = {subject.name: _curves(subject, steps, console.encoding) for subject, _ in order.order}
    curves = list(dict.fromkeys(head for of in drawn.values() for head in of))
    heads: list[Head] = [("", "left"), (name, "right"), ("", "left")]
    heads += [(f" {head}", "left") for head in curves]
    rows = []
    for subject, summary in order.order:
        bar = sparkline.bar(float(summary.median), most, BAR, console.encoding)
        more = (f" {drawn[subject.name].get(head, '')}" for head in curves)
        rows.append((f" {subject.name}", with_spread(summary, unit), f"{bar:<{BAR}}", *more))
    console.print()
    print_table(console, heads, rows)
    if order.enough:
        spread = "in brackets: the spread over the seeds; which differences are chance: agelab compare"
        print_wrapped(console, spread)


def _curves(subject: SeedGroup, steps: Sequence[str], encoding: str) -> dict[str, str]:
    """Draw the steps over their repetitions by medians over run seeds."""
    medians = {
        place: float(series.summary.median) if series.summary else None
        for place, series in subject.series.items()
        if place[0] in steps
    }
    return sparkline.curves(medians, encoding)


def _print_each(console: Console, run: RunDirectory) -> None:
    """Print how each cell ended, and its digest or why it has none."""
    rows, above = [], ""
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    for cell, status, end in ended:
        digest = end.digest or "" if end else ""
        shown = digest[:SHORT] if console.width < WHOLE else digest
        why = _why(end)
        found = "; ".join(filter(None, (shown, "as above" if why and why == above else why)))
        rows.append(
            (
                f" {cell.short_label}, {cell_names.name_seeds(cell, every)}",
                cell_names.with_origin(status, end),
                found,
            )
        )
        above = why
    print_table(console, [(" cell", "left"), ("status", "left"), ("digest", "wrapped")], rows)


def _print_together(console: Console, run: RunDirectory) -> None:
    """Print how the cells ended, those that ended alike in one line."""
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell, status, end in ended:
        found.setdefault((cell_names.with_origin(status, end), _why(end)), []).append(cell)
    rows = [
        (f" {len(some)}", status, ": ".join(filter(None, (cell_names.list_cells(some, every), why))))
        for (status, why), some in found.items()
    ]
    of = seeds_text(cell.seeds for cell in every)
    print_table(console, [(" cells", "right"), ("status", "left"), (f"{of} of", "wrapped")], rows)


def _print_reuse(console: Console, run: RunDirectory) -> None:
    """Print where reused cells come from, and which cells dispute earlier ones."""
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    for line in origins(end for _, _, end in ended):
        print_wrapped(console, f"reused: {line}", 2)
    for cell, _, end in ended:
        if end and end.disputes:
            digests = f"{end.digest} disputes {end.disputes}, {DISPUTED}"
            name = f"{cell.short_label}, {cell_names.name_seeds(cell, every)}"
            print_wrapped(console, f"{name}: {digests}", 2)


def _ended(run: RunDirectory) -> list[tuple[Cell, str, End | None]]:
    """List each cell with its status and its end."""
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    return list(zip(plan.cells, cell_names.statuses(run, ends), ends, strict=True))


def _why(end: End | None) -> str:
    return end.why if end else ""
