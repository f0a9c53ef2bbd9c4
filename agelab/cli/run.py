"""``agelab run``: a scenario, each cell in a fresh guest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agelab.cli.request import controlled, execute, execute_all, request

if TYPE_CHECKING:
    from agelab.runner.request.run_request import RunRequest


@click.command(
    epilog="Exit: 0 all cells ok, 1 some cell not ok, 2 wrong input, 3 the host cannot do it, 130 interrupted."
)
@controlled
@click.option("--disk", default=None, help="Start from a stored disk (its key) instead of making one.")
@click.option("--keep-disk", is_flag=True, help="Keep what each cell's steps leave on its disk.")
@click.option(
    "--crash-at",
    default=None,
    metavar="STEP[:REPETITION]+SECONDS",
    help="Cut the power so long after a step has begun; then only the recovery is measured (docs/recovery.md).",
)
@click.option("--curve", is_flag=True, help="Map the disk at points on the way, too: the steps stop for it.")
def run(name: str | None, disk: str | None, keep_disk: bool, curve: bool, **words: Any) -> int:
    """Run a scenario: every variant of it, or the one that follows its name.

    With --kernel more than once it is a sweep: a run for each kernel, and one table of all.
    """
    from agelab.cli.sweep import swept
    from agelab.errors import AgelabError
    from agelab.runner.execute import runner
    from agelab.view.summary import print_result

    specs = words["kernel"]
    more: dict[str, Any] = {"disk": disk, "keep_disk": keep_disk, "curve": curve}
    if len(specs) > 1:
        more["prove_all"] = False
    wanted = [request(name, {**words, "kernel": spec}, **more) for spec in specs]
    if len(wanted) == 1:
        finished = [execute(wanted[0])]
        print_result(finished[0])
    else:
        _can_sweep(wanted)
        ran = execute_all(wanted)
        finished = [run for run in ran if not isinstance(run, AgelabError)]
        unfit = [
            (one.kernel, run) for one, run in zip(wanted, ran, strict=True) if isinstance(run, AgelabError)
        ]
        if not finished:
            raise unfit[0][1]
        swept(finished, unfit)
        if unfit:
            return 1
    click.echo(f"a page to read: agelab report {' '.join(run.name for run in finished)} -o report.html")
    return 0 if all(map(runner.succeeded, finished)) else 1


def _can_sweep(wanted: "Sequence[RunRequest]") -> None:
    """Refuse what several kernels cannot share. Raises InputError."""
    from agelab.errors import InputError

    if twice := {one.kernel for one in wanted if [other.kernel for other in wanted].count(one.kernel) > 1}:
        raise InputError(f"--kernel {twice.pop()} is named twice")
    if wanted[0].control or wanted[0].disk or any(spec.real for spec in wanted[0].drives):
        raise InputError(
            "several kernels take a scenario on modelled drives: no --control, --disk or real disks"
        )
