"""Show what ledgers say together."""

from collections import Counter
from typing import Any

from agelab.ledger import FoundDigest, LedgerCheck
from agelab.model.sanitize import escape_controls
from agelab.view.terminal import open_console, print_table


def print_check(found: LedgerCheck) -> None:
    """Print how many keys have been found by how many hosts, each disagreement, and the lines that do not count."""
    console = open_console()
    by_hosts = Counter(found.hosts.values())
    rows = [(f" {keys}", f"{hosts}") for hosts, keys in sorted(by_hosts.items(), reverse=True)]
    print_table(console, [(" keys", "right"), ("found by hosts", "right")], rows)
    for key, findings in found.disagreements.items():
        console.print(f"\n{findings[0].cell.cell}: {key} has several digests", soft_wrap=True)
        for one in findings:
            console.print(f"  {_line(one)}", soft_wrap=True)
    for line in found.refused:
        console.print(f"not counted: {escape_controls(line)}", soft_wrap=True)
    if not found.disagreements:
        console.print("no key has two digests")


def _line(one: FoundDigest) -> str:
    return f"{one.cell.digest}: {one.run} on {one.host}, signed by {escape_controls(one.signer)}"


def as_document(found: LedgerCheck) -> dict[str, Any]:
    """Return the same as JSON, with every finding."""
    keys = {
        key: {
            "hosts": found.hosts[key],
            "findings": [
                {
                    "digest": one.cell.digest,
                    "cell": one.cell.cell,
                    "run": one.run,
                    "host": one.host,
                    "signer": one.signer,
                    "ended": one.cell.ended,
                }
                for one in findings
            ],
        }
        for key, findings in found.findings.items()
    }
    return {"schema": 1, "keys": keys, "disagreements": [*found.disagreements], "refused": found.refused}
