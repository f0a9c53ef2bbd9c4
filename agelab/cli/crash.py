"""``agelab crash``: every moment at which the power can go."""

from typing import TYPE_CHECKING

import click

from agelab.cli.options import json_option, open_store, print_json, say

if TYPE_CHECKING:
    from agelab.base.types import Defaults


@click.group(invoke_without_command=False)
def crash() -> None:
    """Look at each state in which a power cut can leave a filesystem."""


@crash.command()
@click.argument("workload")
@click.option("--filesystem", required=True, metavar="NAME", help="A file of scenarios/filesystems/.")
@click.option("--kernel", default="debian:6.1", show_default=True, help="The guest's kernel.")
@click.option("--defaults", default="today", type=click.Choice(("period", "today")), show_default=True)
@click.option("--options", default="", metavar="OPTION,...", help="More mount options.")
@click.option("--mib", default=64, show_default=True, type=click.IntRange(16, 4096), help="Size of the disk.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Draws subsets of writes.")
@click.option("--drawn", default=4, show_default=True, type=click.IntRange(0), help="Subsets at each flush.")
@click.option("--budget", default=None, type=float, metavar="MINUTES", help="Minutes for looking at states.")
@json_option
def run(
    workload: str,
    filesystem: str,
    kernel: str,
    defaults: "Defaults",
    options: str,
    mib: int,
    seed: int,
    drawn: int,
    budget: float | None,
    as_json: bool,
) -> int:
    """Record WORKLOAD, and look at each state of its disk: one, two, or calls separated by ; in one word."""
    from dataclasses import asdict

    from agelab.present.view.crash import answer_blocks
    from agelab.present.view.terminal import print_blocks
    from agelab.runner.crash import crash as crashing

    mounted = tuple(filter(None, options.split(",")))
    question = crashing.Question(workload, filesystem, kernel, defaults, mounted, mib, seed, drawn, budget)
    answer = crashing.run(question, open_store(), say)
    if as_json:
        print_json(asdict(answer))
    else:
        print_blocks(answer_blocks(answer))
    return 1 if answer.violations else 0


@crash.command()
@click.argument("name")
@click.argument("state")
def replay(name: str, state: str) -> int:
    """Look at STATE of the crash run NAME again."""
    from agelab.runner.crash import crash as crashing

    seen, disk, found = crashing.replay(name, state, open_store(), say)
    click.echo(f"state  {seen}\ndisk   {disk}")
    for one in found:
        click.echo(f"{one.kind}: {one.path} ({one.why})")
    if not found:
        click.echo("nothing is wrong")
    return 1 if found else 0
