"""The versions of a user's git repository, oldest first, along first parents: what a pull of each one changes."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from agelab import process
from agelab.errors import HostError, InputError
from agelab.history.tree import Change, Version

REGULAR = (b"100644", b"100755")
"""Modes of regular files; links and submodules are left out."""
GONE = b"000000"

# Plumbing, which the user's settings do not reach: the same repository gives the same history to everyone.
_REVISIONS = ("rev-list", "--first-parent", "--reverse")
_CHANGES = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--diff-merges=first-parent")


def versions(repository: Path, revision: str = "HEAD") -> tuple[str, list[Version]]:
    """The hash of the newest version, and what each one changes.

    Raises InputError where it is no repository or has no such revision, HostError without git.
    """
    if process.find("git") is None:
        raise HostError("git is not installed: it reads the repository", hint="apt-get install git")
    with TemporaryDirectory() as name:
        work = Path(name)
        git = ["git", "-C", str(repository)]
        try:
            commit = process.run([*git, "rev-parse", "--verify", f"{revision}^{{commit}}"]).stdout.strip()
            process.run([*git, *_REVISIONS, commit], stdout=work / "revisions")
            process.run([*git, *_CHANGES], stdin=work / "revisions", stdout=work / "changes")
            raw = list(_parsed((work / "changes").read_bytes()))
            wanted = sorted({blob for version in raw for _, blob in version if blob})
            (work / "wanted").write_bytes(b"".join(blob + b"\n" for blob in wanted))
            sizes = _sizes(git, work)
        except process.ProcessFailed as error:
            raise InputError(f"{repository}: git cannot read it: {error.stderr.strip()}") from error
    return commit, [
        tuple(Change(path, sizes[blob] if blob else None) for path, blob in version) for version in raw
    ]


def _sizes(git: list[str], work: Path) -> dict[bytes, int]:
    """The sizes of the wanted blobs."""
    ask = [*git, "cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"]
    process.run(ask, stdin=work / "wanted", stdout=work / "sizes")
    pairs = (line.split() for line in (work / "sizes").read_bytes().splitlines())
    return {blob: int(size) for blob, size in pairs}


def _parsed(changes: bytes) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """Paths and blobs (None: gone) of each version of what git diff-tree -z --stdin printed."""
    fields = iter(changes.split(b"\0"))
    version: list[tuple[bytes, bytes | None]] | None = None
    for field in fields:
        if not field:
            continue
        if not field.startswith(b":"):  # a hash: the next version
            if version is not None:
                yield version
            version = []
            continue
        assert version is not None, "diff-tree begins with a hash"
        path = next(fields)
        _, after, _, blob, _ = field[1:].split(b" ")
        if after in REGULAR:
            version.append((path, blob))
        else:  # gone, or something else now
            version.append((path, None))
    if version is not None:
        yield version
