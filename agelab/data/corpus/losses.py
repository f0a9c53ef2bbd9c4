"""What an image cannot carry of a user's files: counted while they are read, then said in a line each.

An image carries names, contents, directories and symbolic links; owners, modes and times are set. Linux shows no hard
links, holes and extended attributes in it, so a copy of a tree that has such is another tree.
"""

import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import InputError

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
                f"{named} is a link whose text has {length} bytes: an image holds {MAX_LINK} at most",
                hint=KEEP,
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
            yield (
                _one_or_many(n, "symbolic link ends", "symbolic links end") + " in a slash, which is left out"
            )

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
