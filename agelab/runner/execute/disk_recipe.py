"""The recipe kept with a stored disk that a run makes, and the command that makes it again."""

import shlex

from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.request.run_request import RunRequest
from agelab.scenario.history import Logged, Pulled
from agelab.store.stored_disk import DiskRecipe


def disk_recipe(spec: CellSpec, kernel: str, scale: str | None, command: str) -> DiskRecipe:
    """Return the recipe of the disk that a cell makes; ``command`` makes it again."""
    return DiskRecipe(
        makes=spec.scenario.makes,
        scenario=spec.scenario.name,
        scale=scale,
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        defaults=spec.defaults,
        machine=spec.machine.name,
        drives=spec.disk.drive_specs,
        kernel=kernel,
        run_seed=spec.run_seed,
        corpus_seed=spec.corpus_seed,
        sizes=tuple(spec.disk.memory_disks[place] for place in spec.disk.member_places),
        command=command,
    )


def making_command(request: RunRequest, spec: CellSpec, verb: str = "age") -> str:
    """Return the command that makes the disk of one cell again."""
    history = spec.history
    log = history.log if isinstance(history, Logged) else None
    pulled = history.repository if isinstance(history, Pulled) else ""
    options = request.options.changed(
        kernel=request.kernel,
        scale=request.scale,
        machine=spec.machine.plain_name,
        layout=spec.layout,
        defaults=spec.defaults,
        corpus=pulled or (str(request.corpus) if request.corpus else None),
        log=log,
        trace=False,
        erase=(),
        jobs=1,
        keep_disk=False,
        disk=None,
        crash_at=None,
        fail=None,
    )
    seeds = ((spec.run_seed,), (spec.corpus_seed,))
    if request.name.endswith(".toml"):
        options = options.changed(filesystem=spec.filesystem.name).of_seeds(*seeds)
    elif not request.control:
        variant = spec.variant.plain_name if log else spec.variant.name
        options = options.changed(name=f"{spec.scenario.name}-{variant}", filesystem=None).of_seeds(*seeds)
    return shlex.join(["agelab", verb, *options.arguments()])
