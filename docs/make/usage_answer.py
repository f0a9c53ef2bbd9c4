"""What ages a filesystem, fullness or usage: the last table of docs/make/usage.py alone, for docs/findings.md."""

from collections.abc import Sequence

from agelab.results.run_directory import RunDirectory
from docs.make.aging import headed, variants
from docs.make.catalogue import Made, Table
from docs.make.usage import answers


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table. Raises InputError for runs of different tables."""
    lines = answers(variants(runs), list(runs[0].plan().histories))
    return Made("\n".join([*lines, "", f"`{table.command}`:", *headed(runs)]))
