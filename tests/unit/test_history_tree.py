"""Histories of version-controlled trees: what git says of a repository is what the log leaves."""

import subprocess
from pathlib import Path

import pytest

from agelab.errors import InputError
from agelab.history import git_history
from agelab.history.operations import check_log
from agelab.history.tree import FileChange, Version, operations


def test_directories_come_with_their_first_file_and_go_with_their_last(tmp_path: Path) -> None:
    versions = [
        (FileChange(b"a/b/one", 10), FileChange(b"a/two", 20)),
        (FileChange(b"a/b/one", 15), FileChange(b"a/two", None)),
        (FileChange(b"a/b/one", None), FileChange(b"a", 5), FileChange(b"never there", None)),
        (FileChange(b"a", None), FileChange(b"a/x y", 0)),
    ]
    lines = b"".join(operations(versions, [30, 45, 1000]))
    expected = (
        "agelab-operations 1|mkdir a|mkdir a/b|create a/b/one|write a/b/one 0 10|create a/two|write a/two 0 20|point 1|"
        "unlink a/two|unlink a/b/one|create a/b/one|write a/b/one 0 15|point 2|"
        "unlink a/b/one|rmdir a/b|rmdir a|create a|write a 0 5|unlink a|mkdir a|create a/x\\040y|point 3|"
    )
    assert lines.decode().replace("\n", "|") == expected
    (tmp_path / "log").write_bytes(lines)
    assert check_log(tmp_path / "log").files == 1


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
    return commit, list(git_history.changes(repository, commit, work).versions())


def test_a_repository_leaves_its_newest_tree(tmp_path: Path) -> None:
    commit, versions = read(repository(tmp_path / "repository"), tmp_path)
    assert len(commit) == 40 and [len(version) for version in versions] == [2 + 1, 3, 1]
    (tmp_path / "log").write_bytes(b"".join(operations(versions, [])))
    found = check_log(tmp_path / "log")
    assert (found.files, found.live_bytes, found.directories) == (3, 5057, 0)
    assert found.bytes_written == 100 + 5000 + 5000 + 50 + 7


def test_what_a_shallow_clone_lacks_makes_it_another_history(tmp_path: Path) -> None:
    whole, shallow = repository(tmp_path / "repository"), tmp_path / "shallow"
    words = ["git", "clone", "-q", "--depth", "1", f"file://{whole}", str(shallow)]
    subprocess.run(words, check=True, capture_output=True)
    commit = git_history.resolve_commit(whole, "HEAD")
    assert git_history.resolve_commit(shallow, "HEAD") == commit
    assert git_history.first_parents_hash(shallow, commit) != git_history.first_parents_hash(whole, commit)


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is no git repository"):
        read(tmp_path, tmp_path)
    with pytest.raises(InputError, match="git cannot read it"):
        read(repository(tmp_path / "repository"), tmp_path, "no-such-branch")
