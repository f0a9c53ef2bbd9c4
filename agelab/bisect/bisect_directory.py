"""A bisect on disk: its question, what was measured for it, its verdicts, its log. Nothing in it is ever rewritten."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agelab.bisect.question import BisectQuestion
from agelab.errors import AgelabError, HostError, InputError, unknown
from agelab.results import checksummed, run_directory, run_lookup
from agelab.store import Store

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class StepError(BaseModel):
    """Why a step could not be judged: an error, as it left the step's process."""

    message: str
    hint: str
    exit_code: int

    def error(self) -> AgelabError:
        """The same error again."""
        kind = {2: InputError, 3: HostError}.get(self.exit_code, AgelabError)
        return kind(self.message, self.hint)


class BisectDirectory:
    """Where one bisect keeps what it is asked and what it has found."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def git(self) -> Path:
        """The repository in which git bisects; it has the user's objects, and nothing else of the user's."""
        return self.path / "git"

    @property
    def log(self) -> Path:
        """Each line that was said to the user."""
        return self.path / "log"

    @classmethod
    def create(cls, store: Store, question: BisectQuestion) -> "BisectDirectory":
        """A new one for that question, named by the moment and the scenario."""
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        label = f"{moment}-{Path(question.name).stem}"
        for attempt in range(1000):
            path = store.bisects / (f"{label}-{attempt}" if attempt else label)
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            checksummed.write_sealed(path / "question.json", question)
            run_directory.record_latest(path)
            return cls(path)
        raise FileExistsError(store.bisects / label)

    @classmethod
    def find(cls, store: Store, name: str) -> "BisectDirectory":
        """The bisect of that name, or in that directory; ``latest`` is the newest. Raises InputError."""
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
        """Add a line to the log, which whoever asked is shown."""
        with self.log.open("a") as file:
            file.write(line.rstrip("\n") + "\n")

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Nobody else does the same with it: ``bisect`` searches, ``step`` judges. Raises InputError where one does."""
        with (self.path / f"{name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(
                    f"{self.name} is still going on", hint=f"what it says: tail -f {self.log}"
                ) from error
            yield

    def append(self, what: str, row: BaseModel) -> None:
        """Add one to a list of them: ``measured`` or ``verdicts``."""
        checksummed.add_line(self.path / f"{what}.jsonl", row.model_dump(mode="json"))

    def rows(self, what: str, kind: type[AnyModel]) -> list[AnyModel]:
        """What was added to that list so far. Raises InputError where it is damaged."""
        path = self.path / f"{what}.jsonl"
        try:
            return [kind.model_validate(row) for row in checksummed.lines(path)]
        except (ValidationError, ValueError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}") from error

    def conditions(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """Under which conditions its first run was made: ``now`` where this is it."""
        path = self.path / "conditions.json"
        if not path.exists():
            checksummed.write(path, json.dumps(now, indent=1))
        return dict(json.loads(path.read_text()))

    def record_error(self, error: AgelabError) -> None:
        """Tell the process that drives git why a step could not be judged."""
        stopped = StepError(message=str(error), hint=error.hint, exit_code=error.exit_code)
        checksummed.write(self.path / "stopped.json", stopped.model_dump_json())

    def take_error(self) -> AgelabError | None:
        """Why the last step could not be judged, once; None where it could."""
        path = self.path / "stopped.json"
        if not path.exists():
            return None
        error = checksummed.read(path, StepError).error()
        path.unlink()
        return error
