"""Measure a kernel by a run of agelab with one cell for each run seed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agelab import kernel as kernels
from agelab.analysis.cells import CellResult, RunResult, SeedGroup, load
from agelab.base.errors import InputError, Notify, unknown
from agelab.bisect import git_search
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.measurements import KernelOutcome, OutcomeKind
from agelab.debian.buildroot import BuildFailed
from agelab.kernel import recipes
from agelab.machine.drive.module import NoHeaders
from agelab.machine.image import DoesNotBoot
from agelab.results.conditions import EFFORT, KERNEL, SEEDS, text
from agelab.results.result import Cell, End, Status
from agelab.runner.crash import crash
from agelab.runner.crash.guests import NotRecorded, Question
from agelab.runner.execute import runner
from agelab.runner.plan import guest_plan
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.stats.formatting import json_number
from agelab.store.artefacts import Store, file_hash

Done = TypeVar("Done")

KINDS = {
    Status.OK: OutcomeKind.MEASURED,
    Status.FAILED: OutcomeKind.FAILS,
    Status.PANICKED: OutcomeKind.PANICS,
    Status.HUNG: OutcomeKind.HANGS,
    Status.UNSUPPORTED: OutcomeKind.UNSUPPORTED,
    Status.INTERRUPTED: OutcomeKind.INTERRUPTED,
}
VARIES = KERNEL | SEEDS | EFFORT | {"jobs"}
"""Conditions in which the runs of a bisect differ; with fewer seeds fewer cells run at a time."""


class RunLog(Progress):
    """Writes a line for each thing made, and for each cell as it begins and as it ends."""

    def __init__(self, write: Notify) -> None:
        self._write = write

    def stage(self, line: str) -> None:
        self._write(line)

    def begin_cell(self, cell: Cell, number: int) -> None:
        self._write(f"running {cell.label} on {cell.kernel}, seed {cell.seed}")

    def end_cell(self, cell: Cell, number: int, end: End) -> None:
        why = f": {end.reason.splitlines()[0]}" if end.reason else ""
        took = f" (reused from {end.reused.run})" if end.reused else f" in {end.host_seconds:.0f} s"
        self._write(f"seed {cell.seed} {end.status}{took}{why}")


class KernelRuns:
    """Measures by runs, and implements ``KernelMeasurer``; the log gets a line for what takes a while."""

    def __init__(self, directory: BisectDirectory, store: Store) -> None:
        self._question: BisectQuestion = directory.question()
        self._options = options_of(self._question)
        self._directory = directory
        self._store = store
        self._say = directory.log_detail

    def prepare(self, kernel: str) -> KernelOutcome | None:
        """Have the kernel built. Returns the outcome where it does not build or does not exist, as others may.

        Raises InputError where the files that all kernels are built with have changed.
        """
        require_unchanged(self._question)
        return try_kernel(kernel, self._store, self._say, of_tree=self._question.tree is not None)

    def run(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        """Measure a kernel with these run seeds. Raises InputError for other conditions than the earlier runs had."""
        if (wrong := self.prepare(kernel)) is not None:
            return [wrong]
        done = attempt(kernel, lambda: self._run(kernel, seeds))
        if not isinstance(done, KernelOutcome):
            return done
        every = seeds if done.kind in (OutcomeKind.PANICS, OutcomeKind.NO_BOOT) else [0]
        return [done.model_copy(update={"seed": seed}) for seed in every]

    def _run(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        if self._question.crash:
            return [self._crashed(kernel, seed) for seed in seeds]
        options = self._options.changed(kernel=kernel, seeds=tuple(seeds))
        loaded = load(runner.run(options, self._store, RunLog(self._say)))
        self._same_conditions(loaded)
        return [self._outcome(kernel, cell, loaded) for cell in loaded.cells]

    def _crashed(self, kernel: str, seed: int) -> KernelOutcome:
        """Count the violations among the crash states of a kernel."""
        try:
            answer = crash.run(crash_question(self._question, kernel, seed), self._store, self._say)
        except NotRecorded as error:
            return KernelOutcome(kernel=kernel, seed=seed, kind=OutcomeKind.FAILS, why=str(error))
        return KernelOutcome(
            kernel=kernel, seed=seed, kind=OutcomeKind.MEASURED, value=len(answer.violations), unit="1", run=answer.name
        )

    def _outcome(self, kernel: str, cell: CellResult, run: RunResult) -> KernelOutcome:
        kind, why = outcome_kind(cell.end), (cell.end.reason if cell.end else None) or ""
        outcome = KernelOutcome(kernel=kernel, seed=cell.seed, kind=kind, why=why, run=cell.run)
        if kind is not OutcomeKind.MEASURED or self._question.metric is None:
            return outcome
        measure, alone = self._question.metric, SeedGroup(cell.cell.label, run, (cell,))
        series = alone.measured(measure)
        if series is None:
            none = unknown("metric", str(measure), [":".join(at) for at in alone.steps])
            return outcome.model_copy(update={"kind": OutcomeKind.NOT_MEASURED, "why": str(none)})
        if not series.values:
            [(_, why)] = series.missing
            return outcome.model_copy(update={"kind": OutcomeKind.NOT_MEASURED, "why": why})
        [(_, value)] = series.values
        return outcome.model_copy(update={"value": json_number(value), "unit": series.unit})

    def _same_conditions(self, run: RunResult) -> None:
        """Refuse to compare values of unlike runs: agelab itself may have changed since the first."""
        now = run.conditions[0]
        path = self._directory.path / "conditions.json"
        if other := self._directory.conditions(now).differences(now, VARIES):
            raise InputError(
                f"{self._directory.name} was begun with other inputs ({text(other)}): what was measured then and "
                f"{run.name} cannot be compared",
                hint=f"begin a new bisect; what the first one had is in {path}",
            )


def outcome_kind(end: End | None) -> OutcomeKind:
    """Return how a cell ended, seen as an outcome of its kernel."""
    if end is None:
        return OutcomeKind.INTERRUPTED
    if end.status is Status.UNSUPPORTED and (end.reason or "").startswith(f"{guest_plan.PROOF} failed"):
        return OutcomeKind.FAILS  # the kernel has the filesystem, and it does not work
    return KINDS[end.status]


def try_kernel(kernel: str, store: Store, say: Notify, *, of_tree: bool) -> KernelOutcome | None:
    """Have a kernel built or fetched; return None, or the outcome where it cannot be had, as others may."""
    try:
        kernels.resolve(kernel, store, progress=say)
    except BuildFailed as error:
        return KernelOutcome(kernel=kernel, seed=0, kind=OutcomeKind.NO_BUILD, why=str(error))
    except InputError as error:
        # A commit exists: what it builds is no kernel for a guest.
        kind = OutcomeKind.NO_BUILD if of_tree else OutcomeKind.NO_KERNEL
        return KernelOutcome(kernel=kernel, seed=0, kind=kind, why=str(error))
    return None


def attempt(kernel: str, run: Callable[[], Done]) -> Done | KernelOutcome:
    """Return what running a kernel gives, or the outcome where that kernel cannot run."""
    try:
        return run()
    except BuildFailed as error:  # the modelled drive's module
        return KernelOutcome(kernel=kernel, seed=0, kind=OutcomeKind.NO_BUILD, why=str(error))
    except NoHeaders as error:
        return KernelOutcome(kernel=kernel, seed=0, kind=OutcomeKind.UNSUPPORTED, why=str(error))
    except DoesNotBoot as error:
        kind = OutcomeKind.PANICS if error.panicked else OutcomeKind.NO_BOOT
        return KernelOutcome(kernel=kernel, seed=0, kind=kind, why=error.panicked or str(error))


def options_of(question: BisectQuestion) -> RunOptions:
    """Return the options of a bisect's runs, without the kernel and the run seeds."""
    command = {"directory": question.directory, "name": question.name, "options": question.words}
    return RunOptions.from_words(command)


def crash_question(question: BisectQuestion, kernel: str, seed: int) -> Question:
    """Return what is asked of a kernel's crash states, on the filesystem of the bisect's variant."""
    request = resolve(options_of(question))
    [variant] = request.selection.variants
    return crash.ask(question.crash, variant.filesystem, kernel, request.defaults, variant.mount_options, seed=seed)


def require_unchanged(question: BisectQuestion) -> None:
    """Refuse other configurations or patches than the bisect was begun with, and a tree that is gone.

    Raises InputError: an error that concerns every kernel must not be taken for one of a single kernel.
    """
    used: set[Path] = set()
    if question.tree:
        git_search.tree_repository(question.tree)
        built = recipes.parse(question.tree.kernel_spec(question.tree.bad))
        used = {*([built.base] if built.base else []), *built.fragments, *built.patches}
    for path in sorted({*question.files, *map(str, used)}):
        if not Path(path).is_file() or file_hash(Path(path)) != question.files.get(path):
            raise InputError(
                f"{path} is not what it was when the bisect was begun", hint="restore it, or start a new bisect"
            )
