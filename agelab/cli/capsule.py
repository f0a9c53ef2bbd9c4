"""``agelab capsule``: pack a run into one file, look into it, replay it."""

from pathlib import Path

import click

from agelab.cli.options import find_runs, json_option, open_store, print_json, replaceable
from agelab.cli.types import FILE_NAME, JOBS, KERNEL, RUN
from agelab.errors import AgelabError, InputError
from agelab.model.digits import parse_digits
from agelab.model.jobs import Jobs
from agelab.results.run_directory import RunDirectory


@click.group()
def capsule() -> None:
    """Pack a run into one file, look into such a file, replay it (docs/capsules.md)."""


@capsule.command()
@click.argument("run", default="latest", type=RUN)
@click.option("-o", "--output", default=None, help="The file to write; else <run>.capsule here.")
@click.option(
    "--with-image",
    is_flag=True,
    help="With its image, kernel, programs and data: larger, and needs no mirror.",
)
def pack(run: str, output: str | None, with_image: bool) -> None:
    """Write RUN (default: the latest) into one file that replays anywhere."""
    from agelab.capsule import pack as packing
    from agelab.view import cell_names

    store, [found] = open_store(), find_runs([run])
    path = replaceable(Path(output) if output else Path(found.name + packing.SUFFIX))
    packed = packing.pack(found, store, path, carry=with_image)
    click.echo(
        f"{path}: {found.name}, {cell_names.count_cells(len(packed.cells))}, {path.stat().st_size / 1e6:.1f} MB"
    )
    click.echo(f"replay it: agelab capsule replay {path}")


@capsule.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> None:
    """Say what is in the capsule FILE, having held everything in it against everything else."""
    from agelab.capsule import read
    from agelab.view.capsule import capsule_json, print_capsule

    found = read.open_capsule(file)
    print_json(capsule_json(found)) if as_json else print_capsule(found)


@capsule.command(
    epilog="Exit: 0 every cell identical; 1 some cell differs; 2 no sound capsule, or wrong input; 3 this host cannot "
    "do it, or cannot rebuild a cell; 130 interrupted."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cells", "numbers", default=None, help="Only these cells, by their numbers in show: 0,2.")
@click.option("--jobs", type=JOBS, default=1, show_default=True, help="Cells at a time.")
@click.option(
    "--corpus", type=FILE_NAME, default=None, help="The data of the run, where they were a user's own."
)
@click.option(
    "--kernel", type=KERNEL, default=None, help="The kernel of the run, where it was none of Debian's."
)
@json_option
def replay(
    file: Path, numbers: str | None, jobs: Jobs, corpus: str | None, kernel: str | None, as_json: bool
) -> int:
    """Run what is in the capsule FILE once more, and say of each cell whether it came out the same.

    What is needed is found in the store or rebuilt, of the same packages in the same versions. The replay is a run
    as any other: agelab list shows it.
    """
    from agelab.capsule import read, replay
    from agelab.view.capsule import print_replay, replay_json
    from agelab.view.progress import show_progress

    found = read.open_capsule(file)
    cells = _numbers(numbers, len(found.cells))
    run: RunDirectory | None = None
    try:
        with show_progress() as progress:
            run = replay.run(found, cells, open_store(), progress, jobs=jobs, corpus=corpus, kernel=kernel)
    except AgelabError as error:
        why = str(error).splitlines() + ([error.hint] if error.hint else [])
        judged = replay.not_rebuilt(found, cells, "; ".join(why))
    else:
        judged = replay.compare_cells(found, cells, run)
    print_json(replay_json(found, run, judged)) if as_json else print_replay(run, judged)
    outcomes = {one.outcome for one in judged}
    return 1 if "differs" in outcomes else 3 if "could not be rebuilt" in outcomes else 0


def _numbers(said: str | None, there: int) -> list[int]:
    """Parse --cells. Raises InputError."""
    words = [word.strip() for word in said.split(",")] if said is not None else [str(n) for n in range(there)]
    found = {word: parse_digits(word, there - 1) for word in words}
    if wrong := [word for word, number in found.items() if number is None]:
        raise InputError(f"--cells: {wrong[0][:20]!r} is no cell of the capsule: it has 0 to {there - 1}")
    return sorted({number for number in found.values() if number is not None})
