"""Run the cells of runs: prepare what they need, then start them in turn, several at a time where asked for."""

import shlex
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, chdir, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agelab.base import orphans, readers
from agelab.base.errors import AgelabError, InputError, goes_on
from agelab.debian.buildroot import BuildFailed
from agelab.kernel import canonical
from agelab.kernel import resolve as resolve_kernel
from agelab.machine.disk import DriveClaim
from agelab.machine.drive.module import NoHeaders
from agelab.machine.image import DoesNotBoot
from agelab.machine.vm.hypervisor import Hypervisor, connected
from agelab.results import run_lookup
from agelab.results.result import RunPlan, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import Took, expected_cost, recent_cells
from agelab.runner.execute import cell_reuse, companion_disk, saved_guests
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.cell_boots import CellGoals
from agelab.runner.execute.cell_reuse import CellReuse
from agelab.runner.execute.disk_recipe import disk_recipe, making_command
from agelab.runner.execute.elsewhere import Elsewhere
from agelab.runner.execute.guest_launcher import CellInitramfs, GuestLauncher, boot_timeout
from agelab.runner.execute.host_timing import RunTimer
from agelab.runner.execute.profile_pass import Profiler
from agelab.runner.execute.run_plan import refuse_other_inputs, run_plan
from agelab.runner.prepare import input_data, package_questions, run_manifest
from agelab.runner.prepare.prepare import PreparedRun, ProvidedParts, prepare
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.resolve import resolve
from agelab.runner.request.run_request import RunRequest
from agelab.store import stored_disk
from agelab.store.artefacts import Store
from agelab.store.stored_disk import StoredDisk

UNFIT_KERNEL = (BuildFailed, DoesNotBoot, NoHeaders)
"""Errors that concern one kernel and say nothing of others."""
ASK_AGAIN = 5.0
"""Seconds after which is asked again how many cells may run."""


@dataclass(frozen=True)
class StartedRun:
    """A run that has its directory and its plan, and whose cells can run."""

    prepared: PreparedRun
    directory: RunDirectory
    plan: RunPlan
    companions: Mapping[int, StoredDisk]
    """Corpus seed to the disk beside those under test; empty where there is none."""
    first: int
    """Number of its first cell among those of all runs that go on together."""
    initramfs: CellInitramfs | None = None
    """What all its guests boot."""


def run(
    options: RunOptions,
    store: Store,
    progress: Progress | None = None,
    *,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
    elsewhere: Elsewhere | None = None,
) -> RunDirectory:
    """Run every cell that the options ask for, or the unfinished cells of ``begun``. Returns the finished run.

    ``claims`` are the real disks where the caller holds them, for several runs. ``elsewhere`` are hosts that run the
    cells. Raises InputError or HostError before
    anything has run; what goes wrong in a cell is its status.
    """
    with _in_directory(options):
        request = resolve(options)
        if begun:
            request = replace(request, begun=tuple(cell.name for cell in begun.plan().cells))
        return run_request(request, store, progress, begun=begun, claims=claims, elsewhere=elsewhere)


def run_kernels(
    options: RunOptions, kernels: Sequence[str], store: Store, progress: Progress | None = None
) -> dict[str, RunDirectory | AgelabError]:
    """Run the same cells on several kernels, in turns. Returns the run of each kernel's spec, or why it has none.

    Raises as ``run`` does for what concerns all of them.
    """
    if options.control or options.disk or options.real_disks:
        raise InputError(
            "several kernels take a scenario on modelled drives: no --control, --disk or real disks"
        )
    if options.until_decided:
        raise InputError("--seeds auto takes one kernel: which seeds the others have could not be decided")
    progress = progress or Progress()
    with _in_directory(options):
        specs = [canonical(kernel) for kernel in kernels]
        if twice := [spec for spec in specs if specs.count(spec) > 1]:
            raise InputError(f"--kernel {twice[0]} is named twice")
        requests = [resolve(options.changed(kernel=kernel, prove_all=False)) for kernel in kernels]
        for request in requests:  # a package that is not there is told before any kernel is made
            with suppress(*UNFIT_KERNEL):
                package_questions.ask(request, (), store, progress.stage)
        for spec in specs:  # a wrong one is told before the data of the others are made
            with suppress(*UNFIT_KERNEL):
                resolve_kernel(spec, store, progress=progress.stage)
        return dict(zip(specs, _run_all(requests, store, progress), strict=True))


def run_request(
    request: RunRequest,
    store: Store,
    progress: Progress | None = None,
    *,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
    provided: ProvidedParts | None = None,
    elsewhere: Elsewhere | None = None,
) -> RunDirectory:
    """Run a request as ``run`` does. ``provided`` parts are used in place of those that would be found or made."""
    [done] = _run_all([request], store, progress or Progress(), begun, claims, provided, elsewhere)
    if isinstance(done, AgelabError):
        raise done
    return done


def succeeded(run: RunDirectory) -> bool:
    """Return True where every cell is ok, and none disputes an earlier one."""
    ends = [run.end(number) for number in range(len(run.plan().cells))]
    return all(end is not None and end.status is Status.OK and not end.disputes for end in ends)


def _in_directory(options: RunOptions) -> "chdir[str]":
    """Go to the directory in which relative paths of the options start. Raises InputError where it is gone."""
    if not Path(options.directory).is_dir():
        raise InputError(f"the run was asked for in {options.directory}, which is not there any more")
    return chdir(options.directory)


def _run_all(
    requests: Sequence[RunRequest],
    store: Store,
    progress: Progress,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
    provided: ProvidedParts | None = None,
    elsewhere: Elsewhere | None = None,
) -> list[RunDirectory | AgelabError]:
    """Run requests that differ in their kernels alone. Returns the run of each, or why its kernel has none."""
    boot_timeout(requests[0].options.guest_clock)  # refuses a wrong setting before anything is made
    for orphan in orphans.terminate_orphans():
        progress.stage(f"ended {orphan}: the agelab that had started it was killed")
    reuse = cell_reuse.of_run(requests[0].options, store.runs, progress.stage)
    with ExitStack() as held:
        timer = held.enter_context(RunTimer()) if requests[0].options.timing else None
        unfit: dict[int, AgelabError] = {}
        prepared: list[PreparedRun] = []
        for place, request in enumerate(requests):
            try:
                prepared.append(prepare(request, store, progress, held, len(requests), claims, provided))
            except UNFIT_KERNEL as error:
                unfit[place] = error
                progress.stage(f"kernel {request.kernel} is left out: {error}")
        if not prepared:
            return list(unfit.values())
        hypervisor = held.enter_context(connected(_opened_by_guests(prepared, store)))
        runs: list[StartedRun] = []
        for one in prepared:
            first = sum(len(run.prepared.specs) for run in runs)
            runs.append(_start(one, hypervisor, store, progress, held, begun, first))
        with goes_on("; ".join(map(_resuming_command, runs))):
            _run_cells(runs, hypervisor, store, progress, timer, reuse, elsewhere)
        done = iter(runs)
        return [unfit.get(place) or next(done).directory for place, _ in enumerate(requests)]


def _resuming_command(run: StartedRun) -> str:
    """Return the command that runs what is left of a run; real disks must be named again."""
    options = run.prepared.request.options
    if options.control:
        return shlex.join(["agelab", "run", "--control", options.control, "--continue"])
    return shlex.join(["agelab", "resume", run.directory.name, *options.named_again()])


def _opened_by_guests(prepared: Sequence[PreparedRun], store: Store) -> list[Path]:
    """Return where the files of the guests are, which may be on several filesystems."""
    images = [one.image.artefact.directory for one in prepared]
    corpora = [corpus.image.parent for one in prepared for corpus in one.corpora]
    emulators = [one.emulator.artefact.directory for one in prepared]
    return list(dict.fromkeys((store.home, store.runs, *images, *corpora, *emulators)))


def _start(
    prepared: PreparedRun,
    hypervisor: Hypervisor,
    store: Store,
    progress: Progress,
    held: ExitStack,
    begun: RunDirectory | None,
    first: int,
) -> StartedRun:
    """Create the run's directory and write its plan, or check that ``begun`` has the same one.

    Where seeds are added until a question is decided, ``begun`` may have the first cells alone: then its plan grows.
    """
    companions: dict[int, StoredDisk] = {}
    if prepared.specs[0].companion:
        companions = companion_disk.obtain(prepared, hypervisor, store, progress.stage)
        for companion in companions.values():
            held.enter_context(stored_disk.in_use(companion))
    with run_lookup.creation_lock(store.runs):
        directory = begun or RunDirectory.create(store.runs, Path(prepared.request.name).stem)
        readers.restrict(directory.path, _readers(prepared, companions.values()))
        held.enter_context(directory.lock())
    plan = run_plan(directory.name, prepared)
    if begun:
        before = begun.plan()
        grows = prepared.request.options.until_decided and len(plan.cells) > len(before.cells)
        same = prepared.first(len(before.cells)) if grows else prepared
        refuse_other_inputs(before, run_plan(directory.name, same))
        if grows:
            directory.write_plan(plan)
    else:
        run_manifest.write(directory, prepared.request, prepared.specs, prepared.manifest)
        directory.write_plan(plan)
    return StartedRun(prepared, directory, plan, companions, first, CellInitramfs(prepared.image))


def _readers(prepared: PreparedRun, companions: Iterable[StoredDisk]) -> int:
    """Return who may read the run: those who may read everything that it is made of."""
    disks = [disk.artefact.directory for disk in (prepared.disk, *companions) if disk]
    corpora = [corpus.image.parent for corpus in prepared.corpora]
    made = (prepared.image.artefact.directory, *corpora, *disks)
    return prepared.request.readable_by & readers.of_made(*dict.fromkeys(made))


def _run_cells(
    runs: Sequence[StartedRun],
    hypervisor: Hypervisor,
    store: Store,
    progress: Progress,
    timer: RunTimer | None = None,
    reuse: CellReuse | None = None,
    elsewhere: Elsewhere | None = None,
) -> None:
    """Run the unfinished cells of all runs, as many at a time as the requests ask for."""
    waiting = [(run, number) for run in runs for number in run.directory.unfinished()]
    prepared = runs[0].prepared

    def slots() -> int:
        return elsewhere.slots(prepared.cell_bytes) if elsewhere else prepared.jobs

    jobs = slots()
    if (jobs > 1 or elsewhere) and len(waiting) > jobs:
        waiting = _longest_first(waiting, list(recent_cells(runs[0].directory)))
    numbers = [run.first + number for run, number in waiting]
    progress.begin_runs(prepared.request, [run.directory for run in runs], numbers, jobs)
    if timer:
        timer.begin_cells()
    cells = [
        partial(_run_cell, run, number, hypervisor, store, progress, timer, reuse, elsewhere)
        for run, number in waiting
    ]

    def abandon() -> None:
        hypervisor.abandon()
        if elsewhere:
            elsewhere.stop()

    _at_a_time(slots, cells, abandon)


def _longest_first(waiting: Sequence[tuple[StartedRun, int]], before: Took) -> list[tuple[StartedRun, int]]:
    """Return the cells by what they are expected to take, so that no long one is waited for at the end."""

    def cost(cell: tuple[StartedRun, int]) -> tuple[float, int]:
        run, number = cell
        prepared = run.prepared
        curve = prepared.request.options.curve
        return expected_cost(
            run.plan.cells[number], prepared.specs[number], prepared.corpora[number], before, curve=curve
        )

    return sorted(waiting, key=cost, reverse=True)


def _at_a_time(
    jobs: Callable[[], int], cells: Sequence[Callable[[], None]], abandon: Callable[[], None]
) -> None:
    """Run the cells in this order, as many at a time as ``jobs`` says then: other hosts come and go.

    An error or an interrupt calls ``abandon``, which ends the guests that run.
    """
    waiting, running = deque(cells), set[Future[None]]()
    with ThreadPoolExecutor(max(1, len(cells))) as pool:
        try:
            while waiting or running:
                for _ in range(min(len(waiting), jobs() - len(running))):
                    running.add(pool.submit(waiting.popleft()))
                ended, running = wait(running, ASK_AGAIN, FIRST_COMPLETED)
                for future in ended:
                    future.result()
        except BaseException:
            abandon()
            raise


def _run_cell(
    run: StartedRun,
    number: int,
    hypervisor: Hypervisor,
    store: Store,
    progress: Progress,
    timer: RunTimer | None = None,
    reuse: CellReuse | None = None,
    elsewhere: Elsewhere | None = None,
) -> None:
    """Run one cell, and keep a control file's journal of it."""
    prepared, directory, told = run.prepared, run.directory, run.first + number
    spec, line, journal = prepared.specs[number], prepared.cells[number].line, prepared.journal
    cell = run.plan.cells[number]
    if journal and line:
        journal.begin(line, spec.run_seed)
    progress.begin_cell(cell, told)
    directory.restart_cell(number)
    launcher = GuestLauncher(
        directory.cell_directory(number),
        spec,
        prepared.image,
        prepared.corpora[number],
        hypervisor,
        prepared.emulator,
        saved_guests.of_run(prepared, hypervisor, store, progress.stage),
        prepared.module,
        prepared.programs[number],
        store,
        run.initramfs,
    )
    options = prepared.request.options
    recipe = None
    if options.keep_disk:
        scale, command = input_data.scale_name(prepared.request), making_command(prepared.request, spec)
        recipe = disk_recipe(spec, prepared.image.kernel.spec, scale, command)
    readable_by = readers.of_made(directory.path)
    goals = CellGoals(
        prepared.disk,
        run.companions.get(spec.corpus_seed),
        recipe,
        options.measure,
        options.curve,
        readable_by=readable_by,
        disks_in_memory=prepared.disks_in_memory,
        host_bytes=prepared.cell_bytes,
    )

    def end_step(step: str) -> None:
        progress.end_step(told, step)
        if journal and line:
            journal.step(line, spec.run_seed, step)

    taken = timer.of_cell(launcher.directory) if timer else None
    profiler = Profiler(prepared.profiler, partial(progress.end_step, told)) if prepared.profiler else None
    end = CellRunner(
        directory,
        number,
        launcher,
        goals,
        store,
        end_step,
        taken,
        reuse,
        prepared.request.options.blocks,
        profiler,
        elsewhere,
    ).carry_out()
    progress.end_cell(cell, told, end)
    if journal and line:
        journal.end(line, spec.run_seed, end, directory.samples().get(number, []))
