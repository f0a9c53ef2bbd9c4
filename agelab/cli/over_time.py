"""``agelab history RUN...``: results over kernels or dates as one page, change points marked."""

from dataclasses import replace
from pathlib import Path

import click

from agelab.analysis.cells import RunResult, load
from agelab.analysis.over_time import Axis
from agelab.base import limits
from agelab.cli.options import PAGE, find_runs, force_option, json_option, print_json, write_output
from agelab.cli.types import MEASURE
from agelab.results.run_directory import RunDirectory

CAPSULE = ".capsule"
NO_HOST = "a host that it does not name"


@click.command("results")
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--metric",
    "asked",
    multiple=True,
    metavar=MEASURE,
    help="Show this in place of layout scores, slowdowns and the sum of all steps (without mkfs and mount).",
)
@click.option(
    "--by",
    type=click.Choice([axis.value for axis in Axis]),
    default=Axis.KERNEL.value,
    show_default=True,
    help="What to show over.",
)
@click.option(
    "-o",
    "--output",
    type=PAGE,
    default=Path("history.html"),
    show_default=True,
    help="Where the page goes; a page of agelab that is there is replaced.",
)
@force_option
@json_option
def results(names: tuple[str, ...], asked: tuple[str, ...], by: str, output: Path, as_json: bool) -> None:
    """Show results over kernels or dates: one page, a chart for each metric, change points marked.

    agelab history RUN... is the same.

    RUN is a run, or a capsule of somebody: FILE.capsule, or WHOSE=FILE.capsule, which says whose it is. Runs with
    another scenario, guest, harness or QEMU, and those of others, stay on lines of their own.
    """
    from agelab.analysis.over_time import chosen_measures, over_time
    from agelab.present.report.html import render
    from agelab.present.report.over_time import build_page
    from agelab.present.view.over_time import over_time_json, print_over_time

    ours = [own_run(run) for run in find_runs(name for name in names if not name.endswith(CAPSULE))]
    theirs = [_imported(name) for name in names if name.endswith(CAPSULE)]
    runs = list({(run.origin, run.name): run for run in (*ours, *theirs)}.values())
    limits.require_to_draw()
    found = over_time(runs, Axis(by))
    measures = chosen_measures([one.grid for one in found.joined], asked)
    text = render(build_page(found, measures))
    write_output(output, text.encode(), pages=True)
    print_json(over_time_json(found, measures)) if as_json else print_over_time(found, measures)
    click.echo(f"{output}: open it in any browser: {output.absolute().as_uri()}", err=as_json)


def own_run(run: RunDirectory) -> RunResult:
    """Read a run: of this store, or of somebody, where it lies outside."""
    found = load(run)
    return found if run.in_store else replace(found, origin=str(found.plan.provenance.get("host", NO_HOST)))


def _imported(words: str) -> RunResult:
    """Read a capsule, every part of which is held against the others. Raises InputError for one that is not sound."""
    from agelab.base.hashing import key_of
    from agelab.capsule import read

    whose, equals, name = words.partition("=")
    if not equals or "/" in whose:
        whose, name = "", words
    found = read.open_capsule(Path(name))
    plan = found.request.plan
    host = str(plan.provenance.get("host", NO_HOST))
    guest = key_of(found.run_manifest.guest.model_dump(mode="json"))
    directory = RunDirectory(Path(name).with_name(plan.run))
    return RunResult(directory, plan, False, found.cells, guest, whose or host)
