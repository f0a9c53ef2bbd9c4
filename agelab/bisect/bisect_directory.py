"""A bisect on disk: question, measurements, verdicts, log. Records are only added, never rewritten."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agelab import atomic, fileio
from agelab.bisect.question import BisectQuestion
from agelab.errors import AgelabError, HostError, InputError, unknown
from agelab.results import checksummed, run_directory, run_lookup
from agelab.store import Store

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class StepError(BaseModel):
    """Error that stopped a step, passed between processes."""

    message: str
    hint: str
    exit_code: int

    def error(self) -> AgelabError:
        kind = {2: InputError, 3: HostError}.get(self.exit_code, AgelabError)
        return kind(self.message, self.hint)


class BisectDirectory:
    """Directory of one bisect."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def git(self) -> Path:
        """Repository in which git bisects; it borrows the user's objects and nothing else."""
        return self.path / "git"

    @property
    def log(self) -> Path:
        """All lines shown to the user."""
        return self.path / "log"

    @classmethod
    def create(cls, store: Store, question: BisectQuestion) -> "BisectDirectory":
        """Create the directory for a question, named by time and scenario."""
        path = run_directory.new_directory(store.bisects, Path(question.name).stem)
        checksummed.write_sealed(path / "question.json", question)
        run_directory.record_latest(path)
        return cls(path)

    @classmethod
    def find(cls, store: Store, name: str) -> "BisectDirectory":
        """Find a bisect by name or path; ``latest`` is the newest. Raises InputError."""
        known = sorted(path.parent for path in store.bisects.glob("*/question.json"))
        if name == run_directory.LATEST and known:
            return run_lookup.latest([cls(path) for path in known])
        for path in (store.bisects / name, Path(name)):
            if (path / "question.json").is_file():
                return cls(path.absolute())
        raise unknown("bisect", name, [path.name for path in known])

    def question(self) -> BisectQuestion:
        return checksummed.read(self.path / "question.json", BisectQuestion)

    def log_line(self, line: str) -> None:
        """Append a line to the log, which is shown to the user."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line.rstrip("\n") + "\n")

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock ``bisect`` (to search) or ``step`` (to judge). Raises InputError if it is taken."""
        with (self.path / f"{name}.lock").open("w", encoding="utf-8") as file:
            if not atomic.try_lock(file):
                raise InputError(f"{self.name} is still going on", hint=f"follow it: tail -f {self.log}")
            yield

    def append(self, what: str, row: BaseModel) -> None:
        """Append a row to the list ``measured`` or ``verdicts``."""
        checksummed.add_line(self.path / f"{what}.jsonl", row.model_dump(mode="json"))

    def rows(self, what: str, kind: type[AnyModel]) -> list[AnyModel]:
        """Return the rows of a list. Raises InputError if the file is damaged."""
        path = self.path / f"{what}.jsonl"
        try:
            return [kind.model_validate(row) for row in checksummed.lines(path)]
        except (ValidationError, ValueError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}") from error

    def conditions(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """Return the conditions of the first run; store ``now`` if this is the first."""
        path = self.path / "conditions.json"
        if not path.exists():
            checksummed.write(path, json.dumps(now, indent=1))
        return dict(json.loads(fileio.read_text(path)))

    def record_error(self, error: AgelabError) -> None:
        """Store the error that stopped a step for the process that drives git."""
        stopped = StepError(message=str(error), hint=error.hint, exit_code=error.exit_code)
        checksummed.write(self.path / "stopped.json", stopped.model_dump_json())

    def take_error(self) -> AgelabError | None:
        """Return the error that stopped the last step and delete it, or None."""
        path = self.path / "stopped.json"
        if not path.exists():
            return None
        error = checksummed.read(path, StepError).error()
        path.unlink()
        return error
