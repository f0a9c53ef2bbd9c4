"""Find and remove what killed agelab processes have left behind.

A name alone is never enough: a process must carry the tag of a dead owner, and a file or directory must be one that
its creator would hold a lock on.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from agelab.base import atomic, orphans
from agelab.base.errors import AgelabError, InputError, Notify
from agelab.machine.vm import libvirt_daemon
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory, leads_out
from agelab.runner.doctor.probes import Finding, ProbeStatus
from agelab.store.artefacts import Store
from agelab.store.usage import disk_usage, total_size

TEMPORARY_PATTERNS = (
    "store/*/.*",
    "cache/*",
    "cache/*/*",
    "cache/*/*/*",
    "runs/*",
    "runs/*/*",
    "runs/*/cells/*/*",
    "bisects/*/*",
    "floors/*",
)
"""Places below AGELAB_HOME where temporary names are used."""
MAX_LISTED = 12
"""Maximum number of leftovers listed in the finding."""


@dataclass(frozen=True)
class Leftover:
    """A leftover that nobody owns."""

    description: str
    disk_bytes: int
    """Bytes on the host's disk."""
    remove: Callable[[], bool]
    """Remove it unless somebody holds it by now; return True if it is gone. Raises HostError on failure."""

    def __str__(self) -> str:
        return self.description + (f", {self.disk_bytes / 1e6:.1f} MB" if self.disk_bytes else "")


def find(store: Store) -> Iterator[Leftover]:
    """Yield all leftovers; those that may still change others come first, so that removing in order misses none."""
    for orphan in orphans.find_orphans():
        yield Leftover(f"process {orphan.pid}, {orphan.command}", 0, partial(_end_process, orphan))
    pid = libvirt_daemon.unused_pid() if os.geteuid() == 0 else None
    if pid:  # its users and its reaper have all gone
        yield Leftover(f"libvirtd that nobody uses, process {pid}", 0, _stop_daemon)
    for path in _temporary_paths(store):
        if atomic.is_abandoned(path):
            yield Leftover(f"unfinished {path}", total_size([disk_usage(path)]), partial(atomic.remove_abandoned, path))
    for run in run_lookup.without_plan(store.runs):
        yield Leftover(
            f"run without a plan {run.path}",
            total_size([disk_usage(run.path)]),
            partial(_remove_run_without_plan, store, run),
        )
    for run in run_lookup.all_runs(store.runs):
        disks = run.transient_files()
        if disks and not run.is_running():
            what = f"disks of cells that have not ended in {run.path}"
            yield Leftover(what, total_size(map(disk_usage, disks)), partial(_remove_disks, run))


def finding(store: Store) -> Finding:
    """Return the finding about leftovers."""
    leftovers = list(find(store))
    if not leftovers:
        return Finding(
            name="leftovers", status=ProbeStatus.OK, found="none", meaning="no killed agelab has left anything"
        )
    lines = [str(leftover) for leftover in leftovers[:MAX_LISTED]]
    lines += [f"and {len(leftovers) - MAX_LISTED} more"] if len(leftovers) > MAX_LISTED else []
    size = sum(leftover.disk_bytes for leftover in leftovers)
    return Finding(
        name="leftovers",
        status=ProbeStatus.LIMITED,
        found=f"{len(leftovers)}, {size / 1e6:.1f} MB",
        meaning="left by agelabs that were killed:\n" + "\n".join(lines),
        fix="agelab doctor --clean",
    )


def _end_process(orphan: orphans.TaggedProcess) -> bool:
    return bool(orphans.terminate([orphan]))


def _stop_daemon() -> bool:
    libvirt_daemon.stop_unused()
    return libvirt_daemon.unused_pid() is None


def _temporary_paths(store: Store) -> Iterator[Path]:
    for pattern in TEMPORARY_PATTERNS:
        top = store.home / pattern.partition("/")[0]
        yield from (
            path
            for path in sorted(store.home.glob(pattern + atomic.SUFFIX))
            if top not in (store.runs, store.bisects) or not leads_out(path, top)
        )
    for path in sorted(Path(gettempdir()).glob(f".agelab.*{atomic.SUFFIX}")):
        with suppress(FileNotFoundError):  # its owner has ended meanwhile
            if path.lstat().st_uid == os.geteuid():
                yield path


def _remove_run_without_plan(store: Store, run: RunDirectory) -> bool:
    with run_lookup.creation_lock(store.runs, exclusive=True):
        if run.path in [directory.path for directory in run_lookup.without_plan(store.runs)]:
            atomic.remove(run.path)
    return not run.path.exists()


def _remove_disks(run: RunDirectory) -> bool:
    try:
        with run.lock():
            for path in run.transient_files():
                atomic.discard(path)
    except InputError:  # another process has resumed the run
        return False
    return not run.transient_files()


def clean(store: Store, say: Notify) -> bool:
    """Remove all leftovers and report each. Return True if all are gone."""
    whole, any_found = True, False
    for leftover in find(store):
        any_found = True
        try:
            gone, why = leftover.remove(), "somebody holds it now"
        except (AgelabError, OSError) as error:
            gone, why = False, str(error)
        say(f"removed: {leftover}" if gone else f"still there: {leftover}: {why}")
        whole = whole and gone
    if not any_found:
        say("nothing was left over")
    return whole
