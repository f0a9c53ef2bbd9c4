"""The plan of a run for several hosts: its options, its cells, and the packages that all of them take.

A host runs one cell of it, with the packages of the plan, and sends what a cache would keep
(agelab.runner.reuse.ended_cells). A Slurm array runs a plan with one task a cell, and no scheduler of ours.
"""

import json
import shlex
from collections.abc import Mapping
from contextlib import chdir, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agelab import kernel as kernel_specs
from agelab.analysis.cell_diff import diff_inputs
from agelab.base import atomic, templates
from agelab.base.errors import AgelabError, InputError
from agelab.base.fileio import read_bytes
from agelab.base.types import Frozen, Label
from agelab.machine.vm import host
from agelab.results import checksummed
from agelab.results.result import CellOrigin
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.prepare.parts import ask_all_packages
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, resolve
from agelab.runner.reuse import cache, ended_cells
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.scenario.seeds import CellName, Seeds
from agelab.store.artefacts import Store

SAYS_MOST = ("version", "release", "package")
"""Last words of places that tell a reader more than hashes and commands do."""
WIDTH = 60
"""Characters of a value."""
PLAN, SCRIPT = "plan.json", "array.sh"
MEMORY_MIB = 4096
"""For a guest and its disks, at quick scale; edit the script for a larger one."""
PART = 1000
"""Tasks of one array: Slurm takes indexes up to 1000 (MaxArraySize=1001), unless a site says otherwise."""


class SharedPlan(Frozen):
    """What a host must know to run a cell of a run that is another host's."""

    of_schema: Literal[1] = Field(alias="schema")
    agelab: Label = Field(description="version; another one may have other keys")
    command: dict[str, Any] = Field(description="directory, name and options, as in plan.json")
    resolutions: dict[str, Any] = Field(description="what questions about packages resolve to")
    cells: tuple[tuple[str, str, int, int], ...] = Field(
        min_length=1, description="variant, layout, corpus seed and run seed of each"
    )

    @property
    def options(self) -> RunOptions:
        """Raises InputError for options that this agelab does not know, or that are no other host's."""
        asked = RunOptions.from_words(self.command)
        asked.require_shareable()
        return asked.of_worker()

    def of_one(self, number: int) -> "SharedPlan":
        """Return the plan of this cell alone, whose options name no other seeds: what one task takes."""
        _, _, corpus, run = self.cells[number]
        alone = self.with_options({"seeds": str(run), "corpora": str(corpus), "design": "crossed"})
        return alone.model_copy(update={"cells": (self.cells[number],)})

    def with_options(self, options: Mapping[str, Any]) -> "SharedPlan":
        command = {**self.command, "options": self.command["options"] | options}
        return self.model_copy(update={"command": command})

    def name_of(self, number: int) -> CellName:
        """Return the name of a cell. Raises InputError for a number that none has."""
        if not 0 <= number < len(self.cells):
            raise InputError(f"--cell {number}: the plan has cells 0 to {len(self.cells) - 1}")
        variant, layout, corpus, run = self.cells[number]
        return variant, layout, Seeds(corpus, run)


def own_files(options: RunOptions) -> list[str]:
    """Return the words of the options that name files of the user, whose paths may be relative."""
    kind, _, kernel = kernel_specs.canonical(options.kernel).partition(":")
    of_agelab = kind == "debian" or (kind == "recipe" and not set(kernel) & set("/,."))
    words = (
        options.name if (options.name or "").endswith(".toml") else None,
        options.corpus,
        options.log,
        None if of_agelab else options.kernel,
    )
    return [word for word in words if word]


def make(request: RunRequest, store: Store, progress: Progress) -> SharedPlan:
    """Make the plan of a request; packages are resolved here, once. Raises as ``agelab run`` does.

    Where cells are checked, or AGELAB_FRESH is set here, no host answers with a cell that it knows.
    """
    options = request.options
    options.require_shareable()
    names = [(spec.variant.name, spec.layout, spec.corpus_seed, spec.run_seed) for spec in request.planned()]
    plan = SharedPlan(
        schema=1,
        agelab=version("agelab"),
        command=options.to_plan(),
        resolutions=_resolutions(request, store, progress),
        cells=tuple(names),
    )
    afresh = options.verify is not None or cache.every_cell_runs()
    return plan.with_options({"fresh": True, "verify": None}) if afresh else plan


def _resolutions(request: RunRequest, store: Store, progress: Progress) -> dict[str, Any]:
    with store.recording() as answers:
        kernel_specs.resolve(request.kernel, store, progress=progress.stage)
        ask_all_packages(request, (), store, progress.stage)
    return answers


def read(path: Path) -> SharedPlan:
    """Read a plan. Raises InputError for what is none, or is of another agelab."""
    plan = checksummed.read(path, SharedPlan)
    if plan.agelab != version("agelab"):
        raise InputError(
            f"{path} is of agelab {plan.agelab}, this one is {version('agelab')}: its cells could have other keys",
            hint="install the same agelab on all hosts",
        )
    return plan


def write(path: Path, plan: SharedPlan) -> None:
    checksummed.write_sealed(path, plan)


class NothingToSend(AgelabError):
    """The cell has no result that could stand for another of its key."""


def run_cell(plan: SharedPlan, number: int, store: Store, progress: Progress) -> RunDirectory:
    """Run a cell of the plan in a run of its own, unless its key is known. Raises as ``agelab run`` does."""
    options, name = plan.options, plan.name_of(number)
    if not Path(options.directory).is_dir():
        if named := own_files(options):
            raise InputError(
                f"the plan was made in {options.directory}, which this host does not have, and names {named[0]}"
            )
        options = options.changed(directory="/")
    fixed = Store(store.home, store.warn, resolutions=plan.resolutions, shared=store.shared)
    with chdir(options.directory):
        request = replace(resolve(options), only=frozenset([name]))
        if name not in request.cell_names:
            raise InputError(f"--cell {number}: the plan's own options ask for no such cell: {', '.join(name[:2])}")
        return runner.run_request(request, fixed, progress)


def pack(run: RunDirectory) -> bytes:
    """Return the one cell of a run as bytes to be sent. Raises NothingToSend for one without a digest."""
    end = run.end(0)
    if end is None or CellKey.of(end) is None:
        raise NothingToSend(end.reason or end.status if end else "it has no end record")
    here = CellOrigin(run=run.name, host=host.description(), ended=end.ended or "")
    cell = EndedCell(
        inputs=run.recorded_inputs(0),
        end=end.model_copy(update={"disk": None, "pictures": {}}),
        samples=tuple(run.samples().get(0, ())),
        origin=end.reused or here,
    )
    return ended_cells.pack(cell, run.cell_directory(0))


def other_key(sent: bytes, key: CellKey, inputs: Path) -> str:
    """Return what differs in a cell that is not of ``key``, whose inputs are in a file; "" where that is unknown."""
    with suppress(AgelabError, OSError, ValueError):
        cell = ended_cells.sent_cell(sent)
        differing = list(diff_inputs(json.loads(read_bytes(inputs)), cell.inputs))
        if differing:
            first = min(differing, key=lambda one: one.place.rpartition(".")[2] not in SAYS_MOST)
            more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
            return f"{first.place} is {_cut(first.right)} there, {_cut(first.left)} here{more}"
        if cell.end.evaluated_by != key.evaluated_by:
            return "another agelab has made samples of it"
    return ""


def _cut(value: Mapping[str, Any] | object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}..."


def array_commands(script: Path, cells: int) -> str:
    """Return the shell line that sends all cells to Slurm."""
    name = shlex.quote(str(script))
    if cells <= PART:
        return f"sbatch {name}"
    return f"for first in $(seq 0 {PART} {cells - 1}); do sbatch {name} $first; done"


def write_array(directory: Path, plan: SharedPlan, agelab: str) -> Path:
    """Write plan and Slurm script into a directory; return the script. Raises InputError where this cannot be."""
    place = directory.absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        write(place / PLAN, plan)
        text = templates.fill(
            "array.sh",
            {},
            cells=len(plan.cells),
            tasks=min(PART, len(plan.cells)),
            part=PART,
            commands=array_commands(place / SCRIPT, len(plan.cells)),
            memory_mib=MEMORY_MIB,
            directory=place,
            agelab=agelab,
            plan=str(place / PLAN),
        )
        atomic.write(place / SCRIPT, text.encode())
        (place / SCRIPT).chmod(0o755)
    except OSError as error:
        raise InputError(f"--slurm {directory}: cannot be written: {error.strerror}") from error
    return place / SCRIPT
