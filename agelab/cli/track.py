"""``agelab track``: a scenario's numbers over commits or packages, night by night."""

import shlex
from contextlib import chdir
from pathlib import Path

import click

from agelab.base import atomic, limits, process
from agelab.base.errors import HostError, InputError, goes_on
from agelab.cli.options import OUTPUT, force_option, open_store, require_directory, require_output, say, write_output


@click.command(
    epilog="Exit: 0 nothing new, 1 a step was found, 2 wrong input, 3 the host cannot do it, 130 interrupted: the same "
    "command goes on."
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--pages", is_flag=True, help="Measure nothing: write the pages of what is known.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, file_okay=False),
    help="The pages' directory, in place of FILE's.",
)
@click.option("--junit", type=OUTPUT, metavar="FILE", help="Also write JUnit XML: a case for each line.")
@force_option
def track(file: Path, pages: bool, page: Path | None, junit: Path | None) -> int:
    """Measure what is new of FILE's commits or packages, find what changed its metrics, and write its pages.

    A night ends when FILE's minutes are over; the next one goes on where it ended (docs/howto/track.md).
    """
    from agelab.bisect.track import question
    from agelab.bisect.track.journal import Journal, measured_points
    from agelab.bisect.track.lines import Known
    from agelab.bisect.track.night import Night
    from agelab.bisect.track.points import points_of
    from agelab.bisect.track.runs import Doors, TrackRuns
    from agelab.capsule.pack import pack
    from agelab.cli.bisect import parse_question
    from agelab.present.track import INDEX, write_site
    from agelab.present.view.junit import track_lines

    file = file.absolute()
    junit, page = (path and path.absolute() for path in (junit, page))
    if not file.is_file():
        raise InputError(f"{file}: there is no such file", hint="docs/howto/track.md has one to begin with")
    store = open_store()
    with chdir(file.parent):
        asked = question.read(file)
        asked = asked.model_copy(update={"page": str(page)}) if page else asked
        site = Path(asked.page).expanduser().absolute()
        require_directory(site)
        require_output(site / f"{INDEX}.html", pages=True)
        limits.require_to_draw()
        journal = Journal.of(store, asked.name)
        with journal.lock(), goes_on(shlex.join(["agelab", "track", str(file)])):
            points = points_of(asked, store, say, measured_points(journal.rows), refresh=not pages)
            runs = TrackRuns(asked, points, store, Doors(parse_question, pack), say)

            def show(known: Known, now: str) -> None:
                write_site(known, site, now, whole=not now)

            def tell(line: str) -> None:
                click.echo(line)
                if asked.hook:
                    _give(asked.hook, line, journal.directory / "news")

            night = Night(asked, points, journal, runs, say, show, tell)
            try:
                if not pages:
                    night.work()
            finally:
                write_site(night.known, site, "")
            if junit:
                write_output(junit, "\n".join(track_lines(night.known, night.told)).encode())
    say(f"{site / INDEX}.html: open it in any browser")
    return 1 if night.told else 0


def _give(hook: str, line: str, news: Path) -> None:
    """Give a line to the user's own command, on its standard input."""
    atomic.write(news, f"{line}\n".encode())
    try:
        process.run(["sh", "-c", hook], stdin=news, timeout=60)
    except HostError as error:
        say(f"hook: {' '.join(str(error).splitlines()[:2])}")
