"""``agelab crash``: every moment at which the power can go."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agelab.base.verbs import as_called
from agelab.cli.options import (
    OUTPUT,
    PAGE,
    force_option,
    json_option,
    open_store,
    print_json,
    require_output,
    say,
    write_output,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from agelab.runner.crash.oracle import Kind


class _Workloads(click.Group):
    """A group of which any word but those of its commands is a workload."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Workloads, subcommand_metavar="WORKLOAD | replay RUN STATE | report RUN | pack RUN")
def crash() -> None:
    """Look at each state in which a power cut can leave a filesystem.

    WORKLOAD is one or two (each sequence of so many calls, with each that makes it persist), random (calls that the
    seed draws), fsx (changes of one file), spool (a mail server's), calls separated by semicolons ('create
    A/new; append A/new 0 4096; fsync A/new'), a file (a C source, a script or a static program), or a step of a
    scenario after all that comes before it (aging:copy:3). For the options see: agelab crash run --help
    """


@crash.command("run")
@click.argument("workload")
@click.option("--filesystem", required=True, metavar="NAME", help="A file of scenarios/filesystems/.")
@click.option("--kernel", default="debian:6.1", help="The guest's kernel.")
@click.option("--defaults", default="today", type=click.Choice(("period", "today")))
@click.option("--options", default="", show_default=False, metavar="OPTION,...", help="More mount options.")
@click.option("--mib", type=click.IntRange(16, 4096), help="Size of the disk, MiB.")
@click.option("--seed", default=1, type=click.IntRange(0), help="Draws subsets of writes, and random.")
@click.option("--drawn", type=click.IntRange(0), help="Subsets at each flush; a few if omitted.")
@click.option(
    "--ignores",
    "ignored",
    multiple=True,
    type=click.Choice(("flush", "fua")),
    help="What the drive ignores: a filesystem must lose promises on it, or nothing is found here.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Minutes of this host for looking at states; all states if omitted.",
)
@click.option("--disk", metavar="KEY", help="Begin with this stored disk (agelab list disks), of one drive.")
@click.option(
    "--check",
    default="",
    show_default=False,
    metavar="FILE",
    help="A C source, script or static program that is run in each tree: it is a loss where it does not exit with 0.",
)
@json_option
def look(options: str, disk: str | None, as_json: bool, **words: "Any") -> int:
    """Record WORKLOAD, and look at each state of its disk.

    It exits with 0 where nothing is wrong, or known damage alone; with 1 where a promise is lost or your check fails;
    with 4 where the filesystem alone is damaged.
    """
    from agelab.present.view.crash import answer_blocks
    from agelab.present.view.terminal import print_blocks
    from agelab.runner.crash import crash as crashing
    from agelab.runner.crash.oracle import Kind
    from agelab.store import stored_disk

    store = open_store()
    start = stored_disk.find(store, disk) if disk else None
    question = crashing.ask(**words, options=tuple(filter(None, options.split(","))), disk=start)
    answer = crashing.run(question, store, say)
    if as_json:
        print_json(asdict(answer))
    else:
        print_blocks(answer_blocks(answer))
    return _code(Kind(found.kind) for found in answer.violations if not found.known)


def _code(kinds: "Iterable[Kind]") -> int:
    """Return the exit code where these are wrong, and not known."""
    return min((1 if kind.is_promise else 4 for kind in kinds), default=0)


@crash.command()
@click.argument("run", metavar="RUN")
@click.option("-o", "--output", type=PAGE, default=Path("crash.html"), help="Where the page goes.")
@force_option
def report(run: str, output: Path) -> None:
    """Write the crash run RUN as one page: what was found, and each violation as a timeline with its cut."""
    from agelab.present.report.crash_page import build_page
    from agelab.present.report.html import render
    from agelab.runner.crash import crash as crashing

    store = open_store()
    text = render(build_page(*crashing.answered(store, crashing.find(store, run))))
    write_output(output, text.encode(), pages=True)
    click.echo(f"open it in any browser: {output.absolute().as_uri()}")


@crash.command()
@click.argument("run", metavar="RUN")
@click.option("-o", "--output", type=OUTPUT, help="The file to write; RUN.crash here if omitted.")
@force_option
def pack(run: str, output: Path | None) -> None:
    """Write the crash run RUN into one file, of which agelab crash replay looks at the same states anywhere."""
    from agelab.capsule import crash as capsule
    from agelab.runner.crash import crash as crashing

    store = open_store()
    name = crashing.find(store, run)
    path = output or Path(f"{name}.crash")
    require_output(path)
    capsule.pack(name, store, path)
    click.echo(
        as_called(f"{path}, {path.stat().st_size / 1e6:.1f} MB; look again: agelab crash replay {path}")
    )


@crash.command()
@click.argument("run", metavar="RUN|FILE")
@click.argument("state", required=False)
@click.option("--export", type=OUTPUT, help="Write the disk as an image into this file, too.")
@click.option("--shell", is_flag=True, help="Open a shell in the guest, while the disk is mounted.")
@click.option(
    "--times",
    default=1,
    type=click.IntRange(1, 1000),
    help="Look so often, each time in a new guest, and say how often the same is found.",
)
@click.option("--kernel", help="Another kernel than the run's.")
@force_option
def replay(
    run: str, state: str | None, export: Path | None, shell: bool, times: int, kernel: str | None
) -> int:
    """Look at STATE of the crash run RUN, or of one that is packed in FILE, again, and show what came before the cut.

    Without STATE it looks at each state in which something was wrong, and says whether disk and verdict are the same.
    """
    from agelab.capsule import crash as capsule
    from agelab.cli.terminal import connected
    from agelab.present.view.crash import again_blocks, replay_blocks
    from agelab.present.view.terminal import print_blocks
    from agelab.runner.crash import crash as crashing

    if not state and (export or shell or times > 1):
        raise click.UsageError("--export, --shell and --times are of one STATE: name it")
    store = open_store()
    packed = Path(run).is_file()
    name = capsule.unpack(Path(run), store, kernel) if packed else crashing.find(store, run)
    if not state:
        seen = crashing.check(name, store, say, kernel)
        print_blocks(again_blocks(seen))
        return 0 if all(one.same_disk and one.same_verdict for one in seen) else 1
    looked = crashing.replay(name, state, store, say, export, connected if shell else None, times, kernel)
    print_blocks(replay_blocks(looked))
    return _code(found.kind for found in looked.found if not looked.known)
