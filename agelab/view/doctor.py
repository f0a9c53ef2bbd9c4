"""A host's findings as a table."""

from rich.table import Table
from rich.text import Text

from agelab.doctor import HostReport, ProbeStatus
from agelab.view.terminal import open_console

STYLES = {
    ProbeStatus.OK: "green",
    ProbeStatus.MISSING: "red",
    ProbeStatus.LIMITED: "yellow",
    ProbeStatus.UNKNOWN: "yellow",
}


def print_findings(report: HostReport) -> None:
    """Print what was found, with the fix below its meaning."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("what", "status", "found", "what it means"):
        made.add_column(heading)
    for finding in report.findings:
        meaning = Text(finding.meaning)
        if finding.fix:
            meaning.append(f"\n-> {finding.fix}", style="bold")
        made.add_row(finding.name, Text(finding.status, STYLES[finding.status]), Text(finding.found), meaning)
    open_console().print(made)
