"""``agelab replicate``: what of a published study our runs bear out."""

import click

from agelab.analysis.cells import RunResult, load
from agelab.base.errors import InputError
from agelab.cli.options import find_runs, json_option, print_blocks, print_json
from agelab.results.run_directory import LATEST, RunDirectory


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Show every comparison of every claim, and every step.")
@click.option("--markdown", is_flag=True, help="Print Markdown, as in docs/replication.md.")
@json_option
def replicate(runs: tuple[str, ...], everything: bool, markdown: bool, as_json: bool) -> None:
    """Compare RUN (default: the latest) with the study that its scenario follows: times, rankings, and a verdict on
    each of the study's claims.

    RUN is a name of agelab list, its beginning, or latest. Runs that differ only in variants, layouts and run
    seeds share a column; another scale, kernel or set of defaults gets its own.

    Exit: 0 whatever the verdicts.
    """
    from agelab.analysis.published.report import study_reports
    from agelab.present.view import markdown as markdown_view
    from agelab.present.view.replication import page_blocks, report_blocks, reports_json

    if as_json and markdown:
        raise click.UsageError("--json and --markdown: one of them")
    for words in runs:
        name, colon, _ = words.partition(":")
        if colon:
            raise InputError(f"replicate takes whole runs, not {words!r}", hint=f"agelab replicate {name}")
    reports = study_reports(map(loaded, find_runs(runs or (LATEST,))))
    if as_json:
        print_json(reports_json(reports))
    elif markdown:
        click.echo("\n".join(line for report in reports for line in markdown_view.lines(page_blocks(report))))
    else:
        for report in reports:
            print_blocks(report_blocks(report, everything))


def loaded(run: RunDirectory) -> RunResult:
    """Read the run. Raises InputError for one without cells."""
    result = load(run)
    if not result.cells:
        raise InputError(f"{run.name} has no cells: there is nothing to put beside a study")
    return result
