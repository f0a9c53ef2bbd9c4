"""Make and inspect ISO 9660 images with Rock Ridge, with xorriso."""

import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agelab.base import confine, fileio, process
from agelab.base.errors import InputError

BLOCK = 2048
MAKER = {"image": 1}
"""Raised whenever the same tree would make another image. xorriso 1.5.4 and 1.5.6 make the same bytes."""
_DESCRIPTOR = 16 * BLOCK  # the primary volume descriptor comes after the system area of 16 blocks
_MARK = b"CD001"
_PRIMARY = 1
_NAME_FIELD = slice(40, 72)  # ECMA-119 8.4.7
_SIZE_FIELD = 80  # ECMA-119 8.4.8: volume space size, a 32 bit number in both byte orders
_LIST_SECONDS = 300.0
_FILE_LINE = re.compile(r"^-\S+ +\d+ +\S+ +\S+ +(\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Listing:
    """The number of regular files in an image, and their total bytes."""

    files: int
    content_bytes: int


def make(tree: Path, image: Path, *, volume: str, date: int) -> None:
    """Write the image of the directory ``tree``: equal trees give equal images.

    Owner, mode and time of every file are set (root, read-only as on a CD, ``date`` in seconds since 1970);
    the system area is empty. Raises HostError when xorriso is missing or fails.
    """
    stamp = f"{datetime.fromtimestamp(date, UTC):%Y%m%d%H%M%S}00"
    argv = ["xorriso", "-no_rc", "-as", "mkisofs", "-quiet", "-iso-level", "3", "-R", "-V", volume]
    # Otherwise the field has the versions of xorriso and its libraries: of these the bytes are independent.
    argv += ["-p", "AGELAB"]
    argv += ["-uid", "0", "-gid", "0", "-file-mode", "0444", "-dir-mode", "0555"]
    argv += [f"--modification-date={stamp}", "--set_all_file_dates", stamp]
    source, target = tree.resolve(), image.resolve()
    argv += ["--old-root-no-ino", "--old-root-no-md5", "-o", str(target), str(source)]
    confine.run(argv, read=[source], write=[target.parent], env={"SOURCE_DATE_EPOCH": str(date)})


def check(image: Path) -> str:
    """Return the volume name of an ISO 9660 image. Raises InputError when it is not one, or cut short."""
    with fileio.opened(image) as file:
        file.seek(_DESCRIPTOR)
        descriptor = file.read(BLOCK)
        file.seek(0, 2)
        size = file.tell()
    if descriptor[1 : 1 + len(_MARK)] != _MARK or len(descriptor) < BLOCK:
        raise InputError(f"{image} is not an ISO 9660 image: no CD001 at byte {_DESCRIPTOR + 1}")
    if descriptor[0] != _PRIMARY:
        raise InputError(f"{image} is not a whole ISO 9660 image: its first descriptor is not the primary one")
    stated = struct.unpack_from("<I", descriptor, _SIZE_FIELD)[0] * BLOCK
    if size < stated:
        raise InputError(f"{image} is cut short: it has {size} bytes instead of {stated}")
    return descriptor[_NAME_FIELD].decode("ascii", "replace").strip()


def is_image(path: Path) -> bool:
    """Return True for a file with the magic of ISO 9660, CD001 at byte 32769."""
    with fileio.opened(path) as file:
        file.seek(_DESCRIPTOR + 1)
        return file.read(len(_MARK)) == _MARK


def listing(image: Path) -> Listing:
    """Count the files of an image and their bytes. Raises InputError when xorriso cannot read it."""
    file = image.resolve()
    argv = ["xorriso", "-no_rc", "-indev", f"stdio:{file}"]
    argv += ["-find", "/", "-type", "f", "-exec", "lsdl", "--"]
    try:
        lines = confine.run(argv, read=[file], timeout=_LIST_SECONDS).stdout
    except process.TimedOut as error:
        raise InputError(
            f"{image} cannot be read as an ISO 9660 image within {_LIST_SECONDS:g} s",
            hint="a directory in it may contain itself; or make a tar archive of so many files",
        ) from error
    except process.ProcessFailed as error:
        raise InputError(f"{image} cannot be read as an ISO 9660 image: {error}", hint=error.hint) from error
    sizes = [int(size) for size in _FILE_LINE.findall(lines)]
    return Listing(len(sizes), sum(sizes))
