"""The plan of a run for several hosts: its options, its cells, and the packages that all of them take."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agelab import kernel as kernel_specs
from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.base.types import Frozen, Label
from agelab.debian import buildroot
from agelab.kernel import debian_kernel
from agelab.machine import dkms, qemu
from agelab.machine.drive import module as modules
from agelab.machine.image import root as roots
from agelab.results import checksummed
from agelab.runner.prepare.planned import planned_cells
from agelab.runner.prepare.run_manifest import module_packages, root_of
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.resolve import resolve
from agelab.scenario.seeds import CellName, Seeds
from agelab.store import environment
from agelab.store.artefacts import Store

OF_THE_COORDINATOR = {"jobs": 1, "check": None, "keep_disk": False, "timing": False}
"""Options that say nothing of a cell: who puts the run together decides them."""


class SharedPlan(Frozen):
    """What a host must know to run a cell of a run that is another host's."""

    of_schema: Literal[1] = Field(alias="schema")
    agelab: Label = Field(description="version; another one may have other keys")
    command: dict[str, Any] = Field(description="directory, name, words and more, as in plan.json")
    resolutions: dict[str, Any] = Field(description="what questions about packages resolve to")
    cells: tuple[tuple[str, str, int, int], ...] = Field(
        min_length=1, description="variant, layout, corpus seed and run seed of each"
    )

    @property
    def options(self) -> RunOptions:
        """Raises InputError for options that this agelab does not know, or that are no other host's."""
        said = self.command
        asked = RunOptions.from_words(said["directory"], said["name"], said["words"], said["more"])
        require_shareable(asked)
        return asked.changed(**OF_THE_COORDINATOR, of_plan=True)

    def afresh(self) -> "SharedPlan":
        """Return the plan whose cells run in any case, also where their keys are known."""
        more = {**self.command["more"], "fresh": True, "check": None}
        return self.model_copy(update={"command": {**self.command, "more": more}})

    def of_one(self, number: int) -> "SharedPlan":
        """Return the plan of this cell alone, whose options name no other seeds: what one task takes."""
        _, _, corpus, run = self.cells[number]
        words = {**self.command["words"], "seeds": str(run), "corpora": str(corpus), "design": "crossed"}
        return self.model_copy(
            update={"command": {**self.command, "words": words}, "cells": (self.cells[number],)}
        )

    def name_of(self, number: int) -> CellName:
        """Return the name of a cell. Raises InputError for a number that none has."""
        if not 0 <= number < len(self.cells):
            raise InputError(f"--cell {number}: the plan has cells 0 to {len(self.cells) - 1}")
        variant, layout, corpus, run = self.cells[number]
        return variant, layout, Seeds(corpus, run)


def require_shareable(options: RunOptions) -> None:
    """Raise InputError for a run whose cells no other host can run."""
    why = {
        "a control file has its journal here": options.control,
        "real disks are this host's": options.real_disks,
        "the wall clock is one host's": options.guest_clock == "wall",
        "a stored disk is this store's": options.disk,
        "--keep-disk keeps disks in this store": options.keep_disk,
        "--timing takes this host's time": options.timing,
        "--blocks keeps its records beside the cell": options.blocks,
        "--profile keeps its stacks beside the cell": options.profile,
        "--seeds auto decides after each look": options.until_decided,
    }
    if told := [reason for reason, given in why.items() if given]:
        raise InputError(f"the cells cannot run on other hosts: {told[0]}")


def own_files(options: RunOptions) -> list[str]:
    """Return the words of the options that name files of the user, whose paths may be relative."""
    kind, _, wanted = kernel_specs.canonical(options.kernel).partition(":")
    of_agelab = kind == "debian" or (kind == "recipe" and not set(wanted) & set("/,."))
    words = (
        options.name if (options.name or "").endswith(".toml") else None,
        options.corpus,
        options.log,
        None if of_agelab else options.kernel,
    )
    return [word for word in words if word]


def make(options: RunOptions, store: Store, progress: Progress) -> SharedPlan:
    """Make the plan of these options; packages are resolved here, once. Raises as ``agelab run`` does.

    Where cells are checked, or AGELAB_FRESH is set here, no host answers with a cell that it knows.
    """
    require_shareable(options)
    cells = [(one.variant.name, one.layout, one.corpus_seed, one.run_seed) for one in planned_cells(options)]
    plan = SharedPlan(
        schema=1,
        agelab=version("agelab"),
        command=options.to_plan(),
        resolutions=_resolutions(options, store, progress),
        cells=tuple(cells),
    )
    return plan.afresh() if options.check is not None or environment.every_cell_runs() else plan


def _resolutions(options: RunOptions, store: Store, progress: Progress) -> dict[str, Any]:
    request = resolve(options)
    definition, filesystems = root_of(request)
    suite = roots.definition().suite
    kernel = kernel_specs.resolve(request.kernel, store, progress=progress.stage)
    found: list[tuple[Mapping[str, Any], Any]] = [
        (roots.question(definition, filesystems), roots.resolve_packages(definition, filesystems, store)),
        (qemu.question(), qemu.resolve_packages(store)),
        (buildroot.compiler_question(suite), buildroot.resolve_compiler(store, suite)),
    ]
    if kernel.kind == "debian":
        wanted = kernel.spec.partition(":")[2]
        found.append((debian_kernel.question(wanted), debian_kernel.resolve_packages(wanted, store)))
    if not kernel.build_inputs:
        built = modules.resolve_packages(kernel, store, progress=progress.stage)
        found.append((modules.question(built.suite, kernel.release, kernel.version), built))
    by_name = {one.name: one for one in filesystems}
    for name, packages in module_packages(request, kernel, store).items():
        found += dkms.questions((kernel.release, kernel.version), by_name[name], packages)
    return {key_of(question): answer.model_dump(mode="json") for question, answer in found}


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
