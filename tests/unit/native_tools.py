"""The guest's tools compiled by this host's compiler, and filesystems of this host's kernel to use them on."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from agelab import process
from agelab.image import tools

FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined")


def compiled(program: str, directory: Path, sources: Path = tools.SOURCES) -> Path:
    """A program of some sources that stops at the first wrong address and the first undefined arithmetic."""
    made = directory / program
    source = str(sources / f"{program}.c")
    process.run(["gcc", *FLAGS, "-fno-sanitize-recover=all", "-o", str(made), source])
    return made


@contextmanager
def mounted(image: Path, where: Path, *options: str) -> Iterator[Path]:
    """The filesystem in an image.

    A process that has begun meanwhile with mounts of its own (another test's builder) keeps a copy of the mount until
    it ends, and nothing else can be done with the image before.
    """
    where.mkdir(exist_ok=True)
    process.run(["mount", "-o", ",".join(("loop", *options)), str(image), str(where)])
    try:
        yield where
    finally:
        process.run(["umount", str(where)])
        until(lambda: not process.run(["losetup", "--associated", str(image)]).stdout)


def until(done: Callable[[], bool]) -> None:
    """Wait for what another process brings about. Raises TimeoutError after ten minutes: so long may a builder take."""
    end = monotonic() + 600
    while not done():
        if monotonic() > end:
            raise TimeoutError("nothing happened for ten minutes")
        sleep(0.05)


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
            with mounted(image, Path(name, "mounted")):
                return ""
        except process.ProcessFailed as error:
            return error.stderr.strip()
