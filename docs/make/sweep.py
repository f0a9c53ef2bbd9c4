"""What ``agelab sweep`` prints of runs on several kernels, for a page, and its plots."""

import io
import os
import tempfile
import textwrap
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from agelab.analysis.over_time import Sweep, chosen_measures, load_sweep
from agelab.present.view.sweep import sweep_blocks, write_plots
from agelab.present.view.terminal import print_blocks
from agelab.results.measure import Measure
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.show import environment

WIDTH = 100


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show the table of each metric, and below it kernels and plots."""
    sweep = load_sweep(runs)
    measures = chosen_measures([sweep], table.metrics)
    with redirect_stdout(io.StringIO()) as out:
        print_blocks(sweep_blocks(sweep, measures))
    lines = ["```", *map(_narrow, out.getvalue().strip("\n").split("\n")), "```", "", environment(runs)]
    files = _plots(sweep, measures, table.pictures) if table.pictures else {}
    for path in files:
        shown = os.path.relpath(Path("docs") / path, Path(table.page).parent)
        lines += ["", f"![{path.stem.replace('-', ' ')}, over the kernels]({shown})"]
    return Made("\n".join(lines), files)


def _narrow(line: str) -> str:
    """Break a line of words; a row of a table stays whole."""
    line = line.rstrip()
    return line if "  " in line.strip() else textwrap.fill(line, WIDTH)


def _plots(sweep: Sweep, measures: Sequence[Measure], directory: str) -> dict[Path, bytes]:
    with tempfile.TemporaryDirectory() as name:
        drawn = write_plots(sweep, measures, Path(name))
        return {Path(directory) / path.name: path.read_bytes() for path in drawn}
