"""``agelab calibrate``: how far run seeds alone move each result, and that equal inputs move none.

In the wall clock equal inputs do move each result: by how much on this host is recorded (agelab.analysis.calibration).
"""

import shlex
from typing import Any

import click

from agelab.base.errors import InputError, goes_on
from agelab.cli.click_options import CellsCommand, execute, run_options
from agelab.cli.options import json_option, open_store, print_blocks, print_json
from agelab.runner.request.options import RunOptions

SEEDS = "1,2,3,4,5"


@click.command(
    cls=CellsCommand,
    epilog="Exit: 0; 1 some cell not ok, or equal inputs gave different samples (virtual clock); 2 wrong input; "
    "3 the host cannot do it; 130 interrupted.",
)
@run_options
@click.option("--all", "everything", is_flag=True, help="Show every metric and repetition.")
@click.option("--show", is_flag=True, help="Run nothing: show the recorded floors of hosts in the wall clock.")
@json_option
def calibrate(name: str | None, everything: bool, show: bool, as_json: bool, **words: Any) -> int:
    """Measure how far chance moves the results of a scenario.

    It runs the scenario with at least five run seeds, then the first of them again: that cell must give the same
    samples, to the last digit (A/A). The difference between the seeds is each result's spread.

    In the wall clock it runs all of them twice, and records the difference as this host's floor, for each step.
    """
    from agelab.analysis.calibration import AA_SEEDS

    if show:
        return _show(name, everything, as_json)
    if not name:
        raise InputError("name a scenario", hint="agelab calibrate aging-ext4; agelab calibrate --help")
    options = RunOptions(name=name, **words)
    if options.until_decided:
        raise InputError("--seeds auto: agelab calibrate needs seeds, like 1-5")
    if len(options.seeds) < AA_SEEDS:
        raise InputError(
            f"--seeds {words['seeds']}: calibrating takes at least {AA_SEEDS} run seeds",
            hint=f"leave the option out for {SEEDS}",
        )
    in_clock = _in_the_wall_clock if options.guest_clock == "wall" else _in_the_virtual_clock
    with goes_on(shlex.join(["agelab", "calibrate", *options.arguments()])):
        return in_clock(options, everything, as_json)


def _in_the_virtual_clock(options: RunOptions, everything: bool, as_json: bool) -> int:
    """Run all seeds, and the first of them once more."""
    from agelab.analysis.cell_diff import CellPair
    from agelab.analysis.cells import load, seed_groups
    from agelab.present.view.calibration import floors_blocks, floors_json

    seeds = options.seeds
    seeded = execute(options)
    again = execute(options.of_seeds(seeds[:1], options.corpora[:1]).changed(fresh=True))
    calibrated = [
        (group, CellPair(group.cells[at], other.cells[at]))
        for group, other in zip(seed_groups(load(seeded)), seed_groups(load(again)), strict=True)
        for at in [*other.cells][:1]
    ]
    if as_json:
        print_json(floors_json(seeded, again, calibrated))
    else:
        print_blocks(floors_blocks(seeded, again, calibrated, everything))
    ok = all(ran.ok for group, proof in calibrated for ran in (*group.cells.values(), proof.right))
    return 0 if ok and all(proof.proven for _, proof in calibrated) else 1


def _in_the_wall_clock(options: RunOptions, everything: bool, as_json: bool) -> int:
    """Run all seeds twice, and record by how much the runs differ. Raises InputError where their inputs differ.

    The second run follows the first, since as much may lie between two runs that are compared. Real disks are held
    until both have ended: what the first run leaves on them keeps the second from nothing.
    """
    from agelab.analysis import calibration
    from agelab.analysis.cell_diff import pair_by_seed
    from agelab.analysis.cells import load, seed_groups
    from agelab.analysis.step_floors import calibrate as calibrate_host
    from agelab.machine.disk import claim_drives
    from agelab.present.view import calibration as shown
    from agelab.present.view.comparison import input_lines

    store = open_store()
    calibration.read_records(store.home)  # a damaged one is refused before the guests run
    with claim_drives(options.disks, options.erase) as claims:
        seeded, again = execute(options, claims=claims), execute(options, claims=claims)
    pairs = [*zip(seed_groups(load(seeded)), seed_groups(load(again)), strict=True)]
    cells = [pair for first, second in pairs for pair in pair_by_seed(first, second)]
    if differing := next((pair for pair in cells if pair.inputs and not pair.unfinished), None):
        raise InputError(
            f"{seeded.name} and {again.name} had other inputs, so nothing is recorded: "
            f"{'; '.join(input_lines(differing.inputs, every=False))}",
            hint="something was upgraded or replaced meanwhile: calibrate again",
        )
    calibrated = calibrate_host(seeded, again, pairs)
    path = calibration.record_calibration(store, *calibrated) if calibrated else None
    if as_json:
        print_json(shown.host_json(seeded, again, pairs, calibrated))
    else:
        print_blocks(shown.calibrated_blocks(seeded, pairs, calibrated, path, everything))
    return 0 if all(ran.ok for pair in cells for ran in (pair.left, pair.right)) else 1


def _show(name: str | None, everything: bool, as_json: bool) -> int:
    from agelab.analysis import calibration
    from agelab.present.view.calibration import records_blocks, records_json

    if name:
        raise InputError(f"--show shows all that is recorded: leave {name} out")
    records = calibration.read_records(open_store().home)
    print_json(records_json(records)) if as_json else print_blocks(records_blocks(records, everything))
    return 0


calibrate.params = [
    click.Option(["--seeds"], default=SEEDS, help="Run seeds, five or more: 1-5.")
    if parameter.name == "seeds"
    else click.Argument(["name"], metavar="[SCENARIO[-VARIANT]]", required=False)
    if parameter.name == "name"
    else parameter
    for parameter in calibrate.params
]
