"""Print where the host's time of a run went (agelab/results/timing.py)."""

from collections.abc import Mapping, Sequence

from agelab.present.view.cell_names import name_seeds
from agelab.present.view.terminal import Head, open_console, print_table, print_wrapped
from agelab.results.result import Cell
from agelab.results.run_directory import RunDirectory
from agelab.results.timing import CellTiming

COLUMNS = ("launch", "ready", "steps", "between", "end", "beside", "all", "QEMU", "waiting")
MEANING = (
    "launch: until QEMU runs; ready: until the harness is, by a boot or a restore; between: mounts, caches, maps; "
    "end: until the guest has gone; beside: the host's own side between boots; QEMU: its processor seconds; "
    "waiting: seconds in which QEMU ran without a processor"
)
Times = Mapping[str, float]
"""Seconds by column."""


def print_timing(run: RunDirectory) -> None:
    """Print the host seconds of each boot of a run's only cell, or of each of its cells."""
    plan, console = run.plan(), open_console()
    found = {number: timing for number, _ in enumerate(plan.cells) if (timing := run.timing(number))}
    console.print("\nthe host's time, s", style="bold")
    if not found:
        print_wrapped(console, "it was not taken: agelab run --timing takes it")
        return
    rows = _of_boots(found[0]) if len(plan.cells) == 1 else _of_cells(plan.cells, found)
    heads: list[Head] = [("", "left"), *((f" {name}", "right") for name in COLUMNS)]
    print_table(console, heads, [[name, *_texts(times)] for name, times in rows])
    first = found[min(found)]
    print_wrapped(console, f"before the first cell: {first.prepared:.2f}; {MEANING}", 2)


def _of_boots(timing: CellTiming) -> list[tuple[str, Times]]:
    boots = [
        (f"{boot.phase} {boot.number}", times)
        for boot, times in zip(timing.boots, _boots(timing), strict=True)
    ]
    return [*boots, ("all", _whole(timing))]


def _of_cells(cells: Sequence[Cell], found: Mapping[int, CellTiming]) -> list[tuple[str, Times]]:
    named = [
        (f"{cells[number].short_label}, {name_seeds(cells[number], cells)}", _whole(one))
        for number, one in found.items()
    ]
    return [*named, ("all", _sum([times for _, times in named]))]


def _boots(timing: CellTiming) -> list[Times]:
    return [
        {
            "launch": boot.launch,
            "ready": boot.ready,
            "steps": boot.in_steps,
            "between": boot.between,
            "end": boot.end,
            "all": boot.seconds,
            "QEMU": boot.processor,
            "waiting": boot.waiting,
        }
        for boot in timing.boots
    ]


def _whole(timing: CellTiming) -> Times:
    return {**_sum(_boots(timing)), "beside": timing.beside_boots, "all": timing.seconds}


def _sum(several: Sequence[Times]) -> Times:
    return {name: sum(times.get(name, 0) for times in several) for name in COLUMNS}


def _texts(times: Times) -> list[str]:
    return [f"{times[name]:.2f}" if name in times else "" for name in COLUMNS]
