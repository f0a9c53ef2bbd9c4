"""Operation logs and file-size profiles on a terminal."""

from collections.abc import Sequence
from dataclasses import asdict

from agelab.data.history.operations import LogSummary
from agelab.data.history.profile import Profile
from agelab.present.view.terminal import open_console, print_facts, print_table

POINTS = 10
"""Points of a log to name."""


def print_log(log: LogSummary) -> None:
    facts: dict[str, object] = {}
    for name, value in asdict(log).items():
        shown = value
        if name == "counts":
            shown = ", ".join(f"{what} {count}" for what, count in value.items())
        elif name == "points":
            named = ", ".join(map(str, value[:POINTS]))
            shown = str(len(value)) + (f", after operation {named}" if value else "")
            shown += " ..." if len(value) > POINTS else ""
        unit = " bytes" if name in ("space", "peak_space") or "bytes" in name else ""
        words = name.replace("_bytes", "").replace("bytes_", "").replace("_", " ")
        facts[words] = f"{shown}{unit}"
    print_facts(facts)


def print_profiles(profiles: Sequence[Profile]) -> None:
    rows = [
        row for one in profiles for row in ((f"{one.name:14}", one.title), ("", f"read by {one.read_by}"))
    ]
    print_table(open_console(), [("", "left"), ("", "wrapped")], rows, named=False)
