"""Versions of a user's git repository along first parents, oldest first, as changes of files.

Git believes the names of a repository's objects, and a history's key is made of them. So objects are read from a
repository of ours, into which they come as a pack: there git names each by its content, and a forged one is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agelab.base import git, process, readers
from agelab.base.errors import InputError
from agelab.data.history.tree import FileChange, Version

REGULAR = (b"100644", b"100755")
"""Modes of regular files; links and submodules are left out."""
READ_BYTES = 1 << 20
"""Bytes to read at a time."""

# Plumbing commands ignore the user's settings: the same repository gives everyone the same history.
_REVISIONS = ("rev-list", "--first-parent", "--reverse")
_OBJECTS = ("rev-list", "--objects", "--no-walk=unsorted", "--missing=allow-any", "--stdin")
_PACK_LISTED = ("pack-objects", "--stdout", "-q", "--window=0")
_KNOWN = ("rev-list", "--no-walk=unsorted", "--quiet", "--stdin")
_BATCH_SIZES = ("cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer")
_PACK = ("pack-objects", "--revs", "--stdout", "-q", "--threads=1", "--no-reuse-delta", "--no-reuse-object")
_NO_GRAFTS = {"GIT_GRAFT_FILE": "/dev/null"}
_CHANGES = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--diff-merges=first-parent")


@dataclass(frozen=True)
class RepositoryChanges:
    """Changes of all versions, kept in a file as they may exceed memory."""

    raw: Path
    sizes: Mapping[bytes, int]
    """Size in bytes by blob."""

    def versions(self) -> Iterator[Version]:
        """Yield the changes of each version."""
        for version in _parse_diff_tree(_split_at_nul(self.raw)):
            yield tuple(FileChange(path, self.sizes[blob] if blob else None) for path, blob in version)


def resolve_commit(repository: Path, revision: str) -> str:
    """Resolve a revision to a commit hash.

    Raises InputError for a path that is no repository or an unknown revision, HostError without git.
    """
    return _git(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").stdout.strip()


def first_parents(repository: Path, commit: str) -> tuple[str, ...]:
    """Return the versions up to a commit, the oldest first. Raises as ``resolve_commit`` does."""
    return tuple(_git(repository, *_REVISIONS, commit).stdout.split())


def copy_objects(repository: Path, commit: str, into: Path, work: Path) -> None:
    """Copy all that a commit needs into a bare repository of ours, as one pack that is the same on every host.

    ``work`` is a directory for git's output. Raises InputError where the repository lacks some of it.
    """
    (work / "wanted-commit").write_text(f"{commit}\n", encoding="ascii")
    _git(repository, *_PACK, source=work / "wanted-commit", to=work / "pack", env=_NO_GRAFTS)
    git.run(into, ["index-pack", "--stdin", "--threads=1"], stdin=work / "pack")
    _git(repository, "rev-list", "--objects", "--quiet", commit, ours=into)


def changes(repository: Path, commits: Sequence[str], work: Path) -> RepositoryChanges:
    """Collect the changes of these versions; ``work`` is an empty directory for git's output.

    Raises InputError where git cannot read the repository.
    """
    ours = work / "repository.git"
    git.init_bare(ours, "sha256" if len(commits[0]) == len("0" * 64) else "sha1")
    (work / "versions").write_text("".join(f"{commit}\n" for commit in commits), encoding="ascii")
    _git(repository, *_OBJECTS, source=work / "versions", to=work / "objects")
    _git(repository, *_PACK_LISTED, source=work / "objects", to=work / "pack")
    _git(repository, "index-pack", "--stdin", source=work / "pack", ours=ours)
    (work / "pack").unlink()
    (ours / "shallow").write_text(f"{commits[0]}\n", encoding="ascii")
    return copied_changes(repository, commits, ours, work)


def copied_changes(repository: Path, commits: Sequence[str], ours: Path, work: Path) -> RepositoryChanges:
    """Collect the changes of these versions from a repository of ours that has their objects, as ``changes`` does."""
    (work / "versions").write_text("".join(f"{commit}\n" for commit in commits), encoding="ascii")
    _git(repository, *_KNOWN, source=work / "versions", ours=ours)
    # Each is compared with the one before it, whatever the repository says of its parents.
    pairs = (f"{commit} {before}\n" for before, commit in pairwise(commits))
    (work / "revisions").write_text("".join([f"{commits[0]}\n", *pairs]), encoding="ascii")
    _git(repository, *_CHANGES, source=work / "revisions", to=work / "changes", ours=ours)
    blobs = {blob for version in _parse_diff_tree(_split_at_nul(work / "changes")) for _, blob in version if blob}
    with (work / "wanted").open("wb") as file:
        file.writelines(blob + b"\n" for blob in sorted(blobs))
    _git(repository, *_BATCH_SIZES, source=work / "wanted", to=work / "sizes", ours=ours)
    return RepositoryChanges(work / "changes", _sizes(repository, work / "sizes"))


def readable_by(repository: Path) -> int:
    """Return who may read a repository and its objects, wherever they lie (agelab.base.fileio)."""
    return readers.of_files(repository, _find(repository).objects)


def _find(repository: Path) -> git.GitRepository:
    git_repository = git.find(repository)
    if git_repository is None:
        raise InputError(f"{repository}: it is no git repository")
    return git_repository


def _git(
    repository: Path,
    *words: str,
    source: Path | None = None,
    to: Path | None = None,
    env: Mapping[str, str] | None = None,
    ours: Path | None = None,
) -> process.Completed:
    """Run git on the user's repository, or on a copy of it that is ours."""
    try:
        if ours:
            return git.run(ours, words, stdin=source, stdout=to)
        return _find(repository).query(words, stdin=source, stdout=to, env=env)
    except process.ProcessFailed as error:
        raise InputError(
            f"{repository}: git cannot read it: {error.stderr.strip()}",
            hint="git fsck names what is damaged, or not what its name says" if ours else "",
        ) from error


def _sizes(repository: Path, listed: Path) -> Mapping[bytes, int]:
    """Read the size of each file's content. Raises InputError where some are missing: a partial clone has not all."""
    with listed.open("rb") as file:
        pairs = [line.split() for line in file]
    missing = sum(size == b"missing" for _, size in pairs)
    if missing:
        raise InputError(
            f"{repository} lacks the content of {missing} of {len(pairs)} files: it is damaged or a partial clone",
            hint="agelab fetches nothing for a repository: clone it whole, without --filter",
        )
    return {blob: int(size) for blob, size in pairs}


def _split_at_nul(raw: Path) -> Iterator[bytes]:
    """Yield the fields of a file, which are separated by zero bytes."""
    rest = b""
    with raw.open("rb") as file:
        while piece := file.read(READ_BYTES):
            *fields, rest = (rest + piece).split(b"\0")
            yield from fields
    yield rest


def _parse_diff_tree(fields: Iterator[bytes]) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """Yield for each version the changed paths and their blobs (None: removed) from git diff-tree -z --stdin."""
    version: list[tuple[bytes, bytes | None]] | None = None
    for field in fields:
        if not field:
            continue
        if not field.startswith(b":"):  # a commit hash begins the next version
            if version is not None:
                yield version
            version = []
            continue
        assert version is not None, "diff-tree begins with a hash"
        path = next(fields)
        _, after, _, blob, _ = field[1:].split(b" ")
        if after in REGULAR:
            version.append((path, blob))
        else:  # removed, or no longer a regular file
            version.append((path, None))
    if version is not None:
        yield version
