"""``agelab capsule``: pack a run into one file, look into it, replay it."""

from collections.abc import Sequence
from pathlib import Path

import click

from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls, parse_digits
from agelab.base.verbs import as_called
from agelab.cli.options import (
    JOBS,
    OUTPUT,
    find_runs,
    force_option,
    json_option,
    open_store,
    print_blocks,
    print_json,
    require_output,
)
from agelab.present.view.progress import show_progress
from agelab.results.run_directory import RunDirectory
from agelab.scenario.jobs import Jobs
from agelab.store.artefacts import Store


@click.group()
def capsule() -> None:
    """Pack a run into one file, look into such a file, replay it (docs/capsules.md)."""


@capsule.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("-o", "--output", type=OUTPUT, help="The file to write; by default <run>.capsule here.")
@force_option
@click.option(
    "--with-image", is_flag=True, help="Include image, kernel, programs and data: larger, but a replay needs no mirror."
)
@click.option(
    "--artifact",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Write the runs as an artefact for reviewers: capsules, report, tables, checklists (docs/capsules.md).",
)
def pack(runs: tuple[str, ...], output: Path | None, with_image: bool, artifact: Path | None) -> None:
    """Write RUN (default: the latest) into one file that replays anywhere, or several runs as an --artifact."""
    from agelab.capsule import pack as packing
    from agelab.present.view import cell_names

    if artifact and output:
        raise click.UsageError("--artifact and --output exclude each other")
    if len(runs) > 1 and not artifact:
        raise click.UsageError("a capsule holds one run; for several runs use --artifact DIRECTORY")
    store, directories = open_store(), find_runs(runs or ["latest"])
    if artifact:
        _write_artifact(directories, store, artifact, with_image)
        return
    [run] = directories
    path = output or Path(run.name + packing.SUFFIX)
    require_output(path)
    packed = packing.pack(run, store, path, carry=with_image)
    click.echo(f"{path}: {run.name}, {cell_names.count_cells(len(packed.cells))}, {path.stat().st_size / 1e6:.1f} MB")
    click.echo(as_called(f"replay it: agelab capsule replay {path}"))


def _write_artifact(runs: Sequence[RunDirectory], store: Store, directory: Path, carry: bool) -> None:
    """Write the whole directory, or nothing."""
    from agelab.base import atomic
    from agelab.present import artifact as artifacts
    from agelab.present.view.cell_names import count_capsules, count_cells

    artifacts.require_new(directory)
    with atomic.temp_dir(directory.absolute().parent) as place:
        new = place / "new"
        new.mkdir()
        artifact = artifacts.pack_runs(runs, store, new, carry=carry)
        texts = artifacts.texts(artifact)
        for name, text in texts.items():
            atomic.write(new / name, text.encode())
        new.rename(directory)
    size = sum(run.size for run in artifact.runs) / 1e6
    click.echo(f"{directory}: {count_capsules(len(artifact.runs))}, {count_cells(artifact.cells)}, {size:.1f} MB")
    todo = ", ".join(f"{text.count('TO DO')} in {name}" for name, text in texts.items())
    click.echo(f"what only its author can write is marked TO DO: {todo}")
    click.echo(as_called(f"replay all of it: agelab capsule replay {directory}"))


@capsule.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> None:
    """Check the capsule FILE, and show what is in it."""
    from agelab.capsule import verify
    from agelab.present.view.capsule import capsule_blocks, capsule_json

    capsule = verify.open_capsule(file)
    print_json(capsule_json(capsule)) if as_json else print_blocks(capsule_blocks(capsule))


@capsule.command(
    epilog="Exit: 0 every cell identical; 1 some cell differs, or of a directory could not be rebuilt; 2 damaged "
    "capsule, or wrong input; 3 this host cannot do it, or cannot rebuild a cell; 130 interrupted."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cells", "numbers", help="Replay only these cells, by their numbers in agelab capsule show: 0,2.")
@click.option("--jobs", type=JOBS, default=1, help="Cells at a time.")
@click.option("--corpus", help="The run's data, if they were a user's own.")
@click.option("--kernel", help="The run's kernel, if it was not one of Debian's; or another one.")
@json_option
def replay(file: Path, numbers: str | None, jobs: Jobs, corpus: str | None, kernel: str | None, as_json: bool) -> int:
    """Run the cells of the capsule FILE again, and say of each whether its result is the same.

    agelab finds what they need in the store, or rebuilds it from the same packages in the same versions. The replay is
    an ordinary run: agelab list shows it. If FILE is a directory, agelab replays each capsule in it.
    """
    from agelab.capsule import replay, verify
    from agelab.present.view.capsule import replay_blocks, replay_json

    if file.is_dir():
        if numbers or corpus or kernel:
            raise click.UsageError("--cells, --corpus and --kernel are of one capsule: name its file")
        return _replay_directory(file, jobs, as_json)
    capsule = verify.open_capsule(file)
    cells = _numbers(numbers, len(capsule.cells))
    with show_progress() as progress:
        done = replay.replay(capsule, cells, open_store(), progress, jobs=jobs, corpus=corpus, kernel=kernel)
    print_json(replay_json(done)) if as_json else print_blocks(replay_blocks(done))
    outcomes = {cell.outcome for cell in done.cells}
    return 1 if "differs" in outcomes else 3 if "could not be rebuilt" in outcomes else 0


def _replay_directory(directory: Path, jobs: Jobs, as_json: bool) -> int:
    """Replay each capsule, also after one that is damaged or cannot be rebuilt."""
    from agelab.capsule import replay, verify
    from agelab.capsule.replay import ReplayedCapsule
    from agelab.present import artifact
    from agelab.present.report.blocks import Line
    from agelab.present.view.capsule import replay_blocks, replays_blocks, replays_json

    store, done = open_store(), []
    for path in artifact.capsules_in(directory):
        if not as_json:
            print_blocks([Line(escape_controls(f"{path}:", kept=""))])
        try:
            capsule = verify.open_capsule(path)
        except InputError as error:
            replayed = ReplayedCapsule(path, (), problem=str(error))
        else:
            with show_progress() as progress:
                replayed = replay.replay(capsule, range(len(capsule.cells)), store, progress, jobs=jobs)
        done.append(replayed)
        if not as_json:
            print_blocks(replay_blocks(replayed))
    print_json(replays_json(done)) if as_json else print_blocks(replays_blocks(done))
    return 0 if all(replayed.reproduced for replayed in done) else 1


def _numbers(text: str | None, count: int) -> list[int]:
    """Parse --cells. Raises InputError."""
    words = [word.strip() for word in text.split(",")] if text is not None else [str(n) for n in range(count)]
    numbers = {word: parse_digits(word, count - 1) for word in words}
    if wrong := [word for word, number in numbers.items() if number is None]:
        raise InputError(f"--cells: {wrong[0][:20]!r} is not a cell of the capsule, which has 0 to {count - 1}")
    return sorted({number for number in numbers.values() if number is not None})
