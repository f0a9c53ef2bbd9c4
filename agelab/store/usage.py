"""What the store holds: sizes, last uses, what runs and stored disks name, and removal of what nobody needs.

A run names an artefact by a hash in its files: the artefact's key, its content or one of its files. An artefact that is
named names those that its inputs name.
"""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.gathered import gathered
from agelab.results import run_lookup
from agelab.results.key_and_digest import inputs_key
from agelab.results.run_directory import RunDirectory
from agelab.store import stored_disk
from agelab.store.artefacts import MANIFEST, DamagedArtefact, Store

PRUNED_CACHES = ("debs", "kernels", "buildroots", "ccache")
"""Caches that grow. ``resolved`` is kept: it fixes the versions that a kernel's or package's name stands for."""
CRASH, CRASH_LOCK = "crash", "lock"
"""The kind of a crash run, and the file that is locked while a guest looks at it. It says what made it, so it is pruned
as what can be made again."""
RUN_FILES = ("plan.json", "made-of.json", "cells/*/inputs.json", "cells/*/end.json")
"""The files of a run that name artefacts."""
HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

Files = Mapping[tuple[int, int], int]
"""Device and inode of each file to its bytes on the disk: a file with several names counts once."""


class Protection(StrEnum):
    """The reason not to prune something."""

    NAMED = "named by runs or stored disks"
    DAMAGED_RUN = "kept, as a run that may name it cannot be read"
    IN_USE = "in use"
    STORED_DISK = "stored disks"


@dataclass(frozen=True)
class StoredItem:
    """An artefact, or an entry of a cache."""

    kind: str
    """The artefact's kind; of a cache's entry ``cache`` and the cache's name; of a crash run ``crash``."""
    name: str
    """The artefact's key, or the name of the entry or run."""
    path: Path
    files: Files
    last_use: float
    """Seconds since the epoch."""
    hashes: frozenset[str] = frozenset()
    """The hashes by which a run names it."""
    inputs: frozenset[str] = frozenset()
    """The hashes among its own inputs."""

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(self.files.values())

    @property
    def is_artefact(self) -> bool:
        return not self.kind.startswith("cache ") and self.kind != CRASH


@dataclass(frozen=True)
class StoreUsage:
    """All that is below AGELAB_HOME."""

    items: tuple[StoredItem, ...]
    rest: Mapping[str, Files]
    """What is no item, by the name of its directory: runs, caches that are never pruned, and other small files."""
    named_by: Mapping[Path, tuple[str, ...]]
    """The runs and stored disks that name an artefact, by its path."""
    damaged_runs: tuple[str, ...]
    """Runs that cannot be read, so that nobody knows what they name."""

    @property
    def size(self) -> int:
        """Bytes on the disk, each file once."""
        return total_size([*(item.files for item in self.items), *self.rest.values()])

    def protection(self, item: StoredItem) -> Protection | None:
        """Return why it must stay, whether or not it is in use; None where nothing names it."""
        if not item.is_artefact:
            return None
        if item.kind == stored_disk.KIND:
            return Protection.STORED_DISK
        if item.path in self.named_by:
            return Protection.NAMED
        return Protection.DAMAGED_RUN if self.damaged_runs else None


@dataclass(frozen=True)
class Pruned:
    """What ``prune`` did, or would do."""

    removed: tuple[tuple[StoredItem, int], ...]
    """What was removed, with the bytes that this freed: a file with another name stays."""
    kept: Mapping[Protection, tuple[StoredItem, ...]]
    left: int
    """Bytes on the disk."""

    @property
    def freed(self) -> int:
        return sum(size for _, size in self.removed)


def total_size(groups: Iterable[Files]) -> int:
    """Add up bytes on the disk, each file once."""
    return sum({inode: size for files in groups for inode, size in files.items()}.values())


def survey(store: Store) -> StoreUsage:
    """Measure everything below AGELAB_HOME; nothing there is changed."""
    items = [*_artefacts(store), *_cache_entries(store)]
    named_by, damaged = _references(store, items)
    counted = {inode for item in items for inode in item.files}
    rest: dict[str, Files] = {}
    for path in sorted(store.home.iterdir()) if store.home.is_dir() else ():
        files = {inode: size for inode, size in disk_usage(path).items() if inode not in counted}
        name = path.name if path.name in ("runs", "cache") else "other"
        rest[name] = {**rest.get(name, {}), **files}
    return StoreUsage(tuple(items), rest, named_by, tuple(damaged))


def prune(store: Store, limit: int, *, dry_run: bool = False) -> Pruned:
    """Remove the least recently used artefacts, cache entries and crash runs until the store fits into ``limit`` bytes.

    What a run or a stored disk names, stored disks themselves and what a process uses stay.
    """
    runs = _run_files(store)
    usage = survey(store)
    left = usage.size
    links = Counter(inode for item in usage.items for inode in item.files)
    links.update(inode for files in usage.rest.values() for inode in files)
    removed: list[tuple[StoredItem, int]] = []
    kept: dict[Protection, list[StoredItem]] = {}
    for item in sorted(usage.items, key=lambda item: item.last_use):
        reason = usage.protection(item)
        if reason is None and left > limit:
            with _unused(store, item) as unused:
                if unused and (now := _run_files(store)) != runs:  # a run that has ended meanwhile may name it
                    runs, usage = now, _with_references(store, usage)
                    reason = usage.protection(item)
                if unused and reason is None:
                    freed = sum(size for inode, size in item.files.items() if links[inode] == 1)
                    links.subtract(item.files.keys())
                    left -= freed
                    removed.append((item, freed))
                    if not dry_run:
                        _remove(item.path)
                else:
                    reason = reason or Protection.IN_USE
        if reason:
            kept.setdefault(reason, []).append(item)
    return Pruned(tuple(removed), {reason: tuple(items) for reason, items in kept.items()}, left)


def disk_usage(path: Path) -> dict[tuple[int, int], int]:
    """Measure a file, or a directory with all in it, by allocated blocks: files of the store are sparse."""
    return {(status.st_dev, status.st_ino): 512 * status.st_blocks for status in _statuses(path)}


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of a directory and all in it; what another process removes meanwhile has none."""
    waiting = [path]
    while waiting:  # os.walk goes no deeper than Python's calls, and directories of others may
        entry = waiting.pop()
        with suppress(OSError):
            status = os.lstat(entry)
            if stat.S_ISDIR(status.st_mode):
                waiting += entry.iterdir()
            yield status


def _artefacts(store: Store) -> Iterator[StoredItem]:
    for path in sorted(store.root.glob(f"*/[!.]*/{MANIFEST}")):
        kind, key = path.parent.parent.name, path.parent.name
        if not HASH.fullmatch(key.encode()):  # nothing of agelab's
            continue
        hashes, inputs = {key}, _hashes(path)
        try:
            artefact = store.find(kind, key)
        except DamagedArtefact:
            artefact = None
        if artefact:
            manifest = artefact.manifest
            hashes |= {manifest.content, *(text.rpartition(":")[2] for text in manifest.files.values())}
        with suppress(FileNotFoundError):
            last_use = path.parent.stat().st_mtime if artefact else 0
            files = disk_usage(path.parent)
            yield StoredItem(kind, key, path.parent, files, last_use, frozenset(hashes), frozenset(inputs - hashes))


def _cache_entries(store: Store) -> Iterator[StoredItem]:
    caches = {f"cache {name}": store.home / "cache" / name for name in PRUNED_CACHES}
    for kind, directory in {**caches, CRASH: store.crashes}.items():
        if not directory.is_dir():
            continue
        for path in sorted(directory.iterdir()):
            with suppress(FileNotFoundError):
                if path.suffix != atomic.SUFFIX:
                    yield StoredItem(kind, path.name, path, disk_usage(path), _last_use(path))


def _last_use(path: Path) -> float:
    """The time of the last change, of a file also that of the last read where the filesystem records it."""
    status = path.lstat()
    if not path.is_dir():
        return max(status.st_ctime, status.st_atime)
    return max(state.st_ctime for state in (status, *_statuses(path)))


def _with_references(store: Store, usage: StoreUsage) -> StoreUsage:
    named_by, damaged = _references(store, usage.items)
    return replace(usage, named_by=named_by, damaged_runs=tuple(damaged))


def _run_files(store: Store) -> Mapping[Path, int]:
    """Map the files that name artefacts to the time of their last change."""
    changed = {}
    for path in (path for pattern in RUN_FILES for path in store.runs.glob(f"*/{pattern}")):
        with suppress(FileNotFoundError):
            changed[path] = path.stat().st_mtime_ns
    return changed


def _references(store: Store, items: Sequence[StoredItem]) -> tuple[dict[Path, tuple[str, ...]], list[str]]:
    """Find the runs and stored disks that name each artefact, by its path, and the runs that cannot be read."""
    owners = gathered((text, item) for item in items for text in item.hashes)
    named_by: dict[Path, list[str]] = {}

    def name(hashes: Iterable[str], by: str) -> None:
        waiting = [item for text in hashes for item in owners.get(text, ())]
        seen: set[Path] = set()
        while waiting:
            item = waiting.pop()
            if item.path not in seen:
                seen.add(item.path)
                named_by.setdefault(item.path, []).append(by)
                waiting += [other for text in item.inputs for other in owners.get(text, ())]

    damaged = []
    for run in run_lookup.all_runs(store.runs):
        paths = [path for pattern in RUN_FILES for path in run.path.glob(pattern)]
        name(set[str]().union(*map(_hashes, paths)), f"run {run.name}")
        if not _is_readable(run):
            damaged.append(run.name)
    for item in items:
        if item.kind == stored_disk.KIND:
            own = item.inputs | _hashes(item.path / stored_disk.RECIPE)
            name(own - item.hashes, f"disk {item.name[: stored_disk.SHORT_KEY]}")
    return {path: tuple(names) for path, names in named_by.items()}, damaged


def _hashes(path: Path) -> set[str]:
    """Read all sha256 that stand in a file, whatever else is in it."""
    try:
        return {sha256.decode() for sha256 in HASH.findall(fileio.read_bytes(path))}
    except OSError:
        return set()


def _is_readable(run: RunDirectory) -> bool:
    """Return True if the run says undamaged what it was made of."""
    try:
        for number in range(len(run.plan().cells)):
            end = run.end(number)
            if end and end.inputs_key:
                inputs = json.loads(fileio.read_bytes(run.path / "cells" / str(number) / "inputs.json"))
                if inputs_key(inputs) != end.inputs_key:
                    return False
    except (InputError, OSError, ValueError):
        return False
    return True


@contextmanager
def _unused(store: Store, item: StoredItem) -> Iterator[bool]:
    """Lock an item against use while the body runs; False where a process uses it, or has since it was measured."""
    with ExitStack() as held:
        if item.is_artefact:
            (store.home / "locks").mkdir(exist_ok=True)
            build_lock = store.home / "locks" / f"{item.kind}-{item.name}"
            locked = _try_lock(held, build_lock, os.O_CREAT) and _try_lock(held, item.path / MANIFEST)
            try:
                recent = store.find(item.kind, item.name) and item.path.stat().st_mtime != item.last_use
            except (DamagedArtefact, OSError):
                recent = False
            yield locked and not recent
        else:
            if item.kind == CRASH:
                yield _try_lock(held, item.path / CRASH_LOCK, os.O_CREAT)
            else:
                yield _try_lock(held, item.path.parent)


def _try_lock(held: ExitStack, path: Path, flags: int = 0) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, 0o644)
    except FileNotFoundError:
        return False
    held.callback(os.close, descriptor)
    return atomic.try_lock(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        atomic.remove(path)
    else:
        atomic.discard(path)
