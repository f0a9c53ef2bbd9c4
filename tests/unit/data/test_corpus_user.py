"""The user's own data as a corpus, and files that cannot be one."""

import gzip
import io
import lzma
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import HostError, InputError
from agelab.data.corpus import CorpusSpec, corpus_from_user, make, user
from agelab.store.artefacts import Store


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "mine"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.txt").write_text("one")
    (root / "a" / "b" / "zwei ü.bin").write_bytes(bytes(5000))
    (root / "link").symlink_to("a/one.txt")
    return root


def test_an_image_is_taken_as_it_is(tmp_path: Path, store: Store) -> None:
    made = make(CorpusSpec(bytes=1_000_000, seed=1), store)
    mine = tmp_path / "mine.iso"
    mine.write_bytes(made.image.read_bytes())
    taken = corpus_from_user(mine, store)
    assert (taken.sha256, taken.size, taken.files) == (made.sha256, made.size, made.files)
    assert taken.content_bytes == made.content_bytes
    assert taken.key != made.key
    assert taken.image != mine
    assert "DEBIAN_ETCH" in taken.description
    assert corpus_from_user(mine.rename(tmp_path / "other name.iso"), store) == taken


def test_a_directory_becomes_an_image(tree: Path, store: Store, tmp_path: Path) -> None:
    taken = corpus_from_user(tree, store)
    assert (taken.files, taken.content_bytes) == (2, 5003)
    out = tmp_path / "out"
    process.run(["xorriso", "-no_rc", "-osirrox", "on", "-indev", str(taken.image), "-extract", "/", str(out)])
    assert (out / "a" / "b" / "zwei ü.bin").read_bytes() == bytes(5000)
    assert (out / "link").readlink() == Path("a/one.txt")
    for directory in (out, out / "a", out / "a" / "b"):
        directory.chmod(0o755)


def test_equal_directories_give_equal_images_and_content_makes_the_key(tree: Path, tmp_path: Path) -> None:
    first = corpus_from_user(tree, Store(tmp_path / "s1"))
    os.utime(tree / "a" / "one.txt", (1, 1))
    (tree / "a" / "one.txt").chmod(0o600)
    second = corpus_from_user(tree.rename(tmp_path / "moved"), Store(tmp_path / "s2"))
    assert (first.key, first.sha256) == (second.key, second.sha256)
    (tmp_path / "moved" / "a" / "one.txt").write_text("two")
    assert corpus_from_user(tmp_path / "moved", Store(tmp_path / "s2")).key != first.key


@pytest.mark.parametrize("pack", [None, gzip.compress, lzma.compress])
def test_a_tar_archive_becomes_an_image(
    tree: Path, store: Store, tmp_path: Path, pack: Callable[[bytes], bytes] | None
) -> None:
    archive = tmp_path / "mine.any"
    with tarfile.open(archive, "w") as file:
        file.add(tree, arcname=".")
    if pack:
        archive.write_bytes(pack(archive.read_bytes()))
    taken = corpus_from_user(archive, store)
    assert (taken.files, taken.content_bytes) == (2, 5003)
    assert taken.sha256 == corpus_from_user(tree, store).sha256


def test_what_is_no_corpus_is_refused_and_nothing_is_kept(tmp_path: Path, store: Store) -> None:
    for name in ("notes", "empty", "cut", "mark"):
        (tmp_path / name).touch()
    (tmp_path / "notes").write_text("not an image\n" * 5000)
    whole = make(CorpusSpec(bytes=1_000_000, seed=1), Store(tmp_path / "other")).image.read_bytes()
    (tmp_path / "cut").write_bytes(whole[:500_000])
    (tmp_path / "mark").write_bytes(bytes(32768) + b"\1CD001" + bytes(7 * 2048))
    (tmp_path / "void").mkdir()
    (tmp_path / "piped").mkdir()
    os.mkfifo(tmp_path / "piped/pipe")
    for name, said in {
        "notes": "neither ISO 9660 image nor tar archive",
        "empty": "archive: empty file",
        "nothing": "is not there",
        "cut": "cut short: it has 500000 bytes",
        "mark": "cannot be read",
        "void": "holds no file",
        "piped": "neither file, directory nor link",
    }.items():
        with pytest.raises(InputError, match=said):
            corpus_from_user(tmp_path / name, store)
    assert not store.all("corpus")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make user data in place of those of the study of 2008."""
    root = tmp_path / "data"
    for name in ("music", "portage"):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_text(name)
    for name in ("film.avi", "cd.iso", "more"):
        (root / name).write_text(name)
    return root


def test_the_users_own_takes_the_place_of_a_studys_data(data: Path, store: Store, tmp_path: Path) -> None:
    taken = corpus_from_user(data, store, "fedorchuk-2008")
    assert taken.top == ("cd.iso", "film.avi", "more", "music/", "portage/")
    archive = tmp_path / "data.tar"
    with tarfile.open(archive, "w") as file:
        file.add(data, arcname=".")
    assert corpus_from_user(archive, store, "fedorchuk-2008").sha256 == taken.sha256


@pytest.mark.parametrize("archived", [False, True])
def test_what_it_lacks_is_named_and_nothing_is_kept(data: Path, store: Store, tmp_path: Path, archived: bool) -> None:
    (data / "film.avi").unlink()
    (data / "music" / "file").unlink()
    (data / "music").rmdir()
    (data / "music").write_text("no directory")
    if archived:
        with tarfile.open(tmp_path / "data.tar", "w") as file:
            file.add(data, arcname=".")
        data = tmp_path / "data.tar"
    with pytest.raises(InputError, match=r"lacks film\.avi, music/: it cannot .* of") as caught:
        corpus_from_user(data, store, "fedorchuk-2008")
    assert caught.value.hint == "at its top it must have cd.iso, film.avi, music/, portage/"
    assert not store.all("corpus")


def test_what_was_kept_for_something_else_is_looked_at_again(tree: Path, store: Store) -> None:
    assert corpus_from_user(tree, store, "debian-iso") == corpus_from_user(tree, store)
    with pytest.raises(InputError, match=r"lacks linux\.tar"):
        corpus_from_user(tree, store, "piszcz-2006")


def test_an_image_is_not_looked_into(tree: Path, store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.iso"
    mine.write_bytes(corpus_from_user(tree, store).image.read_bytes())
    assert corpus_from_user(mine, store, "piszcz-2006").top is None


def tarred(path: Path, *members: tuple[str, bytes, str]) -> Path:
    """A tar of members with a name, a type and what it points to; files have ten bytes."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            member.size = 10 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"0123456789"))
    return path


FILE, LINK, HARD = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("../up", FILE, "")], [("a/../../up", FILE, "")], [("a", HARD, "../up")],
        [("dev", tarfile.CHRTYPE, "")], [("pipe", tarfile.FIFOTYPE, "")], [("a", FILE, ""), ("a", HARD, "a")],
        [("a", FILE, ""), ("a/b", FILE, "")], [("a\0b", FILE, "")], [("n" * 300, FILE, "")],
        [("a", HARD, "nowhere")], [("d", tarfile.DIRTYPE, ""), ("e", HARD, "d")],
    ],
)  # fmt: skip
def test_an_archive_that_reaches_out_or_contradicts_itself_is_refused(
    tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    archive = tarred(tmp_path / "a.tar", *members)
    if b"\0b" in members[0][0].encode():  # a zero byte survives in an extended header alone
        archive.write_bytes(pax(b"path", b"a\0b"))
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError):
        corpus_from_user(archive, Store(tmp_path / "home"))
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "home"}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = tarred(tmp_path / "a.tar", ("d", LINK, str(outside)), ("d/f", FILE, ""))
    with pytest.raises(InputError, match=r"contradicts itself: [^/]*$"):
        corpus_from_user(archive, Store(tmp_path / "home"))
    assert not list(outside.iterdir())


def pax(word: bytes, value: bytes, size: int | None = None) -> bytes:
    """An archive that begins with an extended header, which may say that it is larger than it is."""
    record = word + b"=" + value + b"\n"
    length = len(record) + 3
    content = b"%d " % length + record
    header, member = tarfile.TarInfo("x"), tarfile.TarInfo("a")
    header.type, header.size = tarfile.XHDTYPE, len(content) if size is None else size
    member.size = 10
    padded = content + bytes(-len(content) % 512)
    return header.tobuf(tarfile.GNU_FORMAT) + padded + member.tobuf(tarfile.GNU_FORMAT) + b"0" * 10 + bytes(10742)


def test_bombs_are_refused_before_they_go_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that is unpacked into memory, and links that are copied, over and over."""
    bomb = tmp_path / "header.tar.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(pax(b"comment", b"x", size=200 << 20)[:512])
        file.write(bytes(200 << 20))
    with pytest.raises(InputError, match="a header of 209715200 bytes"):
        corpus_from_user(bomb, Store(tmp_path / "home"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    many = tarred(tmp_path / "many.tar", ("a", FILE, ""), *((f"b{n}", HARD, "a") for n in range(10)))
    with pytest.raises(HostError, match="unpacking the archive needs"):
        corpus_from_user(many, Store(tmp_path / "home"))


@pytest.mark.parametrize("names", [[f"a{n}" for n in range(11)], ["/".join("abcdefghijkl")]], ids=["many", "deep"])
def test_an_archive_of_more_names_than_a_disk_has_inodes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr(user, "_ENTRIES", 10)
    archive = tarred(tmp_path / "many.tar", *((name, FILE, "") for name in names))
    with pytest.raises(InputError, match="holds more than 10 files and directories"):
        corpus_from_user(archive, Store(tmp_path / "home"))


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08\x1f\0", b"\x1f\x8b\x08\xc7" + bytes(600)])
def test_what_tarfile_trips_over_is_no_archive(tmp_path: Path, data: bytes) -> None:
    """Found by the fuzzer: TypeError and AttributeError of its stream reader."""
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    with pytest.raises(InputError, match="neither ISO 9660 image nor tar archive"):
        corpus_from_user(path, Store(tmp_path / "home"))


def test_of_an_archive_that_goes_too_deep_nothing_is_left(tmp_path: Path, store: Store) -> None:
    """Python itself could not remove the directories, and no verb could list the store."""
    archive = tmp_path / "deep.tar"
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for depth in range(1, 1200):
            entry = tarfile.TarInfo("a/" * depth)
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
        tar.addfile(tarfile.TarInfo("file"))
    with pytest.raises((InputError, RecursionError)):
        corpus_from_user(archive, store)
    left = [*(store.root / "corpus").iterdir()]
    process.run(["rm", "-rf", "--", *map(str, left)])  # or no later test could remove them
    assert not left


def test_links_to_one_file_by_two_names_are_two_corpora(tree: Path, store: Store) -> None:
    """Their images differ, and a filesystem keeps a link's text."""
    first = corpus_from_user(tree, store)
    (tree / "link").unlink()
    (tree / "link").symlink_to("./a//one.txt")
    second = corpus_from_user(tree, store)
    assert first.key != second.key and first.sha256 != second.sha256
