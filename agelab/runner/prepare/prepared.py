"""What a run needs before its first guest starts: made, or found in the store."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agelab import image as images
from agelab import kernel as kernel_specs
from agelab import stored_disk
from agelab.corpus import Corpus
from agelab.disk import claim_drives
from agelab.drive import module as modules
from agelab.errors import InputError
from agelab.image import Image, tools
from agelab.kernel import Kernel
from agelab.model.result import Status
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.phases import phases
from agelab.runner.prepare import capacity, input_data
from agelab.runner.prepare.control_journal import Journal
from agelab.runner.prepare.provided import ProvidedParts
from agelab.runner.prepare.run_manifest import RunManifest, collect
from agelab.runner.progress import Progress
from agelab.runner.request.run_request import CellRequest, RunRequest
from agelab.runner.request.run_request import cell_requests as requested
from agelab.scenario import selection
from agelab.store import Store
from agelab.stored_disk import StoredDisk
from agelab.vm import clock_library, kvm
from agelab.vm.guest import Accelerator


@dataclass(frozen=True)
class PreparedRun:
    """What a request's cells need before the first guest starts."""

    request: RunRequest
    turns: Sequence[CellRequest]
    specs: Sequence[CellSpec]
    disk: StoredDisk | None
    corpora: Sequence[Corpus]
    image: Image
    library: Path | None
    module: Path | None
    programs: Sequence[Mapping[str, Path]]
    """Of each cell."""
    journal: Journal | None
    made: RunManifest


def prepare(
    request: RunRequest,
    store: Store,
    progress: Progress,
    held: ExitStack,
    kernels: int = 1,
    provided: ProvidedParts | None = None,
) -> PreparedRun:
    """Make or find what the cells need; what takes the host's disks away from others is ``held``.

    ``kernels`` is how many requests like this one there are, each on its own: their cells run side by side.
    ``provided`` is used in place of what would be made.
    """
    # Held until the last cell has ended: nobody else takes a disk from under the run.
    scenario = request.selection.scenario
    claims = request.claims
    if claims is None:
        claims = held.enter_context(claim_drives(request.drives, request.erase))
    disk = _stored(request, store, progress, held)
    users = input_data.user_corpus(request, provided, store, progress.stage)
    shrink = input_data.shrink(request, users)
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
    corpora = input_data.obtain(request, specs, users, provided, store, progress.stage)
    for spec, corpus in zip(specs, corpora, strict=True):
        if spec.crash:  # only a history says how often its steps are repeated
            phases(spec.scenario, corpus, crash=spec.crash)
    image = provided.image if provided else _image(request, specs, store, progress)
    kernel = image.kernel
    kept = len(specs) if request.keep_disk else 0
    copies = _copies(request, corpora)
    taken = capacity.require_capacity(
        specs, corpora, store.home, at_once=request.jobs, copies=copies, kept=kept, kernels=kernels
    )
    progress.stage(taken)
    library = clock_library.obtain(store) if request.clock == "virtual" else None
    modelled = any(spec.modelled for spec in specs)
    module = _module(provided, kernel, store, progress) if modelled else None
    accelerator = _accelerator(request, store, progress)
    specs = [replace(spec, accelerator=accelerator) for spec in specs]
    for spec in specs:
        if spec.beside and corpora[0].content_bytes > spec.beside_bytes * 0.9:
            raise InputError(
                f"{corpora[0].content_bytes} bytes of data do not fit beside the disk under test: there are "
                f"{spec.beside_bytes}",
                hint="choose --scale paper",
            )
    common = bool(_measures(request) or scenario.histories or scenario.has_power_cuts)
    programs = [_programs(provided, spec, store, progress, common=common) for spec in specs]
    facts = {"modelled": modelled, "programs": any(programs)}
    made = provided.made if provided else collect(request, specs, kernel, corpora, store, **facts)
    return PreparedRun(request, turns, specs, disk, corpora, image, library, module, programs, journal, made)


def _image(request: RunRequest, specs: Sequence[CellSpec], store: Store, progress: Progress) -> Image:
    """What the guests boot."""
    progress.stage(f"kernel {request.kernel}")
    kernel = kernel_specs.resolve(request.kernel, store, progress=progress.stage)
    measured = {spec.filesystem.name: spec.filesystem for spec in specs}
    return images.build(
        kernel,
        store,
        selection.filesystems(),
        proved=None if request.prove_all else list(measured.values()),
        progress=progress.stage,
    )


def _module(provided: ProvidedParts | None, kernel: Kernel, store: Store, progress: Progress) -> Path | None:
    """The modelled drive's."""
    return provided.module if provided else modules.obtain(kernel, store, progress.stage)


def _programs(
    provided: ProvidedParts | None, spec: CellSpec, store: Store, progress: Progress, *, common: bool
) -> dict[str, Path]:
    """A cell's own programs: those that any guest may have, where something needs them, and its filesystem's."""
    if provided:
        names = [*(tools.programs(tools.source_files()) if common else ()), *spec.filesystem.tools]
        return {name: path for name, path in provided.programs.items() if name in names}
    general = tools.obtain(store, progress.stage) if common else {}
    return {**general, **tools.obtain_filesystem_tools(spec.filesystem.tools, store, progress.stage)}


def _measures(request: RunRequest) -> bool:
    """Whether something comes after the making."""
    scenario = request.selection.scenario
    return bool(scenario.tests or scenario.measures)


def _stored(request: RunRequest, store: Store, progress: Progress, held: ExitStack) -> StoredDisk | None:
    """The stored disk to start from, found sound, and kept from being removed while ``held`` is open.

    Raises InputError where it is none for these cells.
    """
    if request.disk is None:
        return None
    disk = stored_disk.find(store, request.disk)
    known, short = disk.recipe, disk.key[: stored_disk.SHORT_KEY]
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
    held.enter_context(stored_disk.in_use(disk))
    progress.stage(f"verifying the stored disk {short}")
    disk.verify()
    return disk


def _accelerator(request: RunRequest, store: Store, progress: Progress) -> Accelerator:
    """What runs the guests: in the wall clock KVM, where it is proved to work."""
    if request.clock == "virtual":
        return "tcg"
    proof = kvm.probe_kvm(store)
    if not proof.boots:
        progress.stage(f"no KVM: {proof.detail}; the guest is emulated, its times are no machine's")
    return "kvm" if proof.boots else "tcg"


def _copies(request: RunRequest, corpora: Sequence[Corpus]) -> int:
    """How many times a cell has its disk at once: itself, its fork or the control, the control's fork."""
    scenario = request.selection.scenario
    if prepared := {one.prepare for one in scenario.experiments} - {""}:
        return 1 + len(prepared)
    if scenario.tests_at_points and request.measure:
        return 1 + 2 * max(corpus.parts or 0 for corpus in corpora)
    curve = scenario.curve if request.curve else None
    points = len(curve.after) if curve and curve.after != "each" else 0
    return 1 + points + (2 if request.measure and _measures(request) else 0)
