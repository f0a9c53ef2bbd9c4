"""Histories of version-controlled trees: what git says of a repository is what the log leaves."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.data.history import git_history
from agelab.data.history.operations import check_log
from agelab.data.history.tree import FileChange, operations
from tests.build.repositories import FORGERIES, read, repository, said_by_git


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
    assert git_history.first_parents(shallow, commit) != git_history.first_parents(whole, commit)
    [first] = read(shallow, tmp_path)[1]
    assert {change.path for change in first if change.size is not None} == {b"kept", b"moved", b"side"}


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is no git repository"):
        read(tmp_path, tmp_path)
    with pytest.raises(InputError, match="git cannot read it"):
        read(repository(tmp_path / "repository"), tmp_path, "no-such-branch")


@pytest.mark.parametrize("forged", FORGERIES)
def test_a_repository_whose_objects_have_names_of_others_is_refused(
    tmp_path: Path, forged: Callable[[Path], None]
) -> None:
    """Git does not look: the history would have the key of the true one, and stand for it."""
    made = repository(tmp_path / "repository")
    before = git_history.first_parents(made, git_history.resolve_commit(made, "HEAD"))
    forged(made)
    assert git_history.first_parents(made, git_history.resolve_commit(made, "HEAD")) == before
    with pytest.raises(InputError, match=r"lacks the content of 1 of 4 files|git cannot read it"):
        read(made, tmp_path)


def test_what_a_repository_puts_in_the_place_of_a_commit_is_not_read(tmp_path: Path) -> None:
    """refs/replace: another commit's content, and its tree, by the name of the true one."""
    made = repository(tmp_path / "repository")
    (tmp_path / "one").mkdir()
    before = read(made, tmp_path / "one")
    text = subprocess.check_output(["git", "-C", made, "cat-file", "commit", "HEAD~1"])
    true, other = (said_by_git(made, "rev-parse", f"{at}^{{tree}}").encode() for at in ("HEAD~1", "HEAD"))
    words = ["git", "-C", str(made), "hash-object", "-t", "commit", "-w", "--stdin"]
    put = subprocess.check_output(words, input=text.replace(true, other)).decode().strip()
    said_by_git(made, "replace", "HEAD~1", put)
    assert read(made, tmp_path) == before


def test_a_repository_that_names_its_objects_by_sha256_is_read(tmp_path: Path) -> None:
    made = tmp_path / "repository"
    said_by_git(tmp_path, "init", "-q", "--object-format=sha256", str(made))
    (made / "kept").write_bytes(b"k" * 100)
    said_by_git(made, "add", "-A")
    said_by_git(made, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one")
    commit, [version] = read(made, tmp_path)
    assert len(commit) == 64 and version == (FileChange(b"kept", 100),)
