"""Show what ledgers say together."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from agelab.base.types import escape_controls
from agelab.present.ledger import FoundDigest, LedgerCheck, own_findings
from agelab.present.view.terminal import open_console, print_table
from agelab.results.result import End

IN_LEDGER, NOT_IN_LEDGER = (
    "the digest of docs/ledger.jsonl",
    "docs/ledger.jsonl has another digest for this key",
)


def beside_ledger(ends: Iterable[End | None]) -> list[str]:
    """Say for each ended cell whose key agelab's own ledger knows whether its digest is the one there."""
    known = own_findings()
    found = []
    for end in ends if known else ():
        if end and end.inputs_key and end.evaluated_by and end.digest:
            digests = known.get((end.inputs_key, end.evaluated_by))
            if digests:
                found.append(IN_LEDGER if end.digest in digests else NOT_IN_LEDGER)
    return found


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
    for line in (*found.refused, *found.strangers):
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
    return {
        "schema": 1,
        "keys": keys,
        "disagreements": [*found.disagreements],
        "refused": found.refused,
        "strangers": found.strangers,
    }
