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
    print_blocks,
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

    WORKLOAD is one or two (all sequences of one or two calls, each followed by a sync), random (calls that the seed
    draws), fsx (changes of one file), spool (a mail server's changes), your own calls ('create A/new; append A/new 0
    4096; fsync A/new'), a file (a C source, a script or a static program), or a step of a scenario (aging:copy:3).
    agelab crash run --help lists the options.
    """


@crash.command("run")
@click.argument("workload")
@click.option("--filesystem", required=True, metavar="NAME", help="A file of scenarios/filesystems/.")
@click.option("--kernel", default="debian:6.1", help="The guest's kernel.")
@click.option("--defaults", default="today", type=click.Choice(("period", "today")))
@click.option("--options", default="", show_default=False, metavar="OPTION,...", help="More mount options.")
@click.option("--mib", type=click.IntRange(16, 4096), help="Size of the disk, MiB.")
@click.option("--seed", default=1, type=click.IntRange(0), help="Draws the subsets of writes, and the workload random.")
@click.option("--drawn", type=click.IntRange(0), help="Number of subsets at each flush; a few if omitted.")
@click.option(
    "--ignores",
    "ignored",
    multiple=True,
    type=click.Choice(("flush", "fua")),
    help="Let the drive ignore these requests: a test of the search itself, which must then find losses.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Look at states for so many minutes; at all of them if omitted.",
)
@click.option("--disk", metavar="KEY", help="Begin with this stored disk (agelab list disks), of one drive.")
@click.option(
    "--check",
    default="",
    show_default=False,
    metavar="FILE",
    help="Run this C source, script or static program in each tree: a status other than 0 is a loss.",
)
@json_option
def look(options: str, disk: str | None, as_json: bool, **words: "Any") -> int:
    """Record WORKLOAD, and look at each state that a power cut can leave.

    Exit: 0 nothing is wrong, or only known damage; 1 a promise is lost or your check fails; 4 only the filesystem is
    damaged.
    """
    from agelab.present.view.crash import answer_blocks
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
@click.option("-o", "--output", type=OUTPUT, help="The file to write; by default RUN.crash here.")
@force_option
def pack(run: str, output: Path | None) -> None:
    """Write the crash run RUN into one file, which agelab crash replay takes on any host."""
    from agelab.capsule import crash as capsule
    from agelab.runner.crash import crash as crashing

    store = open_store()
    name = crashing.find(store, run)
    path = output or Path(f"{name}.crash")
    require_output(path)
    capsule.pack(name, store, path)
    click.echo(as_called(f"{path}, {path.stat().st_size / 1e6:.1f} MB; look again: agelab crash replay {path}"))


@crash.command()
@click.argument("run", metavar="RUN|FILE")
@click.argument("state", required=False)
@click.option("--export", type=OUTPUT, help="Also write the disk as an image into this file.")
@click.option("--shell", is_flag=True, help="Open a shell in the guest while the disk is mounted.")
@click.option(
    "--times",
    default=1,
    type=click.IntRange(1, 1000),
    help="Repeat this many times, each in a new guest, and count equal results.",
)
@click.option("--kernel", help="Use another kernel than the run's.")
@force_option
def replay(run: str, state: str | None, export: Path | None, shell: bool, times: int, kernel: str | None) -> int:
    """Look again at STATE of a crash RUN, or of a packed FILE, and show what came before the cut.

    Without STATE it looks at every state in which something was wrong, and says whether disk and verdict are the same.
    """
    from agelab.capsule import crash as capsule
    from agelab.cli.terminal import connected
    from agelab.present.view.crash import again_blocks, replay_blocks
    from agelab.runner.crash import crash as crashing

    if not state and (export or shell or times > 1):
        raise click.UsageError("--export, --shell and --times need a STATE")
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
