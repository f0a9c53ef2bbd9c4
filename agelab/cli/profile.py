"""``agelab profile``: the functions in which a step's processor time went."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agelab.cli.options import OUTPUT, force_option, json_option, open_store, print_blocks, print_json, write_output

if TYPE_CHECKING:
    from agelab.analysis.profiles import StepStacks


@click.command()
@click.argument("run", metavar="RUN[:CHOICE,...]")
@click.argument("step")
@click.option(
    "--cell",
    default="",
    show_default=False,
    metavar="CHOICE,...",
    help="The cell, chosen as for compare: ext4, or xfs,raid0.",
)
@click.option(
    "--against", metavar="RUN[:CHOICE,...]", help="Show the difference from the profile of another run or cell."
)
@click.option("--against-step", metavar="STEP", help="Show the difference from another step: control/read.")
@click.option("--svg", type=OUTPUT, help="Also draw a flame graph into this file.")
@force_option
@click.option("--folded", is_flag=True, help="Print the folded stacks, for tools that read them.")
@click.option("--all", "everything", is_flag=True, help="List every function.")
@json_option
def profile(
    run: str,
    step: str,
    cell: str,
    against: str | None,
    against_step: str | None,
    svg: Path | None,
    folded: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Show in which functions the processor spent STEP, from the samples of agelab run --profile.

    STEP is a name of agelab show: copy, aged/read. It adds up the samples of all repetitions and seeds.
    """
    from agelab.evaluate.stacks import flame
    from agelab.present.view.profile import changes_blocks, profile_json, top_blocks

    words = f"{run}{',' if ':' in run else ':'}{cell}" if cell else run
    profiled = _stacks(words, step)
    before = _stacks(against or words, against_step or step) if against or against_step else None
    if before:
        profiled.require_comparable(before)
    if folded:
        click.echo(profiled.stacks.text, nl=False)
    elif as_json:
        print_json(profile_json(profiled, before))
    elif before:
        print_blocks(changes_blocks(profiled, before, everything=everything))
    else:
        print_blocks(top_blocks(profiled, everything=everything))
    if svg:
        label = f"{profiled.name}: {profiled.step}" + (f", against {before.name}: {before.step}" if before else "")
        drawn = flame.document(profiled.stacks, before.stacks if before else None, label=label)
        write_output(svg, drawn.encode())
        click.echo(f"flame graph  {svg}", err=True)


def _stacks(words: str, step: str) -> "StepStacks":
    """Return the stacks of a step in the one group of cells that the words choose. Raises InputError for several."""
    from agelab.analysis import comparison, profiles
    from agelab.base.errors import InputError, name_some

    store = open_store()
    chosen = comparison.parse_selector(store.runs, words)
    groups = chosen.groups()
    if len(groups) > 1:
        groups = [group for group in groups if any(map(profiles.of_cell, group.cells.values()))] or groups
    if len(groups) > 1:
        names = name_some([group.name for group in groups], comparison.LISTED)
        raise InputError(f"{words} has several profiled cells: {names}", hint="choose one with --cell")
    [group] = groups
    name = f"{chosen.run.name}, {group.name}" if group.name else chosen.run.name
    return profiles.of_step(name, group.cells.values(), step)
