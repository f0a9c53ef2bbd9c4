"""Preparation of a run: everything its guests need is made, or found in the store."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agelab.base import atomic, confine, process
from agelab.base.errors import InputError, Notify
from agelab.base.plain_path import temp_parent
from agelab.base.process import ProcessFailed, SideBySide, TimedOut
from agelab.data.corpus import Corpus
from agelab.data.history import traced
from agelab.kernel import guest_needs
from agelab.machine import qemu
from agelab.machine.disk import DriveClaim, claim_drives
from agelab.machine.image import Image, tools
from agelab.machine.qemu import Emulator
from agelab.machine.vm import host
from agelab.machine.vm.guest import Accelerator, Clock
from agelab.runner.plan.cell_spec import CellSpec, memory_of_small_files
from agelab.runner.plan.guest_plan import step_environment, too_small
from agelab.runner.plan.passes import PROFILER
from agelab.runner.plan.phases import phases
from agelab.runner.plan.unhonoured import unhonoured
from agelab.runner.prepare import brought_files, capacity
from agelab.runner.prepare.control_journal import ControlJournal
from agelab.runner.prepare.parts import Parts, tell_lacking
from agelab.runner.prepare.run_manifest import RunManifest
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import CellRequest, RunRequest, cell_requests
from agelab.scenario import job_files
from agelab.scenario.guest_places import JOBS, VARIABLES
from agelab.scenario.history import Traced
from agelab.scenario.jobs import AUTO
from agelab.scenario.step import Action
from agelab.store import stored_disk
from agelab.store.artefacts import Store
from agelab.store.stored_disk import StoredDisk

CHECK_SECONDS = 20.0
CHECK_LINES = 3
"""Lines of the program to quote."""


def check_jobs(specs: Sequence[CellSpec]) -> None:
    """Raise InputError, with the program's own words, for a job file or arguments that it refuses."""
    wrong = []
    for spec in specs:
        for action in (*spec.scenario.actions(), *spec.scenario.tests):
            if action.program and (why := _refusal(action, spec)):
                wrong.append(f"step {action.name}: {action.job or 'arguments'}: {why}")
    if wrong:
        raise InputError("\n".join(dict.fromkeys(wrong)))


def _refusal(action: Action, spec: CellSpec) -> str:
    """Return what the program says against a step's job file; empty where it takes it, or the host lacks it."""
    program = spec.workload.programs[action.program or ""]
    if not program.check or process.which(program.check[0]) is None:
        return ""
    with atomic.temp_dir(temp_parent()) as directory:
        place = directory.resolve()
        for path, content in spec.brought.files.items():
            top, _, name = path.partition("/")
            if top == JOBS:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
        job = place / Path(action.job).name
        guests = spec.brought.environment  # paths of the guest
        env = {name: value for name, value in step_environment(spec).items() if name not in guests}
        env |= action.environment
        argv = [word.replace("{job}", str(job)) for word in program.check if action.job or word != "{job}"]
        argv += job_files.words(action.arguments, {**VARIABLES, **guests, **env})
        try:
            confine.run(argv, read=[place], env=env, timeout=CHECK_SECONDS)
        except (ProcessFailed, TimedOut) as error:
            output = error.stderr if isinstance(error, ProcessFailed) else str(error)
            lines = [line.strip() for line in output.replace(str(job), job.name).splitlines() if line.strip()]
            return " / ".join(lines[:CHECK_LINES])[:400] or f"{program.name} refuses it"
    return ""


MOST_OF_COMPANION = 0.9
"""Share of the partition beside the disk under test that data may take."""


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
    schedule: Path | None = None
    """The library that shakes the guests' schedule, or by which their processors take turns."""

    def first(self, count: int) -> "PreparedRun":
        """Return the same with its first cells alone."""
        lists = {name: getattr(self, name)[:count] for name in ("cells", "specs", "corpora", "programs")}
        return replace(self, **lists)


def prepare(
    request: RunRequest,
    parts: Parts,
    store: Store,
    progress: Progress,
    held: ExitStack,
    kernels: int = 1,
    claims: tuple[DriveClaim, ...] | None = None,
) -> PreparedRun:
    """Make or find what the cells need.

    ``held`` keeps the disks claimed and the journal locked until the last cell has ended. ``kernels`` is the number of
    such requests whose cells run side by side. ``claims`` are the real disks where the caller holds them already.
    Raises InputError, or HostError where the host has no room for the cells.
    """
    options, scenario, say = request.options, request.selection.scenario, progress.stage
    options.require_asked()
    answers = held.enter_context(store.recording())
    if claims is None:
        claims = held.enter_context(claim_drives(options.disks, options.erase))
    journal = ControlJournal(request.control.path.parent) if request.control else None
    ended = held.enter_context(journal.opened(proceed=options.proceed)) if journal else {}
    # Before any data are made: that takes minutes, and a wrong file, package or kernel is told at once.
    replays = any(isinstance(history, Traced) for history in scenario.histories)
    files = brought_files.brought(request.selection.workload, [traced.PROGRAM] if replays else [])
    parts.require(claims)
    beside = held.enter_context(SideBySide())
    suite = options.suite_of_qemu
    beside.begin(partial(qemu.obtain, store, say, suite))
    common = bool(scenario.tests or scenario.measures or scenario.histories or scenario.has_power_cuts)
    parts.begin(beside, common=common)
    kernel = parts.kernel()
    disk = _start_disk(request, store, progress, held)
    own = parts.own_corpus() if request.corpus else None
    shrink = request.shrink(own)
    cells = cell_requests(request, shrink, claims, disk, ended)
    if journal and not cells:
        raise journal.nothing_left(ended)
    more = memory_of_small_files(own) if own else 0
    cells = [replace(cell, spec=replace(cell.spec, brought=files, set_aside=more)) for cell in cells]
    specs: Sequence[CellSpec] = [cell.spec for cell in cells]
    tell_too_small(specs, say)
    tell_lacking(kernel, specs, store, say)
    if priced := next((spec for spec in specs if spec.has_modelled_drive and spec.copy_prices), None):
        guest_needs.require_probes(kernel.release, kernel.config, priced.machine.name)
    for name, why in unhonoured(specs).items():
        say(f"warning: {name} runs without {why}")
    check_jobs(specs[:1])
    modelled = any(spec.has_modelled_drive for spec in specs)
    if modelled:
        beside.begin(partial(parts.module, kernel))
    corpora = parts.corpora(specs, own)
    for spec, corpus in zip(specs, corpora, strict=True):
        if spec.failure:  # in a repetition that there is not: only the history knows how many there are
            phases(spec.scenario, corpus, failure=spec.failure)
    image, specs = parts.image(kernel, specs)
    needs = capacity.needs_of(request, specs, corpora, kernels)
    jobs = options.jobs
    if jobs == AUTO:
        jobs, why = needs.at_once(store.home, options.guest_clock)
        say(f"--jobs auto: {why}")
    say(needs.require(store.home, jobs))
    in_memory, where = needs.fit_in_memory(jobs, options.guest_clock)
    say(where)
    emulator = qemu.obtain(store, say, suite)
    accelerator = _accelerator(options.guest_clock, store, progress)
    specs = [replace(spec, accelerator=accelerator) for spec in specs]
    _check_companion(specs, corpora)
    return PreparedRun(
        request=request,
        cells=cells,
        specs=specs,
        disk=disk,
        corpora=corpora,
        image=image,
        emulator=emulator,
        saves_guests=_saves_guests(options, image, emulator, say),
        module=parts.module(kernel) if modelled else None,
        programs=[parts.programs(spec, common=common) for spec in specs],
        journal=journal,
        manifest=parts.manifest(specs, image, corpora, answers, modelled=modelled),
        jobs=jobs,
        cell_bytes=needs.cell_bytes,
        disks_in_memory=in_memory,
        profiler=tools.obtain(store, say, tools.PROFILER)[PROFILER] if options.profile else None,
        schedule=_schedule_library(options, store, emulator, say),
    )


def _schedule_library(options: RunOptions, store: Store, emulator: Emulator, say: Notify) -> Path | None:
    """Return the library that decides the guests' schedule, where one does."""
    if options.takes_turns:
        return qemu.turns_library(store, emulator, say)
    return qemu.schedule_library(store, emulator, say) if options.schedule else None


def _saves_guests(options: RunOptions, image: Image, emulator: Emulator, say: Notify) -> bool:
    """Return whether guests begin as copies of saved ones; where these cannot be made, say why."""
    if options.in_wall_clock or options.boot != "saved" or options.takes_turns:
        return False
    unfit = emulator.unfit or guest_needs.cannot_stop_itself(image.kernel.release, image.kernel.config)
    if unfit:
        say(f"every guest boots in full, as with --boot full: {unfit}")
    return not unfit


def _check_companion(specs: Sequence[CellSpec], corpora: Sequence[Corpus]) -> None:
    """Refuse data that do not fit beside the disk under test."""
    for spec, corpus in zip(specs, corpora, strict=True):
        if spec.companion and corpus.content_bytes > spec.companion_bytes * MOST_OF_COMPANION:
            raise InputError(
                f"{corpus.content_bytes} bytes of data do not fit beside the disk under test: there are "
                f"{spec.companion_bytes}",
                hint="choose --scale paper",
            )


def tell_too_small(specs: Sequence[CellSpec], say: Notify) -> None:
    """Say of each filesystem for which the disk is too small how large it must be. Raises InputError if all are."""
    small = [why for spec in specs if (why := too_small(spec))]
    if small and len(small) == len(specs):
        raise InputError(
            "; ".join(dict.fromkeys(small)), hint="make the disk larger: disk.mib of the scenario, or --scale paper"
        )
    for why in dict.fromkeys(small):
        say(f"{why}: such cells are not run")


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
    asked_for = {
        (variant.filesystem, layout, request.defaults)
        for variant in request.selection.variants
        for layout in request.layouts(variant)
    }
    has = (recipe.filesystem, recipe.layout, recipe.defaults)
    if asked_for != {has}:
        asked = "; ".join(", ".join(words) for words in sorted(asked_for))
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
        progress.stage(f"no KVM: {proof.detail}; the guest is emulated, its times belong to no real machine")
    return "kvm" if proof.boots else "tcg"
