"""What the modelled drive costs the host, and what a second one gains the guest.

    .venv/bin/python -m bench.cost [--scale paper] [--machine NAME]

Runs bench/cost.toml on the bare memory-backed disk, on one modelled drive and on two as RAID-0, and prints for each
step the guest's seconds, the host's, and their ratio; then the host's seconds on the drive over those on the bare
disk, and how much faster RAID-0 is. The host's times are of a machine on which no other guest runs.
"""

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

from agelab.cli.common import open_store
from agelab.disk import parse_list
from agelab.errors import AgelabError, HostError
from agelab.model.result import Cell
from agelab.run import runner
from agelab.scenario import selection
from bench.common import guests, table

SCENARIO = Path(__file__).with_name("cost.toml")
SETTINGS = {
    "bare": ("model:none", "single"),
    "drive": ("", "single"),
    "raid0": ("", "raid0"),
}
Steps = dict[str, tuple[float, float]]
"""Step to its seconds in the guest and on the host."""


def measured(disks: str, layout: str, scale: str, machine: str | None) -> Steps:
    """Run the scenario once. Raises HostError when a cell is not ok."""
    selected = selection.select(str(SCENARIO))
    moments: list[tuple[str, float]] = []
    request = runner.Request(
        name=str(SCENARIO),
        selection=selected,
        machine=selection.machine(machine or selected.scenario.machine),
        layout=layout,  # type: ignore[arg-type]
        drives=parse_list(disks) if disks else (),
        erase=(),
        clock="virtual",
        vcpus=1,
        kernel="debian:6.1",
        scale=scale,  # type: ignore[arg-type]
        run_seeds=(1,),
        corpus_seed=1,
        corpus=None,
        defaults=selected.scenario.defaults,
    )
    progress = runner.Progress(
        stage=lambda _: None,
        cell=lambda cell, _: _say(cell),
        step=lambda name: moments.append((name.split()[0], time.monotonic())),
        ended=lambda *_: None,
    )
    run = runner.carry_out(request, open_store(), progress)
    if not runner.succeeded(run):
        raise HostError(f"{run.name}: a cell is not ok", hint=f"agelab show {run.name}")
    guest = {
        sample.step: sample.value or 0.0
        for sample in run.samples()[0]
        if sample.metric == "elapsed" and sample.step != "start"
    }
    hosts = {name: at - before for (_, before), (name, at) in pairwise(moments)}
    return {step: (float(guest[step]), host) for step, host in hosts.items() if step in guest}


def _say(cell: Cell) -> None:
    print(f"{cell.layout} on {', '.join(cell.drives)}", file=sys.stderr)


def report(found: dict[str, Steps]) -> str:
    """The tables."""
    bare, drive, raid = found["bare"], found["drive"], found["raid0"]
    head = ("step", *(f"{name} {what}" for name in found for what in ("guest s", "host s", "guest/host")))
    rows = [
        [
            step,
            *(
                text
                for steps in found.values()
                for text in (
                    f"{steps[step][0]:.2f}",
                    f"{steps[step][1]:.2f}",
                    f"{steps[step][0] / steps[step][1]:.2f}",
                )
            ),
        ]
        for step in bare
    ]
    costs = [
        [step, f"{drive[step][1] / bare[step][1] - 1:+.0%}", f"{drive[step][0] / raid[step][0]:.2f}"]
        for step in bare
    ]
    whole = sum(host for _, host in drive.values()) / sum(host for _, host in bare.values()) - 1
    costs.append(["all", f"{whole:+.0%}", ""])
    return "\n\n".join(
        [table(head, rows), table(("step", "host time over bare", "RAID-0's speed-up"), costs)]
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.cost", description="What the modelled drive costs the host.")
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    parser.add_argument("--machine", default=None, help="another machine's CPU cost than the scenario's")
    options = parser.parse_args()
    if guests():
        print(
            "bench.cost: other guests run on this machine: the host's times are theirs, too", file=sys.stderr
        )
    try:
        found = {
            name: measured(disks, layout, options.scale, options.machine)
            for name, (disks, layout) in SETTINGS.items()
        }
    except AgelabError as error:
        print(f"bench.cost: {error}", file=sys.stderr)
        return 1
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
