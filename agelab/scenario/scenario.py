"""A scenario file: one study as data."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from agelab.base.types import (
    MAX_NAME_LENGTH,
    CorpusKind,
    DebianSuite,
    Defaults,
    Figure,
    Frozen,
    LayoutName,
    Name,
    Note,
    ScaleName,
    Shorthand,
    Size,
    Whole,
    is_empty,
)
from agelab.scenario.disk_use import CompanionDiskUse, DiskUse
from agelab.scenario.history import History, Pulled
from agelab.scenario.matrix import Matrix
from agelab.scenario.matrix import problems as matrix_problems
from agelab.scenario.metrics import METRICS
from agelab.scenario.option_matrix import OptionMatrix, names_of
from agelab.scenario.step import (
    CHECKING,
    CONTROL_COPY,
    IMPLICIT,
    RECOVERING,
    Action,
    Control,
    Curve,
    Cycle,
    Experiment,
    Ratio,
    Step,
    Trace,
    is_reserved,
)
from agelab.scenario.unstated import OpenPoint, Unstated, merged
from agelab.scenario.workload import MetricName, OwnMetric, PackageName, metric_problems

RESERVED_PHASES = ("aged", "control", "curve", "making", "map")
"""First parts of step names that a scenario may not use itself."""
SMALL_DATA, SMALL_DISK = 4, {"history": 64, "corpus": 1024}
"""MiB of data in a trial, and of the disk at least, by what comes onto it."""


class Citation(Frozen):
    """The study behind the scenario."""

    title: str = Field(description="title in English")
    author: str = Field(description="author or authors")
    year: int = Field(description="year of publication")
    language: str = Field(description="language: en, de, ru, zh")
    measured_on: str = Field(description="its machine, kernel and drives")


class Variant(Shorthand):
    """A filesystem with its options; the name of a filesystem alone is a variant of that name."""

    short_for = ("name", "filesystem")
    short_types = ("string",)
    name: Name = Field(description="suffix of the scenario's name: aging-ext3-journal")
    filesystem: Name = Field(description="a file of scenarios/filesystems, without its ending")
    mkfs_options: tuple[str, ...] = Field(default=(), description="added to those of the filesystem's file")
    period_mkfs_options: tuple[str, ...] = Field(
        default=(), description="added with the period defaults only: what the study's mkfs did by default"
    )
    today_mkfs_options: tuple[str, ...] = Field(
        default=(),
        description="added with today's defaults only: structures that mkfs makes equally large on every disk, scaled",
    )
    mount_options: tuple[str, ...] = Field(default=(), description="added to those of the filesystem's file")
    script: str = Field(
        default="", description="program of the guest that makes and may mount it, in place of mkfs and mount"
    )
    layouts: tuple[LayoutName, ...] = Field(
        default=("single",), min_length=1, description="layouts in the study; --layout selects another"
    )
    machine: Name | None = Field(default=None, description="replaces the scenario's")
    available_mib: Size | None = Field(default=None, description="replaces the scenario's memory")
    drive: int | None = Field(default=None, ge=0, description="replaces that of the partitions")
    minimum_mib: int | None = Field(default=None, ge=1, description="smallest disk, replaces that of its filesystem")
    history: Name | None = Field(default=None, description="one of the scenario's histories, if it has any")
    chosen_mkfs_options: tuple[str, ...] = Field(
        default=(), description="not for a file: agelab's own, the options of a combination, added last"
    )
    combination_of: Name | None = Field(
        default=None,
        description="not for a file: agelab's own, the variant of which this is one combination of options",
    )
    case: Name | None = Field(
        default=None,
        exclude_if=is_empty,
        description="not for a file: agelab's own, the one of the scenario's cases that it does",
    )

    @property
    def plain_name(self) -> str:
        """Name without that of its history."""
        return self.name.removesuffix(f"-{self.history}")

    def mkfs_options_for(self, defaults: Defaults) -> tuple[str, ...]:
        """Return the mkfs options for a set of defaults."""
        of_defaults = self.period_mkfs_options if defaults == "period" else self.today_mkfs_options
        return (*self.mkfs_options, *of_defaults, *self.chosen_mkfs_options)

    def is_called(self, name: str) -> bool:
        """Return whether a name means it: its own, also without its history, or of what it is a combination of."""
        whole = self.combination_of
        with_history = f"{whole}-{self.history}"
        return name in (self.name, self.plain_name, *((whole, with_history) if whole else ()))

    def combined(self, matrix: OptionMatrix) -> list[Self]:
        """Return a variant for each combination of a matrix. Raises ValueError for too many."""
        variants = []
        for chosen in matrix.combinations():
            mkfs = tuple(word for option in chosen if option.of_mkfs for word in option.words)
            mount = tuple(word for option in chosen if not option.of_mkfs for word in option.words)
            update = {
                "name": self.name + names_of(chosen),
                "chosen_mkfs_options": (*self.chosen_mkfs_options, *mkfs),
                "mount_options": (*self.mount_options, *mount),
                "combination_of": self.combination_of or self.name,
            }
            variants.append(self.model_copy(update=update))
        return variants


class Scale(Frozen):
    """Reduction from the study's size: every size in the scenario is divided by ``shrink``, every ratio kept.

    ``history`` divides the repetitions of cycles, and what they fill (the disk and the sizes given to steps): the
    disk is overwritten as often as before, with fewer and relatively larger copies.
    """

    shrink: int = Field(ge=1, le=10**9, description="divisor of every size")
    history: int = Field(default=1, ge=1, le=10**9, description="divisor of the repetitions of cycles")
    note: Note = ""


class CorpusUse(Shorthand):
    """The source data of a scenario."""

    short_for = ("mib",)
    short_types = ("string", "number")
    kind: CorpusKind = Field(default="debian-iso", description="a file of agelab/data/corpus, without its ending")
    mib: Size = Field(description="size at paper scale, MiB")
    files: dict[str, Whole] = Field(
        default={},
        exclude_if=is_empty,
        description="files of a tree at paper scale, in place of the kind's; their bytes together stay",
    )
    held_in_ram: bool = Field(default=False, description="whether it is read from memory, at no cost in drive time")

    @property
    def file_counts(self) -> dict[str, int]:
        return {path: count.value for path, count in self.files.items()}


class MemoryUse(Shorthand):
    """Memory available to the first step, and limits on dirty pages, by default the kernel's own."""

    short_for = ("available_mib",)
    short_types = ("string", "number")
    available_mib: Size = Field(description="memory available at the first step, at paper scale, MiB")
    dirty_percent: Figure = Field(default=Figure(value=20), description="vm.dirty_ratio")
    dirty_background_percent: Figure = Field(default=Figure(value=10), description="vm.dirty_background_ratio")


class Scenario(Frozen):
    """A file of scenarios/."""

    name: Name = Field(default="", description="the file's name, without its ending")
    summary: str = Field(default="", description="the scenario in one line")
    citation: Citation | None = Field(default=None, description="the study that it follows, if any")
    machine: Name = Field(default="pentium4-2800", description="a file of scenarios/machines, without its ending")
    defaults: Defaults = Field(default="today", description="mkfs and mount as in the study's days, or as today")
    corpus: CorpusUse | None = Field(default=None, description="the data; the steps find them at $SOURCE")
    histories: tuple[History, ...] = Field(
        default=(), description="in place of a corpus: each variant runs with each of them, as <variant>-<history>"
    )
    memory: MemoryUse = Field(description="memory available to the first step")
    disk: DiskUse = Field(description="the disk under test")
    beside: CompanionDiskUse | None = Field(default=None, description="the companion disk, with the data on it")
    counts: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Figure] = Field(
        default={}, description="numbers at paper scale; the steps find the scaled ones in the environment"
    )
    sizes: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Size] = Field(
        default={}, description="MiB at paper scale; the steps find the scaled sizes in the environment, in bytes"
    )
    matrix: Matrix = Field(
        default={},
        exclude_if=is_empty,
        description="values of variables: a step that names them ($BS for bs) is done once for each combination",
    )
    scales: dict[ScaleName, Scale] = Field(
        default={"quick": Scale(shrink=1), "paper": Scale(shrink=1)}, description="reduction of sizes; none by default"
    )
    variants: tuple[Variant, ...] = Field(min_length=1, description="what is measured, each in a fresh guest")
    options: tuple[OptionMatrix, ...] = Field(
        default=(), description="mkfs and mount options, every combination of which is a variant"
    )
    makes: Literal["prepared", "aged"] = Field(
        default="prepared", description="result of the steps: a tree, or one that has been used for long"
    )
    steps: tuple[Step, ...] = Field(default=(), description="steps that make the disk")
    cases: tuple[Action, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description="in place of steps: each variant does each of them, in its own guest",
    )
    experiments: tuple[Experiment, ...] = Field(default=(), description="in place of steps and tests")
    traces: tuple[Trace, ...] = Field(default=(), description="passes of the experiments under strace")
    tests: tuple[Action, ...] = Field(
        default=(),
        description="what measures the disk that the steps made, and the control: each on a fork, in a new boot",
    )
    control: Control | None = Field(
        default=None,
        description="makes a new disk with the same files, tested in the same way: aged / control is the slowdown",
    )
    measures: tuple[Literal["extents", "free_space"], ...] = Field(
        default=(), description="maps of the disk, made on their own fork"
    )
    curve: Curve | None = Field(default=None, description="points of the history at which the disk is measured")
    ratios: tuple[Ratio, ...] = Field(default=(), description="ratios of a step's last repetition to its first")
    unstated: tuple[OpenPoint, ...] = Field(default=(), description="what the study leaves open")
    packages: tuple[PackageName, ...] = Field(
        default=(), description="Debian packages for the guest, beside those of its programs"
    )
    suite: DebianSuite = Field(
        default="", description="Debian suite of the guest's root: the tools of that time; empty: the usual one"
    )
    bring: tuple[str, ...] = Field(
        default=(), description="files for the guest, beside the scenario's file: a program, a directory, a .deb"
    )
    metrics: dict[MetricName, OwnMetric] = Field(
        default={}, description="the scenario's own metrics, for the records of its steps"
    )

    @field_validator("citation")
    @classmethod
    def _of_a_study(cls, citation: Citation | None) -> Citation | None:
        """Take the title "none", as files say that had to have a citation, for no study."""
        return None if citation and citation.title == "none" else citation

    @model_validator(mode="after")
    def _names_hold_together(self) -> Self:
        if problems := list(self.problems()):
            raise ValueError("; ".join(problems))
        return self

    def problems(self) -> Iterator[str]:
        """Yield every contradiction in the file."""
        for what, name in self._twice():
            yield f"{what} {name!r} is defined twice"
        if bool(self.corpus) == bool(self.histories):
            yield "either a corpus or histories"
        if sum(map(bool, (self.steps, self.experiments, self.cases))) != 1:
            yield "either steps, or experiments, or cases"
        if self.experiments and (self.tests or self.control or self.measures or self.curve):
            yield "experiments cannot be combined with tests, control, measures or curve"
        for experiment in self.experiments:
            if is_reserved(experiment.name):
                yield f"an experiment cannot be called {experiment.name!r}: what goes before it is"
        steps = {action.name for action in self.actions()}
        for ratio in self.ratios:
            if ratio.step not in steps:
                yield f"ratio {ratio.name!r}: no step {ratio.step!r}"
        names = steps | {test.name for test in self.tests}
        for name in IMPLICIT:
            if name in names:
                yield f"a step cannot be called {name!r}: every cell has one"
        yield from self._without_power(names)
        if self.control and not (self.tests or self.measures):
            yield "a control needs tests or measures"
        if self.control and any(test.name == CONTROL_COPY for test in self.tests):
            yield f"a test cannot be called {CONTROL_COPY!r}: the control's copying is"
        for action in (*self.actions(), *self.tests):
            for metric in action.records:
                if metric not in METRICS and metric not in self.metrics:
                    yield f"step {action.name!r}: no metric {metric!r}"
        yield from metric_problems(self.metrics)
        yield from matrix_problems(self.matrix, (*self.sizes, *self.counts))
        yield from self._without_their_output()
        yield from self._off_the_curve()
        yield from self._without_a_corpus()
        for ratio in self.ratios:
            for metric in (ratio.metric, ratio.name):
                if metric not in METRICS and not (metric == ratio.metric and metric in self.metrics):
                    yield f"ratio {ratio.name!r}: no metric {metric!r}"

    def _twice(self) -> list[tuple[str, str]]:
        names = [("variant", variant.name) for variant in self.variants]
        names += [("experiment", experiment.name) for experiment in self.experiments]
        names += [("trace", trace.name) for trace in self.traces]
        names += [("step", action.name) for action in self.actions()]
        names += [("test", test.name) for test in self.tests]
        names += [("history", history.name) for history in self.histories]
        names += [("unstated", one.name) for one in self.unstated if one.name]
        return [which for which, count in Counter(names).items() if count > 1]

    def _without_power(self, names: Collection[str]) -> Iterator[str]:
        """Yield what is incompatible with power cuts."""
        for test in self.tests:
            if test.cut_after:
                yield f"test {test.name!r}: only a step's power is cut"
        if not self.has_power_cuts:
            return
        for name in (*RECOVERING, CHECKING):
            if name in names:
                yield f"a step cannot be called {name!r}: there is one after each power cut"
        if self.curve:
            yield "a curve and power cuts cannot be combined"

    def _without_their_output(self) -> Iterator[str]:
        """Yield the steps whose output is to be read and cannot be."""
        for action in (*self.actions(), *self.tests):
            if self.has_output(action) and action.cut_after:
                yield f"step {action.name!r}: its power is cut: its output is lost"

    def has_output(self, action: Action) -> bool:
        """Return True if the host reads what a step prints."""
        return action.keep or action.program is not None or any(metric in self.metrics for metric in action.records)

    def _off_the_curve(self) -> Iterator[str]:
        """Yield what the curve requires and the steps lack."""
        if self.curve is None:
            return
        if self.curve.tested_on:
            yield from self._not_on_the_way(self.curve)
        turns = {
            action.name: None
            if action.repeat == "parts"
            else action.repeat * (step.repeat if isinstance(step, Cycle) else 1)
            for step in self.steps
            for action in (step.cycle if isinstance(step, Cycle) else (step,))
        }
        most = turns.get(self.curve.step, 0)
        after = () if self.curve.after == "each" else self.curve.after
        beyond = [turn for turn in after if turn > (most or turn)]
        if most == 0 or beyond:
            turn = max(beyond) if beyond else "any"
            yield f"curve: step {self.curve.step!r} has {most} repetitions, not {turn}"

    def _not_on_the_way(self, curve: Curve) -> Iterator[str]:
        """Yield what is incompatible with tests at the points of a history."""
        if not (self.histories and self.tests and self.control):
            yield "curve: tested_on needs histories, tests and a control"
        if any(test.repeat != 1 or test.caches == "reboot" for test in self.tests):
            yield "curve: with tested_on each test is done once at each point, and none reboots"
        if taken := sorted(set(curve.tested_on) & set(RESERVED_PHASES)):
            yield f"curve: a drive cannot be called {taken[0]!r}: what each cell does is"

    def _without_a_corpus(self) -> Iterator[str]:
        """Yield what requires a corpus, or a history, that is missing."""
        actions = (*self.actions(), *self.tests)
        for action in actions:
            if action.repeat == "parts" and (self.corpus or action not in self.steps):
                yield f"step {action.name!r}: it cannot be repeated for each part of a history"
        known = {history.name for history in self.histories}
        for variant in self.variants:
            if variant.history and variant.history not in known:
                yield f"variant {variant.name!r}: no history {variant.history!r}"
        if self.corpus:
            return
        for action in actions:
            if action.moves:
                yield f"step {action.name!r}: it moves the corpus, and there is none"
        if self.beside or self.experiments:
            yield "a companion disk (beside) and experiments need a corpus"

    @property
    def has_power_cuts(self) -> bool:
        """True if the power of some step is cut."""
        return any(action.cut_after for action in self.actions())

    @property
    def tests_at_points(self) -> bool:
        """True if tests are made at each point of the curve, not only at the end."""
        return bool(self.curve and self.curve.tested_on)

    def with_options(self, more: Iterable[OptionMatrix] = ()) -> Self:
        """Return the scenario with each variant once for each combination of its options and of ``more``.

        Raises ValueError for a filesystem that it does not have, too many combinations, and for equal names.
        """
        variants = self.variants
        for matrix in (*self.options, *more):
            if all(variant.filesystem != matrix.filesystem for variant in variants):
                there = ", ".join(sorted({variant.filesystem for variant in variants}))
                raise ValueError(f"options: no variant has filesystem {matrix.filesystem}; there are: {there}")
            pairs = ((variant, variant.filesystem == matrix.filesystem) for variant in variants)
            variants = tuple(
                combined for variant, meant in pairs for combined in (variant.combined(matrix) if meant else [variant])
            )
        too_long = [variant.name for variant in variants if len(variant.name) > MAX_NAME_LENGTH]
        twice = [name for name, count in Counter(variant.name for variant in variants).items() if count > 1]
        if too_long:
            raise ValueError(f"options: {too_long[0]} is a name of more than {MAX_NAME_LENGTH} characters")
        if twice:
            raise ValueError(f"options: two combinations are called {twice[0]!r}")
        return self.model_copy(update={"variants": variants})

    def with_histories(self) -> Self:
        """Return the scenario with each variant repeated for each history. Raises ValueError for equal names."""
        if not self.histories:
            return self
        variants = [
            variant.model_copy(update={"name": f"{variant.name}-{history.name}", "history": history.name})
            for history in self.histories
            for variant in self.variants
        ]
        twice = [name for name, count in Counter(variant.name for variant in variants).items() if count > 1]
        if twice:
            raise ValueError(f"two variants with their histories are called {twice[0]!r}")
        return self.model_copy(update={"variants": tuple(variants)})

    @property
    def readings(self) -> dict[str, Unstated]:
        """The points that can be read in another way, by the names of their other readings."""
        return {one.name: one for one in self.unstated if one.name}

    def read_otherwise(self, names: Sequence[str]) -> Self:
        """Return the scenario with the other readings of these names, of which it has all.

        Raises ValueError where that is no scenario, or two of them contradict each other.
        """
        for pair in combinations(names, 2):
            if self._changed(pair) != self._changed(pair[::-1]):
                raise ValueError(f"{' and '.join(pair)} contradict each other")
        return self._changed(names)

    def _changed(self, names: Sequence[str]) -> Self:
        table: dict[str, Any] = self.model_dump(exclude={"unstated"})
        for name in names:
            table = merged(table, self.readings[name].instead)
        return type(self).model_validate(table).model_copy(update={"unstated": self.unstated})

    def with_cases(self) -> Self:
        """Return the scenario with each variant once for each case. Raises ValueError for names that are too long."""
        if not self.cases:
            return self
        variants = [
            variant.model_copy(update={"name": f"{variant.name}-{case.name}", "case": case.name})
            for variant in self.variants
            for case in self.cases
        ]
        if too_long := [variant.name for variant in variants if len(variant.name) > MAX_NAME_LENGTH]:
            raise ValueError(f"{too_long[0]} is a name of more than {MAX_NAME_LENGTH} characters")
        return self.model_copy(update={"variants": tuple(variants)})

    def of(self, variant: Variant) -> Self:
        """Return the scenario as a variant's cells have it: with the case that it does for its only step."""
        if variant.case is None:
            return self
        done = tuple(case for case in self.cases if case.name == variant.case)
        return self.model_copy(update={"steps": done, "cases": ()})

    def at_scale(self, scale: str) -> Self:
        """Return the scenario with the shorter history of that scale; sizes are still the study's."""
        shorter = self.scales[scale].history if scale in self.scales else 1
        if shorter == 1:
            return self
        cycles = [
            step.model_copy(update={"repeat": max(1, step.repeat // shorter)}) if isinstance(step, Cycle) else step
            for step in self.steps
        ]

        def less(figure: Figure) -> Figure:
            return figure.model_copy(update={"value": figure.value / shorter})

        curve = self.curve
        if curve and curve.after != "each":
            after = tuple(dict.fromkeys(max(1, turn // shorter) for turn in curve.after))
            curve = curve.model_copy(update={"after": after})
        return self.model_copy(
            update={
                "steps": tuple(cycles),
                "disk": self.disk.model_copy(update={"mib": less(self.disk.mib)}),
                "sizes": {name: less(figure) for name, figure in self.sizes.items()},
                "curve": curve,
            }
        )

    def small(self, least_mib: float, shrink: float) -> Self:
        """Return the scenario as a trial runs it: little data, each step once.

        A disk that a history fills has ``least_mib``, before ``shrink`` divides them; others have room for what steps
        write whose sizes are their own.
        """
        disk, of_history = self.disk.mib, not self.corpus
        least = min(max(least_mib, SMALL_DISK["history" if of_history else "corpus"]) * shrink, disk.value)
        divisor = max(1, disk.value / least if self.corpus is None else self.corpus.mib.value / SMALL_DATA / shrink)

        def less(figure: Figure, at_least: float = 0) -> Figure:
            return figure.model_copy(update={"value": max(figure.value / divisor, at_least)})

        def once(action: Action) -> Action:
            repeat = "parts" if action.repeat == "parts" else 1
            return action.model_copy(update={"repeat": repeat, "pause": 0})

        def short(history: History) -> History:
            changed = {"points": 1, "pulls": less(history.pulls) if isinstance(history, Pulled) else None}
            return history.model_copy(
                update={name: new for name, new in changed.items() if name in type(history).model_fields}
            )

        steps = [
            step.model_copy(update={"repeat": 1, "cycle": tuple(map(once, step.cycle))})
            if isinstance(step, Cycle)
            else once(step)
            for step in self.steps
        ]
        corpus, curve = self.corpus, self.curve
        if curve and curve.after != "each":
            curve = curve.model_copy(update={"after": (1,)})
        return self.model_copy(
            update={
                "disk": self.disk.model_copy(update={"mib": less(disk, least), "filled_mib": None}),
                "corpus": corpus and corpus.model_copy(update={"mib": less(corpus.mib)}),
                "sizes": {name: less(figure) for name, figure in self.sizes.items()},
                "counts": {name: less(figure) for name, figure in self.counts.items()},
                "steps": tuple(steps),
                "tests": tuple(map(once, self.tests)),
                "histories": tuple(map(short, self.histories)),
                "curve": curve,
            }
        )

    def actions(self) -> list[Action]:
        """Return every step once, in file order."""
        actions: list[Action] = []
        for step in self.steps:
            actions += step.cycle if isinstance(step, Cycle) else (step,)
        return [*actions, *self.cases]
