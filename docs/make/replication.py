"""A study's tables and claims beside runs of ours, for docs/studies: ``agelab replicate --markdown``."""

import re
from collections.abc import Sequence

from agelab.analysis.published.report import study_reports
from agelab.cli.replicate import loaded
from agelab.present.view.replication_markdown import result_lines
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table

NAMES = re.compile(r" Runs? `[^`]+`(, `[^`]+`)*\.$")
"""The names of the runs that a column is of: those of one store."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Put the study's tables into its page; the heading of runs at the study's own size says so."""
    [report] = study_reports(map(loaded, runs))
    lines = (NAMES.sub("", row) for row in result_lines(report))
    own_size = all(run.plan().scale == "paper" for run in runs)
    heading = f"## Beside our runs{', at its own size' if own_size else ''}"
    return Made("\n".join([heading, "", *lines]))
