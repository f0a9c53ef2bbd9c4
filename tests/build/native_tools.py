"""The guest's tools compiled by this host's compiler, and filesystems of this host's kernel to use them on."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from agelab.base import process
from agelab.machine.image import tools

FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined")


def compiled(program: str, directory: Path, sources: Path = tools.SOURCES) -> Path:
    """A program of some sources that stops at the first wrong address and the first undefined arithmetic."""
    made = directory / program
    source = str(sources / f"{program}.c")
    process.run(["gcc", *FLAGS, "-fno-sanitize-recover=all", "-o", str(made), source])
    return made


MOUNTED = 'mount -o "$1" "$2" "$3"; echo mounted; read -r end; umount "$3"'


@contextmanager
def mounted(image: Path, *options: str) -> Iterator[Path]:
    """The filesystem in an image, in a mount namespace that nobody else copies: whoever does holds the image, too."""
    where = image.with_name("mounted")
    where.mkdir(exist_ok=True)
    words = ["sh", "-ec", MOUNTED, "sh", ",".join(("loop", *options)), str(image), str(where)]
    child = subprocess.Popen(
        ["unshare", "--mount", "--", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    begun = child.stdout.readline()
    try:
        if begun:
            yield Path(f"/proc/{child.pid}/root{where}")
    finally:
        _, errors = child.communicate("\n")
    if child.returncode:
        raise process.ProcessFailed(words, child.returncode, errors)


def made(image: Path, mib: int, mkfs: Sequence[str]) -> None:
    """A new filesystem in a sparse file."""
    image.touch()
    os.truncate(image, mib << 20)
    # Not through process.run: its search path is that of a host, a developer's programs may lie elsewhere.
    subprocess.run([*mkfs, str(image)], check=True, capture_output=True)


@cache
def lacking(mib: int, mkfs: Sequence[str]) -> str:
    """Why this host cannot mount what this mkfs makes, or nothing: it is tried."""
    with TemporaryDirectory() as name:
        image = Path(name, "image")
        made(image, mib, mkfs)
        try:
            with mounted(image):
                return ""
        except process.ProcessFailed as error:
            return error.stderr.strip()
