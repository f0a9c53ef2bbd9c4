"""The engines by name: turn a request into the lines of a log and the inputs that determine them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from agelab.base import atomic, fileio, readers
from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.data.corpus.artefact import MB, plan_files
from agelab.data.corpus.definition import definition
from agelab.data.history import churn, git_history, operations, profile, synthetic, tree
from agelab.data.history.report import EngineRecord, HistoryReport, report
from agelab.scenario.aging_profile import Profile
from agelab.scenario.history import Churned, History, Logged, Profiled, Pulled, Repository, Traced, Versions
from agelab.store.artefacts import file_hash, require_unchanged

CHURN_CORPUS = "debian-iso"
"""Corpus that churn copies, as in scenario aging."""
CHURN_DIVISOR = 10
"""The copied tree takes the disk's size divided by this."""


@dataclass
class LogSource:
    """A log before it is written. ``record`` is filled in while the lines are generated."""

    engine: str
    title: str
    disk: int
    seed: int | None
    inputs: dict[str, Any]
    """Everything that determines the lines."""
    lines: Iterator[bytes]
    record: EngineRecord = field(default_factory=EngineRecord)
    user_log: str = ""
    """Path of the user's log; empty if an engine generates the log."""
    readable_by: int = readers.EVERYBODY
    """Who may read the user's files that it is made of (agelab.base.fileio)."""


def log_source(history: History, disk: int, seed: int) -> LogSource:
    """Return the log of an engine for a disk of so many bytes, without generating it.

    Raises InputError for a request that the engine cannot fulfil, as far as this is known now (otherwise ``lines``
    does), HostError without git where it is needed.
    """
    if disk < MB:
        raise InputError(f"a disk of {disk} bytes is too small: a history takes one of {MB} at least")
    match history:
        case Profiled():
            return _profiled(history, disk, seed)
        case Versions():
            return _versions(history, disk, seed)
        case Repository():
            return _repository(history, disk)
        case Churned():
            return _churned(history, disk, seed)
        case Logged():
            return _logged(history, disk)
        case Pulled():
            raise InputError(f"history {history.name} has no log: the guest's git pulls its versions")
        case Traced():
            raise InputError(f"history {history.name} has no log: it is a trace of block requests")


def checked_lines(log: LogSource, check: operations.LogChecker) -> Iterator[tuple[bytes, bytes]]:
    """Check each line and yield it with its operation (empty if it has none).

    Raises InputError for an error in the user's log; an error in a generated log is a bug.
    """
    for line in log.lines:
        try:
            what = check.read(line)
        except InputError as error:
            if log.user_log:
                raise
            raise AssertionError(f"engine {log.engine} writes what is no log: {error}") from error
        yield line, what


def write_log(log: LogSource, path: Path) -> HistoryReport:
    """Write the log to a file, which appears once it is complete.

    Raises InputError if it cannot be written.
    """
    check = operations.LogChecker(log.user_log or log.engine)
    with readers.whole_file(path, log.readable_by) as partial:
        with partial.open("wb") as file:
            for line, _ in checked_lines(log, check):
                file.write(line)
        return report(log.engine, log.disk, log.seed, log.record, check.summary())


def _profiled(history: Profiled, disk: int, seed: int) -> LogSource:
    what = history.profile if isinstance(history.profile, Profile) else profile.load_profile(history.profile)
    fullness, overwrites = _amounts(history)
    asked = profile.ProfileRequest(disk, fullness, overwrites, history.points)
    made = profile.ProducedFiles()
    return LogSource(
        history.engine,
        f"to profile {what.name}, {fullness:g} full, written {overwrites:g} times",
        disk,
        seed,
        _inputs(history, disk, seed, recipe=profile.RECIPE, profile=key_of(what.model_dump())),
        profile.operations(what, asked, seed, made),
        EngineRecord(fullness, overwrites, profile=what, produced=made),
    )


def _versions(history: Versions, disk: int, seed: int) -> LogSource:
    fullness, overwrites = _amounts(history)
    full, budget = int(disk * fullness), int(disk * overwrites)
    if full < 2 * MB:
        raise InputError(
            f"{full:,} bytes are too few for a source tree, which needs {2 * MB:,}",
            hint="take a larger disk, or more of it",
        )
    record = EngineRecord(fullness, overwrites, versions=0)
    recipe = [synthetic.RECIPE, tree.RECIPE]
    points = [budget * number // history.points for number in range(1, history.points + 1)]
    return LogSource(
        history.engine,
        f"versions of a source tree, {fullness:g} full, written {overwrites:g} times",
        disk,
        seed,
        _inputs(history, disk, seed, recipe=recipe, tree=key_of(definition(synthetic.CORPUS).model_dump())),
        tree.operations(_count_versions(synthetic.versions(full, budget, seed), record), points),
        record,
    )


def _repository(history: Repository, disk: int) -> LogSource:
    repository = Path(history.repository).absolute()
    commit = git_history.resolve_commit(repository, history.revision)
    commits = git_history.first_parents(repository, commit)
    record = EngineRecord(versions=0)

    def lines() -> Iterator[bytes]:
        with atomic.temp_dir(Path(gettempdir())) as work:
            changes = git_history.changes(repository, commits, work)
            bytes_of = [sum(change.size or 0 for change in version) for version in changes.versions()]
            if history.points > len(bytes_of):
                raise InputError(
                    f"{repository} has {len(bytes_of)} versions up to {history.revision}: "
                    f"{history.points} points are too many",
                    hint="a point comes at the end of a version",
                )
            every = sum(bytes_of)
            points = [every * number // history.points for number in range(1, history.points + 1)]
            yield from tree.operations(_count_versions(changes.versions(), record), points)

    title = f"versions of the user's repository up to {commit[:12]}"
    inputs = {"engine": history.engine, "recipe": tree.RECIPE, "commit": commit, "points": history.points}
    # In a shallow clone, or one with grafts, the same commit has other versions before it.
    inputs["versions"] = hashlib.sha256("".join(f"{version}\n" for version in commits).encode()).hexdigest()
    return LogSource(
        history.engine, title, disk, None, inputs, lines(), record, readable_by=git_history.readable_by(repository)
    )


def _churned(history: Churned, disk: int, seed: int) -> LogSource:
    fullness, overwrites, freed = history.fullness.value, history.overwrites.value, history.freed.value
    what = definition(CHURN_CORPUS)
    copied = plan_files(what, max(MB, disk // CHURN_DIVISOR), seed)
    size = sum(entry.size for entry in copied)
    if not 0 < fullness <= 1 or not freed <= 1:
        raise InputError("fullness must be above 0 and at most 1, freed at most 1")
    if size * 1.02 > disk * fullness:
        raise InputError(
            f"churn copies a tree of {size:,} bytes: {int(disk * fullness):,} have no room for it",
            hint="take a larger disk, or more of it",
        )
    turns = max(1, round(overwrites * disk / size))
    if history.points > turns + 1:
        raise InputError(
            f"{history.points} points are too many: there are {turns} turns of {size:,} bytes",
            hint="a point comes at the end of a turn, and the last at the end of all: take more overwrites",
        )
    return LogSource(
        history.engine,
        f"cycles of scenario aging, {fullness:g} full, written {overwrites:g} times, {freed:g} freed",
        disk,
        seed,
        _inputs(history, disk, seed, recipe=churn.RECIPE, tree=key_of(what.model_dump())),
        churn.operations(copied, churn.ChurnRequest(disk, turns, fullness, freed, history.points), seed),
        EngineRecord(fullness, overwrites, at_peak=True, overwritten_bytes=turns * size, turns=turns),
    )


def _logged(history: Logged, disk: int) -> LogSource:
    path = Path(history.log).absolute()
    try:
        content = file_hash(path, fileio.OPERATIONS)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    inputs = {"engine": history.engine, "sha256": content}

    def lines() -> Iterator[bytes]:
        yield from operations.read_lines(path)
        require_unchanged(path, content)

    title = "the user's log"
    return LogSource(
        history.engine, title, disk, None, inputs, lines(), user_log=str(path), readable_by=readers.of_files(path)
    )


def _amounts(history: Profiled | Versions) -> tuple[float, float]:
    fullness, overwrites = history.fullness.value, history.overwrites.value
    if not 0 < fullness <= 1:
        raise InputError(f"fullness is {fullness:g}: it must be above 0 and at most 1")
    if overwrites < fullness:
        raise InputError(f"overwrites are {overwrites:g}, fewer than fullness, {fullness:g}: the filling is among them")
    return fullness, overwrites


def _inputs(history: Profiled | Versions | Churned, disk: int, seed: int, **others: Any) -> dict[str, Any]:
    """Return the inputs: figures without their origin and notes, and ``others``."""
    figures: dict[str, Any] = {
        name: getattr(history, name).value
        for name in ("fullness", "overwrites", "freed")
        if name in type(history).model_fields
    }
    return {"engine": history.engine, "points": history.points, "disk": disk, "seed": seed, **figures, **others}


def _count_versions(versions: Iterator[tree.Version], record: EngineRecord) -> Iterator[tree.Version]:
    record.versions = 0
    for version in versions:
        record.versions += 1
        yield version
