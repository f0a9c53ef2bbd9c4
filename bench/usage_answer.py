"""What ages a filesystem, fullness or usage: the last table of bench/usage.py alone, for docs/findings.md."""

from collections.abc import Sequence

from agelab.results.run_directory import RunDirectory
from bench.aging import headed, variants
from bench.tables.catalogue import Table
from bench.tables.made import Made
from bench.usage import answers


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table. Raises InputError for runs of different tables."""
    lines = answers(variants(runs), list(runs[0].plan().histories))
    return Made("\n".join([*lines, "", f"`{table.command}`:", *headed(runs)]))
