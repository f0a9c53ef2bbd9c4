"""What an image cannot carry of a user's tree is said at once, and everything else is carried."""

import errno
import os
import tarfile
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import InputError
from agelab.data.corpus import corpus_from_user
from agelab.data.corpus.user import KEEP, MAX_LINK, MAX_NAME
from agelab.store.artefacts import Store
from tests.build.odd_tree import LONGEST, odder_tree
from tests.capabilities import needs_root

LOSSES = (
    "2 files are hard links of others: they become copies (0.2 MB more)",
    "1 file is sparse: its holes become zeros (7.0 MB more)",
    "3 entries have modes that the image has not (1 can be run): files become 0444, directories 0555",
    "2 names are longer than 253 bytes: Linux cuts such names in an image, and those that begin alike are one",
    "1 symbolic link ends in a slash, which is left out",
)


def taken(path: Path, store: Store) -> tuple[list[str], str]:
    lines: list[str] = []
    return lines, corpus_from_user(path, store, say=lines.append).sha256


@pytest.mark.parametrize("form", [None, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_each_loss_is_said_with_its_number_each_time(tmp_path: Path, store: Store, form: int | None) -> None:
    path = odder_tree(tmp_path / "odd")
    if form is not None:
        kind = "pax" if form == tarfile.PAX_FORMAT else "gnu"
        process.run(["tar", f"--format={kind}", "--sparse", "-C", str(path), "-cf", f"{path}.tar", "."])
        path = Path(f"{path}.tar")
    lines, _ = taken(path, store)
    sparse = next(line for line in lines if "sparse" in line)
    assert [line if line != sparse else LOSSES[1] for line in lines] == [*LOSSES, KEEP]
    assert sparse in (LOSSES[1], LOSSES[1].replace("7.0", "6.9")), "data lie in blocks"
    assert taken(path, store)[0] == lines, "also where the store has it"


def test_an_ordinary_tree_loses_nothing_to_speak_of(tmp_path: Path, store: Store) -> None:
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "b").write_text("x" * 100_000)
    (tmp_path / "tree" / "a" / "b").chmod(0o644)
    (tmp_path / "outside").write_text("x")
    (tmp_path / "tree" / "link").symlink_to("a/b")
    os.link(tmp_path / "tree" / "a" / "b", tmp_path / "elsewhere")
    assert taken(tmp_path / "tree", store)[0] == []


def test_attributes_are_named(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_text(name)

    def attributes(path: Path, *, follow_symlinks: bool) -> list[str]:
        if path.name == "c":
            raise OSError(errno.ENOTSUP, "no attributes")
        return {"a": ["user.note"], "b": ["security.selinux"]}[path.name]

    monkeypatch.setattr(os, "listxattr", attributes)
    assert taken(root, store)[0] == ["1 entry has extended attributes or access control lists: they are left out", KEEP]
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("a")
        member.pax_headers = {"SCHILY.xattr.user.note": "hello"}
        member.mode = 0o644
        tar.addfile(member)
    assert taken(archive, store)[0][0].startswith("1 entry has extended attributes")


@needs_root
def test_owners_are_named(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number, name in enumerate(("a", "b", "c")):
        (root / name).write_text(name)
        os.chown(root / name, number, 0)
    assert taken(root, store)[0][0] == "the files belong to 3 pairs of user and group: all become root's"


def test_the_longest_name_is_that_of_the_tree_that_a_guest_reads_back() -> None:
    assert LONGEST == MAX_NAME


def test_names_of_any_bytes_are_in_the_image(tmp_path: Path, store: Store) -> None:
    root = odder_tree(tmp_path / "odd")
    image = corpus_from_user(root, store).image
    out = tmp_path / "out"
    process.run(["xorriso", "-no_rc", "-osirrox", "on", "-indev", str(image), "-extract", "/", str(out)])
    inside = {os.fsencode(path.relative_to(out)) for path in out.rglob("*")}
    assert inside == {os.fsencode(path.relative_to(root)) for path in root.rglob("*")}
    assert (out / "sparse").read_bytes() == (root / "sparse").read_bytes()
    for path in (out, *out.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def test_hard_links_and_copies_are_two_corpora_since_their_images_differ(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a").write_bytes(b"a" * 100_000)
    os.link(root / "a", root / "b")
    linked = corpus_from_user(root, Store(tmp_path / "s1"))
    (root / "b").unlink()
    (root / "b").write_bytes(b"a" * 100_000)
    copied = corpus_from_user(root, Store(tmp_path / "s2"))
    assert linked.sha256 != copied.sha256 and linked.key != copied.key


@pytest.mark.parametrize("archived", [False, True])
def test_a_link_that_no_image_holds_is_refused_by_name(tmp_path: Path, store: Store, archived: bool) -> None:
    path = tmp_path / "tree"
    path.mkdir()
    (path / "file").write_text("x")
    (path / "link").symlink_to("/".join(["w" * 127] * 8))
    assert len(os.fsencode((path / "link").readlink())) == MAX_LINK
    corpus_from_user(path, store)
    (path / "long").symlink_to("/".join(["w" * 127] * 9))
    if archived:
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            tar.add(path, arcname=".")
        path = tmp_path / "a.tar"
    with pytest.raises(InputError, match="long is a link whose text has 1151 bytes: an image holds 1023"):
        corpus_from_user(path, store)
