"""The options of the verbs that run cells, under the names of ``RunOptions``, and running with progress shown."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from agelab.cli.options import open_store
from agelab.cli.types import (
    JOBS,
)
from agelab.machine.disk import DriveClaim
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.option_fields import BootKind, Design, SourceState
from agelab.runner.request.options import RunOptions

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

OF_ONE_RUN = (
    click.option(
        "--kernel",
        multiple=True,
        default=["debian:6.1"],
        show_default=True,
        help="The guest's kernel: a version (6.1), or another spec (docs/kernels.md).",
    ),
    click.option(
        "--filesystem",
        default=None,
        help="Only the variants of this filesystem, or of several: ext4,xfs.",
    ),
    click.option(
        "--seeds",
        default="1",
        show_default=True,
        help="Run seeds, each a repetition: 1,2,3 or 1-3. agelab run also takes auto: as many as decide a question.",
    ),
    click.option(
        "--design",
        type=click.Choice(get_args(Design)),
        default="crossed",
        show_default=True,
        help="Every run seed with every corpus, or paired: the first with the first, and so on.",
    ),
    click.option("--trace", is_flag=True, help="Do the experiments' passes under strace, too."),
    click.option(
        "--boot",
        type=click.Choice(get_args(BootKind)),
        default="saved",
        show_default=True,
        help="Begin guests in the virtual clock as copies of one that has booted, or boot each in full.",
    ),
)
"""Options in which runs that are compared may differ."""

SHARED = (
    click.option(
        "--scale",
        default=None,
        help="The study's sizes (paper: a control file's default), or shrunk ones (quick: a scenario's).",
    ),
    click.option(
        "--corpus",
        default=None,
        help="Your own ISO image, directory or tarball, not the seeded data.",
    ),
    click.option(
        "--log",
        default=None,
        help="Your own operation log, not the scenario's histories (docs/operations.md).",
    ),
    click.option(
        "--corpora",
        "--corpus-seed",
        "corpora",
        default="1",
        show_default=True,
        help="Corpus seeds, each with data and operations of its own: 1,2 or 1-2.",
    ),
    click.option(
        "--defaults",
        default=None,
        help="mkfs and mount as in the study's days (period) or as now (today).",
    ),
    click.option(
        "--options",
        default=None,
        metavar="FS:OPTION,...;...",
        help="mkfs and mount options: every combination is a variant (docs/howto/options-matrix.md).",
    ),
    click.option(
        "--layout",
        default=None,
        help="single, raid0, raid1, ...: a file of scenarios/layouts, in place of the study's (docs/layouts.md).",
    ),
    click.option(
        "--clock",
        default=None,
        help="virtual (the same digits every time) or wall (real time; real disks imply it).",
    ),
    click.option(
        "--disks",
        default=None,
        help="Drives in place of the machine's: model:<name>, model:none (bare memory), file:<path>, block:<device>, "
        "pci:<address>; two with a comma.",
    ),
    click.option(
        "--erase", default="", help="Serials of real disks whose content may be lost, comma-separated."
    ),
    click.option("--vcpus", default=1, show_default=True, help="The guest's processors (wall clock)."),
    click.option("--machine", default=None, help="Another machine than the scenario's."),
    click.option(
        "--machine-band",
        default=None,
        help="The cheap (low) or the dear end of the band of what an instruction costs, in place of its middle.",
    ),
    click.option(
        "--block",
        default=None,
        metavar="KEY=VALUE,...",
        help="The block layer and write-back, in place of the machine's: scheduler, its parameters, requests, "
        "read_ahead_kib, dirty_percent, ... (docs/block-layer.md).",
    ),
    click.option(
        "--source",
        type=click.Choice(get_args(SourceState)),
        default=None,
        help="How the disk lies that a study copied from: as one copy lays it, or scattered (docs/block-layer.md).",
    ),
    click.option(
        "--jobs",
        type=JOBS,
        default=1,
        show_default=True,
        help="Cells at a time; auto: as many as this host can run. In the wall clock they disturb each other.",
    ),
)
"""Options that such runs share."""

OPTIONS = (*OF_ONE_RUN, *SHARED)


CONTROL_OPTIONS = (
    click.option(
        "--control",
        default=None,
        help="A control file: the tests of a user's own scripts (docs/control.md).",
    ),
    click.option("--continue", "proceed", is_flag=True, help="Continue where a control file's journal ends."),
    click.option("--device", default="", help="Also give a control file's scripts the disk under this path."),
)


def _adding(*params: Callable[[AnyCommand], AnyCommand]) -> Callable[[AnyCommand], AnyCommand]:
    """Return a decorator that adds arguments and options to a command, in this order."""

    def add(command: AnyCommand) -> AnyCommand:
        for param in reversed(params):
            command = param(command)
        return command

    return add


run_options = _adding(click.argument("name", metavar="SCENARIO[-VARIANT]"), *OPTIONS)
"""The scenario argument and all options."""
shared_options = _adding(*SHARED)
"""The shared options."""
run_options_with_control = _adding(
    click.argument("name", metavar="[SCENARIO[-VARIANT]]", required=False),
    *OPTIONS,
    *CONTROL_OPTIONS,
)
"""All options, and a control file's in the place of a scenario."""


def execute(
    options: RunOptions,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
) -> RunDirectory:
    """Run the options in the user's store, or the unfinished cells of ``begun``, and show progress."""
    from agelab.present.view.progress import show_progress
    from agelab.runner.execute import runner

    with show_progress() as progress:
        return runner.run(options, open_store(), progress, begun=begun, claims=claims)
