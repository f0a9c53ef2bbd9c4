"""The file of a track: what moves, what is measured of it, and how long a night may take."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.base.types import Frozen, Name
from agelab.kernel.debian_kernel import is_version
from agelab.results.measure import Measure
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import require_measure, resolve
from agelab.scenario import toml_files
from agelab.scenario.workload import PackageName

OF_TRACK = ("name", "directory", "kernel", "seeds", "until_decided", "of_plan")
"""Options of a run that the track decides."""


def _below(path: str) -> str:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path!r} is not below the tree")
    return path


def _version(text: str) -> str:
    if text and not is_version(text):
        raise ValueError(f"{text!r} is no version like 6.1")
    return text


def _measure(text: str) -> str:
    try:
        Measure.parse(text, "metrics")
    except InputError as error:
        raise ValueError(str(error).partition(": ")[2]) from error
    return text


class Commits(Frozen):
    """A git tree, and which of its commits matter."""

    path: str = Field(min_length=1, description="the git tree; like all paths it starts at the file")
    since: str = Field(min_length=1, description="tag or commit to begin with")
    branch: str = Field(default="HEAD", min_length=1, description="branch to follow")
    paths: tuple[str, ...] = Field(default=(), description="files and directories that matter: fs/ext4, mm")


class KernelTree(Commits):
    """Kernels built from the commits of a tree of Linux."""

    base: str = Field(default="", description="a distribution's .config in place of the small one")
    config: tuple[str, ...] = Field(default=(), description="fragments of configuration, or lines of it")
    patches: tuple[str, ...] = Field(default=(), description="patches for every commit's kernel")


class DebianKernels(Frozen):
    """Debian's kernels: all that the mirror has, or those that are named; or Debian itself over dates."""

    since: Annotated[str, AfterValidator(_version)] = Field(default="", description="the oldest version to take: 6.1")
    kernels: tuple[str, ...] = Field(default=(), description="these in their order, in place of the mirror's")
    dates: tuple[str, ...] = Field(
        default=(), description="snapshots of all packages in their order, as SNAPSHOT= takes them"
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(map(bool, (self.since, self.kernels, self.dates))) > 1:
            raise ValueError("since, kernels and dates are three ways to say one thing: leave two out")
        return self


class OwnProgram(Commits):
    """A program that is built at each commit of its tree, confined, and brought into the guests."""

    build: str = Field(min_length=1, description="command that builds it, for sh, in the tree's directory")
    makes: Annotated[str, AfterValidator(_below)] = Field(
        min_length=1,
        description="the file that it makes, below the tree; the scenario brings a file of that name",
    )
    packages: tuple[PackageName, ...] = Field(
        default=("gcc", "libc6-dev", "make"), description="Debian packages to build it with"
    )
    kernel: str = Field(default="debian:6.1", description="kernel of the guests")


class Watch(Frozen):
    """A scenario and its metrics."""

    scenario: str = Field(min_length=1, description="scenario, scenario-variant, or a scenario file")
    metrics: tuple[Annotated[str, AfterValidator(_measure)], ...] = Field(
        min_length=1, description="STEP:METRIC, or STEP:REPETITION:METRIC"
    )
    run: dict[str, Any] = Field(default={}, description="options of agelab run, by their names")

    @model_validator(mode="after")
    def _once(self) -> Self:
        if twice := [metric for metric in self.metrics if self.metrics.count(metric) > 1]:
            raise ValueError(f"metrics: {twice[0]} is there twice")
        return self

    @property
    def key(self) -> str:
        """What its values are kept under: another scenario, or other options, have values of their own."""
        return key_of({"scenario": self.scenario, "run": self.run})[:12]

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(map(Measure.parse, self.metrics))

    @property
    def options(self) -> RunOptions:
        """The options of its runs but kernel and run seeds. Raises InputError as they do."""
        if taken := [name for name in self.run if name in OF_TRACK]:
            raise InputError(f"run.{taken[0]}: the track decides it: leave it out")
        return RunOptions(name=self.scenario, **self.run)


class Track(Frozen):
    """A file of agelab track."""

    name: Name = Field(description="the track's name, also of its directory in the store")
    minutes: float = Field(gt=0, le=10**6, description="minutes of this host for one night")
    page: str = Field(min_length=1, description="directory of the pages")
    hook: str = Field(default="", description="command, for sh, that gets each new line on its standard input")
    percent: float = Field(default=1.0, gt=0, le=1000, description="agelab ignores a smaller step")
    tree: KernelTree | None = Field(default=None, description="what moves: the commits of a tree of Linux,")
    debian: DebianKernels | None = Field(default=None, description="or Debian's packages,")
    program: OwnProgram | None = Field(default=None, description="or the commits of a program of yours")
    watch: tuple[Watch, ...] = Field(min_length=1, description="what is measured")

    def watched(self, key: str) -> Watch:
        return next(watch for watch in self.watch if watch.key == key)

    @model_validator(mode="after")
    def _one_moves(self) -> Self:
        there = [name for name in ("tree", "debian", "program") if getattr(self, name) is not None]
        if len(there) != 1:
            what = f"there are {' and '.join(there)}" if there else "there is none"
            raise ValueError(f"what moves is one of [tree], [debian] and [program]: {what}")
        if len({watch.key for watch in self.watch}) < len(self.watch):
            raise ValueError("two [[watch]] have one scenario with one run: make one of them, with both metrics")
        return self


def read(path: Path) -> Track:
    """Read the file of a track, in whose directory the caller is. Raises InputError that lists every error."""
    track = toml_files.read(path, Track)
    wrong: list[str] = []
    for number, watch in enumerate(track.watch):
        try:
            _require_runs(watch, track.program)
        except InputError as error:
            wrong += [f"{path}: watch[{number}]: {line}" for line in str(error).splitlines()]
    if wrong:
        raise InputError("\n".join(wrong))
    return track


def _require_runs(watch: Watch, program: OwnProgram | None) -> None:
    """Raise InputError for a scenario, options or metrics that no night could measure."""
    request = resolve(watch.options)
    if request.options.in_wall_clock:
        raise InputError("the wall clock is this host's: what one night measures another one cannot judge")
    if len(request.options.corpora) > 1:
        raise InputError("run.corpora: a line is of one corpus: name one")
    for measure in watch.measures:
        require_measure(measure, request.selection)
    brought = [path.name for path in request.selection.workload.bring]
    if program and Path(program.makes).name not in brought:
        raise InputError(f'scenario: it does not bring what [program] makes: bring = ["./{Path(program.makes).name}"]')
