"""The summary that a run of several cells ends with, for a page: its answer, and a bar for each variant."""

import io
import re
import textwrap
from collections.abc import Sequence
from contextlib import redirect_stdout

from agelab.present.view.summary import result_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.show import shown_block

CELLS = re.compile(r"\n\n *(?:cells? +)?status ")
"""The begin of the table of cells."""
WIDTH = 80
"""Characters of the terminal that it is printed for."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show what stands between the run's head and its cells."""
    [run] = runs
    with redirect_stdout(io.StringIO()) as out:
        print_blocks(result_blocks(run))
    printed = "\n".join(line.rstrip() for line in out.getvalue().strip("\n").split("\n"))
    _, _, answer = printed.partition("\n\n")
    [answer, *_] = CELLS.split(answer, maxsplit=1)
    return shown_block(map(_narrow, answer.split("\n")), runs)


def _narrow(line: str) -> str:
    """Break a line of words; a row of a table stays whole."""
    hang = "  " if line.startswith("- ") else ""
    whole = "  " in line.strip()
    return line if whole else textwrap.fill(line, WIDTH, subsequent_indent=hang, break_on_hyphens=False)
