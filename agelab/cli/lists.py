"""``agelab list``: the runs there are, and all else that has a name."""

from collections.abc import Mapping

import click

from agelab.base import catalogue
from agelab.base.errors import InputError, unknown
from agelab.base.verbs import as_called
from agelab.cli.options import json_option, open_store, print_blocks, print_json, say
from agelab.results import run_lookup

SCHEMA = 1
USED = {
    "scenarios": "agelab run NAME",
    "filesystems": "--filesystem NAME, or in a scenario's variants",
    "drives": "--disks model:NAME",
    "machines": "--machine NAME",
    "layouts": "--layout NAME",
    "programs": "program = NAME in a scenario's step",
    "recipes": "--kernel recipe:NAME",
    "corpora": "corpus = { kind = NAME, mib = 100 } in a scenario",
    "profiles": "profile = NAME in a scenario's history",
    "metrics": "STEP:NAME, as in agelab compare RUN RUN --metric copy:NAME",
}
"""Where the names of a list go."""


@click.command("list", epilog="Exit: 0; 2 wrong input, or a run is damaged, which is named.")
@click.argument("what", default="runs", metavar="[WHAT]")
@click.option("--refresh", is_flag=True, help="Ask the mirror which kernels there are now.")
@json_option
def lists(what: str, refresh: bool, as_json: bool) -> int:
    """List WHAT there is, a line for each: runs (newest first; the default), scenarios, filesystems, drives, machines,
    layouts, kernels, metrics, programs, corpora, profiles, recipes or disks.

    Kernels are those of the mirror's suites and of the store; disks are the stored ones.
    """
    if refresh and what != "kernels":
        raise InputError("--refresh goes with kernels: agelab list kernels --refresh")
    if what in USED:
        _print_names(what, as_json)
        return 0
    if what == "kernels":
        _print_kernels(refresh, as_json)
        return 0
    if what not in (there := {"runs": _print_runs, "disks": _print_disks}):
        raise unknown("list", what, [*there, "kernels", *USED])
    return there[what](as_json)


def _print_names(what: str, as_json: bool) -> None:
    from agelab.present.report.blocks import Column, Line, Table
    from agelab.scenario.metrics import METRICS

    lines: Mapping[str, str]
    if what == "metrics":
        lines = {name: f"{metric.meaning}; {metric.unit}" for name, metric in METRICS.items()}
    else:
        lines = catalogue.lines(what)
    if as_json:
        rows = [{"name": name, "summary": line} for name, line in lines.items()]
        print_json({"schema": SCHEMA, what: rows})
        return
    width = max(map(len, lines))
    table = [(f" {name:{width}}", line) for name, line in lines.items()]
    print_blocks([Table([Column(""), Column("", "wrapped")], table), Line(f"to use one: {USED[what]}")])


def _print_kernels(refresh: bool, as_json: bool) -> None:
    from agelab import kernel as kernels
    from agelab.present.view import artefacts

    store = open_store()
    rows = artefacts.kernel_rows(store, kernels.available(store, refresh=refresh, progress=say))
    print_json(rows) if as_json else print_blocks(artefacts.kernels_blocks(rows))


def _print_disks(as_json: bool) -> int:
    from agelab.present.view.artefacts import disk_json, disks_blocks
    from agelab.store import stored_disk

    store = open_store()
    disks, damaged = stored_disk.list_disks(store), stored_disk.list_damaged(store)
    if as_json:
        keys = [artefact.key for artefact in damaged]
        print_json({"schema": SCHEMA, "disks": [disk_json(stored) for stored in disks], "damaged": keys})
        return 0
    if disks:
        print_blocks(disks_blocks(disks))
    for artefact in damaged:
        short = artefact.key[: stored_disk.SHORT_KEY]
        click.echo(as_called(f" {short}  DAMAGED: it cannot be read; remove it: agelab disk rm {short}"))
    if not disks and not damaged:
        click.echo(as_called("no stored disks yet; make one: agelab age aging-ext4"))
    return 0


def _print_runs(as_json: bool) -> int:
    from agelab.present.view.run_tables import runs_blocks

    runs, damaged = [], 0
    for run in run_lookup.all_runs(open_store().runs)[::-1]:
        try:
            run.unfinished()
        except InputError as error:
            click.echo(f"agelab: {error}", err=True)
            damaged = error.exit_code
        else:
            runs.append(run)
    if as_json:
        plans = [run.plan().model_dump(mode="json", exclude={"cells"}) for run in runs]
        print_json({"schema": SCHEMA, "runs": plans})
    elif runs:
        print_blocks(runs_blocks(runs))
    elif not damaged:
        click.echo(as_called("no runs yet; make one: agelab run aging-reiserfs"))
    return damaged
