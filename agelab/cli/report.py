"""``agelab report``: runs as one page to read."""

import gc
from pathlib import Path

import click

from agelab.cli.options import PAGE, find_runs, force_option, write_output
from agelab.results.run_directory import LATEST


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=PAGE,
    default=Path("report.html"),
    help="Where the page goes; a page of agelab that is there is replaced.",
)
@force_option
def report(runs: tuple[str, ...], output: Path) -> None:
    """Write RUN... (default: the latest) as one page that opens offline: the answer, the study, charts, every result.

    RUN is a name of agelab list, its beginning, latest, or the path of a run's directory. Runs of one scenario, scale,
    clock and data share tables and charts; others follow below. A run that is still going on is shown as
    far as it is.
    """
    gc.disable()  # a million samples are no garbage, and each search for some reads them all
    from agelab.analysis.cells import load
    from agelab.present.report.html import render
    from agelab.present.report.page import build_page

    directories = find_runs(runs or (LATEST,))
    text = render(build_page(map(load, directories)))
    write_output(output, text.encode(), pages=True)
    click.echo(
        f"{output}: {len(directories)} run{'s' if len(directories) > 1 else ''}, {len(text.encode()) / 1e6:.2f} MB\n"
        f"open it in any browser: {output.absolute().as_uri()}"
    )
