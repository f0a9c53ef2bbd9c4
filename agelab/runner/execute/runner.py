"""Run the cells of runs: prepare what they need, then start them in turn, several at a time where asked for."""

import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, chdir, contextmanager, suppress
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
from agelab.runner.execute import answers, companion_disk
from agelab.runner.execute.answers import CellReuse, Elsewhere
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.cell_parts import GuestSlots
from agelab.runner.execute.companion_disk import disk_recipe, making_command
from agelab.runner.execute.guests import GuestLauncher, RunGuests, boot_timeout
from agelab.runner.execute.host_timing import RunTimer
from agelab.runner.execute.passes import Profiler
from agelab.runner.execute.phases import CellGoals
from agelab.runner.execute.run_plan import refuse_other_inputs, run_plan
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.parts import CarriedParts, MadeParts, ask_packages
from agelab.runner.prepare.prepare import PreparedRun, prepare
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, resolve
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
    guests: RunGuests


def run(
    options: RunOptions,
    store: Store,
    progress: Progress | None = None,
    *,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
) -> RunDirectory:
    """Run every cell that the options ask for, or the unfinished cells of ``begun``. Returns the finished run.

    ``claims`` are the real disks where the caller holds them, for several runs. Raises InputError or HostError before
    anything has run; what goes wrong in a cell is its status.
    """
    with asked(options, begun) as request:
        return run_request(request, store, progress, begun=begun, claims=claims)


@contextmanager
def asked(options: RunOptions, begun: RunDirectory | None = None) -> Iterator[RunRequest]:
    """Yield the request that options make, in the directory in which their relative paths start.

    ``begun`` is the run that goes on. Raises InputError where the directory is gone, and as ``resolve`` does.
    """
    if not Path(options.directory).is_dir():
        raise InputError(f"the run was asked for in {options.directory}, which is not there any more")
    with chdir(options.directory):
        request = resolve(options)
        yield replace(request, begun=tuple(cell.name for cell in begun.plan().cells)) if begun else request


def run_kernels(
    options: RunOptions, kernels: Sequence[str], store: Store, progress: Progress | None = None
) -> dict[str, RunDirectory | AgelabError]:
    """Run the same cells on several kernels, in turns. Returns the run of each kernel's spec, or why it has none.

    Raises as ``run`` does for what concerns all of them.
    """
    if options.control or options.disk or options.real_disks:
        raise InputError("several kernels take a scenario on modelled drives: no --control, --disk or real disks")
    if options.until_decided:
        raise InputError("--seeds auto takes one kernel: which seeds the others have could not be decided")
    progress = progress or Progress()
    with asked(options) as request:
        specs = [canonical(kernel) for kernel in kernels]
        if twice := [spec for spec in specs if specs.count(spec) > 1]:
            raise InputError(f"--kernel {twice[0]} is named twice")
        requests = [request.on_kernel(kernel) for kernel in kernels]
        for request in requests:  # a package that is not there is told before any kernel is made
            with suppress(*UNFIT_KERNEL):
                ask_packages(request, (), store, progress.stage)
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
    provided: CarriedParts | None = None,
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


def _run_all(
    requests: Sequence[RunRequest],
    store: Store,
    progress: Progress,
    begun: RunDirectory | None = None,
    claims: tuple[DriveClaim, ...] | None = None,
    provided: CarriedParts | None = None,
    elsewhere: Elsewhere | None = None,
) -> list[RunDirectory | AgelabError]:
    """Run requests that differ in their kernels alone. Returns the run of each, or why its kernel has none."""
    options = requests[0].options
    boot_timeout(options.guest_clock)  # refuses a wrong setting before anything is made
    for orphan in orphans.terminate_orphans():
        progress.stage(f"ended {orphan}: the agelab that had started it was killed")
    reuse = answers.cell_reuse(options, store.runs, progress.stage)
    with ExitStack() as held:
        timer = held.enter_context(RunTimer()) if options.timing else None
        unfit: dict[int, AgelabError] = {}
        prepared: list[PreparedRun] = []
        for place, request in enumerate(requests):
            try:
                parts = provided or MadeParts(request, store, progress.stage)
                prepared.append(prepare(request, parts, store, progress, held, len(requests), claims))
            except UNFIT_KERNEL as error:
                unfit[place] = error
                if len(requests) > 1:
                    progress.stage(f"kernel {request.kernel} is left out: {error}")
        if not prepared:
            return list(unfit.values())
        hypervisor = held.enter_context(connected(_opened_by_guests(prepared, store)))
        session = RunSession(store, progress, hypervisor, held, timer, reuse, elsewhere)
        runs: list[StartedRun] = []
        for ready in prepared:
            runs.append(session.start(ready, begun, sum(len(run.prepared.specs) for run in runs)))
        with goes_on("; ".join(map(_resuming_command, runs))):
            session.run_cells(runs)
        done = iter(runs)
        return [unfit.get(place) or next(done).directory for place, _ in enumerate(requests)]


@contextmanager
def opened_cell(
    options: RunOptions, directory: RunDirectory, number: int, store: Store, progress: Progress
) -> Iterator[tuple[GuestLauncher, CellGoals]]:
    """Yield what starts the guests of a cell of a run again, and its goals, with a connection to libvirt.

    Raises InputError where the inputs are not those of the run any more.
    """
    with asked(options, directory) as request, ExitStack() as held:
        parts = MadeParts(request, store, progress.stage)
        prepared = prepare(request, parts, store, progress, held)
        hypervisor = held.enter_context(connected(_opened_by_guests([prepared], store)))
        run = RunSession(store, progress, hypervisor, held).start(prepared, directory, 0)
        yield _launcher(run, number), _goals(run, number)


def _resuming_command(run: StartedRun) -> str:
    """Return the command that runs what is left of a run; real disks must be named again."""
    options = run.prepared.request.options
    if options.control:
        return shlex.join(["agelab", "run", "--control", options.control, "--continue"])
    return shlex.join(["agelab", "resume", run.directory.name, *options.named_again()])


def _opened_by_guests(prepared: Sequence[PreparedRun], store: Store) -> list[Path]:
    """Return where the files of the guests are, which may be on several filesystems."""
    images = [run.image.artefact.directory for run in prepared]
    corpora = [corpus.image.parent for run in prepared for corpus in run.corpora]
    emulators = [run.emulator.artefact.directory for run in prepared]
    return list(dict.fromkeys((store.home, store.runs, *images, *corpora, *emulators)))


def _readers(prepared: PreparedRun, companions: Iterable[StoredDisk]) -> int:
    """Return who may read the run: those who may read everything that it is made of."""
    disks = [disk.artefact.directory for disk in (prepared.disk, *companions) if disk]
    corpora = [corpus.image.parent for corpus in prepared.corpora]
    made = (prepared.image.artefact.directory, *corpora, *disks)
    return prepared.request.readable_by & readers.of_made(*dict.fromkeys(made))


@dataclass(frozen=True)
class RunSession:
    """Runs that go on together, and what all of their cells have to do with."""

    store: Store
    progress: Progress
    hypervisor: Hypervisor
    held: ExitStack
    """Ends with the session: what the runs keep from others until their last cell has ended."""
    timer: RunTimer | None = None
    reuse: CellReuse | None = None
    elsewhere: Elsewhere | None = None

    def start(self, prepared: PreparedRun, begun: RunDirectory | None, first: int) -> StartedRun:
        """Create the run's directory and write its plan, or check that ``begun`` has the same one.

        Where seeds are added until a question is decided, ``begun`` may have the first cells alone: then its plan
        grows.
        """
        companions: dict[int, StoredDisk] = {}
        if prepared.specs[0].companion:
            companions = companion_disk.obtain(prepared, self.hypervisor, self.store, self.progress.stage)
            for companion in companions.values():
                self.held.enter_context(stored_disk.in_use(companion))
        with run_lookup.creation_lock(self.store.runs):
            directory = begun or RunDirectory.create(self.store.runs, Path(prepared.request.name).stem)
            readers.restrict(directory.path, _readers(prepared, companions.values()))
            self.held.enter_context(directory.lock())
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
        shared = RunGuests.of(prepared, self.hypervisor, self.store, self.progress.stage)
        return StartedRun(prepared, directory, plan, companions, first, shared)

    def run_cells(self, runs: Sequence[StartedRun]) -> None:
        """Run the unfinished cells of all runs, as many at a time as the requests ask for."""
        waiting = [(run, number) for run in runs for number in run.directory.unfinished()]
        jobs = self._slots(runs)
        if (jobs > 1 or self.elsewhere) and len(waiting) > jobs:
            waiting = _longest_first(waiting, list(recent_cells(runs[0].directory)))
        numbers = [run.first + number for run, number in waiting]
        directories = [run.directory for run in runs]
        self.progress.begin_runs(runs[0].prepared.request, directories, numbers, jobs)
        if self.timer:
            self.timer.begin_cells()
        shared = not self.elsewhere and runs[0].prepared.request.options.guest_clock == "virtual"
        slots = GuestSlots(jobs, len(waiting)) if shared else GuestSlots()
        cells = [partial(self.run_cell, run, number, slots) for run, number in waiting]
        _at_a_time(partial(self._slots, runs), cells, self._abandon)

    def _slots(self, runs: Sequence[StartedRun]) -> int:
        """Return how many cells run at a time now: other hosts come and go."""
        prepared = runs[0].prepared
        return self.elsewhere.slots(prepared.cell_bytes) if self.elsewhere else prepared.jobs

    def _abandon(self) -> None:
        """End the guests that run."""
        self.hypervisor.abandon()
        if self.elsewhere:
            self.elsewhere.stop()

    def run_cell(self, run: StartedRun, number: int, slots: GuestSlots) -> None:
        """Run one cell, and keep a control file's journal of it."""
        prepared, directory, shown = run.prepared, run.directory, run.first + number
        spec, line, journal = prepared.specs[number], prepared.cells[number].line, prepared.journal
        cell = run.plan.cells[number]
        if journal and line:
            journal.begin(line, spec.run_seed)
        self.progress.begin_cell(cell, shown)
        directory.restart_cell(number)

        def end_step(step: str) -> None:
            self.progress.end_step(shown, step)
            if journal and line:
                journal.step(line, spec.run_seed, step)

        profiler = None
        if prepared.profiler:
            profiler = Profiler(prepared.profiler, partial(self.progress.end_step, shown))
        place = directory.cell_directory(number)
        end = CellRunner(
            directory,
            number,
            _launcher(run, number),
            _goals(run, number),
            end_step,
            timer=self.timer.of_cell(place) if self.timer else None,
            reuse=self.reuse,
            profiler=profiler,
            elsewhere=self.elsewhere,
            slots=slots,
        ).carry_out()
        slots.give()
        self.progress.end_cell(cell, shown, end)
        if journal and line:
            journal.end(line, spec.run_seed, end, directory.samples().get(number, []))


def _launcher(run: StartedRun, number: int) -> GuestLauncher:
    prepared = run.prepared
    return GuestLauncher(
        directory=run.directory.cell_directory(number),
        spec=prepared.specs[number],
        corpus=prepared.corpora[number],
        guests=run.guests,
        module=prepared.module,
        tools=prepared.programs[number],
    )


def _goals(run: StartedRun, number: int) -> CellGoals:
    prepared, spec = run.prepared, run.prepared.specs[number]
    request = prepared.request
    recipe = None
    if request.options.keep_disk:
        command = making_command(request, spec)
        recipe = disk_recipe(spec, prepared.image.kernel.spec, request.scale_name, command)
    return CellGoals(
        start_from=prepared.disk,
        companion=run.companions.get(spec.corpus_seed),
        keep_as=recipe,
        measure=request.options.measure,
        curve=request.options.curve,
        blocks=request.options.blocks,
        readable_by=readers.of_made(run.directory.path),
        disks_in_memory=prepared.disks_in_memory,
        host_bytes=prepared.cell_bytes,
    )


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


def _at_a_time(jobs: Callable[[], int], cells: Sequence[Callable[[], None]], abandon: Callable[[], None]) -> None:
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
