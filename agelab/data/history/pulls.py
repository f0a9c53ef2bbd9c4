"""A git repository, and the versions of it that a guest pulls one after the other: a history of engine ``pulls``.

The image holds the repository, ``repository.git``, and one file for each part of the history, ``1`` to ``n``: the
commits to pull, one a line, the oldest first.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any

from agelab.base import git, readers
from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.data.corpus import iso
from agelab.data.corpus.artefact import IMAGE_FILE, MB, Corpus, CorpusDescription, obtain, require_space
from agelab.data.corpus.definition import definition
from agelab.data.corpus.random_content import source
from agelab.data.corpus.user import DATE
from agelab.data.history import git_history, synthetic, tree
from agelab.data.history.operations import LogChecker
from agelab.data.history.report import REPORT, EngineRecord, report
from agelab.scenario.history import Pulled
from agelab.store.artefacts import Store

REPOSITORY = "repository.git"
BRANCH = "refs/heads/main"
VOLUME = "PULLS"
RECIPE = 1
"""Raise this when a change of this module changes a repository's bytes."""
GROWTH = 2
"""A seeded tree grows to so many times its first size at most."""
FIRST_COMMIT, BETWEEN_COMMITS = 1_113_690_036, 3600
"""Seconds since 1970 of a seeded repository's first commit, and from one to the next."""
AUTHOR = b"agelab <agelab@example.org>"
# Nothing is compressed or compared: so the bytes of a seeded repository depend on no version of zlib, and the guest's
# git packs what is pulled without searching for similar files.
CONFIGURATION = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tcompression = 0
[fastimport]
\tunpackLimit = 1
[pack]
\tthreads = 1
\twindow = 0
[uploadpack]
\tallowAnySHA1InWant = true
"""


@dataclass(frozen=True)
class _Source:
    """Where the versions come from."""

    title: str
    inputs: dict[str, Any]
    make: Callable[[Path, Path], tuple[Sequence[str], Iterable[tree.Version]]]
    """Fills an empty repository, with an empty directory to work in; returns commits and versions, the oldest first."""
    seed: int | None = None
    readable_by: int = readers.EVERYBODY


def obtain_pulls(history: Pulled, disk: int, seed: int, store: Store) -> Corpus:
    """Return the repository and its parts for a disk of so many bytes, from the store or made now.

    Raises InputError for a repository that is none or has too few versions, HostError where the host lacks git or room.
    """
    pulls = int(history.pulls.value)
    source = _users(history, pulls) if history.repository else _seeded(history, pulls, disk, seed)

    def build(directory: Path) -> CorpusDescription:
        parts, work = directory / "parts", directory / "work"
        parts.mkdir()
        work.mkdir()
        repository = _empty_repository(parts / REPOSITORY)
        commits, versions = source.make(repository, work)
        for number, part in enumerate(split(commits, history.points), start=1):
            (parts / str(number)).write_text("".join(f"{commit}\n" for commit in part), encoding="ascii")
        _write_report(directory / REPORT, history, disk, source.seed, versions)
        shutil.rmtree(work)
        sizes = [path.stat().st_size for path in parts.rglob("*") if path.is_file()]
        require_space(sum(sizes) + 1000 * iso.BLOCK, directory, "keeping the repository")
        iso.make(parts, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
        shutil.rmtree(parts)
        described = f"history: {source.title}; {pulls} pulls"
        return CorpusDescription(
            files=len(sizes), content_bytes=sum(sizes), description=described, parts=history.points
        )

    inputs = {
        "source": history.engine,
        "recipe": [RECIPE, tree.RECIPE],
        "pulls": pulls,
        "points": history.points,
        "git": git.version(),
        "disk": disk,
        "maker": iso.MAKER,
        **source.inputs,
    }
    return obtain(store, inputs, build, source.readable_by)


def split(commits: Sequence[str], points: int) -> list[Sequence[str]]:
    """Return the commits of each part: the pulls are shared out evenly, and the first version comes before them."""
    pulls = len(commits) - 1
    ends = [0, *(1 + pulls * number // points for number in range(1, points + 1))]
    return [commits[start:end] for start, end in pairwise(ends)]


def _seeded(history: Pulled, pulls: int, disk: int, seed: int) -> _Source:
    first = int(disk * history.fullness.value)
    if first < MB:
        raise InputError(f"{first:,} bytes are too few for a source tree, which needs {MB:,}")

    def make(repository: Path, work: Path) -> tuple[Sequence[str], Iterable[tree.Version]]:
        versions = list(islice(synthetic.endless_versions(first, GROWTH * first, seed), pulls + 1))
        with (work / "stream").open("wb") as file:
            file.writelines(_import_stream(versions, seed))
        git.run(repository, ["fast-import", "--quiet", "--depth=0"], stdin=work / "stream")
        listed = git.run(repository, ["rev-list", "--reverse", BRANCH]).stdout.split()
        return listed, versions

    content = key_of(definition(synthetic.CORPUS).model_dump())
    inputs = {"seed": seed, "first": first, "tree": content, "versions": synthetic.RECIPE}
    return _Source("a seeded git repository", inputs, make, seed)


def _import_stream(versions: Sequence[tree.Version], seed: int) -> Iterator[bytes]:
    """Yield a stream for git fast-import: one commit for each version; a changed file differs in its first line."""
    for number, version in enumerate(versions):
        yield b"commit %s\ncommitter %s %d +0000\n" % (BRANCH.encode(), AUTHOR, FIRST_COMMIT + number * BETWEEN_COMMITS)
        yield b"data <<END\nVersion %d\nEND\n" % number
        for change in version:
            if change.size is None:
                yield b"D %s\n" % change.path
                continue
            text = b"/* version %d */\n%s" % (number, source(seed, change.path.decode(), change.size))
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (change.path, change.size, text[: change.size])


def _users(history: Pulled, pulls: int) -> _Source:
    path = Path(history.repository).absolute()
    newest = git_history.resolve_commit(path, history.revision)
    commits = git_history.first_parents(path, newest)
    if len(newest) != len("0" * 40):
        raise InputError(f"{path} names its objects by sha256, which is not pulled from")
    if len(commits) <= pulls:
        raise InputError(
            f"{path} has {len(commits)} versions up to {history.revision}: too few for {pulls} pulls, "
            "each of the next one",
            hint="take a repository with more of them, along first parents",
        )
    taken = commits[: pulls + 1]

    def make(repository: Path, work: Path) -> tuple[Sequence[str], Iterable[tree.Version]]:
        git_history.copy_objects(path, taken[-1], repository, work)
        (repository / BRANCH).write_text(f"{taken[-1]}\n", encoding="ascii")
        return taken, git_history.copied_changes(path, taken, repository, work).versions()

    return _Source(
        f"the user's repository up to {taken[-1][:12]}",
        {"commits": key_of(list(taken))},
        make,
        readable_by=git_history.readable_by(path),
    )


def _empty_repository(repository: Path) -> Path:
    """Make a bare repository without what a host's git would put into it."""
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (repository / name).mkdir(parents=True)
    (repository / "HEAD").write_text(f"ref: {BRANCH}\n", encoding="ascii")
    (repository / "config").write_text(CONFIGURATION, encoding="ascii")
    return repository


def _write_report(path: Path, history: Pulled, disk: int, seed: int | None, versions: Iterable[tree.Version]) -> None:
    """Write what the pulls do to the work tree, as of any history."""
    every = list(versions)
    written = list(accumulate(sum(change.size or 0 for change in version) for version in every))
    ends = [len(part) for part in split([""] * len(every), history.points)]
    points = [written[end - 1] for end in accumulate(ends)]
    check = LogChecker(history.engine)
    for line in tree.operations(every, points):
        check.read(line)
    summary = report(history.engine, disk, seed, EngineRecord(versions=len(every)), check.summary())
    path.write_text(summary.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
