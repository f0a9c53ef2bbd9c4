"""What moves on a track, in its order, and which of it is measured next."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

from agelab.base import git
from agelab.base.errors import HostError, InputError, Notify
from agelab.base.git import GitRepository
from agelab.base.sanitize import escape_controls
from agelab.bisect import search
from agelab.bisect.git_search import is_ancestor, resolve_commit
from agelab.bisect.track.question import Commits, DebianKernels, KernelTree, Track
from agelab.debian import snapshot
from agelab.kernel import available, recipes, source_tree
from agelab.kernel.debian_kernel import AvailableKernel, numbers
from agelab.store.artefacts import Store

FIELD = "\x1f"
"""Between what git prints of a commit: no subject has it, or it is part of the subject, which comes last."""


class Rank(IntEnum):
    """Why a point matters, the first before the others."""

    END = 0
    TAG = 1
    TOUCHES = 2
    """It changes a path that matters: a merge, or a commit on the branch itself."""
    OTHER = 3


@dataclass(frozen=True)
class Point:
    """A commit, a package or a date."""

    id: str
    """The spec of its kernel; of a program its commit, of a date the snapshot's name."""
    name: str
    date: str = ""
    """The author's date of a commit."""
    subject: str = ""
    rank: Rank = Rank.OTHER

    @property
    def words(self) -> str:
        """Name, date and subject, as far as it has them."""
        return " ".join(filter(None, (self.name, self.date, self.subject and f'"{self.subject}"')))


def points_of(
    track: Track, store: Store, say: Notify, measured: Sequence[str] = (), *, refresh: bool = False
) -> list[Point]:
    """List all points, the oldest first; kernels that were ``measured`` also where the mirror has newer ones by now.

    ``refresh`` asks the mirror anew. Raises InputError for a tree, ref, version, date or path that there is not.
    """
    if track.debian:
        return _packages(track.debian, store, say, measured, refresh=refresh)
    commits = track.tree or track.program
    assert commits
    path = Path(commits.path).expanduser().absolute()
    repository = git.at(path)
    if repository is None:
        raise InputError(f"{path}: it is not the top directory of a git tree")
    return _commits(commits, repository, path)


def _packages(
    asked: DebianKernels, store: Store, say: Notify, measured: Sequence[str], *, refresh: bool
) -> list[Point]:
    if asked.dates:
        for date in asked.dates:
            with snapshot.named(date):
                snapshot.chosen()
        return _ranked([(date, date, "", "") for date in asked.dates], (), None)
    if asked.kernels:
        specs = dict.fromkeys(search.pin(spec, store, say) for spec in asked.kernels)
    else:
        since = numbers(asked.since)
        there = (kernel for kernel in _of_mirror(store, say, refresh=refresh) if kernel.headers)
        known = [kernel.spec for kernel in there if numbers(kernel.version) >= since]
        known += [spec for spec in measured if spec.startswith(search.DEBIAN) and numbers(spec)[:2] >= since[:2]]
        specs = dict.fromkeys(sorted(known, key=search.by_version))
    if not specs:
        raise InputError(f"debian: the mirror has no kernel since {asked.since}", hint="agelab list kernels")
    names = [spec.partition(":")[2].removesuffix("-amd64") for spec in specs]
    return _ranked([(spec, name, "", "") for spec, name in zip(specs, names, strict=True)], (), None)


def _of_mirror(store: Store, say: Notify, *, refresh: bool) -> list[AvailableKernel]:
    try:
        return available(store, refresh=refresh, progress=say)
    except HostError as error:
        say(f"no new kernels: {str(error).splitlines()[0]}")
        return available(store, progress=say)


def _commits(asked: Commits, repository: GitRepository, path: Path) -> list[Point]:
    """List the commits of the branch itself: what a merge brings is the merge's."""
    since, tip = (
        resolve_commit(repository, key, ref) for key, ref in (("since", asked.since), ("branch", asked.branch))
    )
    if not is_ancestor(repository, since, tip):
        raise InputError(f"{path}: since ({asked.since}) is not in the history of {asked.branch}")
    if missing := [name for name in asked.paths if not _is_there(repository, since, tip, name)]:
        raise InputError(f"{path}: paths: there is no {', '.join(missing)} in {asked.since} or {asked.branch}")
    before = after = ""
    if isinstance(asked, KernelTree):
        for name, commit in (("since", since), ("branch", tip)):
            source_tree.require_kernel(f"{path}: {name}", repository, commit)
        given = [("base", asked.base), *(("config", line) for line in asked.config)]
        given += [("patches", patch) for patch in asked.patches]
        before, after = f"tree:{path}@", "".join(f",{recipes.option(*option)}" for option in given if option[1])
        recipes.parse(f"{before}{tip}{after}")

    def lines_of(*argv: str) -> list[str]:
        return repository.query(argv).stdout.split("\n")[:-1]  # a subject may have what else ends a line

    log = ("log", "--first-parent", f"--format=%H{FIELD}%h{FIELD}%as{FIELD}%s")
    lines = [*lines_of(*log, "-1", since), *lines_of(*log, "--reverse", f"{since}..{tip}")]
    tags = {}
    for line in lines_of("for-each-ref", "--format=%(objectname) %(*objectname) %(refname:short)", "refs/tags"):
        tag, commit, name = line.split(" ", 2)
        tags[commit or tag] = name
    touching = None
    if asked.paths:
        touching = {*lines_of("rev-list", "--first-parent", f"{since}..{tip}", "--", *asked.paths)}
    rows = []
    for line in lines:
        commit, short, date, subject = line.split(FIELD, 3)
        rows.append((commit, escape_controls(tags.get(commit, short)), date, escape_controls(subject)))
    return [replace(point, id=f"{before}{point.id}{after}") for point in _ranked(rows, tags, touching)]


def _is_there(repository: GitRepository, since: str, tip: str, name: str) -> bool:
    return any(
        source_tree.query_git(repository, ["ls-tree", "--name-only", commit, "--", name.rstrip("/")])
        for commit in (since, tip)
    )


def _ranked(
    rows: Sequence[tuple[str, str, str, str]], tags: Collection[str], touching: Collection[str] | None
) -> list[Point]:
    """Make points of rows in their order; ``touching`` is None where no path matters more than others."""

    def rank(place: int, name: str) -> Rank:
        if place in (0, len(rows) - 1):
            return Rank.END
        if name in tags:
            return Rank.TAG
        return Rank.TOUCHES if touching is None or name in touching else Rank.OTHER

    return [
        Point(name, called, date, subject, rank(place, name))
        for place, (name, called, date, subject) in enumerate(rows)
    ]


def next_point(points: Sequence[Point], done: Collection[str]) -> Point | None:
    """Return the point to measure next; None where all are ``done``.

    The newest, the oldest, tags (the newest first), then of what touches a path that matters, and at last of all
    others, the one nearest to the middle of the largest gap.
    """
    for rank in (Rank.END, Rank.TAG):
        for point in reversed(points):
            if point.rank is rank and point.id not in done:
                return point
    for rank in (Rank.TOUCHES, Rank.OTHER):
        among = [point for point in points if point.rank <= rank or point.id in done]
        if (middle := _middle_of_largest_gap(among, done)) is not None:
            return middle
    return None


def _middle_of_largest_gap(points: Sequence[Point], done: Collection[str]) -> Point | None:
    """Return it, of points whose ends are done; of gaps of one size it is the newest."""
    known = [place for place, point in enumerate(points) if point.id in done]
    gaps = [(after - before, before) for before, after in pairwise(known)]
    size, before = max(gaps, default=(1, 0))
    return points[before + size // 2] if size > 1 else None
