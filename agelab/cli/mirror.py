"""``agelab mirror``: the Debian packages of runs, kept as an archive."""

from pathlib import Path

import click

from agelab.base.verbs import as_called
from agelab.cli.options import find_runs, open_store, say
from agelab.results.run_directory import LATEST


@click.group()
def mirror() -> None:
    """Keep the packages of runs, so that others, and you next year, get the same keys (docs/capsules.md)."""


@mirror.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def make(directory: Path, runs: tuple[str, ...]) -> None:
    """Write the Debian packages of RUN... (default: the latest) into DIRECTORY, as an archive that apt reads.

    With SNAPSHOT=DIRECTORY (make) or AGELAB_SNAPSHOT=DIRECTORY all packages come from there. It has the lists by which
    Debian's keys vouch for them.
    """
    from agelab.capsule import mirror as archives
    from agelab.debian.snapshot import TRUSTED

    written = archives.make(directory, find_runs(runs or (LATEST,)), open_store(), say)
    for suite, count in sorted(written.suites.items()):
        click.echo(f"{suite}: {count} packages")
    click.echo(f"{written.path}: {written.content_bytes / 1e6:.0f} MB")
    named = str(written.path)
    if names := written.unsigned:
        named = f"{TRUSTED}{named}"
        click.echo(
            f"{len(names)} of them are in no list of Debian's that this store has ({', '.join(names[:3])}"
            f"{', ...' if len(names) > 3 else ''}): who uses the archive has to trust you"
        )
    click.echo(as_called(f"use it: AGELAB_SNAPSHOT={named} agelab run ..., or make scenario ... SNAPSHOT={named}"))
