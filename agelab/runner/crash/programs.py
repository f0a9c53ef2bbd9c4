"""Workloads that are programs: a user's own, spool, and a step of a scenario after all that comes before it."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from agelab.base import fileio
from agelab.base.errors import InputError, Notify, unknown
from agelab.base.types import Defaults
from agelab.data.corpus import Corpus
from agelab.machine.image import tools
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import step_environment
from agelab.runner.plan.phases import MAKING, phases
from agelab.runner.plan.steps import StepPlan, index_of
from agelab.runner.prepare import brought_files
from agelab.runner.prepare.parts import MadeParts
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, resolve
from agelab.scenario.guest_places import SOURCE
from agelab.scenario.step import AGED
from agelab.store.artefacts import Store

SPOOL, OPERATIONS = "spool", 48
"""The workload of scenario ``recovery``, and how many of its operations are looked at."""
SAFE = "/run/safe"
STEP = re.compile(r"(?P<scenario>[^\s;:]+):(?P<step>[a-z0-9][a-z0-9_-]*)(:(?P<repetition>\d{1,9}))?")


@dataclass(frozen=True)
class Program:
    """A program, and what its guest has for it."""

    content: bytes
    before: bytes = b""
    """What makes the tree that it finds; empty for the usual one."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """More programs, by their path below the guest's directory of agelab."""
    corpus: Corpus | None = None


def is_program(workload: str) -> bool:
    """Return True for what is no list of calls."""
    return workload == SPOOL or STEP.fullmatch(workload) is not None or Path(workload).is_file()


def planned(workload: str, filesystem: str, kernel: str, defaults: Defaults) -> tuple[RunRequest, CellSpec] | None:
    """Return the scenario's run and cell of a step; None for another workload.

    Raises InputError where there is no such step, or where its cell has more than a disk and a corpus.
    """
    match = STEP.fullmatch(workload)
    if match is None or Path(workload).is_file():
        return None
    request = resolve(RunOptions(name=match["scenario"], filesystem=filesystem, kernel=kernel, defaults=defaults))
    spec = request.planned()[0]
    scenario = spec.scenario
    if scenario.experiments or scenario.beside or spec.variant.script:
        raise InputError(
            f"agelab crash takes no step of {scenario.name}: its disk is not made by steps from a corpus alone"
        )
    names = [action.name for action in (*scenario.actions(), *scenario.tests)]
    if match["step"] not in names:
        raise unknown(f"step of {scenario.name}", match["step"], names)
    return request, spec


def made(
    workload: str, filesystem: str, kernel: str, defaults: Defaults, seed: int, store: Store, progress: Notify
) -> Program | None:
    """Return the program that a workload is; None for a list of calls.

    Raises AgelabError for a source that does not compile.
    """
    if not is_program(workload):
        return None
    if step := planned(workload, filesystem, kernel, defaults):
        return _of_step(workload, *step, store, progress)
    if workload == SPOOL:
        program = fileio.read_bytes(tools.obtain(store, progress)[SPOOL], fileio.PROGRAM)
        lines = f"mkdir {SPOOL}\ncd {SPOOL}\nexec {SPOOL} write {seed} {SAFE} {OPERATIONS}\n"
        return Program(f"#!/bin/sh\nset -e\n{lines}".encode(), files={f"{brought_files.TOOLS}/{SPOOL}": program})
    return Program(built(workload, store, progress))


def built(path: str, store: Store, progress: Notify) -> bytes:
    """Return a file that a guest can run. Raises AgelabError for a source that does not compile."""
    content = fileio.read_bytes(Path(path), fileio.PROGRAM)
    if not path.endswith(".c"):
        return content
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "workload.c").write_bytes(content)
        compiled = tools.obtain(store, progress, Path(directory), ("-O1", "-static", "-s"))
        return fileio.read_bytes(compiled["workload"], fileio.PROGRAM)


def _of_step(workload: str, request: RunRequest, spec: CellSpec, store: Store, progress: Notify) -> Program:
    match = STEP.fullmatch(workload)
    assert match is not None, "only a step's name is asked about"
    parts = MadeParts(request, store, progress)
    [corpus] = parts.corpora([spec], None)
    steps = [step for phase in phases(spec.scenario, corpus) if phase.name in (MAKING, AGED) for step in phase.steps]
    at = index_of(steps, match["step"], int(match["repetition"] or 1), workload)
    brought = brought_files.brought(request.selection.workload)
    programs = parts.programs(spec, common=True)
    environment = {
        "PATH": brought_files.PATH,
        "SOURCE": SOURCE,
        "SAFE": SAFE,
        **step_environment(spec),
        **brought.environment,
    }
    return Program(
        _script(steps[at : at + 1], environment),
        _script(steps[:at], environment),
        {
            **brought.files,
            **{
                f"{brought_files.TOOLS}/{name}": fileio.read_bytes(path, fileio.PROGRAM)
                for name, path in programs.items()
            },
        },
        corpus,
    )


def _script(steps: Sequence[StepPlan], environment: Mapping[str, str]) -> bytes:
    """Return a script that does the steps, each as its cell does it, and ends with the first that fails."""

    def lines() -> Iterator[str]:
        yield "#!/bin/sh"
        yield from (f"export {name}={quote(value)}" for name, value in environment.items())
        for step in steps:
            fine, within = "|".join(map(str, step.expect)), ""
            if step.cut_after:  # it does not end by itself
                fine, within = "*", f"timeout -s KILL {step.cut_after[1]:g} "
            yield f"REPETITION={step.repetition} {within}sh -ec {quote(step.run)}"
            yield f"status=$?; case $status in {fine}) ;; *) echo step {step.name}; exit $status;; esac"
            if step.sync:
                yield "sync"
        yield "exit 0"

    return "".join(f"{line}\n" for line in lines()).encode()
