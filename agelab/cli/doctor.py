"""agelab doctor: what this host can do."""

from collections.abc import Iterator

import click

from agelab.base.errors import HostError
from agelab.base.verbs import as_called
from agelab.cli.options import json_option, open_store, print_blocks, print_json
from agelab.present.report.blocks import Block, Table, TableCell, headings
from agelab.runner.doctor import HostReport, ProbeStatus, examine, leftovers

HEADS = headings("what ", "status ", "found ", "what it means", wrapped=("found ", "what it means"))
COLOURS = {
    ProbeStatus.OK: "green",
    ProbeStatus.MISSING: "red",
    ProbeStatus.LIMITED: "yellow",
    ProbeStatus.UNKNOWN: "yellow",
}


def findings_blocks(report: HostReport) -> Iterator[Block]:
    """Yield what was found, with the fix below its meaning."""
    rows = [
        (
            finding.name,
            TableCell(finding.status, colour=COLOURS[finding.status]),
            finding.found,
            TableCell(finding.meaning, more=finding.fix and f"-> {as_called(finding.fix)}"),
        )
        for finding in report.findings
    ]
    yield Table(HEADS, rows)


@click.command()
@json_option
@click.option("--again", is_flag=True, help="Boot a guest again instead of trusting the last verdict on KVM.")
@click.option(
    "--clean", is_flag=True, help="Probe nothing: remove what killed agelabs left, except what a process still holds."
)
def doctor(as_json: bool, again: bool, clean: bool) -> int:
    """Say what this host can do, what that means for runs, and what to install.

    Exit 0 when the virtual clock can run here, 3 when something that it needs is missing. With --clean: 0 when nothing
    is left over any more, 1 when something is.
    """
    if clean:
        return 0 if leftovers.clean(open_store(), click.echo) else 1
    report = examine(open_store(), again=again)
    if as_json:
        print_json({**report.model_dump(mode="json", by_alias=True), "virtual_clock": report.virtual_clock})
    else:
        print_blocks(findings_blocks(report))
        click.echo(f"The virtual clock {'can' if report.virtual_clock else 'cannot'} run here.")
    return 0 if report.virtual_clock else HostError.exit_code
