"""The user's own data as a corpus: an ISO image as it is, or one made of a directory or a tar archive, with its losses.

An image carries names, contents, directories and symbolic links; owners, modes and times are set. Linux shows no hard
links, holes and extended attributes in it, so a copy of a tree that has such is another tree.
"""

import errno
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from agelab.base import fileio, readers
from agelab.base.errors import InputError, Notify, silent
from agelab.base.hashing import key_of
from agelab.data.corpus import iso
from agelab.data.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain, require_space
from agelab.data.corpus.definition import definition
from agelab.store.artefacts import Store, file_hash, require_unchanged

MB = 1_000_000
MAX_NAME = 253
"""Bytes of the longest name that Linux reads whole in an image (fs/isofs/rock.c)."""
MAX_LINK = 1023
"""Bytes of the longest text of a symbolic link that xorriso puts into an image."""
KEEP = "a tar archive within a directory keeps all of it, for a step to unpack: docs/corpus.md, Your own data"
_PERMISSIONS = 0o7555
"""The bits of a mode that count: nothing in an image can be written."""
_FILE, _DIRECTORY = 0o444, 0o555
"""The modes in an image (agelab/data/corpus/iso.py)."""
_HEADERS = ("SCHILY.xattr.", "SCHILY.acl.", "LIBARCHIVE.xattr.")
"""The beginnings of an archive's headers that hold extended attributes or access control lists."""
_LABEL = "security.selinux"
"""The attribute that some hosts give to every file."""


@dataclass
class Losses:
    """Counts over a tree or an archive."""

    links: int = 0
    """Names of files beside their first ones."""
    linked_bytes: int = 0
    sparse: int = 0
    hole_bytes: int = 0
    modes: int = 0
    programs: int = 0
    """The files among ``modes`` that could be run."""
    attributes: int = 0
    owners: set[tuple[int, int]] = field(default_factory=set)
    """User and group of each entry."""
    cut_names: int = 0
    cut_links: int = 0
    """Symbolic links that end in a slash."""

    def add(self, path: Path, status: os.stat_result, *, again: bool) -> None:
        """Count a file, directory or link of a tree; ``again``: its file was there under another name."""
        self._add_name(path.name, (status.st_uid, status.st_gid))
        if again:
            self._add_hard_link(status.st_size)
            return
        if not stat.S_ISLNK(status.st_mode):
            self._add_mode(status.st_mode, stat.S_ISDIR(status.st_mode))
        self.attributes += _has_attributes(path)
        if stat.S_ISREG(status.st_mode) and 512 * status.st_blocks < status.st_size:
            self._add_holes(_hole_bytes(path, status.st_size))

    def add_member(self, member: tarfile.TarInfo, linked_bytes: int) -> None:
        """Count a member of an archive; ``linked_bytes``: the size of the file that a hard link leads to."""
        self._add_name(Path(member.name).name, (member.uid, member.gid))
        if member.islnk():
            self._add_hard_link(linked_bytes)
            return
        if not member.issym():
            self._add_mode(member.mode, member.isdir())
        self.attributes += any(key.startswith(_HEADERS) for key in member.pax_headers)
        data: Sequence[tuple[int, int]] | None = getattr(member, "sparse", None)
        if data is not None:
            self._add_holes(member.size - sum(length for _, length in data))

    def add_link(self, named: Path | str, text: str) -> None:
        """Count a symbolic link. Raises InputError for one with a text that no image holds."""
        if (length := len(os.fsencode(text))) > MAX_LINK:
            raise InputError(
                f"{named} is a link whose text has {length} bytes: an image holds {MAX_LINK} at most", hint=KEEP
            )
        self.cut_links += text != "/" and text.endswith("/")

    def lines(self) -> tuple[str, ...]:
        """Return a line for each kind of loss, and how to keep it all."""
        lines = tuple(self._each())
        return (*lines, KEEP) if lines else ()

    def _each(self) -> Iterator[str]:
        if n := self.links:
            yield (
                _one_or_many(
                    n,
                    "file is a hard link of another: it becomes a copy",
                    "files are hard links of others: they become copies",
                )
                + f" ({_mb(self.linked_bytes)} more)"
            )
        if n := self.sparse:
            yield _one_or_many(n, "file is sparse: its holes", "files are sparse: their holes") + (
                f" become zeros ({_mb(self.hole_bytes)} more)"
            )
        if n := self.modes:
            programs = f" ({self.programs} can be run)" if self.programs else ""
            yield _one_or_many(n, "entry has a mode", "entries have modes") + (
                f" that the image has not{programs}: files become {_FILE:04o}, directories {_DIRECTORY:04o}"
            )
        if n := self.attributes:
            yield _one_or_many(n, "entry has", "entries have") + (
                " extended attributes or access control lists: they are left out"
            )
        if (n := len(self.owners)) > 1:
            yield f"the files belong to {n} pairs of user and group: all become root's"
        if n := self.cut_names:
            yield _one_or_many(n, "name is", "names are") + (
                f" longer than {MAX_NAME} bytes: Linux cuts such names in an image, and those that begin alike are one"
            )
        if n := self.cut_links:
            yield (_one_or_many(n, "symbolic link ends", "symbolic links end") + " in a slash, which is left out")

    def _add_name(self, name: str, owner: tuple[int, int]) -> None:
        self.cut_names += len(os.fsencode(name)) > MAX_NAME
        self.owners.add(owner)

    def _add_hard_link(self, size: int) -> None:
        self.links += 1
        self.linked_bytes += size

    def _add_holes(self, size: int) -> None:
        self.sparse += size > 0
        self.hole_bytes += size

    def _add_mode(self, mode: int, directory: bool) -> None:
        if mode & _PERMISSIONS != (_DIRECTORY if directory else _FILE):
            self.modes += 1
            self.programs += not directory and bool(mode & 0o111)


def _has_attributes(path: Path) -> bool:
    try:
        return any(name != _LABEL for name in os.listxattr(path, follow_symlinks=False))
    except OSError:  # a filesystem that knows none
        return False


def _hole_bytes(path: Path, size: int) -> int:
    """Return the bytes of a file that are in holes."""
    with fileio.opened(path) as file:
        at = data = 0
        while at < size:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: there are no more data
                break
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            data += at - begin
    return max(0, size - data)


def _one_or_many(number: int, singular: str, many: str) -> str:
    return f"{number:,} {singular if number == 1 else many}"


def _mb(size: int) -> str:
    return f"{size / MB:.1f} MB"


VOLUME = "CORPUS"
LOSSES = 1
"""Raised when other losses of an archive are counted: they lie beside its image."""
DATE = 1175990400  # the date of the stand-ins: times are not part of the content
Preparation = tuple[dict[str, Any], Callable[[Path], CorpusDescription]]
"""The inputs that make a corpus's key, and the function that writes its image."""
CheckTop = Callable[[tuple[str, ...]], None]
"""Raises InputError when a name that is needed at the top is missing."""
HINT = "give an ISO 9660 image, a directory, or a tar archive (plain, gzip, bzip2 or xz)"

_HEADER = 1 << 20
"""Bytes of an extended header (names and times) at most."""
_ENTRIES = 2_000_000
"""Files and directories of an archive at most; their bytes are limited by the room on the disk."""
_READER_ERRORS = (ValueError, OverflowError, AttributeError, TypeError, RecursionError)
"""Errors from the stream reader of tarfile (tarfile._Stream) on truncated or forged headers."""
_ARCHIVE_ERRORS = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, shutil.SameFileError, *_READER_ERRORS)
_CONTRADICTIONS = (
    *(errno.EEXIST, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP),
    errno.ENOTEMPTY,
)


class _Member(tarfile.TarInfo):
    """A member with a limit on its extended headers, which tarfile reads into memory whatever size they state."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) and self.size > _HEADER and not self.isfile():
            raise tarfile.ReadError(f"{self.name[:60]!r} is a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]


def corpus_from_user(path: Path, store: Store, kind: str | None = None, say: Notify = silent) -> Corpus:
    """Return the user's ISO image (as it is), or an image of the user's directory or tar archive, as a corpus.

    The key is the hash of the content, so the same content is stored once, whatever its name; who may not read all of
    it may not read the corpus. With ``kind`` it must
    have at its top the names of that stand-in; ISO images are not checked. ``say`` is told what the image cannot carry.
    Raises InputError when it is none of these or cannot be read, HostError when the disk is too full.
    """
    path = path.absolute()
    needed = definition(kind).names if kind else ()

    def check_top(top: tuple[str, ...]) -> None:
        if missing := [name for name in needed if name not in top]:
            raise InputError(
                f"{path} lacks {', '.join(missing)}: it cannot take the place of {kind}",
                hint=f"at its top it must have {', '.join(needed)}",
            )

    try:
        inputs, build = _prepare(path, check_top, say)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    corpus = obtain(store, inputs, build, readers.of_tree(path))
    if corpus.top is not None:  # it may have been stored earlier, for another kind
        check_top(corpus.top)
    for line in corpus.lost:
        say(line)
    return corpus


def require_corpus(path: Path) -> None:
    """Raise InputError for a path that is neither a directory nor a file."""
    if not path.is_dir() and not path.is_file():
        raise InputError(f"{path.absolute()} is {'no file' if path.exists() else 'not there'}", hint=HINT)


def _prepare(path: Path, check_top: CheckTop, say: Notify) -> Preparation:
    if path.is_dir():
        return _directory(path, check_top, say)
    require_corpus(path)
    return _image(path) if iso.is_image(path) else _archive(path, check_top)


def _image(path: Path) -> Preparation:
    name = iso.check(path)
    content = file_hash(path)

    def build(directory: Path) -> CorpusDescription:
        require_space(path.stat().st_size, directory, "keeping the image")
        shutil.copyfile(path, directory / IMAGE_FILE)
        if file_hash(directory / IMAGE_FILE) != content:
            raise InputError(f"{path} changed while it was being read")
        listing = iso.listing(path)
        if not listing.files:
            raise InputError(f"{path} holds no file")
        described = f"the user's image {name!r}"
        return CorpusDescription(files=listing.files, content_bytes=listing.content_bytes, description=described)

    return {"source": "image", "sha256": content}, build


def _directory(path: Path, check_top: CheckTop, say: Notify) -> Preparation:
    check_top(_top(path))
    losses = Losses()
    for _ in _entries(path, hashed=False, losses=losses):
        pass
    for line in losses.lines():  # before everything is read, which may take long
        say(line)
    entries = list(_entries(path))

    def build(directory: Path) -> CorpusDescription:
        about = _make_image(path, directory, "the user's directory")
        if list(_entries(path)) != entries:
            raise InputError(f"{path} changed while it was being read")
        return about

    return {"source": "directory", "sha256": key_of(entries), "maker": iso.MAKER}, build


def _archive(path: Path, check_top: CheckTop) -> Preparation:
    with _opened(path) as tar:  # what is no archive is refused before all of it is hashed
        if tar.next() is None:
            raise InputError(f"{path} holds no file", hint=HINT)
    content = file_hash(path)

    def build(directory: Path) -> CorpusDescription:
        tree = directory / "tree"
        tree.mkdir()
        losses = Losses()
        _unpack(path, tree, losses)
        require_unchanged(path, content)
        check_top(_top(tree))
        about = _make_image(tree, directory, "the user's tar archive")
        shutil.rmtree(tree)
        return about.model_copy(update={"lost": losses.lines()})

    return {"source": "archive", "sha256": content, "maker": iso.MAKER, "losses": LOSSES}, build


def _make_image(tree: Path, directory: Path, what: str) -> CorpusDescription:
    sizes = [entry[1] for entry in _entries(tree, hashed=False) if isinstance(entry[1], int)]
    if not sizes:
        raise InputError(f"{what} holds no file")
    require_space(sum(sizes) + (len(sizes) + 1000) * 2 * iso.BLOCK, directory, "making the image")
    iso.make(tree, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
    described = f"{what}: {len(sizes)} files"
    return CorpusDescription(files=len(sizes), content_bytes=sum(sizes), description=described, top=_top(tree))


def _top(tree: Path) -> tuple[str, ...]:
    """List the names at the top of a tree, directories with a slash."""
    names = (f"{_text(Path(path.name))}{'/' if path.is_dir() else ''}" for path in tree.iterdir())
    return tuple(sorted(names))


def _entries(root: Path, hashed: bool = True, losses: Losses | None = None) -> Iterator[list[str | int | None]]:
    """Yield path, size, and hash (or link target) of everything in a tree, in the same order on every host.

    A further name of a file also has its first one: in the image both have their content at one place. ``losses``
    counts what an image cannot carry.
    Raises InputError for anything but files, directories and links, OSError for what cannot be read.
    """
    first_names: dict[tuple[int, int], str] = {}
    for path in sorted(_walk(root), key=os.fsencode):
        name, status = _key_text(path.relative_to(root)), path.lstat()
        mode, first = status.st_mode, name
        if stat.S_ISREG(mode) and status.st_nlink > 1:
            first = first_names.setdefault((status.st_dev, status.st_ino), name)
        if losses:
            losses.add(path, status, again=first != name)
        if stat.S_ISDIR(mode):
            yield [name, None, None]
        elif stat.S_ISLNK(mode):
            text = fileio.link_text(path)
            if losses:
                losses.add_link(path, text)
            yield [name, None, _key_text(text)]
        elif stat.S_ISREG(mode):
            content = file_hash(path) if hashed else None
            yield [name, status.st_size, content, *([first] if first != name else [])]
        else:
            raise InputError(
                f"{path} is neither file, directory nor link: a corpus cannot hold it", hint=f"remove it; {KEEP}"
            )


def _walk(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error  # or an unreadable directory would silently be missing from the corpus

    for directory, directories, names in os.walk(root, onerror=refuse):
        for name in (*directories, *names):
            yield Path(directory, name)


def _key_text(path: Path | str) -> str:
    """Return a path as text that no other path has: one of bytes that are no UTF-8 in hexadecimal, behind a zero."""
    try:
        return os.fsencode(path).decode()
    except UnicodeDecodeError:
        return f"\0{os.fsencode(path).hex()}"


def _text(path: Path) -> str:
    """Return a path as text for JSON, even when it is not valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _unpack(archive: Path, tree: Path, losses: Losses) -> None:
    """Unpack the files, directories and links of a tar archive, never outside ``tree``; count what is lost.

    Python's own safe unpacking (extraction filters) is not in every Python that this supports.
    """
    links: dict[Path, str] = {}
    room, left = shutil.disk_usage(tree).free, _ENTRIES
    with _opened(archive) as tar:
        for member in tar:
            tar.members = []  # type: ignore[attr-defined]  # or all of them would stay in memory
            target = tree / _inner_path(member.name, archive)
            left -= 1 if target.parent.is_dir() else len(target.parts) - len(tree.parts)
            if left < 0:
                raise InputError(f"{archive} holds more than {_ENTRIES:,} files and directories")
            target.parent.mkdir(parents=True, exist_ok=True)
            linked_bytes = 0
            if member.isdir():
                target.mkdir(exist_ok=True)
            elif member.issym():
                losses.add_link(f"{archive}: {member.name}", member.linkname)
                links[target] = member.linkname
            elif member.islnk():
                source = tree / _inner_path(member.linkname, archive)
                linked_bytes = source.stat().st_size
                room = _reserve(room, linked_bytes, tree)
                shutil.copyfile(source, target)
            elif content := tar.extractfile(member) if member.isreg() else None:
                room = _reserve(room, member.size, tree)
                with content, target.open("wb") as file:
                    shutil.copyfileobj(content, file)
            else:
                raise InputError(
                    f"{archive}: {member.name} is neither file, directory nor link", hint=f"leave it out; {KEEP}"
                )
            losses.add_member(member, linked_bytes)
        # Links come last, so that no file can be written through one.
        for target, pointed in links.items():
            target.symlink_to(pointed)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar archive as a stream. Raises InputError for what the body finds to be no archive or no sound one."""
    try:
        with fileio.opened(archive) as file, tarfile.open(fileobj=file, mode="r|*", tarinfo=_Member) as tar:
            yield tar
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{archive} is neither ISO 9660 image nor tar archive: {error}", hint=HINT) from error
    except OSError as error:
        if error.errno not in _CONTRADICTIONS:
            raise
        # For example a name that is both a file and a directory, or a hard link to a missing member.
        raise InputError(
            f"{archive} contradicts itself: {error.strerror}: {Path(str(error.filename)).name[:200]!r}"
        ) from error


def _reserve(room: int, size: int, tree: Path) -> int:
    """Return the free bytes left after a file of ``size``. Raises HostError when there are too few."""
    left = room - 2 * max(size, 0)  # the file, and its copy in the image
    if left < 0:
        require_space(shutil.disk_usage(tree).free - left, tree, "unpacking the archive")
    return left


def _inner_path(name: str, archive: Path) -> PurePosixPath:
    path = PurePosixPath(name.lstrip("/"))
    if ".." in path.parts:
        raise InputError(f"{archive}: {name} points outside the archive")
    return path
