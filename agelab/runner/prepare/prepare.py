"""Preparation of a run: everything its guests need is made, or found in the store."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agelab import kernel as kernel_specs
from agelab.base.errors import InputError
from agelab.data.corpus import Corpus, require_corpus
from agelab.data.history import traced
from agelab.kernel import Kernel, guest_needs
from agelab.machine import dkms, qemu
from agelab.machine import image as images
from agelab.machine.disk import DriveClaim, claim_drives
from agelab.machine.drive import module as modules
from agelab.machine.image import Image, tools
from agelab.machine.image import root as roots
from agelab.machine.qemu import Emulator
from agelab.machine.vm import host
from agelab.machine.vm.guest import Accelerator, Clock
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.phases import phases
from agelab.runner.plan.profiling import PROGRAM as PROFILER
from agelab.runner.prepare import (
    brought_files,
    capacity,
    input_data,
    job_check,
    mkfs_trial,
    package_questions,
)
from agelab.runner.prepare.capacity import RunNeeds
from agelab.runner.prepare.control_journal import ControlJournal
from agelab.runner.prepare.run_manifest import RunManifest, collect, filesystems_of, root_of
from agelab.runner.progress import Progress
from agelab.runner.request.run_request import CellRequest, RunRequest, cell_requests
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.history import Traced
from agelab.scenario.jobs import AUTO
from agelab.store import stored_disk
from agelab.store.artefacts import Store
from agelab.store.stored_disk import StoredDisk

MOST_OF_COMPANION = 0.9
"""Share of the partition beside the disk under test that data may take."""


@dataclass(frozen=True)
class ProvidedParts:
    """Parts that a capsule carries, in place of those that would be made. Guests run them; the host runs none."""

    image: Image
    module: Path | None
    """The modelled drive's, for the image's kernel."""
    programs: Mapping[str, Path]
    """Programs for the guest, by name."""
    corpora: Mapping[str, Corpus]
    """By history; "" for the corpus of a scenario without histories."""
    manifest: RunManifest


@dataclass(frozen=True)
class PreparedRun:
    """A request with everything its guests need. ``cells``, ``specs``, ``corpora`` and ``programs`` go together."""

    request: RunRequest
    cells: Sequence[CellRequest]
    specs: Sequence[CellSpec]
    disk: StoredDisk | None
    """The stored disk to start from."""
    corpora: Sequence[Corpus]
    image: Image
    emulator: Emulator
    module: Path | None
    """The modelled drive's."""
    programs: Sequence[Mapping[str, Path]]
    journal: ControlJournal | None
    manifest: RunManifest
    jobs: int
    """Cells at a time."""
    cell_bytes: int
    """Memory that a cell takes of a host, with its disks."""
    disks_in_memory: bool
    """While a cell runs, its disks lie in the host's memory."""
    saves_guests: bool
    """Guests begin as copies of saved ones."""
    profiler: Path | None = None
    """The guest's profiler, where a profile is asked for."""

    def first(self, count: int) -> "PreparedRun":
        """Return the same with its first cells alone."""
        lists = {name: getattr(self, name)[:count] for name in ("cells", "specs", "corpora", "programs")}
        return replace(self, **lists)


def prepare(
    request: RunRequest,
    store: Store,
    progress: Progress,
    held: ExitStack,
    kernels: int = 1,
    claims: tuple[DriveClaim, ...] | None = None,
    provided: ProvidedParts | None = None,
) -> PreparedRun:
    """Make or find what the cells need.

    ``held`` keeps the disks claimed and the journal locked until the last cell has ended. ``kernels`` is the number of
    such requests whose cells run side by side. ``claims`` are the real disks where the caller holds them already.
    Raises InputError, or HostError where the host has no room for the cells.
    """
    options, scenario = request.options, request.selection.scenario
    options.require_asked()
    if claims is None:
        claims = held.enter_context(claim_drives(options.disks, options.erase))
    journal = ControlJournal(request.control.path.parent) if request.control else None
    ended = held.enter_context(journal.opened(proceed=options.proceed)) if journal else {}
    carried = provided.corpora if provided else None
    if request.corpus and not carried:
        require_corpus(request.corpus)
    # Before any data are made: that takes minutes, and a wrong file, package or kernel is told at once.
    workload = request.selection.workload
    replays = any(isinstance(one, Traced) for one in request.selection.scenario.histories)
    files = brought_files.brought(workload, [traced.PROGRAM] if replays else [])
    if not provided:
        package_questions.ask(request, claims, store, progress.stage)
        roots.resolve_packages(*root_of(request), store)
    kernel = provided.image.kernel if provided else _kernel(request, store, progress)
    if not provided:
        kernel = dkms.with_modules(kernel, filesystems_of(request), store, progress.stage)
    disk = _start_disk(request, store, progress, held)
    own = input_data.user_corpus(request, carried, store, progress.stage)
    cells = cell_requests(request, input_data.shrink(request, own), claims, disk, ended)
    if journal and not cells:
        raise journal.nothing_left(ended)
    cells = [replace(cell, spec=replace(cell.spec, brought=files)) for cell in cells]
    specs = [cell.spec for cell in cells]
    _tell_lacking(kernel, specs, store, progress)
    job_check.check(specs[:1])
    corpora = input_data.corpora(request, specs, own, carried, store, progress.stage)
    _check_power_cuts(specs, corpora)
    image = provided.image if provided else _image(request, kernel, specs, store, progress)
    if not provided:
        specs = list(mkfs_trial.try_options(specs, image, store, progress.stage))
    needs = needs_of(request, specs, corpora, kernels)
    jobs = _jobs(request, needs, store, progress)
    progress.stage(needs.require(store.home, jobs))
    in_memory, where = needs.fit_in_memory(jobs, options.guest_clock)
    progress.stage(where)
    emulator = qemu.obtain(store, progress.stage)
    saves = options.guest_clock == "virtual" and options.boot == "saved"
    if saves:
        config = image.kernel.config
        unfit = emulator.unfit or guest_needs.cannot_stop_itself(image.kernel.release, config)
        if unfit:
            progress.stage(f"every guest boots in full, as with --boot full: {unfit}")
            saves = False
    modelled = any(spec.has_modelled_drive for spec in specs)
    module = None
    if modelled:
        module = provided.module if provided else modules.obtain(image.kernel, store, progress.stage)
    accelerator = _accelerator(options.guest_clock, store, progress)
    specs = [replace(spec, accelerator=accelerator) for spec in specs]
    _check_companion(specs, corpora)
    common = bool(_measures(request) or scenario.histories or scenario.has_power_cuts)
    programs = [_programs(provided, spec, store, progress, common=common) for spec in specs]
    manifest = (
        provided.manifest
        if provided
        else collect(request, specs, image.kernel, corpora, store, modelled=modelled)
    )
    return PreparedRun(
        request,
        cells,
        specs,
        disk,
        corpora,
        image,
        emulator,
        module,
        programs,
        journal,
        manifest,
        jobs,
        needs.cell_bytes,
        in_memory,
        saves,
        tools.obtain(store, progress.stage, tools.PROFILER)[PROFILER] if options.profile else None,
    )


def needs_of(
    request: RunRequest, specs: Sequence[CellSpec], corpora: Sequence[Corpus], kernels: int = 1
) -> RunNeeds:
    """Return what the cells take of the host."""
    copies = copies_of_disk(request, max((corpus.parts or 0 for corpus in corpora), default=0))
    kept = len(specs) if request.options.keep_disk else 0
    return capacity.needs(specs, corpora, copies=copies, kept=kept, kernels=kernels)


def _jobs(request: RunRequest, needs: RunNeeds, store: Store, progress: Progress) -> int:
    """Return how many cells run at a time: what was asked for, or for ``auto`` what the host can."""
    asked = request.options.jobs
    if asked != AUTO:
        return asked
    jobs, why = needs.at_once(store.home, request.options.guest_clock)
    progress.stage(f"--jobs auto: {why}")
    return jobs


def _check_power_cuts(specs: Sequence[CellSpec], corpora: Sequence[Corpus]) -> None:
    """Refuse a power cut or a failure in a repetition that there is not: only the history knows how many there are."""
    for spec, corpus in zip(specs, corpora, strict=True):
        if spec.power_cut:
            phases(spec.scenario, corpus, crash=spec.power_cut)
        if spec.failure:
            phases(spec.scenario, corpus, failure=spec.failure)


def _check_companion(specs: Sequence[CellSpec], corpora: Sequence[Corpus]) -> None:
    """Refuse data that do not fit beside the disk under test."""
    for spec, corpus in zip(specs, corpora, strict=True):
        if spec.companion and corpus.content_bytes > spec.companion_bytes * MOST_OF_COMPANION:
            raise InputError(
                f"{corpus.content_bytes} bytes of data do not fit beside the disk under test: there are "
                f"{spec.companion_bytes}",
                hint="choose --scale paper",
            )


def _kernel(request: RunRequest, store: Store, progress: Progress) -> Kernel:
    progress.stage(f"kernel {request.kernel}")
    return kernel_specs.resolve(request.kernel, store, progress=progress.stage)


def _tell_lacking(kernel: Kernel, specs: Sequence[CellSpec], store: Store, progress: Progress) -> None:
    """Say of each filesystem that the kernel lacks which kernels have it."""
    for one in filesystems_made(specs):
        if one.module_source:  # what cannot be built has been told
            continue
        if why := guest_needs.why_not(kernel.modules, one.modules, one.kernel_config):
            found = guest_needs.kernels_with(kernel, one.modules, one.kernel_config, store)
            these = f"these have it: {', '.join(found)}" if found else "no kernel in the store has it"
            progress.stage(f"{one.name}: {why}; {these}")


def _image(
    request: RunRequest, kernel: Kernel, specs: Sequence[CellSpec], store: Store, progress: Progress
) -> Image:
    return images.build(
        kernel,
        store,
        root_of(request)[1],
        proved=proved_by(request, specs),
        packages=request.packages,
        suite=request.selection.scenario.suite,
        programs={one.name: one.proof for one in request.selection.workload.programs.values() if one.proof},
        progress=progress.stage,
    )


def proved_by(request: RunRequest, specs: Sequence[CellSpec]) -> list[Filesystem] | None:
    """Return the filesystems that the image is to prove; None for all that it serves.

    An image with packages of its own is for one scenario, so it proves those of its variants.
    """
    made = filesystems_made(specs)
    if not request.options.prove_all:
        return made
    if not request.packages:
        return None
    names = {*(one.filesystem for one in request.selection.scenario.variants), *(one.name for one in made)}
    return [one for one in root_of(request)[1] if one.name in names]


def filesystems_made(specs: Sequence[CellSpec]) -> list[Filesystem]:
    """Return each filesystem that these cells make: under test, and beside it."""
    made = [one for spec in specs for one in (spec.filesystem, spec.companion) if one]
    return list({one.name: one for one in made}.values())


def _programs(
    provided: ProvidedParts | None, spec: CellSpec, store: Store, progress: Progress, *, common: bool
) -> dict[str, Path]:
    """Find or build the programs for a cell's guest: those of every guest where ``common``, and its filesystem's."""
    if provided:
        names = [*(tools.programs(tools.source_files()) if common else ()), *spec.filesystem.tools]
        return {name: path for name, path in provided.programs.items() if name in names}
    general = tools.obtain(store, progress.stage) if common else {}
    return {**general, **tools.obtain_filesystem_tools(spec.filesystem.tools, store, progress.stage)}


def _measures(request: RunRequest) -> bool:
    """Return True where anything is measured once the disk is made."""
    scenario = request.selection.scenario
    return bool(scenario.tests or scenario.measures)


def _start_disk(request: RunRequest, store: Store, progress: Progress, held: ExitStack) -> StoredDisk | None:
    """Verify the stored disk to start from, and keep it from being removed while ``held`` is open.

    Raises InputError where it does not fit these cells.
    """
    if request.options.disk is None:
        return None
    disk = stored_disk.find(store, request.options.disk)
    disk.require_slots()
    recipe, short = disk.recipe, disk.key[: stored_disk.SHORT_KEY]
    if request.options.guest_clock == "virtual" and not disk.is_repeatable:
        raise InputError(
            f"the stored disk {short} was made in the wall clock: made again it is another, with the same key",
            hint="measure it with --clock wall; or export it and import that, which has the key of its content",
        )
    wanted = {
        (variant.filesystem, layout, request.defaults)
        for variant in request.selection.variants
        for layout in request.layouts(variant)
    }
    has = (recipe.filesystem, recipe.layout, recipe.defaults)
    if wanted != {has}:
        asked = "; ".join(", ".join(words) for words in sorted(wanted))
        raise InputError(
            f"the stored disk {short} is {', '.join(has)}; asked for is {asked}",
            hint=f"name one variant with that filesystem, --layout {recipe.layout} and --defaults {recipe.defaults}",
        )
    held.enter_context(stored_disk.in_use(disk))
    progress.stage(f"verifying the stored disk {short}")
    disk.verify()
    return disk


def _accelerator(guest_clock: Clock, store: Store, progress: Progress) -> Accelerator:
    """Return what runs the guests: in the wall clock KVM, where a test guest has booted with it."""
    if guest_clock == "virtual":
        return "tcg"
    proof = host.probe_kvm(store)
    if not proof.boots:
        progress.stage(f"no KVM: {proof.detail}; the guest is emulated, its times are no machine's")
    return "kvm" if proof.boots else "tcg"


def copies_of_disk(request: RunRequest, points: int) -> int:
    """Count the copies of its disk that a cell has at once: itself, its fork or the control, the control's fork.

    Its history, if it has one, has so many ``points``.
    """
    options, scenario = request.options, request.selection.scenario
    if prepared := {one.prepare for one in scenario.experiments} - {""}:
        return 1 + len(prepared)
    if scenario.tests_at_points and options.measure:
        return 1 + 2 * points
    curve = scenario.curve if options.curve else None
    mapped = len(curve.after) if curve and curve.after != "each" else 0
    return 1 + mapped + (2 if options.measure and _measures(request) else 0)
