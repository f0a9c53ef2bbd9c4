"""Where things lie on forks of a disk: each is mounted read-only, its files' extents listed, then its free space.

What the programs say goes as it is, in one tar, to the results disk; the host reads it after the power-off.
"""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CalledProcessError

from harness import mapping
from harness.drives import DEVICES, Attached
from harness.plan import Map
from harness.step import Place, command

TOOLS = Path("/run/agelab/tools")
WHERE = Path("/run/map")
"""Where the plan's commands mount a fork."""
PATIENCE = 1800.0
"""Guest seconds for each program."""

Do = Callable[[list[str], str], None]


def take(
    maps: tuple[Map, ...],
    attached: Attached,
    results: Path,
    scratch: Path,
    do: Do,
    environment: Mapping[str, str],
) -> None:
    """Look at each fork in turn and write the tar: ``<name>/mapping`` of a disk that is made of several,
    ``<name>/extents``, ``<name>/free``, or the same with
    ``.error`` where a program failed: how, and its last words.

    Raises OSError, and what ``do`` raises where a fork cannot be mounted.
    """
    with results.open("wb") as disk, tarfile.open(fileobj=disk, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for todo in maps:
            fork = todo.fork
            members = attached.put_together(fork, fresh=False).members
            if fork.layers and todo.extents != "none":
                name = f"{fork.name}/mapping"
                try:
                    mapped = mapping.lines(str(DEVICES / fork.name), members)
                except (OSError, CalledProcessError) as error:  # the rest of the map is sound
                    _add(tar, f"{name}.error", str(error).encode())
                else:
                    _add(tar, name, "".join(f"{line}\n" for line in mapped).encode())
            if todo.extents != "none":
                WHERE.mkdir(exist_ok=True)
                do(list(fork.mount), f"mounting {fork.name}")
                method = ["--fibmap"] if todo.extents == "fibmap" else []
                argv = [str(TOOLS / "extents"), *method, str(WHERE)]
                keep(tar, f"{fork.name}/extents", argv, scratch, environment)
                do(list(fork.umount), f"unmounting {fork.name}")
            if todo.free:
                keep(tar, f"{fork.name}/free", list(todo.free), scratch, environment)
            attached.take_apart(fork)


def keep(tar: tarfile.TarFile, name: str, argv: list[str], scratch: Path, environment: Mapping[str, str]) -> None:
    """Put what a program prints into the tar. Raises Hung."""
    printed = scratch / "printed"
    done = command(argv, Place(scratch, scratch), environment, PATIENCE, Path("/"), printed=printed)
    if done.status:
        _add(tar, f"{name}.error", f"{argv[0]} exited {done.status}: {done.said}".encode())
    else:
        with printed.open("rb") as output:
            entry = tarfile.TarInfo(name)
            entry.size = printed.stat().st_size
            tar.addfile(entry, output)
    printed.unlink()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
