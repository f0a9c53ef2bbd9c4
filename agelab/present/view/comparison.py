"""Print what ``agelab compare`` found, on a terminal and as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from agelab.analysis.cell_diff import CellPair, ValueDifference, pair_by_seed
from agelab.analysis.cells import RunResult, SeedGroup
from agelab.analysis.comparison import Comparison, ComparisonTable, column_names
from agelab.base.gathered import gathered
from agelab.base.verbs import as_called
from agelab.present.report.blocks import Block, Heading, Line, Prose, Table, Text, headings
from agelab.present.report.command import settling_command
from agelab.present.view.ratio_table import rows_json, several_blocks, two_blocks, two_sides
from agelab.present.view.run_tables import describe_run
from agelab.scenario.seeds import seeds_text
from agelab.stats.formatting import letter
from agelab.stats.verdict import ComparedSeries, about_files

MAX_PLACES = 2
"""Places to name of an input that differs in several."""
WIDTH = 60
"""Characters of a value."""
SHORT_WIDTH = 16
"""Characters of a value in the short form: both values fit a line of 80."""
NOTHING = "nothing"


def input_lines(differing: Sequence[ValueDifference], every: bool) -> list[str]:
    """Make a line for each input that differs, or with ``every`` for each place in it."""
    lines = []
    for name, those in groupby(sorted(differing, key=lambda d: d.name), lambda d: d.name):
        differences = list(those)
        if every or len(differences) == 1:
            width = WIDTH if every else SHORT_WIDTH
            lines += [f"{difference.place}: {_values(difference, width)}" for difference in differences]
        else:
            places = ", ".join(difference.place for difference in differences[:MAX_PLACES])
            more = ", ..." if len(differences) > MAX_PLACES else ""
            named = f" ({places}{more})"
            lines.append(f"{name}: {len(differences)} places{named if len(named) < WIDTH else ''}")
    return lines


def _values(difference: ValueDifference, width: int) -> str:
    """Format both values; of lists the items that differ."""
    if difference.list_changes is None:
        return _short(difference.left, difference.right, width)
    removed, added = (" ".join(map(_value, words)) or NOTHING for words in difference.list_changes)
    return f"only A: {_cut(removed, 0, width)} | only B: {_cut(added, 0, width)}"


def samples_blocks(pair: CellPair, most: int) -> Iterator[Block]:
    """Yield the samples that differ, ``most`` of them; where equal inputs broke the promise also the ends."""
    for row in pair.samples[:most]:
        yield Line(f"  sample {row.place}: {_value(row.left)} | {_value(row.right)}")
    if len(pair.samples) > most:
        yield Line(as_called(f"  and {len(pair.samples) - most} more samples; agelab compare --all shows them"))
    for row in pair.endings if pair.broken else []:
        yield Line(f"  {row.place}: {_value(row.left)} | {_value(row.right)}")


def _value(value: object) -> str:
    """Format a value as JSON, a text without quotes; ``nothing`` where one side has none."""
    if value is None or isinstance(value, str):
        return NOTHING if value is None else value
    return json.dumps(value, ensure_ascii=False)


def _short(left: object, right: object, width: int = WIDTH) -> str:
    """Format both values side by side; long ones from just before the place where they differ."""
    first, second = _value(left), _value(right)
    parted = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    start = max(0, parted - width // 3) if max(len(first), len(second)) > width else 0
    return f"{_cut(first, start, width)} | {_cut(second, start, width)}"


def _cut(text: str, start: int, width: int) -> str:
    """Cut a text to a width, with dots for the rest."""
    before, after = "..." if start else "", "..." if len(text) > start + width else ""
    return before + text[start : start + width] + after


PAIR_NUMBERS = ("A", "B", "B/A", "from", "to")
PAIR = headings("step", "metric", *PAIR_NUMBERS, "verdict", numbers=PAIR_NUMBERS)


def pairs_blocks(
    comparisons: Sequence[Comparison], tables: Sequence[Sequence[ComparisonTable]], doubts: Mapping[int, Sequence[str]]
) -> Iterator[Block]:
    """Yield a heading and a table for each pair of sides: for the summary of a CI job."""
    for comparison, judged_sides in zip(comparisons, tables, strict=True):
        base = comparison.base
        for other, judged in zip(comparison.others, judged_sides, strict=True):
            yield Heading(f"{base.name or base.run.name}: A and B")
            sides = [
                f"{mark}: {f'{side.run.name} {side.name}'.strip()}, {side.cell.kernel}, {seeds_text(side.cells)}"
                for mark, side in (("A", base), ("B", other))
            ]
            yield Prose((*sides, *doubts[id(other)]), listed=True)
            yield Table(PAIR, [(step, metric, *cells) for metric, step, cells in two_sides(judged.rows)])


SHOWN = 20
"""Differing samples to print for one pair of cells."""


SCHEMA = 4


CHOSEN = ("filesystem", "layout", "kernel", "machine", "drives", "defaults", "accelerator")
"""Fields of a cell that its run chose, beside variant and seed."""


def comparison_blocks(
    comparisons: Sequence[Comparison],
    tables: Sequence[Sequence[ComparisonTable]],
    doubts: Mapping[int, Sequence[str]],
    left_out: Mapping[str, Sequence[str]],
    *,
    each: bool,
    every_input: bool,
    everything: bool,
) -> Iterator[Block]:
    """Yield the runs, then each comparison: a table for two sides, or one for several unless ``each`` has its own.

    ``doubts`` are the caveats of a side by its ``id``; ``left_out`` the groups that not every run has, by run.
    """
    yield from _runs_blocks(comparisons)
    for run, groups in left_out.items():
        yield Text(f"not compared, for not every run has them: of {run} {'; '.join(groups)}", 2)
    for comparison, table in zip(comparisons, tables, strict=True):
        if len(comparison.others) == 1 or each:
            base = comparison.base
            for other, rows in zip(comparison.others, table, strict=True):
                yield from _pair_blocks(base, other, rows, doubts[id(other)], every_input, everything)
        else:
            yield from _several_blocks(comparison, table, doubts, every_input, everything)
    if commands := _settling(comparisons, [row for table in tables for side in table for row in side.rows]):
        yield Line("\nto settle what is open:")
    for command in commands:
        yield Line(f"  {as_called(command)}")


def _runs_blocks(comparisons: Sequence[Comparison]) -> Iterator[Block]:
    """Yield each run with the letters of its sides."""
    runs: dict[str, tuple[list[str], RunResult]] = {}
    for name, group in _groups(comparisons):
        letters, _ = runs.setdefault(group.run.name, ([], group.run))
        if name not in letters:
            letters.append(name)
    for letters, run in runs.values():
        names = f"{letters[0]}-{letters[-1]}" if len(letters) > 2 else ",".join(letters)
        yield Line(f"{names}  {run.name}: {describe_run(run.plan)}")
        if run.running:
            yield Line("   it is still going on: compared as far as it is")


def _groups(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, SeedGroup]]:
    """Yield the sides of each comparison with their letters."""
    for comparison in comparisons:
        for at, group in enumerate((comparison.base, *comparison.others)):
            yield letter(at), group


def _pair_blocks(
    base: SeedGroup,
    other: SeedGroup,
    judged: ComparisonTable,
    doubts: Sequence[str],
    every_input: bool,
    everything: bool,
) -> Iterator[Block]:
    names = [group.name for group in (base, other)]
    seeds = [seeds_text(group.cells) for group in (base, other)]
    yield Line("\n" + " | ".join(dict.fromkeys(names)) + ": " + " | ".join(seeds))
    for line in doubts:
        yield Line(f"  {line}", bold=True)
    cells = pair_by_seed(base, other)
    for line in _chosen(cells[0]):
        yield Line(f"  {line}")
    differing = _differing(cells)
    for line in input_lines(differing, every_input):
        yield Line(f"  input {line}")
    if differing and not every_input:
        yield Line("  (--inputs shows each place of these inputs, and more of each value)")
    if differing and cells[0].left.seeds != cells[0].right.seeds:
        yield Line("  (no seeds are equal: a seed by itself changes the plan, the initramfs and QEMU's command)")
    several = max(len(base.cells), len(other.cells)) > 1
    table = bool(base.counted and other.counted and (several or differing))
    yield from _endings_blocks(cells, several, everything, each=not several and (everything or not table))
    for side, group in (("A", base), ("B", other)):
        for line in _left_out(group) if several else ():
            yield Line(f"  left out of the table: {side}, {line}")
    if table:
        yield from two_blocks(judged.rows, everything)


def _settling(comparisons: Sequence[Comparison], rows: Sequence[ComparedSeries]) -> list[str]:
    """List the commands that run the sides with more run seeds, or more corpora, as the rows need; each once."""
    plans = {group.run.name: group.run.plan for _, group in _groups(comparisons)}.values()
    needed = {False: any(row.too_few for row in rows), True: bool(about_files(rows))}
    commands = (settling_command(plan, corpora=more) for more in needed if needed[more] for plan in plans)
    return [*dict.fromkeys(filter(None, commands))]


def _endings_blocks(cells: Sequence[CellPair], several: bool, everything: bool, each: bool = False) -> Iterator[Block]:
    """Yield what inputs and samples say together, by seed; samples where the promise is broken, or with ``each``."""
    for summary, those in groupby(cells, _summary):
        pairs = list(those)
        which = f": {seeds_text(pair.left.seeds for pair in pairs)}" if several else ""
        if summary:
            yield Line(f"  {summary}{which}")
        for pair in pairs:
            if pair.broken or each:
                yield from samples_blocks(pair, SHOWN if not everything else pair.compared)


def _differing(cells: Iterable[CellPair]) -> list[ValueDifference]:
    """List each place in which the inputs of some pair differ; a cell that has not begun has none."""
    by_place: dict[str, ValueDifference] = {}
    for pair in (pair for pair in cells if pair.left.inputs and pair.right.inputs):
        for difference in pair.inputs:
            by_place.setdefault(difference.place, difference)
    return list(by_place.values())


def _left_out(group: SeedGroup) -> list[str]:
    """Name the cells of a group that do not count, and why."""
    reasons = gathered((ran.reason, seed) for seed, ran in group.cells.items() if not ran.ok)
    return [f"{seeds_text(seeds)}: {why}" for why, seeds in reasons.items()]


def _several_blocks(
    comparison: "Comparison",
    judged: Sequence[ComparisonTable],
    doubts: Mapping[int, Sequence[str]],
    every_input: bool,
    everything: bool,
) -> Iterator[Block]:
    """Yield several sides against the base in one table."""
    groups = (comparison.base, *comparison.others)
    letters = [letter(at) for at in range(len(groups))]
    labels = column_names(groups)
    labels = labels if all(labels) else letters
    yield Line("")
    labelled = list(zip(letters, labels, groups, strict=True))
    for side, name, group in (entry for entry in labelled if entry[2].begun):
        yield Line(
            f"{side}  {group.name}{'' if name in (side, group.variant) else f' ({name})'}: "
            f"{seeds_text(group.cells)}{', the base' if group is comparison.base else ''}"
        )
        for line in doubts.get(id(group), ()):
            yield Line(f"   {line}", bold=True)
        if group is not comparison.base:
            cells = pair_by_seed(comparison.base, group)
            differing = _differing(cells)
            for line in input_lines(differing, True) if every_input else ():
                yield Line(f"   input {line}")
            if differing and not every_input:
                differ = ", ".join(sorted({difference.name for difference in differing}))
                yield Text(f"   inputs that differ: {differ}", 5)
            yield from _endings_blocks([pair for pair in cells if pair.broken], True, everything)
        if left_out := _left_out(group):
            yield Text(f"   left out of the table: {'; '.join(left_out)}", 5)
    if waiting := [f"{side} {group.name}" for side, _, group in labelled if not group.begun]:
        yield Text(f"not begun: {'; '.join(waiting)}", 2)
    counted = [at for at, group in enumerate(comparison.others) if group.counted]
    if comparison.base.counted and counted:
        tables = [judged[at].rows for at in counted]
        names = [labels[0], *(labels[at + 1] for at in counted)]
        yield from several_blocks(tables, names, everything)
        yield Line("  (--each: medians and intervals of each; --json: all)")


def _chosen(pair: CellPair) -> list[str]:
    left, right = pair.left.cell.model_dump(), pair.right.cell.model_dump()
    left["drives"], right["drives"] = (", ".join(side["drives"]) for side in (left, right))
    return [f"{name}: {left[name]} | {right[name]}" for name in CHOSEN if left[name] != right[name]]


def _summary(pair: CellPair) -> str:
    """Say what inputs and samples show together; nothing where both differ."""
    if pair.unfinished:
        return f"not finished: {' and '.join(pair.unfinished)}"
    if pair.broken:
        return "EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise; please report it"
    if not pair.samples:
        return f"{'different' if pair.inputs else 'equal'} inputs, equal samples"
    return "" if pair.inputs else "equal inputs; real time is not the same twice"


def cells_json(group: SeedGroup) -> list[dict[str, Any]]:
    return [{"seed": at.run, "corpus_seed": at.corpus, "status": cell.end_status} for at, cell in group.cells.items()]


def comparison_json(
    comparisons: Sequence[Comparison],
    tables: Sequence[Sequence[ComparisonTable]],
    doubts: Mapping[int, list[str]],
    everything: bool,
) -> dict[str, Any]:
    def side(group: SeedGroup) -> dict[str, Any]:
        asked = group.run.plan.model_dump(include={"scenario", "scale", "clock"})
        about = group.cell.model_dump(mode="json", exclude={"seed", "corpus_seed"})
        going_on, cells = group.run.running, cells_json(group)
        return {"run": group.run.name, **asked, **about, "going_on": going_on, "cells": cells}

    def cells(pair: CellPair) -> dict[str, Any]:
        each = everything or pair.broken or not pair.samples
        return {
            "seeds": [pair.left.seeds.run, pair.right.seeds.run],
            "corpus_seeds": [pair.left.seeds.corpus, pair.right.seeds.corpus],
            "inputs": pair.inputs,
            "compared": pair.compared,
            "differing": len(pair.samples),
            "samples": pair.samples if each else None,
            "finished": not pair.unfinished,
            "endings": pair.endings,
            "promise_broken": pair.broken,
        }

    return {
        "schema": SCHEMA,
        "pairs": [
            {
                "left": side(comparison.base),
                "right": side(other),
                "labels": doubts[id(other)],
                "cells": [cells(pair) for pair in pair_by_seed(comparison.base, other)],
                "rows": rows_json(judged.steps),
                "repetitions": rows_json(judged.repetitions) if everything else None,
            }
            for comparison, table in zip(comparisons, tables, strict=True)
            for other, judged in zip(comparison.others, table, strict=True)
        ],
    }
