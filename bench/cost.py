"""Measure the modelled drive's cost on the host, and the guest's gain from a second drive.

    .venv/bin/python -m bench.cost [--scale paper] [--repeat 3] [--machine NAME] [--write]

Runs bench/cost.toml on the bare memory-backed disk, on one modelled drive and on two as RAID-0, in turns, and prints
for each step the guest's seconds, the host's (medians; the guest's are the same each time) and their ratio; then what
the drive costs over the bare disk, in processor seconds of the emulator, and how much faster RAID-0 is.
"""

import argparse
import os
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from agelab.base.errors import HostError
from agelab.cli.options import open_store
from agelab.results.result import Cell
from agelab.runner.execute import runner
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from bench.common import guests
from docs.make import command
from docs.make.command import Answer
from docs.make.page import columns

SCENARIO = Path(__file__).with_name("cost.toml")
SETTINGS: dict[str, dict[str, Any]] = {
    "bare": {"disks": "model:none", "layout": "single"},
    "drive": {"layout": "single"},
    "raid0": {"layout": "raid0"},
}
"""Options of a run, by what is measured."""
TICKS = os.sysconf("SC_CLK_TCK")


class Moment(NamedTuple):
    """When a step ended: by the host's clock, and by what the guests had used of its processors, in seconds."""

    step: str
    wall: float
    cpu: float


class Cost(NamedTuple):
    """Seconds of one step: in the guest, on the host's clock, and of the host's processors."""

    guest: float
    wall: float
    cpu: float


Steps = dict[str, Cost]


class Stopwatch(Progress):
    """Takes the moment when each step ends."""

    def __init__(self, moments: list[Moment]) -> None:
        self.moments = moments

    def begin_cell(self, cell: Cell, number: int) -> None:
        print(f"{cell.layout} on {', '.join(cell.drives)}", file=sys.stderr)

    def end_step(self, number: int, step: str) -> None:
        self.moments.append(Moment(step.split()[0], time.monotonic(), used()))


def used() -> float:
    """Processor seconds of the guests that run now (proc(5), /proc/pid/stat, fields 14 and 15)."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in guests())
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICKS


def measured(**setting: Any) -> Steps:
    """Run the scenario once. Raises HostError when a cell is not ok."""
    moments: list[Moment] = []
    run = runner.run(RunOptions(name=str(SCENARIO), **setting), open_store(), Stopwatch(moments))
    if not runner.succeeded(run):
        raise HostError(f"{run.name}: a cell is not ok", hint=f"agelab show {run.name}")
    guest = {sample.step: float(sample.value or 0) for sample in run.samples()[0] if sample.metric == "elapsed"}
    return {
        now.step: Cost(guest[now.step], now.wall - before.wall, now.cpu - before.cpu)
        for before, now in pairwise(moments)
        if now.step != "start"
    }


def medians(runs: list[Steps]) -> Steps:
    """Return the median costs of each step."""
    return {
        step: Cost(*(statistics.median(run[step][part] for run in runs) for part in range(len(Cost._fields))))
        for step in runs[0]
    }


def report(by_setting: dict[str, Steps]) -> str:
    """Write the report's tables."""
    bare, drive, raid = by_setting["bare"], by_setting["drive"], by_setting["raid0"]
    head = ("step", *(f"{name}: {what}" for name in by_setting for what in ("guest s", "host s", "ratio")))
    rows = []
    for step in bare:
        costs = [steps[step] for steps in by_setting.values()]
        texts = (text for cost in costs for text in (f"{cost.guest:.2f}", f"{cost.wall:.2f}", _ratio(cost)))
        rows.append([step, *texts])
    gains = [
        [
            step,
            f"{bare[step].cpu:.2f}",
            f"{drive[step].cpu:.2f}",
            f"{drive[step].cpu / bare[step].cpu - 1:+.0%}",
            f"{drive[step].guest / raid[step].guest:.2f}",
        ]
        for step in bare
    ]
    bare_cpu, drive_cpu = (sum(cost.cpu for cost in steps.values()) for steps in (bare, drive))
    gains.append(["all", f"{bare_cpu:.2f}", f"{drive_cpu:.2f}", f"{drive_cpu / bare_cpu - 1:+.0%}", ""])
    heads = ("step", "bare: cpu s", "drive: cpu s", "the drive costs", "RAID-0's speed-up")
    return "\n\n".join([columns(head, rows), columns(heads, gains)])


def _ratio(cost: Cost) -> str:
    return f"{cost.guest / cost.wall:.2f}"


def measure(options: argparse.Namespace) -> Answer:
    """Run the scenario with each setting, in turns."""
    if guests():
        raise HostError("other guests run on this machine", hint="wait until they have ended")
    by_setting: dict[str, list[Steps]] = {name: [] for name in SETTINGS}
    for _ in range(options.repeat):
        for name, setting in SETTINGS.items():
            by_setting[name].append(measured(**setting, scale=options.scale, machine=options.machine))
    text = report({name: medians(runs) for name, runs in by_setting.items()})
    return Answer({"cost": f"```\n{text}\n```"})


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, in turns")
    parser.add_argument("--machine", default=None, help="another machine's CPU cost than the scenario's")
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
