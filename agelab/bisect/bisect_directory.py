"""A bisect on disk: question, measurements, verdicts, log. What was recorded is never changed, only added to.

The records have one code of the store together (agelab.results.own): a list of another bisect is none of this one's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, log2
from pathlib import Path
from textwrap import indent
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agelab.base import atomic, fileio
from agelab.base.errors import InputError, Notify, silent, unknown
from agelab.base.types import Frozen
from agelab.results import checksummed, own, run_directory, run_lookup
from agelab.results.conditions import Conditions
from agelab.results.measure import ALL_STEPS, Measure
from agelab.scenario.step import StepId
from agelab.store.artefacts import Store


class Symptom(StrEnum):
    """Symptom of a bad kernel, in place of a metric."""

    PANIC = "panic"
    HANG = "hang"
    FAIL = "fail"
    BOOT = "boot"
    """The guest does not report within the host's timeout, or panics before anything is measured."""


class GitTree(Frozen):
    """A git tree of kernels and the two ends of the search."""

    path: str
    options: str = Field("", description="options of every kernel built from it: ,base=...,config=...,patches=...")
    good: str = Field(description="commit of the good end")
    bad: str

    def kernel_spec(self, commit: str) -> str:
        return f"tree:{self.path}@{commit}{self.options}"

    def commit_of(self, kernel: str) -> str:
        return kernel.removeprefix(f"tree:{self.path}@").partition(",")[0]


class BisectQuestion(Frozen):
    """The range of kernels to search and the criterion of good and bad."""

    format: Literal[1] = 1
    directory: str = Field(description="working directory of the command; paths are relative to it")
    name: str = Field(description="scenario, or scenario and variant")
    variant: str
    words: dict[str, Any] = Field(description="options of each step's run")
    clock: Literal["virtual", "wall"]
    good: str = Field(description="as the user named it")
    bad: str
    tree: GitTree | None = None
    kernels: tuple[str, ...] = Field(
        description="specs from good to bad, all that are searched; for a tree the two ends"
    )
    candidates: int = Field(ge=1, description="number of kernels that could be the first bad one, bad included")
    metric: Measure | None = Field(None, description="step, repetition (0: the mean over all) and metric")
    crash: str = Field("", description="workload of agelab crash, whose violations are the metric")
    symptom: Symptom | None = None
    threshold: str | None = Field(None, description="boundary between good and bad, in the metric's unit")
    relative: str | None = Field(None, description="the same, relative to good's median: 0.1")
    rounds: int = Field(description="wall clock: maximum number of rounds for each step")
    alpha: str = Field(description="wall clock: upper bound on the probability of a wrong answer, shared by all steps")
    seed: int = Field(description="wall clock: seed of the random order of runs in each round")
    profile: bool = Field(False, description="profile both neighbours of the change when it is found")
    files: dict[str, str] = Field({}, description="files named by kernel options: path -> sha256")

    @property
    def ends(self) -> dict[str, str]:
        """The two ends: ``good`` and ``bad`` to the kernel's spec."""
        return {"good": self.kernels[0], "bad": self.kernels[-1]}

    @property
    def criterion(self) -> str:
        """Metric or symptom that tells good from bad: ``copy:elapsed``, ``symptom hang``."""
        return str(self.metric) if self.metric else f"symptom {self.symptom}"

    @property
    def profiled_step(self) -> str:
        """The step that a profile can show; empty in the wall clock, and where what is judged is of no such step."""
        if self.clock == "wall" or self.crash or self.metric in (None, ALL_STEPS):
            return ""
        step = StepId.parse(self.metric.step)
        if step.is_map or step.label:  # a map, a point of a history, a pass under strace
            return ""
        return str(replace(step, name=step.name.partition(".")[0]))  # fio.read is a job of fio

    @property
    def steps(self) -> int:
        """Number of kernels between the ends to judge if none is skipped: ceil(log2 n)."""
        return ceil(log2(self.candidates))

    @property
    def step_alpha(self) -> Fraction:
        """Share of ``alpha`` for the ends and for each step."""
        return Fraction(self.alpha) / (self.steps + 1)


QUESTION, CONDITIONS = "question.json", "conditions.json"
RECORDS = (QUESTION, CONDITIONS, "measured.jsonl", "verdicts.jsonl")
"""Files that are believed when a bisect goes on."""
DETAIL = "  "
"""What a line of the log begins with that is a detail."""

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class BisectDirectory:
    """Directory of one bisect."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.show: Notify = silent
        """Is given each line that comes into the log."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def git(self) -> Path:
        """Repository in which git bisects; it borrows the user's objects and nothing else."""
        return self.path / "git"

    @property
    def log(self) -> Path:
        """All lines shown to the user, and details between them."""
        return self.path / "log"

    @classmethod
    def create(cls, store: Store, question: BisectQuestion) -> "BisectDirectory":
        """Create the directory for a question, named by time and scenario."""
        directory = cls(run_directory.new_directory(store.bisects, Path(question.name).stem))
        directory._record(QUESTION, f"{checksummed.sealed_text(question)}\n".encode())
        run_directory.record_latest(directory.path)
        return directory

    @classmethod
    def find(cls, store: Store, name: str) -> "BisectDirectory":
        """Find a bisect by name or path; ``latest`` is the newest. Raises InputError."""
        known = sorted(path.parent for path in store.bisects.glob(f"*/{QUESTION}"))
        if name == run_directory.LATEST and known:
            return run_lookup.latest([cls(path) for path in known])
        for path in (store.bisects / name, Path(name)):
            if (path / QUESTION).is_file():
                return cls(path.absolute())
        raise unknown("bisect", name, [path.name for path in known])

    def require_own(self, store: Store) -> None:
        """Refuse to go on with what this store did not record: it would be believed, and run its store's programs.

        Raises InputError.
        """
        if self.path.resolve().parent != store.bisects.resolve():
            raise InputError(f"{self.path} is a bisect of another store", hint="go on there: AGELAB_HOME=<its store>")
        for path in self.path.iterdir():
            if path.name != self.git.name and (path.is_symlink() or not path.is_file()):
                raise InputError(
                    f"{self.name}: {path.name} is no regular file, as a bisect writes",
                    hint=f"see where it leads: ls -l {path}",
                )
        if not own.is_own(self.path / QUESTION, store.home, _joined(self._records())):
            raise InputError(
                f"{self.name} was not begun in this store, or was changed since",
                hint="ask again: agelab bisect --scenario ...; cells that this store measured are reused",
            )

    def _records(self) -> dict[str, bytes]:
        """Read the records that are there, of a list the whole lines."""
        paths = {name: self.path / name for name in RECORDS if (self.path / name).exists()}
        contents = {name: fileio.read_bytes(path, fileio.LINES) for name, path in paths.items()}
        return {name: content[: content.rfind(b"\n") + 1] for name, content in contents.items()}

    def _record(self, name: str, content: bytes) -> None:
        """Write a record, behind the codes of the bisect without it and with it: it may be killed at any moment."""
        now = self._records()
        both = (now, {**now, name: content})
        own.sign(self.path / QUESTION, self.path.parents[1], *map(_joined, both))
        atomic.write(self.path / name, content)

    def question(self) -> BisectQuestion:
        """Read the question. Raises InputError for a damaged one."""
        return checksummed.read(self.path / QUESTION, BisectQuestion)

    def log_line(self, line: str) -> None:
        """Append a line to the log, which is shown to the user."""
        line = line.rstrip("\n")
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self.show(line)

    def log_detail(self, text: str) -> None:
        """Append what is of the work on one kernel, which is shown no longer than it goes on: indented lines."""
        self.log_line(indent(text, DETAIL, lambda line: True))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from searching meanwhile. Raises InputError where one does."""
        with (self.path / "bisect.lock").open("w", encoding="utf-8") as file:
            if not atomic.try_lock(file):
                raise InputError(f"{self.name} is still going on", hint=f"follow it: tail -f {self.log}")
            yield

    def append(self, what: str, row: BaseModel) -> None:
        """Append a row to the list ``measured`` or ``verdicts``."""
        name = f"{what}.jsonl"
        before = self._records().get(name, b"")
        self._record(name, before + checksummed.sealed_line(row.model_dump(mode="json")))

    def rows(self, what: str, kind: type[AnyModel]) -> list[AnyModel]:
        """Return the rows of a list. Raises InputError if the file is damaged."""
        path = self.path / f"{what}.jsonl"
        try:
            return [kind.model_validate(row) for row in checksummed.lines(path)]
        except (ValidationError, ValueError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}") from error

    def conditions(self, now: Conditions) -> Conditions:
        """Return the conditions of the first run; store ``now`` if this is the first.

        Raises InputError for those that an earlier agelab stored.
        """
        path = self.path / CONDITIONS
        if not path.exists():
            self._record(CONDITIONS, f"{now.model_dump_json(indent=1)}\n".encode())
        try:
            return Conditions.model_validate_json(fileio.read_text(path))
        except ValidationError as error:
            raise InputError(f"{path} is of another agelab than this", hint="begin a new bisect") from error


def _joined(records: Mapping[str, bytes]) -> bytes:
    """Return all records as one content, which no other records have."""
    return b"".join(b"%s %d\n%s" % (name.encode(), len(records[name]), records[name]) for name in sorted(records))
