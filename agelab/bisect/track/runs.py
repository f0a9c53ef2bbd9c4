"""Measure the points of a track by runs, and find what made a step: with the bisect, the profile and the capsule."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from agelab.analysis.cells import CellResult, RunResult, SeedGroup, load
from agelab.base import git
from agelab.base.errors import AgelabError, HostError, InputError, Notify
from agelab.base.hashing import key_of
from agelab.bisect import answer, search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.git_search import is_ancestor
from agelab.bisect.kernel_runs import KernelRuns, RunLog, attempt, outcome_kind, try_kernel
from agelab.bisect.measurements import Decision, FoundChange, KernelOutcome, OutcomeKind
from agelab.bisect.rules import EndReferences, decide_virtual
from agelab.bisect.track import program
from agelab.bisect.track.journal import Followed, Measured, PassedOver, Row
from agelab.bisect.track.lines import Line
from agelab.bisect.track.points import Point
from agelab.bisect.track.question import Track, Watch
from agelab.debian import Archive, PackagesVanished, snapshot
from agelab.evaluate.stacks import folded
from agelab.machine.image import root
from agelab.results.conditions import EFFORT, KERNEL, SEEDS
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.request.request import resolve
from agelab.stats.formatting import json_number
from agelab.stats.series import exact
from agelab.store.artefacts import Store

VARIES = KERNEL | SEEDS | EFFORT | {"cells", "profiles", "jobs", "variant", "layout"}
"""Conditions in which the points of a line differ, and its runs; ``files`` has each cell's own profiles."""
OF_DATES = {"guest", "qemu", "files"}
"""Where all of Debian moves, so do these."""
FUNCTIONS = 3
"""Functions to name, in which two profiles differ most."""


@dataclass(frozen=True)
class Doors:
    """What other parts of agelab lend a track."""

    ask: Callable[[dict[str, Any]], BisectQuestion]
    """Makes the question of a bisect from the words of its command line."""
    pack: Callable[[RunDirectory, Store, Path], object]
    """Packs a run into a capsule."""


class TrackRuns:
    """Measures by runs, and implements ``Measurer``."""

    def __init__(self, track: Track, points: Sequence[Point], store: Store, doors: Doors, say: Notify) -> None:
        self._track = track
        self._points = {point.id: point for point in points}
        self._order = [point.id for point in points]
        self._store = store
        self._doors = doors
        self._say = say

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        """Measure all metrics of a watch at a point. Raises HostError where a cell was interrupted."""
        began = time.monotonic()

        def passed(outcome: KernelOutcome) -> list[Measured | PassedOver]:
            lacking = outcome.kind is OutcomeKind.UNSUPPORTED
            return [PassedOver(point=point.id, watch=watch.key, why=outcome.summary, unsupported=lacking)]

        with self._packages_of(point):
            kernel = self._kernel(point, watch)
            of_tree = self._track.tree is not None
            if not self._track.program and (wrong := try_kernel(kernel, self._store, self._say, of_tree=of_tree)):
                return passed(wrong)
            done = attempt(kernel, lambda: self._run(point, watch, kernel, seeds))
        if isinstance(done, KernelOutcome):
            return passed(done)
        fresh = {cell.seed for cell in done.cells if cell.end and not cell.end.reused}
        each = dict.fromkeys(fresh, (time.monotonic() - began) / max(1, len(fresh)))
        return [self._row(point, watch, cell, done, each.get(cell.seed, 0)) for cell in done.cells]

    @contextmanager
    def _packages_of(self, point: Point) -> Iterator[None]:
        """Take packages of a point's date, where dates are what moves. Raises PackagesVanished where it has none."""
        if not (self._track.debian and self._track.debian.dates):
            yield
            return
        with snapshot.named(point.id):
            try:
                Archive(self._store, root.definition().suite).update(refresh=False)
            except (HostError, InputError) as error:
                raise PackagesVanished(str(error), error.hint) from error
            yield

    def _kernel(self, point: Point, watch: Watch) -> str:
        if self._track.program:
            return self._track.program.kernel
        dated = self._track.debian and self._track.debian.dates
        return watch.options.kernel if dated else point.id

    def _run(self, point: Point, watch: Watch, kernel: str, seeds: Sequence[int]) -> RunResult:
        options = watch.options.changed(kernel=kernel, seeds=tuple(seeds))
        request = resolve(options)
        if self._track.program:
            made = program.build(self._track.program, point.id, self._store, self._say)
            workload = request.selection.workload
            bring = tuple(made if path.name == made.name else path for path in workload.bring)
            selection = replace(request.selection, workload=replace(workload, bring=bring))
            request = replace(request, selection=selection)
        return load(runner.run_request(request, self._store, RunLog(self._say)))

    def _row(
        self, point: Point, watch: Watch, cell: CellResult, run: RunResult, seconds: float
    ) -> Measured | PassedOver:
        label, kind = cell.cell.short_label, outcome_kind(cell.end)
        if kind is OutcomeKind.INTERRUPTED:
            raise HostError(f"run {run.name} was interrupted: {cell.reason}")
        if not cell.ok:
            alone = len({planned.short_label for planned in run.plan.cells}) == 1
            lacking = kind is OutcomeKind.UNSUPPORTED and alone
            return PassedOver(point=point.id, watch=watch.key, label=label, why=cell.ended, unsupported=lacking)
        values, units = dict[str, float](), dict[str, str]()
        group = SeedGroup(label, run, (cell,))
        for metric, measure in zip(watch.metrics, watch.measures, strict=True):
            series = group.measured(measure)
            if series and series.values:
                [(_, value)] = series.values
                values[metric], units[metric] = json_number(value), series.unit
        if missing := [metric for metric in watch.metrics if metric not in values]:
            why = f"{missing[0]} was not measured"
            return PassedOver(point=point.id, watch=watch.key, label=label, why=why)
        return Measured(
            point=point.id, watch=watch.key, label=label, seed=cell.seed, values=values, units=units,
            run=run.name, under=under(self._track, run, cell), seconds=seconds,
        )  # fmt: skip

    # ---- what made a step ----

    def find(self, row: Followed, watch: Watch, line: Line, keep: Callable[[Sequence[Row]], None]) -> Followed:
        """Find what made a step between two points; ``keep`` is told how far it is."""
        if self._track.debian and self._track.debian.dates:
            between = self._between(row)
            return self._found(row, FoundChange(row.before, row.after, tuple(between)), watch)
        if self._track.program:
            return self._among_commits(row, watch, line, keep)
        return self._among_kernels(row, watch, keep)

    def _between(self, row: Followed) -> list[str]:
        return self._order[self._order.index(row.before) + 1 : self._order.index(row.after) + 1]

    def _found(self, row: Followed, change: FoundChange, watch: Watch) -> Followed:
        """Return the row of a change that was found among the points themselves."""
        if len(change.possible) > 1:
            names = ", ".join(self._points[point].name for point in change.possible)
            return row.model_copy(update={"ended": True, "why_not": f"it is one of {names}"})
        point = self._points[change.after]
        cells = (cell for cell in self.measure(point, watch, [1]) if isinstance(cell, Measured))
        capsule = self._pack(next((cell.run for cell in cells), ""))
        file = Path(self._track.page).expanduser().absolute() / capsule
        command = shlex.join(["agelab", "capsule", "replay", str(file)]) if capsule else ""
        found = {"culprit": point.id, "culprit_words": point.words, "capsule": capsule, "command": command}
        return row.model_copy(update={"ended": True, **found})

    def _not_found(self, row: Followed, watch: Watch, error: InputError) -> Followed:
        """Return the row of a search that could not tell its ends apart: with nothing between them it is the later."""
        if len(between := self._between(row)) == 1:
            return self._found(row, FoundChange(row.before, row.after, tuple(between)), watch)
        return row.model_copy(update={"ended": True, "why_not": str(error).splitlines()[0]})

    def _pack(self, run: str) -> str:
        """Pack a run beside the pages and return the file's name; empty where it cannot be packed."""
        directory = Path(self._track.page).expanduser() / "capsules"
        if not run:
            return ""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._doors.pack(RunDirectory(self._store.runs / run), self._store, directory / f"{run}.capsule")
        except (AgelabError, OSError) as error:
            self._say(f"no capsule of {run}: {error}")
            return ""
        return f"capsules/{run}.capsule"

    def _among_commits(
        self, row: Followed, watch: Watch, line: Line, keep: Callable[[Sequence[Row]], None]
    ) -> Followed:
        """Halve the program's commits by the rule of bisects; what they give is kept as values of their points."""
        ends = [line.value_at(point) for point in (row.before, row.after)]
        good, bad = ([exact(value) for value in end.seeds.values()] if end else [] for end in ends)

        def value_of(commit: str, seed: int) -> Fraction | None:
            known = line.value_at(commit)
            if known and seed in known.seeds:
                return exact(known.seeds[seed])
            rows = self.measure(self._points[commit], watch, [seed])
            keep(rows)
            cells = (row for row in rows if isinstance(row, Measured) and row.label == line.id.label)
            return next((exact(row.values[line.id.metric]) for row in cells), None)

        def decide(commit: str) -> Decision:
            values: list[Fraction] = []
            while True:
                value = value_of(commit, len(values) + 1)
                if value is None:
                    return Decision.UNDECIDED
                values.append(value)
                step = decide_virtual(references, values)
                self._say(f"{self._points[commit].words}: {step.decision}: {step.reason}")
                if step.decision is not Decision.MORE:
                    return step.decision

        try:
            references = EndReferences(good, bad, None, line.unit)
            change = search.halve([row.before, *self._between(row)], decide)
        except InputError as error:
            return self._not_found(row, watch, error)
        return self._found(row, change, watch)

    def _among_kernels(self, row: Followed, watch: Watch, keep: Callable[[Sequence[Row]], None]) -> Followed:
        """Bisect kernels, with a profile of both sides at the end, and pack the first bad one's run."""
        try:
            if row.bisect:
                directory = BisectDirectory.find(self._store, row.bisect)
                directory.require_own(self._store)
            else:
                directory = BisectDirectory.create(self._store, self._question(row, watch))
                row = row.model_copy(update={"bisect": directory.name})
                keep([row])
            question = directory.question()
            judge = search.make_judge(directory, KernelRuns(directory, self._store), question.words["jobs"])
            conclusion = search.run_search(directory, judge)
            functions = self._functions(directory, conclusion) if question.profile else ()
        except InputError as error:
            return self._not_found(row, watch, error)
        run = conclusion.after.runs[0] if conclusion.after.runs else ""
        said: dict[str, object] = {"ended": True, "functions": functions, "capsule": self._pack(run)}
        said["command"] = shlex.join(["sh", conclusion.script])
        if not conclusion.found:
            return row.model_copy(update={**said, "why_not": f"it is one of {', '.join(conclusion.names)}"})
        words = conclusion.names[0]
        if date := conclusion.details.get("date"):
            words = f"{words}, {date}, {conclusion.details['author']}"
        return row.model_copy(update={**said, "culprit": self._point_with(row, conclusion), "culprit_words": words})

    def _point_with(self, row: Followed, conclusion: BisectAnswer) -> str:
        """Return the first point that has the commit that was found, which may have come by a merge."""
        kernel, tree = conclusion.after.kernel, self._track.tree
        if kernel in self._points or not tree:
            return kernel
        repository = git.at(Path(tree.path).expanduser().absolute())
        assert repository, "its commits were listed"
        commit, *those = (spec.partition("@")[2].partition(",")[0] for spec in (kernel, *self._between(row)))
        points = zip(self._between(row), those, strict=True)
        return next((point for point, head in points if is_ancestor(repository, commit, head)), row.after)

    def _functions(self, directory: BisectDirectory, conclusion: BisectAnswer) -> tuple[str, ...]:
        try:
            before, after = answer.take_profiles(directory, self._store, conclusion)
        except InputError as error:
            self._say(f"no profile: {error}")
            return ()
        changed = [row for row in folded.changes(before.stacks, after.stacks) if row.change]
        return tuple(f"{row.name} {row.change:+d} samples" for row in changed[:FUNCTIONS])

    def _question(self, row: Followed, watch: Watch) -> BisectQuestion:
        """Return the question of a bisect between two points; raises InputError as the verb does."""
        variant, _, layout = row.line.label.partition(", ")
        several = len(resolve(watch.options).selection.variants) > 1
        tree = self._track.tree
        words: dict[str, Any] = {
            **{name: word for name, word in watch.options.set_options().items() if name != "filesystem"},
            **({"layout": layout} if layout else {}),
            "scenario": watch.scenario, "variant": variant if several else None, "metric": row.line.metric,
            "crash": None, "symptom": None, "threshold": None, "relative": None, "rounds": 60, "alpha": "0.01",
            "profile_neighbours": False, "dirty": True, "path": None, "base": None, "config": (), "patches": (),
            "kernels": "", "corpora": "1", "good": row.before, "bad": row.after,
        }  # fmt: skip
        if tree:
            commits = (end.partition("@")[2].partition(",")[0] for end in (row.before, row.after))
            words |= dict(zip(("good", "bad"), commits, strict=True))
            words |= {
                "path": tree.path,
                "base": tree.base or None,
                "config": tree.config,
                "patches": tree.patches,
            }
        else:
            words["kernels"] = " ".join([row.before, *self._between(row)])
        question = self._doors.ask(words)
        return question.model_copy(update={"profile": bool(question.profiled_step)})


def under(track: Track, run: RunResult, cell: CellResult) -> str:
    """Return a hash of all conditions of a cell but those in which the points of its line differ."""
    dated = track.debian and track.debian.dates
    varies = VARIES | (OF_DATES if dated else set()) | ({"brought"} if track.program else set())
    return key_of(run.conditions_of(cell).told(varies))[:12]
