"""``agelab run``: a scenario, each cell in a fresh guest."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agelab.cli.common import open_store

if TYPE_CHECKING:
    from agelab.disk import DriveSpec
    from agelab.vm.guest import Clock

VCPUS_MOST = 255
"""What QEMU's machine takes."""


@click.command(
    epilog="Exit: 0 all cells ok, 1 some cell not ok, 2 wrong input, 3 the host cannot do it, 130 interrupted."
)
@click.argument("name", metavar="SCENARIO[-VARIANT]")
@click.option(
    "--kernel", default="debian:6.1", show_default=True, help="The guest's kernel, debian:<version or suite>."
)
@click.option("--filesystem", default=None, help="Only the variants of this filesystem.")
@click.option(
    "--scale", default="quick", show_default=True, help="The study's sizes (paper), or shrunk ones (quick)."
)
@click.option(
    "--seeds", default="1", show_default=True, help="Run seeds, comma-separated: each is a repetition."
)
@click.option("--corpus", default=None, help="Your own ISO image, directory or tarball, not the seeded data.")
@click.option("--corpus-seed", default=1, show_default=True, help="Fixes the data and the operations.")
@click.option(
    "--defaults", default=None, help="mkfs and mount as in the study's days (period) or as now (today)."
)
@click.option("--layout", default="single", show_default=True, help="single, or raid0 over two drives.")
@click.option(
    "--clock",
    default=None,
    help="virtual (the same digits every time) or wall (real time; real disks imply it).",
)
@click.option(
    "--disks",
    default=None,
    help="Drives in place of the machine's: model:<name>, model:none (bare memory), file:<path>, block:<device>, "
    "pci:<address>; two with a comma.",
)
@click.option("--erase", default="", help="Serials of real disks whose content may be lost, comma-separated.")
@click.option("--vcpus", default=1, show_default=True, help="The guest's processors (wall clock).")
@click.option("--machine", default=None, help="Another machine than the scenario's.")
@click.option("--jobs", default=1, show_default=True, help="Cells at a time: 1 (more come later).")
def run(
    name: str,
    kernel: str,
    filesystem: str | None,
    scale: str,
    seeds: str,
    corpus_seed: int,
    corpus: str | None,
    defaults: str | None,
    layout: str,
    clock: str | None,
    disks: str | None,
    erase: str,
    vcpus: int,
    machine: str | None,
    jobs: int,
) -> int:
    """Run a scenario: every variant of it, or the one that follows its name."""
    from agelab.cli.progress import shown
    from agelab.cli.tables import print_run
    from agelab.disk import parse_list
    from agelab.errors import InputError
    from agelab.run import runner
    from agelab.scenario import selection

    selected = selection.select(name, filesystem)
    scenario = selected.scenario
    _one_of("scale", scale, [*scenario.scales])
    _one_of("set of defaults", defaults or scenario.defaults, ["period", "today"])
    _one_of("layout", layout, ["single", "raid0"])
    drives = () if disks is None else parse_list(disks)
    clock = _clock(clock, drives)
    if not 1 <= vcpus <= (1 if clock == "virtual" else VCPUS_MOST):
        raise InputError(
            f"--vcpus {vcpus}: the virtual clock has one processor, the wall clock 1 to {VCPUS_MOST}"
        )
    if jobs != 1:
        raise InputError(f"--jobs {jobs}: one cell at a time is all there is yet")
    if not 0 <= corpus_seed < 2**63:
        raise InputError(f"--corpus-seed {corpus_seed}: a seed is a whole number from 0 to 2**63 - 1")
    request = runner.Request(
        name=name,
        selection=selected,
        machine=selection.machine(machine or scenario.machine),
        layout=layout,  # type: ignore[arg-type]
        drives=drives,
        erase=tuple(word.strip() for word in erase.split(",")) if erase else (),
        clock=clock,
        vcpus=vcpus,
        kernel=kernel,
        scale=scale,  # type: ignore[arg-type]
        run_seeds=_seeds(seeds),
        corpus_seed=corpus_seed,
        corpus=Path(corpus) if corpus else None,
        defaults=defaults or scenario.defaults,  # type: ignore[arg-type]
    )
    store = open_store()
    with shown(scenario, len(selected.variants) * len(request.run_seeds)) as progress:
        finished = runner.carry_out(request, store, progress)
    print_run(finished)
    return 0 if runner.succeeded(finished) else 1


def _one_of(kind: str, value: str, valid: list[str]) -> None:
    from agelab.errors import unknown

    if value not in valid:
        raise unknown(kind, value, valid)


def _clock(wanted: str | None, drives: "Sequence[DriveSpec]") -> "Clock":
    """The clock that was asked for; without a word of it real disks have the wall's."""
    from agelab.errors import InputError

    real = [spec for spec in drives if spec.real]
    clock = wanted or ("wall" if real else "virtual")
    _one_of("clock", clock, ["virtual", "wall"])
    if clock == "virtual" and real:
        raise InputError(
            f"--clock virtual: {real[0].kind}:{real[0].name} has a time of its own",
            hint="real disks take --clock wall, which is their default; modelled ones take either",
        )
    return clock  # type: ignore[return-value]


def _seeds(text: str) -> tuple[int, ...]:
    from agelab.errors import InputError

    try:
        seeds = tuple(int(word) for word in text.split(","))
    except ValueError as error:
        raise InputError(
            f"--seeds {text!r}: run seeds are whole numbers separated by commas, like 1,2,3"
        ) from error
    if len(set(seeds)) != len(seeds) or min(seeds) < 0 or max(seeds) >= 2**31:
        raise InputError(f"--seeds {text!r}: each run seed once, from 0 to 2**31 - 1")
    return seeds
