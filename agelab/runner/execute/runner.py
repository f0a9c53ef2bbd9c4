"""A run: what is needed is made or found, then one cell after the other."""

import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agelab import stored_disk
from agelab.buildroot import BuildFailed
from agelab.corpus import Corpus
from agelab.drive.module import NoHeaders
from agelab.errors import AgelabError, InputError
from agelab.history import artefact
from agelab.image import DoesNotBoot, Image
from agelab.model.history import Logged
from agelab.model.result import Cell, RunKernel, RunPlan, Status
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import companion_disk
from agelab.runner.execute.boot import GuestLauncher, boot_timeout
from agelab.runner.execute.cell import CellGoals, CellRunner
from agelab.runner.plan.cell_inputs import drive_sources, harness_hash
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.prepare import input_data
from agelab.runner.prepare.disk_recipe import disk_recipe
from agelab.runner.prepare.prepared import PreparedRun, prepare
from agelab.runner.prepare.provided import ProvidedParts
from agelab.runner.prepare.run_manifest import write as keep_made
from agelab.runner.progress import Progress
from agelab.runner.request.run_request import RunRequest as RunRequest
from agelab.store import Store, key_of
from agelab.stored_disk import StoredDisk
from agelab.vm import clock_library, host
from agelab.vm.guest import Clock
from agelab.vm.hypervisor import Hypervisor, connected

MODELS: dict[tuple[Clock, bool], str] = {
    ("virtual", False): "guest time is counted in instructions; caches and pipelines are not modelled",
    ("wall", True): "real time, on this host's processor",
    ("wall", False): "real time of an emulated processor (no KVM here): it says little about this host's",
}
"""What a reader must know of the times, by clock and by whether KVM runs the guest."""


@dataclass(frozen=True)
class StartedRun:
    """A run whose cells can be carried out."""

    ready: PreparedRun
    run: RunDirectory
    cells: tuple[Cell, ...]
    neighbour: StoredDisk | None
    first: int
    """Its cells are told of by their numbers from here on."""


def carry_out(
    request: RunRequest,
    store: Store,
    progress: Progress,
    begun: RunDirectory | None = None,
    provided: ProvidedParts | None = None,
) -> RunDirectory:
    """Run every cell of the request and return the finished run directory; of ``begun`` the cells that are left.

    Raises InputError or HostError before anything has run; what a cell does wrong is its status.
    """
    [run] = carry_out_all([request], store, progress, begun, provided)
    if isinstance(run, AgelabError):
        raise run
    return run


UNFIT = (BuildFailed, DoesNotBoot, NoHeaders)
"""What is wrong with one kernel, and says nothing of the others."""


def carry_out_all(
    requests: Sequence[RunRequest],
    store: Store,
    progress: Progress,
    begun: RunDirectory | None = None,
    provided: ProvidedParts | None = None,
) -> list[RunDirectory | AgelabError]:
    """A run for each request, or why its kernel has none; their cells take turns.

    The requests differ in their kernels alone. Raises as ``carry_out`` for what concerns all of them.
    """
    boot_timeout(requests[0].clock)  # before anything is made
    with ExitStack() as held:
        unfit: dict[int, AgelabError] = {}
        ready: list[PreparedRun] = []
        for place, request in enumerate(requests):
            try:
                ready.append(prepare(request, store, progress, held, len(requests), provided))
            except UNFIT as error:
                unfit[place] = error
                progress.stage(f"kernel {request.kernel} is left out: {error}")
        if not ready:
            return list(unfit.values())
        hypervisor = held.enter_context(connected())
        runs: list[StartedRun] = []
        for one in ready:
            first = sum(len(run.cells) for run in runs)
            runs.append(_begin(one, hypervisor, store, progress, held, begun, first))
        turns = [(run, number) for run in runs for number in run.run.unfinished()]
        # Through a process of its own a filesystem takes longest: such cells start first, and none waits for them.
        turns.sort(key=lambda turn: "fuse" not in turn[0].ready.specs[turn[1]].filesystem.modules)
        waiting = [run.first + number for run, number in turns]
        progress.begin_runs(ready[0].request, [run.run for run in runs], waiting)
        works = [partial(_carry_out_one, run, number, hypervisor, store, progress) for run, number in turns]
        _in_turn(works, requests[0].jobs, hypervisor)
        ran = iter(runs)
        return [unfit.get(place) or next(ran).run for place, _ in enumerate(requests)]


def _begin(
    ready: PreparedRun,
    hypervisor: Hypervisor,
    store: Store,
    progress: Progress,
    held: ExitStack,
    begun: RunDirectory | None,
    first: int,
) -> StartedRun:
    """The run directory of a new run, or of ``begun``, with its plan."""
    request, specs, image, corpora = ready.request, ready.specs, ready.image, ready.corpora
    neighbour = None
    if specs[0].beside:
        seconds = ready.library or clock_library.obtain(store)
        command = _command(request, specs[0], "run")
        neighbour = companion_disk.obtain(
            specs[0], image, corpora[0], hypervisor, seconds, store, command, progress.stage
        )
        held.enter_context(stored_disk.in_use(neighbour))
    cells = tuple(_cell(spec, image) for spec in specs)
    with run_lookup.creation_lock(store.runs):
        run = begun or RunDirectory.create(store.runs, Path(request.name).stem)
        held.enter_context(run.lock())
    plan = _run_plan(run, request, specs, cells, image, corpora)
    if begun:
        _same(begun.plan(), plan)
    else:
        keep_made(run, request, specs, ready.made)
        run.write_plan(plan)
    return StartedRun(ready, run, cells, neighbour, first)


def _carry_out_one(
    begun: StartedRun, number: int, hypervisor: Hypervisor, store: Store, progress: Progress
) -> None:
    """Carry out one cell of a run."""
    ready, run, cell = begun.ready, begun.run, begun.cells[number]
    request, spec, line, journal = ready.request, ready.specs[number], ready.turns[number].line, ready.journal
    told = begun.first + number
    if journal and line:
        journal.begin(line, spec.run_seed)
    progress.begin_cell(cell, told)
    run.restart_cell(number)
    machine = GuestLauncher(
        run.cell_directory(number),
        spec,
        ready.image,
        ready.corpora[number],
        hypervisor,
        ready.library,
        ready.module,
        ready.programs[number],
    )
    keeping = _keeping(request, spec, ready.image)
    wanted = CellGoals(ready.disk, begun.neighbour, keeping, request.measure, request.curve)

    def step(said: str) -> None:
        progress.end_step(told, said)
        if journal and line:
            journal.step(line, spec.run_seed, said)

    end = CellRunner(run, number, machine, wanted, store, step).carry_out()
    progress.end_cell(cell, told, end)
    if journal and line:
        journal.end(line, spec.run_seed, end, run.samples().get(number, []))


def _same(begun: RunPlan, now: RunPlan) -> None:
    """Refuse to go on with other inputs than those that a run was begun with. Raises InputError."""
    before, after = ({"cells": plan.cells, **plan.provenance} for plan in (begun, now))
    other = [name for name in after if name != "host" and before.get(name) != after[name]]
    if other:
        raise InputError(
            f"{begun.run} was begun with other inputs ({', '.join(other)}): what it has and what is left would not "
            "belong together",
            hint="begin a new run",
        )


def _in_turn(works: Sequence[Callable[[], None]], jobs: int, hypervisor: Hypervisor) -> None:
    """Do all of them in this order, so many at a time.

    When one raises or the user interrupts, the guests that run are ended.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work) for work in works]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            hypervisor.abandon()
            raise


def _keeping(request: RunRequest, spec: CellSpec, image: Image) -> stored_disk.DiskRecipe | None:
    """What is to be known of a disk that the cell keeps, or None where it keeps none."""
    if not request.keep_disk:
        return None
    return disk_recipe(spec, image.kernel.spec, input_data.scale_name(request), _command(request, spec))


def _command(request: RunRequest, spec: CellSpec, verb: str = "age") -> str:
    """What makes the same disk again."""
    history = spec.history
    variant = spec.variant.plain_name if isinstance(history, Logged) else spec.variant.name
    words = ["agelab", verb, f"{spec.scenario.name}-{variant}"]
    if request.control:
        words = ["agelab", verb, "--control", request.name]
    elif request.name.endswith(".toml"):
        words = ["agelab", verb, request.name, "--filesystem", spec.filesystem.name]
    words += ["--kernel", request.kernel, "--scale", request.scale, "--seeds", str(spec.run_seed)]
    words += ["--corpus-seed", str(spec.corpus_seed), "--machine", spec.machine.name]
    words += ["--layout", spec.layout, "--defaults", spec.defaults]
    words += ["--disks", ",".join(map(str, request.drives))] if request.drives else []
    words += ["--corpus", str(request.corpus)] if request.corpus else []
    words += ["--log", history.log] if isinstance(history, Logged) else []
    words += ["--curve"] if request.curve else []
    words += ["--clock", request.clock] if request.clock == "wall" else []
    return shlex.join(words)


def succeeded(run: RunDirectory) -> bool:
    """Whether every cell is ok."""
    ends = [run.end(number) for number in range(len(run.plan().cells))]
    return all(end is not None and end.status is Status.OK for end in ends)


def _cell(spec: CellSpec, image: Image) -> Cell:
    return Cell(
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        kernel=image.kernel.release,
        machine=spec.machine.name,
        drives=spec.disk.specs,
        accelerator=spec.accelerator,
        defaults=spec.defaults,
        seed=spec.run_seed,
    )


def _profiles(spec: CellSpec) -> list[Any]:
    """What tells a cell from others of its scenario."""
    drives = [drive.profile.model_dump(mode="json") if drive.profile else None for drive in spec.disk.drives]
    models = (spec.variant, spec.filesystem, spec.machine)
    return [*(model.model_dump(mode="json") for model in models), *drives, drive_sources()]


def _run_plan(
    run: RunDirectory,
    request: RunRequest,
    specs: Sequence[CellSpec],
    cells: tuple[Cell, ...],
    image: Image,
    corpora: Sequence[Corpus],
) -> RunPlan:
    scenario = request.selection.scenario
    read = {corpus.sha256: corpus.description for corpus in corpora}
    together = min(request.jobs, len(cells))
    beside = request.clock == "wall" and together > 1
    kernel = RunKernel(spec=image.kernel.spec, release=image.kernel.release, version=image.kernel.version)
    disturbed = f"; {together} cells at a time, which disturbed each other" if beside else ""
    return RunPlan(
        run=run.name,
        scenario=scenario.name,
        scale=input_data.scale_name(request),
        clock=request.clock,
        cells=cells,
        kernel=kernel,
        provenance={
            "kernel": str(kernel),
            "image": image.key,
            "image_content": image.content,
            "corpus": "; ".join(read.values()),
            "corpus_sha256": "; ".join(read),
            "harness": harness_hash(),
            "scenario": key_of(scenario.model_dump(mode="json", exclude={"variants", "traces"})),
            "profiles": key_of([_profiles(spec) for spec in specs]),
            "vcpus": request.vcpus,
            "qemu": host.qemu_version(),
            "host": host.description(),
            "accelerator": cells[0].accelerator,
            "model": MODELS[request.clock, cells[0].accelerator == "kvm"] + disturbed,
        },
        histories={
            spec.variant.history: artefact.read_report(corpus).model_dump(mode="json", by_alias=True)
            for spec, corpus in zip(specs, corpora, strict=True)
            if spec.variant.history
        },
        unstated=scenario.unstated,
        command=dict(request.command),
    )
