"""A study's tables and claims beside runs of ours, for docs/studies: ``agelab replicate --markdown``."""

from collections.abc import Sequence

from agelab.analysis.published.report import study_reports
from agelab.cli.replicate import loaded
from agelab.present.view import markdown
from agelab.present.view.replication import results_blocks
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Put the study's tables into its page; the heading of runs at the study's own size says so."""
    [report] = study_reports(map(loaded, runs))
    lines = markdown.lines(results_blocks(report, names=False))
    own_size = all(run.plan().scale == "paper" for run in runs)
    heading = f"## Beside our runs{', at its own size' if own_size else ''}"
    return Made("\n".join([heading, "", *lines]))
