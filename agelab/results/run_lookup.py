"""Find runs by name among all run directories of a store, and tell those being created from those left behind."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from agelab.base import fileio
from agelab.base.errors import InputError, did_you_mean
from agelab.results.run_directory import LATEST, PLAN, RunDirectory


class HasPath(Protocol):
    """A run or a bisect: anything with a directory of its own."""

    path: Path


AnyDirectory = TypeVar("AnyDirectory", bound=HasPath)
NEWEST = 3
"""Runs to name where no run matches, or several do."""
ALL = "all runs: agelab list"


def find(runs: Path, name: str) -> RunDirectory:
    """Return the run of that name, or the only one whose name begins so, verified; ``latest`` is the newest.

    A name with a slash is the path of any run's directory. Raises InputError that names the nearest or newest runs, or
    what in the run is damaged.
    """
    run = find_unverified(runs, name)
    run.verify()
    return run


def find_unverified(runs: Path, name: str) -> RunDirectory:
    """Find a run like ``find``, but do not check its content."""
    if is_path(name):
        return _at(Path(name), runs.parent)
    known = all_runs(runs)
    if name == LATEST and known:
        return latest(known)
    for run in known:
        if run.name == name:
            return run
    if (Path(name) / PLAN).is_file():
        raise InputError(f"no run {name!r} in this store", hint=f"the one in this directory: ./{name}")
    if not known:
        raise InputError(f"no run {name!r}: there are no runs yet", hint="make one: agelab run aging-reiserfs")
    begun = [run for run in known if name and run.name.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise InputError(f"{len(begun)} runs begin with {name!r}; {_newest(begun)}", hint=ALL)
    if near := did_you_mean(name, [run.name for run in known]):
        raise InputError(f"no run {name!r}; {near}", hint=ALL)
    raise InputError(f"no run {name!r}; {_newest(known)}", hint=ALL)


def is_path(name: str) -> bool:
    """Return whether a name is a path: no run of a store has a slash in its name."""
    return "/" in name or name in (".", "..")


def _at(path: Path, home: Path) -> RunDirectory:
    """Return the run in a directory, which is none of the store's unless it lies there. Raises InputError for none."""
    if not (path / PLAN).exists():
        raise InputError(
            f"{path} is no run: it has no {PLAN}", hint="name the directory of one run, or one of agelab list"
        )
    return RunDirectory(path.resolve(), home)


def all_runs(runs: Path) -> list[RunDirectory]:
    """List the runs that have a plan, oldest first."""
    return [RunDirectory(path.parent) for path in sorted(runs.glob(f"*/{PLAN}"))]


def without_plan(runs: Path) -> list[RunDirectory]:
    """List the directories that never got a plan and that no process is running."""
    unplanned = (RunDirectory(path) for path in sorted(runs.glob("[!.]*/")) if not (path / "plan.json").exists())
    return [run for run in unplanned if not run.is_running()]


@contextmanager
def creation_lock(runs: Path, *, exclusive: bool = False) -> Iterator[None]:
    """Keep new run directories, which have no plan yet, from being taken for leftovers.

    Whoever creates a run holds it shared; whoever removes leftovers holds it ``exclusive``.
    """
    runs.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(runs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def latest(known: Sequence[AnyDirectory]) -> AnyDirectory:
    """Return the newest of some that exist, given oldest first by their names."""
    note = known[0].path.parent / LATEST
    named = fileio.read_text(note).strip() if note.exists() else ""
    return next((directory for directory in known if directory.path.name == named), known[-1])


def _newest(runs: Sequence[RunDirectory]) -> str:
    return "the newest: " + ", ".join(run.name for run in runs[: -NEWEST - 1 : -1])
