"""A run: what is needed is made or found, then one cell after the other."""

import platform
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agelab import image as images
from agelab import kernel as kernels
from agelab import stored, tools
from agelab.corpus import Corpus
from agelab.disk import claimed
from agelab.drive import module as modules
from agelab.errors import InputError
from agelab.history import artefact
from agelab.image import Image
from agelab.model.history import Logged
from agelab.model.result import Cell, End, RunPlan, Status
from agelab.results.rundir import RunDirectory
from agelab.run import beside, room, sources
from agelab.run.boots import Machine
from agelab.run.cell import CellRunner, Wanted
from agelab.run.inputs import drive_sources, harness_hash
from agelab.run.journal import Journal
from agelab.run.recipe import recipe
from agelab.run.request import Request as Request
from agelab.run.request import cells as requested
from agelab.run.spec import CellSpec
from agelab.scenario import selection
from agelab.store import Store, key_of
from agelab.stored import StoredDisk
from agelab.vm import clock, host, kvm
from agelab.vm.guest import Accelerator, Clock
from agelab.vm.hypervisor import Hypervisor, connected

MODELS: dict[tuple[Clock, bool], str] = {
    ("virtual", False): "guest time is counted in instructions; caches and pipelines are not modelled",
    ("wall", True): "real time, on this host's processor",
    ("wall", False): "real time of an emulated processor (no KVM here): it says little about this host's",
}
"""What a reader must know of the times, by clock and by whether KVM runs the guest."""


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on: ``stage`` one line for each thing made, the rest of the cell of a number."""

    stage: Callable[[str], None]
    cell: Callable[[Cell, int], None]
    step: Callable[[int, str], None]
    ended: Callable[[Cell, int, End], None]


def carry_out(
    request: Request, store: Store, progress: Progress, begun: RunDirectory | None = None
) -> RunDirectory:
    """Run every cell of the request and return the finished run directory; of ``begun`` the cells that are left.

    Raises InputError or HostError before anything has run; what a cell does wrong is its status.
    """
    # Held until the last cell has ended: nobody else takes a disk from under the run.
    scenario = request.selection.scenario
    with claimed(request.drives, request.erase) as claims, ExitStack() as held:
        disk = _stored(request, store, progress, held)
        users = sources.users(request, store, progress.stage)
        shrink = sources.shrink(request, users)
        journal = Journal(request.control.path.parent) if request.control else None
        ended = held.enter_context(journal.opened(proceed=request.proceed)) if journal else {}
        turns = requested(request, shrink, claims, disk, ended)
        if journal and not turns:
            bad = sum(status != Status.OK for status in ended.values())
            raise InputError(
                f"{journal.path}: every test has ended: nothing is left to go on with",
                hint=f"{bad} of {len(ended)} were not ok: to do one again, remove its lines" if bad else "",
            )
        specs = [turn.spec for turn in turns]
        corpora = sources.obtain(request, specs, users, store, progress.stage)
        progress.stage(f"kernel {request.kernel}")
        kernel = kernels.resolve(request.kernel, store, progress=progress.stage)
        image = images.build(kernel, store, selection.filesystems(), progress=progress.stage)
        kept = len(specs) if request.keep_disk else 0
        copies = _copies(request, corpora)
        progress.stage(room.check(specs, corpora, store.home, at_once=request.jobs, copies=copies, kept=kept))
        library = clock.library(store) if request.clock == "virtual" else None
        modelled = any(spec.modelled for spec in specs)
        module = modules.obtain(kernel, store, progress.stage) if modelled else None
        accelerator = _accelerator(request, store, progress)
        specs = [replace(spec, accelerator=accelerator) for spec in specs]
        for spec in specs:
            if spec.beside and corpora[0].content_bytes > spec.beside_bytes * 0.9:
                raise InputError(
                    f"{corpora[0].content_bytes} bytes of data do not fit beside the disk under test: there are "
                    f"{spec.beside_bytes}",
                    hint="choose --scale paper",
                )
        programs = tools.obtain(store, progress.stage) if _measures(request) or scenario.histories else {}
        with connected() as hypervisor:
            neighbour = None
            if specs[0].beside:
                seconds = library or clock.library(store)
                command = _command(request, specs[0], "run")
                neighbour = beside.obtain(
                    specs[0], image, corpora[0], hypervisor, seconds, store, command, progress.stage
                )
                held.enter_context(stored.in_use(neighbour))
            cells = tuple(_cell(spec, image) for spec in specs)
            run = begun or RunDirectory.create(store.runs, Path(request.name).stem)
            plan = _run_plan(run, request, specs, cells, image, corpora)
            held.enter_context(run.held())
            if begun:
                _same(begun.plan(), plan)
            else:
                run.write_plan(plan)

            def carry_out_one(number: int) -> None:
                spec, line = specs[number], turns[number].line
                if journal and line:
                    journal.begin(line, spec.run_seed)
                progress.cell(cells[number], number)
                run.again(number)
                machine = Machine(
                    run.cell(number), spec, image, corpora[number], hypervisor, library, module, programs
                )
                wanted = Wanted(
                    disk, neighbour, _keeping(request, spec, image), request.measure, request.curve
                )

                def step(said: str) -> None:
                    progress.step(number, said)
                    if journal and line:
                        journal.step(line, spec.run_seed, said)

                end = CellRunner(run, number, machine, wanted, store, step).carry_out()
                progress.ended(cells[number], number, end)
                if journal and line:
                    journal.end(line, spec.run_seed, end, run.samples().get(number, []))

            # Through a process of its own a filesystem takes longest: such cells start first, and none waits for them.
            order = sorted(
                run.unfinished(), key=lambda number: "fuse" not in specs[number].filesystem.modules
            )
            _in_turn(carry_out_one, order, request.jobs, hypervisor)
        return run


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


def _in_turn(
    carry_out_one: Callable[[int], None], order: Sequence[int], jobs: int, hypervisor: Hypervisor
) -> None:
    """Do all of them in this order, so many at a time.

    When one raises or the user interrupts, the guests that run are ended.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(carry_out_one, number) for number in order]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            hypervisor.abandon()
            raise


def _measures(request: Request) -> bool:
    """Whether something comes after the making."""
    scenario = request.selection.scenario
    return bool(scenario.tests or scenario.measures)


def _stored(request: Request, store: Store, progress: Progress, held: ExitStack) -> StoredDisk | None:
    """The stored disk to start from, found sound, and kept from being removed while ``held`` is open.

    Raises InputError where it is none for these cells.
    """
    if request.disk is None:
        return None
    disk = stored.find(store, request.disk)
    known, short = disk.recipe, disk.key[: stored.SHORT]
    wanted = {
        (variant.filesystem, layout, request.defaults)
        for variant in request.selection.variants
        for layout in request.layouts(variant)
    }
    has = (known.filesystem, known.layout, known.defaults)
    if wanted != {has}:
        asked = "; ".join(", ".join(words) for words in sorted(wanted))
        raise InputError(
            f"the stored disk {short} is {', '.join(has)}; asked for is {asked}",
            hint=f"name one variant with that filesystem, --layout {known.layout} and --defaults {known.defaults}",
        )
    held.enter_context(stored.in_use(disk))
    progress.stage(f"verifying the stored disk {short}")
    disk.verify()
    return disk


def _keeping(request: Request, spec: CellSpec, image: Image) -> stored.Recipe | None:
    """What is to be known of a disk that the cell keeps, or None where it keeps none."""
    if not request.keep_disk:
        return None
    return recipe(spec, image.kernel.spec, sources.scale(request), _command(request, spec))


def _command(request: Request, spec: CellSpec, verb: str = "age") -> str:
    """What makes the same disk again."""
    history = spec.history
    variant = spec.variant.plain if isinstance(history, Logged) else spec.variant.name
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


def _accelerator(request: Request, store: Store, progress: Progress) -> Accelerator:
    """What runs the guests: in the wall clock KVM, where it is proved to work."""
    if request.clock == "virtual":
        return "tcg"
    proof = kvm.proved(store)
    if not proof.boots:
        progress.stage(f"no KVM: {proof.detail}; the guest is emulated, its times are no machine's")
    return "kvm" if proof.boots else "tcg"


def succeeded(run: RunDirectory) -> bool:
    """Whether every cell is ok."""
    ends = [run.end(number) for number in range(len(run.plan().cells))]
    return all(end is not None and end.status is Status.OK for end in ends)


def _copies(request: Request, corpora: Sequence[Corpus]) -> int:
    """How many times a cell has its disk at once: itself, its fork or the control, the control's fork."""
    scenario = request.selection.scenario
    if prepared := {one.prepare for one in scenario.experiments} - {""}:
        return 1 + len(prepared)
    if scenario.measured_on_the_way and request.measure:
        return 1 + 2 * max(corpus.parts or 0 for corpus in corpora)
    curve = scenario.curve if request.curve else None
    points = len(curve.after) if curve and curve.after != "each" else 0
    return 1 + points + (2 if request.measure and _measures(request) else 0)


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
    request: Request,
    specs: Sequence[CellSpec],
    cells: tuple[Cell, ...],
    image: Image,
    corpora: Sequence[Corpus],
) -> RunPlan:
    scenario = request.selection.scenario
    read = {corpus.sha256: corpus.description for corpus in corpora}
    together = min(request.jobs, len(cells))
    beside = request.clock == "wall" and together > 1
    disturbed = f"; {together} cells at a time, which disturbed each other" if beside else ""
    return RunPlan(
        run=run.name,
        scenario=scenario.name,
        scale=sources.scale(request),
        clock=request.clock,
        cells=cells,
        provenance={
            "kernel": f"{image.kernel.spec} = {image.kernel.release} ({image.kernel.version})",
            "image": image.key,
            "image_content": image.content,
            "corpus": "; ".join(read.values()),
            "corpus_sha256": "; ".join(read),
            "harness": harness_hash(),
            "scenario": key_of(scenario.model_dump(mode="json", exclude={"variants", "traces"})),
            "profiles": key_of([_profiles(spec) for spec in specs]),
            "vcpus": request.vcpus,
            "qemu": host.qemu(),
            "host": f"{platform.system()} {platform.release()} {platform.machine()}",
            "accelerator": cells[0].accelerator,
            "model": MODELS[request.clock, cells[0].accelerator == "kvm"] + disturbed,
        },
        histories={
            spec.variant.history: artefact.report(corpus).model_dump(mode="json", by_alias=True)
            for spec, corpus in zip(specs, corpora, strict=True)
            if spec.variant.history
        },
        unstated=scenario.unstated,
        command=dict(request.command),
    )
