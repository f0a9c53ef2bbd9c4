"""``agelab compare``: which inputs differ between runs or variants, and which results by more than chance."""

from fractions import Fraction
from itertools import chain
from pathlib import Path

import click

from agelab.cli.options import OUTPUT, force_option, json_option, open_store, print_blocks, print_json, write_output
from agelab.results.run_directory import LATEST


@click.command()
@click.argument("sides", nargs=-1, metavar="[A] [B]...")
@click.option("--base", metavar="CHOICE", help="With one run: compare the others with this, like ext4,raid0.")
@click.option("--anyway", is_flag=True, help="Compare runs that are not comparable, and label them so.")
@click.option("--each", is_flag=True, help="With three sides or more: print a whole table for each.")
@click.option("--inputs", "every_input", is_flag=True, help="Show every place in which the inputs differ.")
@click.option("--all", "everything", is_flag=True, help="Show every metric, repetition and differing sample.")
@click.option("--markdown", is_flag=True, help="Print the tables in Markdown: for the summary of a CI job.")
@click.option(
    "--gate",
    type=click.FloatRange(0),
    metavar="PERCENT",
    help="Exit 1 if a step is slower by more than chance and by more than this.",
)
@click.option("--junit", type=OUTPUT, metavar="FILE", help="With --gate: also write JUnit XML, a case for each step.")
@force_option
@json_option
def compare(
    sides: tuple[str, ...],
    base: str | None,
    anyway: bool,
    each: bool,
    every_input: bool,
    everything: bool,
    markdown: bool,
    gate: float | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Name the inputs, then the results, in which B and others differ from A.

    A, B... are runs (names of agelab list, their beginnings, latest, or paths: ./their-run), or some of their cells:
    latest:ext4, latest:ext4,raid0, latest:kernel=6.1, machine=, drives=, defaults=. With A alone (default: the latest)
    agelab compares its variants with the first, or with --base.

    Exit: 0; 1 where equal inputs gave different samples, and with --gate where a step is slower or cannot be judged; 2
    where nothing can be compared.
    """
    from agelab.analysis import comparison as results
    from agelab.analysis.cell_diff import pair_by_seed
    from agelab.analysis.comparison import caveats, compare_steps, host_noise_of, no_ok_cells, slower_steps
    from agelab.base.errors import InputError
    from agelab.present.view import markdown as markdown_view
    from agelab.present.view.comparison import comparison_blocks, comparison_json, pairs_blocks
    from agelab.present.view.junit import gate_lines
    from agelab.present.view.ratio_table import ratio_texts

    if junit and gate is None:
        raise click.UsageError("--junit needs --gate PERCENT")
    store = open_store()
    asked = [results.parse_selector(store.runs, words) for words in sides or (LATEST,)]
    if base and len(asked) > 1:
        raise InputError("--base chooses among the variants of one run; of several runs the first one is the base")
    of_one = len(asked) == 1
    comparisons = [results.compare_within_run(asked[0], base)] if of_one else results.compare_across_runs(asked)
    pairs = [(comparison.base, other) for comparison in comparisons for other in comparison.others]
    doubts = {id(right): caveats(left, right, anyway) for left, right in pairs}
    if not any(left.begun and right.begun for left, right in pairs):
        raise no_ok_cells(comparisons, of_one=of_one)
    tables = []
    for comparison in comparisons:
        host = host_noise_of(comparison)
        tables.append(compare_steps(comparison, host, everything))
        for other, rows in zip(comparison.others, tables[-1], strict=True):
            doubts[id(other)] += host.labels(rows.steps)
    if as_json:
        print_json(comparison_json(comparisons, tables, doubts, everything))
    elif markdown:
        for line in markdown_view.lines(pairs_blocks(comparisons, tables, doubts)):
            click.echo(line)
    else:
        left_out = {} if of_one else results.uncompared_groups(comparisons, asked)
        shown = {"each": each, "every_input": every_input, "everything": everything}
        print_blocks(comparison_blocks(comparisons, tables, doubts, left_out, **shown))
    if not any(left.counted and right.counted for left, right in pairs):
        raise no_ok_cells(comparisons, of_one=of_one)
    margin = Fraction(str(gate or 0)) / 100
    if junit:
        write_output(junit, "\n".join(gate_lines(comparisons, tables, margin)).encode() + b"\n")
    slower = [] if gate is None else slower_steps(chain(*tables), margin)
    for row in slower:
        ratio, low, high = ratio_texts(row)
        click.echo(f"slower: {row.row.left.step}: {ratio} times ({low} to {high})", err=True)
    return int(bool(slower) or any(cells.broken for pair in pairs for cells in pair_by_seed(*pair)))
