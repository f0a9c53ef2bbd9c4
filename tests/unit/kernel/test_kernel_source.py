"""Where a kernel is built from: git trees, files as they are, patches; the user's own repository stays as it is."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agelab.base import process
from agelab.base.errors import InputError
from agelab.kernel import source_tree
from agelab.store.artefacts import Store
from tests.build.repositories import forge
from tests.build.source_tree import FILES, PATCH, files, git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = files(tmp_path / "linux")
    git(path, "init", "-q")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    return path


def of(tree: Path, store: Store, ref: str = "") -> source_tree.SourceTree:
    return source_tree.from_directory(tree, ref, store, lambda line: None)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_repository_whose_objects_have_names_of_others_is_refused(tree: Path, store: Store, what: str) -> None:
    """Git does not look: the kernel would have the key of the true one, and stand for it."""
    if what == "file":
        forge(tree, git(tree, "rev-parse", "HEAD:kernel/fork.c"), "blob", b"evil\n")
    else:
        other = bytes.fromhex(git(tree, "rev-parse", "HEAD:fs/inode.c"))
        forge(tree, git(tree, "rev-parse", "HEAD:kernel"), "tree", b"100644 fork.c\0" + other)
    for _ in range(2):
        with pytest.raises(InputError, match="its files are not those that git's name for them"):
            of(tree, store).check_out()
    true = of(files(tree.parent / "copy"), store)
    true.check_out()
    assert (true.work_tree / "kernel" / "fork.c").read_text() == "fork\n"


@pytest.mark.parametrize("whose", ["tree", "user"])
def test_files_are_compiled_as_they_are_whatever_attributes_would_make_of_them(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """A key is of what git keeps: one user's kernel would be another's with the same key."""
    home = tree.parent / "user" / ".config" / "git"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tree.parent / "user"))
    (tree / "kernel" / "fork.c").write_text("$Id$\n")
    git(tree, "commit", "-qam", "second")
    if whose == "tree":
        (tree / ".gitattributes").write_text("*.c ident eol=crlf\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "third")
    else:
        (home / "attributes").write_text("*.c ident eol=crlf\n")
    found = of(tree, store)
    found.check_out()
    assert (found.work_tree / "kernel" / "fork.c").read_bytes() == b"$Id$\n"


def test_a_commit_is_a_source_and_the_users_tree_stays_as_it_is(tree: Path, store: Store) -> None:
    first = git(tree, "rev-parse", "HEAD")
    (tree / "fs/inode.c").write_text("later\n")
    git(tree, "commit", "-qam", "second")
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*") if path.is_file()}
    found = of(tree, store, "HEAD~1")
    assert (found.version, found.commit, found.tree) == ("6.1.7-rc1", first, git(tree, "rev-parse", "HEAD~1^{tree}"))
    found.check_out()
    assert (found.work_tree / "fs/inode.c").read_text() == FILES["fs/inode.c"]
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*") if path.is_file()} == before


def test_only_files_that_differ_are_written_again(tree: Path, store: Store) -> None:
    of(tree, store).check_out()
    (tree / "fs/inode.c").write_text("later\n")
    git(tree, "commit", "-qam", "second")
    found = of(tree, store)
    changed, same = found.work_tree / "fs/inode.c", found.work_tree / "kernel/fork.c"
    before = [path.stat().st_mtime_ns for path in (changed, same)]
    found.check_out()
    assert changed.read_text() == "later\n"
    after = [path.stat().st_mtime_ns for path in (changed, same)]
    assert after[0] > before[0] and after[1] == before[1]
    of(tree, store, "HEAD~1").check_out()
    assert changed.stat().st_mtime_ns > after[0] and same.stat().st_mtime_ns == before[1]


def test_changes_that_no_commit_holds_are_refused_unless_told(tree: Path, store: Store) -> None:
    (tree / "fs/inode.c").write_text("mine\n")
    with pytest.raises(InputError, match=r"uncommitted changes: fs/inode\.c") as raised:
        of(tree, store)
    assert "@HEAD" in raised.value.hint and "@worktree" in raised.value.hint
    as_it_is, head = of(tree, store, "worktree"), of(tree, store, "HEAD")
    assert as_it_is.tree != head.tree == git(tree, "rev-parse", "HEAD^{tree}")
    as_it_is.check_out()
    assert (as_it_is.work_tree / "fs/inode.c").read_text() == "mine\n"
    assert git(tree, "status", "--porcelain") == "M fs/inode.c"
    git(tree, "checkout", "-q", "fs/inode.c")
    (tree / ".gitignore").write_text("*.o\n")
    (tree / "fs/inode.o").write_text("object")
    listed = subprocess.run(
        ["git", "--git-dir", str(head.cache_dir / "git"), "ls-tree", "-r", "--name-only",
         of(tree, store, "worktree").tree],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert ".gitignore" in listed and "fs/inode.o" not in listed


def test_files_that_are_no_git_tree_have_a_key_by_their_content(tmp_path: Path, tree: Path, store: Store) -> None:
    plain = files(tmp_path / "plain")
    (plain / ".gitignore").write_text("/*\n")  # as a distribution's source package has it
    found = of(plain, store)
    (plain / ".gitignore").write_text("")
    assert found.commit is None and found.tree != of(plain, store).tree
    (plain / ".gitignore").unlink()
    assert of(plain, store).tree == of(tree, store).tree
    with pytest.raises(InputError, match="and has no refs"):
        of(plain, store, "v6.1")


@pytest.mark.parametrize(
    ("ref", "spoil", "said"),
    [
        ("v9.9", "", r"@v9\.9: no such commit"),
        ("--all", "", "no such commit"),
        ("", "arch/x86/Kconfig", r"not a kernel tree: it lacks arch/x86/Kconfig"),
        ("", "Makefile", "not a kernel tree: it lacks Makefile"),
    ],
)
def test_what_is_no_kernel_tree_or_no_commit_is_said_in_one_line(
    tree: Path, store: Store, ref: str, spoil: str, said: str
) -> None:
    if spoil:
        git(tree, "rm", "-q", spoil)
        git(tree, "commit", "-qm", "spoilt")
    with pytest.raises(InputError, match=said) as raised:
        of(tree, store, ref)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("linux/fs", "not a kernel tree"),
        ("", "not a kernel tree: it lacks Makefile, Kconfig, kernel"),
        ("nowhere", "there is no such directory"),
    ],
    ids=["inside of a repository", "no tree", "no directory"],
)
def test_a_directory_that_is_no_kernel_tree_is_not_read(tree: Path, store: Store, place: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        source_tree.from_directory(tree.parent / place, "", store, pytest.fail)


@pytest.mark.parametrize("ref", ["", source_tree.WORKTREE])
@pytest.mark.parametrize("most", ["bytes", "names"])
def test_a_tree_too_large_for_a_kernel_is_not_imported(
    tree: Path, store: Store, ref: str, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_tree, "SOURCE_BYTES", 1 << 20)
    monkeypatch.setattr(source_tree, "MOST_NAMES", 20)
    said = "0.0009.* GiB" if most == "bytes" else "20 files"
    for number in range(1 if most == "bytes" else 20):
        (tree / f"large{number}").write_bytes(os.urandom(1 << 20) if most == "bytes" else b"")
    if not ref:
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "large")
    with pytest.raises(InputError, match=f"^tree:.* is too large for a kernel's source: .* more than {said}"):
        of(tree, store, ref)
    assert not any(path.stat().st_size > 1 << 19 for path in store.home.rglob("*") if path.is_file())


def test_files_that_git_ignores_do_not_count_as_source(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_tree, "SOURCE_BYTES", 1 << 20)
    (tree / "vmlinux.o").write_bytes(bytes(2 << 20))
    (tree / ".gitignore").write_text("*.o\n")
    assert of(tree, store, source_tree.WORKTREE).version == "6.1.7-rc1"


def test_files_without_git_have_the_same_limit(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_tree, "SOURCE_BYTES", 1 << 20)
    path = files(tmp_path / "plain")
    (path / ".gitignore").write_text("*.o\n")
    with (path / "sparse.o").open("wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(InputError, match="is too large for a kernel's source"):
        of(path, store)


def test_patches_make_another_tree_and_are_recorded(tmp_path: Path, tree: Path, store: Store) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text(PATCH)
    plain = of(tree, store)
    found = source_tree.apply_patches(plain, [patch])
    assert found.tree != plain.tree and [one.name for one in found.patches] == ["a.patch"]
    found.check_out()
    assert (found.work_tree / "fs/inode.c").read_text() == "one\n2\nthree\n"
    assert source_tree.apply_patches(plain, []) == plain


def test_a_patch_that_does_not_apply_says_where(tmp_path: Path, tree: Path, store: Store) -> None:
    one, other = tmp_path / "1.patch", tmp_path / "2.patch"
    one.write_text(PATCH)
    other.write_text(PATCH)
    with pytest.raises(InputError, match=r"2\.patch does not apply to 6\.1\.7-rc1 \(after 1\.patch\)"):
        source_tree.apply_patches(of(tree, store), [one, other])
    other.write_text(PATCH.replace("fs/inode.c", "fs/none.c"))
    with pytest.raises(InputError, match=r"fs/none\.c: does not exist"):
        source_tree.apply_patches(of(tree, store), [other])


def test_two_that_patch_one_tree_at_once_do_not_get_each_others_patches(
    tmp_path: Path, tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, other = tmp_path / "a.patch", tmp_path / "b.patch"
    patch.write_text(PATCH)
    other.write_text("--- /dev/null\n+++ b/fs/other.c\n@@ -0,0 +1 @@\n+other\n")
    alone = [source_tree.apply_patches(of(tree, store), [one]).tree for one in (patch, other)]
    run, found = process.run, list[str]()

    def meanwhile(argv: list[str], **more: Any) -> process.Completed:
        if "apply" in argv and str(patch) in argv:  # another process, just before
            found.append(source_tree.apply_patches(of(tree, store), [other]).tree)
        return run(argv, **more)

    monkeypatch.setattr(process, "run", meanwhile)
    assert [source_tree.apply_patches(of(tree, store), [patch]).tree, *found] == alone


def test_what_a_git_that_was_killed_has_left_locked_is_free_again(tree: Path, store: Store) -> None:
    found = of(tree, store, source_tree.WORKTREE)
    for lock in ("git/index.lock", "files.index.lock"):
        (found.cache_dir / lock).touch()
    again = of(tree, store, source_tree.WORKTREE)
    again.check_out()
    assert again.tree == found.tree and (again.work_tree / "fs/inode.c").is_file()
