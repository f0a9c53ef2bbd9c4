"""A recipe's parts and edits: found by their hash, put in their place, and what cannot be had or found is one line."""

import gzip
import hashlib
import io
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.errors import InputError
from agelab.kernel import parts, source_tree, tree_changes
from agelab.kernel.edits import TreeEdit
from agelab.kernel.parts import RecipePart
from agelab.store import Store
from tests.unit.test_kernel_source import PATCH, files

URL = "https://host.test/some"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


@pytest.fixture
def source(tmp_path: Path, store: Store) -> source_tree.SourceTree:
    return source_tree.from_directory(files(tmp_path / "linux"), "", store, lambda line: None)


def part(content: bytes, name: str, **more: Any) -> RecipePart:
    return RecipePart(url=f"{URL}/{name}", sha256=hashlib.sha256(content).hexdigest(), **more)


def no_network(url: str, **_: object) -> None:
    raise urllib.error.URLError(OSError(-2, "Name or service not known"))


def checked_out(source: source_tree.SourceTree, path: str) -> str:
    source.check_out()
    return (source.work_tree / path).read_text()


def test_a_part_in_the_users_directory_is_known_by_its_hash_and_kept(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "under another name").write_bytes(b"content")
    (tmp_path / "parts" / "a.patch").write_bytes(b"something else")
    monkeypatch.setenv(parts.DIRECTORY, str(tmp_path / "parts"))
    wanted = part(b"content", "a.patch")
    assert parts.obtain(wanted, "recipe:mine", store, print).read_bytes() == b"content"
    monkeypatch.delenv(parts.DIRECTORY)
    assert parts.obtain(wanted, "recipe:mine", store, print).read_bytes() == b"content"


def test_a_part_that_cannot_be_had_is_one_line_that_says_which_and_where_to_put_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    with pytest.raises(InputError, match=r"^kernel recipe:mine lacks .*/a\.patch: Name or service") as raised:
        parts.obtain(part(b"content", "a.patch"), "recipe:mine", store, print)
    assert "\n" not in str(raised.value) and "AGELAB_PARTS=<directory>" in raised.value.hint
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, **_: io.BytesIO(b"changed since"))
    with pytest.raises(InputError, match=r"another hash, [0-9a-f]{64}$"):
        parts.obtain(part(b"content", "a.patch"), "recipe:mine", store, print)
    assert not list(store.cache("parts").iterdir())


def test_a_directory_of_parts_that_is_not_there_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(parts.DIRECTORY, "/nowhere")
    with pytest.raises(InputError, match="AGELAB_PARTS=/nowhere: there is no such directory"):
        parts.obtain(part(b"content", "a.patch"), "recipe:mine", store, print)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "http://host.test/a.patch"}, "url"),
        ({"url": f"{URL}/a.zip"}, r"a\.zip is no \.tar\.gz"),
        ({"url": f"{URL}/a.patch", "sha256": "0"}, "sha256"),
        ({"url": f"{URL}/a.tar.gz"}, "into is the directory of an archive"),
        ({"url": f"{URL}/a.patch", "into": "fs/new"}, "a patch has none"),
        ({"url": f"{URL}/a.tar.gz", "into": "../out"}, "is not in the tree"),
        ({"url": f"{URL}/a.patch", "only": ["/etc/passwd"]}, "is not in the tree"),
    ],
)
def test_what_is_wrong_with_a_part_is_said(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        RecipePart(**{"sha256": "0" * 64, **fields})


def test_an_archive_becomes_a_directory_of_the_tree_and_replaces_no_file(
    tmp_path: Path, source: source_tree.SourceTree
) -> None:
    (tmp_path / "new-1.0").mkdir()
    for name in ("super", "inode"):
        (tmp_path / "new-1.0" / f"{name}.c").write_text(f"{name}\n")
    packed = tmp_path / "kept under its hash"
    subprocess.run(["tar", "-C", str(tmp_path), "-czf", str(packed), "new-1.0"], check=True)
    one = part(packed.read_bytes(), "new.tar.gz", into="fs/new")
    found = tree_changes.apply_parts(source, [(one, packed)])
    assert checked_out(found, "fs/new/super.c") == "super\n"
    assert checked_out(found, "fs/inode.c") == "one\ntwo\nthree\n"
    assert [(named.name, named.sha256) for named in found.patches] == [("new.tar.gz", one.sha256)]
    with pytest.raises(InputError, match=r"new\.tar\.gz cannot become fs of Linux 6\.1\.7-rc1"):
        tree_changes.apply_parts(source, [(one.model_copy(update={"into": "fs"}), packed)])


def test_of_a_packed_patch_the_files_that_are_named_are_changed(
    tmp_path: Path, source: source_tree.SourceTree
) -> None:
    other = PATCH.replace("fs/inode.c", "kernel/fork.c")  # which does not apply
    packed = tmp_path / "kept under its hash"
    packed.write_bytes(gzip.compress((PATCH + other).encode()))
    one = part(packed.read_bytes(), "a.patch.gz", only=("fs/inode.c",))
    found = tree_changes.apply_parts(source, [(one, packed)])
    assert checked_out(found, "fs/inode.c") == "one\n2\nthree\n"
    with pytest.raises(InputError, match=r"a\.patch does not apply to 6\.1\.7-rc1: kernel/fork\.c:1"):
        tree_changes.apply_parts(source, [(one.model_copy(update={"only": ()}), packed)])


def test_edits_follow_each_other_in_a_file(source: source_tree.SourceTree) -> None:
    edits = [
        TreeEdit(path="fs/inode.c", find="two\n", put="2\n2a\n"),
        TreeEdit(path="fs/inode.c", find="2a", to="\n", put="2b"),
        TreeEdit(path="kernel/fork.c", find="fork\n"),
    ]
    found = tree_changes.apply_edits(source, edits, "recipe:mine")
    assert checked_out(found, "fs/inode.c") == "one\n2\n2b\nthree\n"
    assert checked_out(found, "kernel/fork.c") == ""
    assert tree_changes.apply_edits(source, [], "recipe:mine") == source


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"path": "fs/none.c", "find": "x"}, r"6\.1\.7-rc1 has no fs/none\.c to edit"),
        ({"path": "fs/inode.c", "find": "four"}, r"fs/inode\.c has 'four' 0 times, not once"),
        ({"path": "fs/inode.c", "find": "e\n"}, r"fs/inode\.c has 'e' 2 times, not once"),
        ({"path": "fs/inode.c", "find": "two", "to": "one"}, r"fs/inode\.c has no 'one' behind 'two'"),
    ],
)
def test_an_edit_whose_place_is_not_there_once_is_one_line(
    source: source_tree.SourceTree, edit: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=f"^kernel recipe:mine: Linux .*{said}") as raised:
        tree_changes.apply_edits(source, [TreeEdit(**edit)], "recipe:mine")
    assert os.linesep not in str(raised.value)
