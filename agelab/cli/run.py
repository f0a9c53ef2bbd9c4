"""``agelab run``: a scenario, each cell in a fresh guest."""

from typing import Any

import click

from agelab.cli.request import controlled, execute, request


@click.command(
    epilog="Exit: 0 all cells ok, 1 some cell not ok, 2 wrong input, 3 the host cannot do it, 130 interrupted."
)
@controlled
@click.option("--disk", default=None, help="Start from a stored disk (its key) instead of making one.")
@click.option("--keep-disk", is_flag=True, help="Keep what each cell's steps leave on its disk.")
@click.option("--curve", is_flag=True, help="Map the disk at points on the way, too: the steps stop for it.")
def run(name: str | None, disk: str | None, keep_disk: bool, curve: bool, **words: Any) -> int:
    """Run a scenario: every variant of it, or the one that follows its name."""
    from agelab.cli.tables import print_run
    from agelab.run import runner

    finished = execute(request(name, words, disk=disk, keep_disk=keep_disk, curve=curve))
    print_run(finished)
    return 0 if runner.succeeded(finished) else 1
