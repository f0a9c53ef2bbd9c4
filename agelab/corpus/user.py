"""The user's own data as a corpus: an ISO image as it is, a directory or a tar archive made into one."""

import errno
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from agelab.corpus import iso
from agelab.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain, require_space
from agelab.corpus.definition import definition
from agelab.errors import InputError
from agelab.store import Store, file_hash, key_of

VOLUME = "CORPUS"
DATE = 1175990400  # the same fixed time as the stand-ins carry: times are no part of the content
Recipe = tuple[dict[str, Any], Callable[[Path], CorpusDescription]]
"""The inputs that make a corpus's key, and what builds it."""
CheckTop = Callable[[tuple[str, ...]], None]
"""Raises InputError where what is at the top is not what is needed there."""
HINT = "give an ISO 9660 image, a directory, or a tar archive (plain, gzip, bzip2 or xz)"


_HEADER = 1 << 20
"""Bytes of an extended header, at most: names and times."""
_READER_ERRORS = (ValueError, OverflowError, AttributeError, TypeError)
"""What tarfile raises besides: of cut or made-up headers its stream reader trips over itself (tarfile._Stream)."""
_ARCHIVE_ERRORS = (
    tarfile.TarError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    shutil.SameFileError,
    *_READER_ERRORS,
)
_CONTRADICTIONS = (
    *(errno.EEXIST, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP),
    errno.ENOTEMPTY,
)


class _Member(tarfile.TarInfo):
    """A member whose extended headers have an end: tarfile reads them whole, however large they call themselves."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) and self.size > _HEADER and not self.isfile():
            raise tarfile.ReadError(f"{self.name[:60]!r} is a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]


def corpus_from_user(path: Path, store: Store, kind: str | None = None) -> Corpus:
    """The user's ISO image (taken as it is), or an image of the user's directory or tar archive.

    The key is the hash of the content, so the same content is stored once, whatever its name. Where it takes
    the place of a stand-in of that ``kind``, it must have at its top what that has; images are not looked into.
    Raises InputError when it is none of these or cannot be read, HostError when the disk is too full.
    """
    path = path.absolute()
    wanted = definition(kind).names if kind else ()

    def look(top: tuple[str, ...]) -> None:
        if missing := [name for name in wanted if name not in top]:
            raise InputError(
                f"{path} lacks {', '.join(missing)}: it cannot take the place of {kind}",
                hint=f"at its top it must have {', '.join(wanted)}",
            )

    try:
        inputs, build = _recipe(path, look)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    corpus = obtain(store, inputs, build)
    if corpus.top is not None:  # it may have been kept before, for something else
        look(corpus.top)
    return corpus


def _recipe(path: Path, look: CheckTop) -> Recipe:
    if path.is_dir():
        return _directory(path, look)
    if not path.is_file():
        raise InputError(f"{path} is {'no file' if path.exists() else 'not there'}", hint=HINT)
    return _image(path) if iso.is_image(path) else _archive(path, look)


def _image(path: Path) -> Recipe:
    name = iso.check(path)
    content = file_hash(path)

    def build(directory: Path) -> CorpusDescription:
        require_space(path.stat().st_size, directory, "keeping the image")
        shutil.copyfile(path, directory / IMAGE_FILE)
        if file_hash(directory / IMAGE_FILE) != content:
            raise InputError(f"{path} changed while it was being read")
        found = iso.listing(path)
        if not found.files:
            raise InputError(f"{path} holds no file")
        described = f"the user's image {name!r}"
        return CorpusDescription(files=found.files, content_bytes=found.content_bytes, description=described)

    return {"source": "image", "sha256": content}, build


def _directory(path: Path, look: CheckTop) -> Recipe:
    look(_top(path))
    entries = list(_entries(path))

    def build(directory: Path) -> CorpusDescription:
        about = _imaged(path, directory, "the user's directory")
        if list(_entries(path)) != entries:
            raise InputError(f"{path} changed while it was being read")
        return about

    return {"source": "directory", "sha256": key_of(entries), "maker": iso.xorriso_versions()}, build


def _archive(path: Path, look: CheckTop) -> Recipe:
    def build(directory: Path) -> CorpusDescription:
        tree = directory / "tree"
        tree.mkdir()
        _unpack(path, tree)
        look(_top(tree))
        about = _imaged(tree, directory, "the user's tar archive")
        shutil.rmtree(tree)
        return about

    return {"source": "archive", "sha256": file_hash(path), "maker": iso.xorriso_versions()}, build


def _imaged(tree: Path, directory: Path, what: str) -> CorpusDescription:
    sizes = [entry[1] for entry in _entries(tree, hashed=False) if isinstance(entry[1], int)]
    if not sizes:
        raise InputError(f"{what} holds no file")
    require_space(sum(sizes) + (len(sizes) + 1000) * 2 * iso.BLOCK, directory, "making the image")
    iso.make(tree, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
    described = f"{what}: {len(sizes)} files"
    return CorpusDescription(
        files=len(sizes), content_bytes=sum(sizes), description=described, top=_top(tree)
    )


def _top(tree: Path) -> tuple[str, ...]:
    """What lies at the top of a tree, directories with a slash."""
    names = (f"{_text(Path(path.name))}{'/' if path.is_dir() else ''}" for path in tree.iterdir())
    return tuple(sorted(names))


def _entries(root: Path, hashed: bool = True) -> Iterator[list[str | int | None]]:
    """What makes up a tree, in one order everywhere: path, size and hash of a file, target of a link.

    Raises InputError for what a corpus cannot hold, OSError for what cannot be read.
    """
    for path in sorted(_below(root), key=os.fsencode):
        name, mode = _text(path.relative_to(root)), path.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield [name, None, None]
        elif stat.S_ISLNK(mode):
            yield [name, None, _text(path.readlink())]
        elif stat.S_ISREG(mode):
            yield [name, path.stat().st_size, file_hash(path) if hashed else None]
        else:
            raise InputError(f"{path} is neither file, directory nor link: a corpus cannot hold it")


def _below(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error  # what cannot be listed would silently be missing from the corpus

    for directory, directories, names in os.walk(root, onerror=refuse):
        for name in (*directories, *names):
            yield Path(directory, name)


def _text(path: Path) -> str:
    """A path as text that JSON can hold, even when it is not valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _unpack(archive: Path, tree: Path) -> None:
    """Unpack a tar archive: files, directories and links only, and nothing outside ``tree``.

    Python's own safe unpacking is younger than the Pythons that this runs on.
    """
    links: dict[Path, str] = {}
    room = shutil.disk_usage(tree).free
    try:
        with tarfile.open(archive, "r|*", tarinfo=_Member) as opened:
            for member in opened:
                opened.members = []  # type: ignore[attr-defined]  # or all of them would be kept
                target = tree / _inside(member.name, archive)
                target.parent.mkdir(parents=True, exist_ok=True)
                if member.isdir():
                    target.mkdir(exist_ok=True)
                elif member.issym():
                    links[target] = member.linkname
                elif member.islnk():
                    source = tree / _inside(member.linkname, archive)
                    room = _taken(room, source.stat().st_size, tree)
                    shutil.copyfile(source, target)
                elif content := opened.extractfile(member) if member.isreg() else None:
                    room = _taken(room, member.size, tree)
                    with content, target.open("wb") as file:
                        shutil.copyfileobj(content, file)
                else:
                    raise InputError(f"{archive}: {member.name} is neither file, directory nor link")
        # Links come last: no file can be written through one, to wherever it points.
        for target, pointed in links.items():
            target.symlink_to(pointed)
    except _ARCHIVE_ERRORS as error:
        raise InputError(
            f"{archive} is neither ISO 9660 image nor tar archive: {error}", hint=HINT
        ) from error
    except OSError as error:
        if error.errno not in _CONTRADICTIONS:
            raise
        # A name that is a file here and a directory there, a hard link to what is not in it, no name of a file.
        raise InputError(
            f"{archive} contradicts itself: {error.strerror}: {str(error.filename)[:200]!r}"
        ) from error


def _taken(room: int, size: int, tree: Path) -> int:
    """What is left for more files of so many bytes. Raises HostError where that is nothing."""
    left = room - 2 * max(size, 0)  # the file, and its copy in the image
    if left < 0:
        require_space(shutil.disk_usage(tree).free - left, tree, "unpacking the archive")
    return left


def _inside(name: str, archive: Path) -> PurePosixPath:
    path = PurePosixPath(name.lstrip("/"))
    if ".." in path.parts:
        raise InputError(f"{archive}: {name} points outside the archive")
    return path
