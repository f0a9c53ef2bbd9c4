"""Build git repositories, and forge their objects."""

import subprocess
import zlib
from pathlib import Path

from agelab.data.history import git_history
from agelab.data.history.tree import Version


def repository(directory: Path) -> Path:
    directory.mkdir()

    def do(*words: str) -> None:
        settings = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", "-C", directory, *settings, *words], check=True, capture_output=True)

    do("init")
    (directory / "kept").write_bytes(b"k" * 100)
    (directory / "sub").mkdir()
    (directory / "sub/ä file").write_bytes(b"s" * 5000)
    (directory / "link").symlink_to("kept")
    do("add", "-A")
    do("commit", "-m", "one")
    do("checkout", "-b", "side")
    (directory / "side").write_bytes(b"x" * 7)
    do("add", "-A")
    do("commit", "-m", "on the side")
    do("checkout", "main")
    do("mv", "sub/ä file", "moved")
    (directory / "kept").write_bytes(b"k" * 50)
    do("commit", "-a", "-m", "two")
    do("merge", "--no-ff", "-m", "merge", "side")
    return directory


def read(repository: Path, work: Path, revision: str = "HEAD") -> tuple[str, list[Version]]:
    commit = git_history.resolve_commit(repository, revision)
    commits = git_history.first_parents(repository, commit)
    return commit, list(git_history.changes(repository, commits, work).versions())


def said_by_git(repository: Path, *words: str) -> str:
    argv = ["git", "-C", str(repository), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def forge(repository: Path, name: str, kind: str, content: bytes) -> None:
    """Give an object of a repository other content."""
    file = repository / ".git" / "objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(content)) + content))


def forge_blob(repository: Path) -> None:
    forge(repository, said_by_git(repository, "rev-parse", "HEAD:kept"), "blob", b"k" * 9)


def forge_tree(repository: Path) -> None:
    other = bytes.fromhex(said_by_git(repository, "rev-parse", "HEAD~1:kept"))
    forge(repository, said_by_git(repository, "rev-parse", "HEAD~1^{tree}"), "tree", b"100644 kept\0" + other)


def forge_commit(repository: Path) -> None:
    """Of the commit in the middle: its tree is another."""
    text = subprocess.check_output(["git", "-C", repository, "cat-file", "commit", "HEAD~1"])
    true, other = (said_by_git(repository, "rev-parse", f"{at}^{{tree}}").encode() for at in ("HEAD~1", "HEAD"))
    forge(repository, said_by_git(repository, "rev-parse", "HEAD~1"), "commit", text.replace(true, other))


FORGERIES = (forge_blob, forge_tree, forge_commit)
