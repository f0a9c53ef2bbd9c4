"""A run: what is needed is made or found, then one cell after the other."""

import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agelab import corpus as corpora
from agelab import image as images
from agelab import kernel as kernels
from agelab.corpus import Corpus, CorpusSpec
from agelab.disk import Claim, DriveSpec, claimed
from agelab.drive import module as modules
from agelab.errors import HostError, InputError
from agelab.image import Image
from agelab.model.base import Defaults, Layout
from agelab.model.machine import Machine
from agelab.model.result import Cell, End, RunPlan, Status
from agelab.results.rundir import RunDirectory
from agelab.run.cell import CellRunner
from agelab.run.plan import MIB, CellSpec
from agelab.scenario import selection
from agelab.scenario.selection import Selection
from agelab.store import Store
from agelab.vm import clock, host, kvm
from agelab.vm.guest import Accelerator, Clock
from agelab.vm.hypervisor import connected

HEADROOM = 512 * MIB
"""Bytes to leave on the host beside a cell's disk, and beside its memory (QEMU's own is in it)."""


MODELS: dict[tuple[Clock, bool], str] = {
    ("virtual", False): "guest time is counted in instructions; caches and pipelines are not modelled",
    ("wall", True): "real time, on this host's processor",
    ("wall", False): "real time of an emulated processor (no KVM here): it says little about this host's",
}
"""What a reader must know of the times, by clock and by whether KVM runs the guest."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    name: str
    selection: Selection
    machine: Machine
    layout: Layout
    drives: tuple[DriveSpec, ...]
    """Drives in place of the scenario's; empty for those."""
    erase: tuple[str, ...]
    """Serials or tokens of real disks whose content may be lost."""
    clock: Clock
    vcpus: int
    kernel: str
    scale: Literal["quick", "paper"]
    run_seeds: tuple[int, ...]
    corpus_seed: int
    corpus: Path | None
    """The user's own data instead of the seeded stand-in; every size of the scenario follows its size."""
    defaults: Defaults


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on: ``stage`` one line for each thing made, ``cell`` and ``step`` the rest."""

    stage: Callable[[str], None]
    cell: Callable[[Cell, int], None]
    step: Callable[[str], None]
    ended: Callable[[Cell, End], None]


def carry_out(request: Request, store: Store, progress: Progress) -> RunDirectory:
    """Run every cell of the request and return the finished run directory.

    Raises InputError or HostError before anything has run; what a cell does wrong is its status.
    """
    # Held until the last cell has ended: nobody else takes a disk from under the run.
    with claimed(request.drives, request.erase) as claims:
        users = _users_corpus(request, store, progress)
        shrink = _shrink(request, users)
        specs = _specs(request, shrink, claims)
        corpus = users or _seeded_corpus(request, store, progress)
        progress.stage(f"kernel {request.kernel}")
        kernel = kernels.resolve(request.kernel, store)
        image = images.build(kernel, store, selection.filesystems(), progress=progress.stage)
        _room(specs, corpus, store)
        library = clock.library(store) if request.clock == "virtual" else None
        modelled = any(spec.disk.modelled for spec in specs)
        module = modules.obtain(kernel, store, progress.stage) if modelled else None
        accelerator = _accelerator(request, store, progress)
        specs = [replace(spec, accelerator=accelerator) for spec in specs]
        run = RunDirectory.create(store.runs, Path(request.name).stem)
        cells = tuple(_cell(spec, image) for spec in specs)
        run.write_plan(_run_plan(run, request, cells, image, corpus))
        with connected() as hypervisor:
            for number, (spec, cell) in enumerate(zip(specs, cells, strict=True)):
                progress.cell(cell, number)
                runner = CellRunner(
                    run, number, spec, image, corpus, hypervisor, library, module, progress.step
                )
                progress.ended(cell, runner.carry_out())
        return run


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


def _specs(request: Request, shrink: float, claims: tuple[Claim, ...]) -> list[CellSpec]:
    """The cells. Raises InputError where their drives cannot be had or do not hold what they must."""
    scenario = request.selection.scenario
    specs = [
        CellSpec(
            scenario=scenario,
            variant=variant,
            filesystem=selection.filesystem(variant.filesystem),
            shrink=shrink,
            defaults=request.defaults,
            run_seed=seed,
            corpus_seed=request.corpus_seed,
            machine=request.machine,
            layout=request.layout,
            drives=request.drives,
            claims=claims,
            clock=request.clock,
            vcpus=request.vcpus,
        )
        for variant in request.selection.variants
        for seed in request.run_seeds
    ]
    for spec in specs:
        spec.disk  # noqa: B018 - it is worked out when it is first asked for
    return specs


def _users_corpus(request: Request, store: Store, progress: Progress) -> Corpus | None:
    """The user's own source data, if there is any."""
    if request.corpus is None:
        return None
    progress.stage(f"corpus {request.corpus}")
    corpus = corpora.from_user(request.corpus, store)
    if not corpus.content_bytes:
        raise InputError(f"{request.corpus} holds no data: there is nothing to copy")
    return corpus


def _shrink(request: Request, users: Corpus | None) -> float:
    """How many times smaller than the study's the sizes are."""
    scenario = request.selection.scenario
    if users:
        return scenario.corpus.mib.value * MIB / users.content_bytes
    return scenario.scales[request.scale].shrink


def _seeded_corpus(request: Request, store: Store, progress: Progress) -> Corpus:
    """The stand-in for the study's source data."""
    wanted = request.selection.scenario.corpus
    size = int(wanted.mib.value * MIB / _shrink(request, None))
    progress.stage(f"corpus {wanted.kind}, {size / 1e6:.0f} MB, seed {request.corpus_seed}")
    return corpora.make(CorpusSpec(kind=wanted.kind, bytes=size, seed=request.corpus_seed), store)


def _room(specs: list[CellSpec], corpus: Corpus, store: Store) -> None:
    """Say before the first cell that its disk or its memory would not fit: a full host kills QEMU in the middle."""
    needed = max(sum(spec.disk.backing) for spec in specs) + HEADROOM
    free = shutil.disk_usage(store.home).free
    if free < needed:
        raise HostError(
            f"{store.home} has {free / 1e9:.1f} GB free, a cell's disk needs {needed / 1e9:.1f} GB",
            hint="free some space, or move the store with AGELAB_HOME=<directory>",
        )
    memory = max(spec.memory_mib(corpus) for spec in specs) * MIB + HEADROOM
    available = host.memory_available()
    if available < memory:
        raise HostError(
            f"this host has {available / 1e9:.1f} GB of memory available, a cell needs {memory / 1e9:.1f} GB",
            hint="end something that uses memory, or choose a smaller scale",
        )


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


def _run_plan(
    run: RunDirectory, request: Request, cells: tuple[Cell, ...], image: Image, corpus: Corpus
) -> RunPlan:
    return RunPlan(
        run=run.name,
        scenario=request.selection.scenario.name,
        scale="corpus" if request.corpus else request.scale,
        clock=request.clock,
        cells=cells,
        provenance={
            "kernel": f"{image.kernel.spec} = {image.kernel.release} ({image.kernel.version})",
            "image": image.key,
            "image_content": image.content,
            "corpus": corpus.description,
            "corpus_sha256": corpus.sha256,
            "qemu": host.qemu(),
            "host": f"{platform.system()} {platform.release()} {platform.machine()}",
            "accelerator": cells[0].accelerator,
            "model": MODELS[request.clock, cells[0].accelerator == "kvm"],
        },
    )
