"""Print the end of a run: the whole cell, or of several cells a summary."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agelab.analysis.cells import RunSet, SeedGroup, load, main_measures
from agelab.analysis.judge import Ranked, rank_by_median
from agelab.base.gathered import gathered
from agelab.base.verbs import as_called
from agelab.present.report.answer import headline
from agelab.present.report.blocks import Block, Column, Heading, Line, Table, Text
from agelab.present.report.charts import repeated_steps
from agelab.present.report.numbers import with_spread
from agelab.present.view import cell_names, sparkline
from agelab.present.view.cell_names import name_seeds
from agelab.present.view.run_tables import DISPUTED, head_blocks, is_of_control_file, run_blocks, tests_blocks
from agelab.present.view.terminal import WHOLE, open_console
from agelab.results.measure import ALL_STEPS, ALL_STEPS_TITLE
from agelab.results.records import CellTiming
from agelab.results.result import Cell, End
from agelab.results.rows import origins
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import LOOKS
from agelab.runner.sequential import LEVEL, Outcome
from agelab.scenario.metrics import METRICS
from agelab.scenario.seeds import seeds_text


def outcome_blocks(outcome: Outcome) -> Iterator[Block]:
    """Yield the question, the decision or why there is none, and how often that is wrong."""
    decision, question = outcome.decision, outcome.question
    measure = ALL_STEPS_TITLE if question.measure == ALL_STEPS else str(question.measure)
    asked = f"Which is {question.extreme}" if question.extreme else f"Do {' and '.join(question.sides)} differ"
    yield Heading(f"{asked} by {measure}?")
    yield Text(f"{'decided' if decision.decided else 'not decided'}: {decision.said}")
    if outcome.ended:
        yield Text(outcome.ended)
    yield Text(
        f"looked at after {', '.join(map(str, LOOKS))} run seeds, each time at {float(100 * LEVEL):g} %, 5 % in all; "
        f"here after {outcome.seeds}"
    )


COLUMNS = ("launch", "ready", "steps", "between", "end", "beside", "all", "QEMU", "waiting")
MEANING = (
    "launch: until QEMU runs; ready: until the harness is, by a boot or a restore; between: mounts, caches, maps; "
    "end: until the guest has gone; beside: the host's own side between boots; QEMU: its processor seconds; "
    "waiting: seconds in which QEMU ran without a processor"
)
Times = Mapping[str, float]
"""Seconds by column."""


def timing_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield the host seconds of each boot of a run's only cell, or of each of its cells."""
    plan = run.plan()
    timings = {number: timing for number, _ in enumerate(plan.cells) if (timing := run.beside(number, CellTiming))}
    yield Heading("the host's time, s")
    if not timings:
        yield Text("it was not taken: agelab run --timing takes it")
        return
    rows = _of_boots(timings[0]) if len(plan.cells) == 1 else _of_cells(plan.cells, timings)
    heads = [Column(""), *(Column(f" {name}", "right") for name in COLUMNS)]
    figures = [[f"{times[name]:.2f}" if name in times else "" for name in COLUMNS] for _, times in rows]
    yield Table(heads, [[name, *shown] for (name, _), shown in zip(rows, figures, strict=True)])
    first = timings[min(timings)]
    yield Text(f"before the first cell: {first.prepared:.2f}; {MEANING}", 2)


def _of_boots(timing: CellTiming) -> list[tuple[str, Times]]:
    boots = [(f"{boot.phase} {boot.number}", times) for boot, times in zip(timing.boots, _boots(timing), strict=True)]
    return [*boots, ("all", _whole(timing))]


def _of_cells(cells: Sequence[Cell], timings: Mapping[int, CellTiming]) -> list[tuple[str, Times]]:
    named = [
        (f"{cells[number].short_label}, {name_seeds(cells[number], cells)}", _whole(timing))
        for number, timing in timings.items()
    ]
    return [*named, ("all", _sum([times for _, times in named]))]


def _boots(timing: CellTiming) -> list[Times]:
    return [
        {
            "launch": boot.launch,
            "ready": boot.ready,
            "steps": boot.in_steps,
            "between": boot.between,
            "end": boot.end,
            "all": boot.seconds,
            "QEMU": boot.processor,
            "waiting": boot.waiting,
        }
        for boot in timing.boots
    ]


def _whole(timing: CellTiming) -> Times:
    return {**_sum(_boots(timing)), "beside": timing.beside_boots, "all": timing.seconds}


def _sum(several: Sequence[Times]) -> Times:
    return {name: sum(times.get(name, 0) for times in several) for name in COLUMNS}


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


def result_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield a run of one cell in full, one of several as a summary."""
    plan = run.plan()
    if len(plan.cells) == 1:
        yield from run_blocks(run)
        return
    group = RunSet((load(run),))
    yield from head_blocks(plan)
    # A cut comes at another moment with each run seed: times say little of it.
    if is_of_control_file(plan):
        yield from tests_blocks(group)
    elif all(metric != "cut_after" for _, _, metric in group.places):
        for answer in headline.answers(group):
            yield Heading(answer.question)
            yield Text(f"{answer.named}. {answer.verdict}" if answer.named else answer.verdict)
            if answer.sure:
                yield Text(answer.sure)
            if answer.settled_by:
                yield Line(f"  {as_called(answer.settled_by)}")
            # Where nothing ended ok the cells below say why.
            for line in answer.because[:REASONS] if any(subject.counted for subject in group.groups) else ():
                yield Text(f"- {line}", 2)
        yield from _bars_blocks(group)
    yield Line("")
    yield from (_each_blocks if len(plan.cells) <= MAX_LINES else _together_blocks)(run)
    yield from _reuse_blocks(run)
    for line, count in Counter(cell_names.beside_docs(end for _, _, end in _ended(run))).items():
        yield Text(f"{cell_names.count_cells(count)}: {line}", 2)
    yield Text(f"\nevery sample, key and digest: agelab show {run.name}")


def _ordered(group: RunSet) -> tuple[str, str, Ranked]:
    """Return the metric that orders the variants, as in the report, its unit and the order."""
    for measure in main_measures(group.groups):
        measured = [(subject, subject.measured(measure)) for subject in group.groups]
        if (order := rank_by_median(measured, highest=measure != ALL_STEPS)).order:
            name = ORDERED_BY.get(measure.metric, f"slowdown of {measure.step}")
            return name, METRICS[measure.metric].unit, order
    return "", "1", rank_by_median([])


def _bars_blocks(group: RunSet) -> Iterator[Block]:
    """Yield for each variant its median, the spread where there is a floor, and a bar from zero."""
    name, unit, order = _ordered(group)
    if not order.order:
        return
    most = max(float(summary.median) for _, summary in order.order)
    encoding = open_console().encoding
    steps = repeated_steps(group)[:1]
    drawn = {subject.name: _curves(subject, steps, encoding) for subject, _ in order.order}
    curves = list(dict.fromkeys(head for of in drawn.values() for head in of))
    heads = [Column(""), Column(name, "right"), Column("")]
    heads += [Column(f" {head}") for head in curves]
    rows = []
    for subject, summary in order.order:
        bar = sparkline.bar(float(summary.median), most, BAR, encoding)
        more = (f" {drawn[subject.name].get(head, '')}" for head in curves)
        rows.append((f" {subject.name}", with_spread(summary, unit), f"{bar:<{BAR}}", *more))
    yield Line("")
    yield Table(heads, rows)
    if order.enough:
        spread = "in brackets: the spread over the seeds; which differences are chance: agelab compare"
        yield Text(spread)


def _curves(subject: SeedGroup, steps: Sequence[str], encoding: str) -> dict[str, str]:
    """Draw the steps over their repetitions by medians over run seeds."""
    medians = {
        place: float(series.summary.median) if series.summary else None
        for place, series in subject.series.items()
        if place[0] in steps
    }
    return sparkline.curves(medians, encoding)


def _each_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield how each cell ended, and its digest or why it has none."""
    rows, above, narrow = [], "", open_console().width < WHOLE
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    for cell, status, end in ended:
        digest = end.digest or "" if end else ""
        shown = digest[:SHORT] if narrow else digest
        why = _why(end)
        outcome = "; ".join(filter(None, (shown, "as above" if why and why == above else why)))
        rows.append(
            (f" {cell.short_label}, {cell_names.name_seeds(cell, every)}", cell_names.with_origin(status, end), outcome)
        )
        above = why
    yield Table([Column(" cell"), Column("status"), Column("digest", "wrapped")], rows)


def _together_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield how the cells ended, those that ended alike in one line."""
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    alike = gathered(((cell_names.with_origin(status, end), _why(end)), cell) for cell, status, end in ended)
    rows = [
        (f" {len(some)}", status, ": ".join(filter(None, (cell_names.list_cells(some, every), why))))
        for (status, why), some in alike.items()
    ]
    of = seeds_text(cell.seeds for cell in every)
    yield Table([Column(" cells", "right"), Column("status"), Column(f"{of} of", "wrapped")], rows)


def _reuse_blocks(run: RunDirectory) -> Iterator[Block]:
    """Yield where reused cells come from, and which cells dispute earlier ones."""
    ended = _ended(run)
    every = [cell for cell, _, _ in ended]
    for line in origins(end for _, _, end in ended):
        yield Text(f"reused: {line}", 2)
    for cell, _, end in ended:
        if end and end.disputes:
            digests = f"{end.digest} disputes {end.disputes}, {DISPUTED}"
            name = f"{cell.short_label}, {cell_names.name_seeds(cell, every)}"
            yield Text(f"{name}: {digests}", 2)


def _ended(run: RunDirectory) -> list[tuple[Cell, str, End | None]]:
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    return list(zip(plan.cells, cell_names.statuses(run, ends), ends, strict=True))


def _why(end: End | None) -> str:
    return end.why if end else ""
