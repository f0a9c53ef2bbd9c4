"""The block maps of docs/aging.md: a picture of each variant, aged above its control."""

from collections.abc import Sequence
from pathlib import Path

from agelab.results.run_directory import RunDirectory
from docs.make.aging import headed
from docs.make.catalogue import Made, Table


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show the map of each cell that has one."""
    files = {}
    for run in runs:
        for number, cell in enumerate(run.plan().cells):
            drawn = run.cell_directory(number) / "maps" / "block-map.svg"
            if drawn.exists():
                files[Path(table.pictures) / f"{cell.variant}.svg"] = drawn.read_bytes()
    shown = [f"![block map of {path.stem}, aged and control]({path})" for path in files]
    return Made("\n\n".join([*headed(runs), *shown]), files)
