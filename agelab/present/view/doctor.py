"""A host's findings as a table."""

from rich.text import Text

from agelab.base.verbs import as_called
from agelab.present.view.terminal import Head, Row, open_console, print_table
from agelab.runner.doctor import HostReport, ProbeStatus

HEADS: tuple[Head, ...] = (
    ("what ", "left"), ("status ", "left"), ("found ", "wrapped"), ("what it means", "wrapped")
)  # fmt: skip
COLOURS = {
    ProbeStatus.OK: "green",
    ProbeStatus.MISSING: "red",
    ProbeStatus.LIMITED: "yellow",
    ProbeStatus.UNKNOWN: "yellow",
}


def print_findings(report: HostReport) -> None:
    """Print what was found, with the fix below its meaning."""
    rows: list[Row] = []
    for finding in report.findings:
        meaning = Text(finding.meaning)
        if finding.fix:
            meaning.append(f"\n-> {as_called(finding.fix)}", style="bold")
        status = Text(finding.status, COLOURS[finding.status])
        rows.append((finding.name, status, finding.found, meaning))
    print_table(open_console(), HEADS, rows)
