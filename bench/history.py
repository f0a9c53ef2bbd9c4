"""Histories: what it takes to make them, and to carry them out.

    .venv/bin/python -m bench.history [--write]

- A log of a million operations of each engine made, checked, split and kept: host seconds and memory.
- The replayer on this host's own kernel, as root, on ext4 (as mkfs makes it) in a file: how many operations a second it
  carries out of a history to a profile, files allocated and not written, all of it on the disk at the end.
- What the replayer keeps and does for each file: its memory, and its time for an operation, with 10,000 and with
  1,000,000 files there; beside it the time that ext4 takes.

Of several times the best counts: other work can only make it longer. Exit code 1 where a limit is missed; --write puts
the tables into docs/bench.md. Takes six minutes and 8 GB of disk for the moment.
"""

import argparse
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab.base import process
from agelab.base.errors import AgelabError
from agelab.data.history.operations import HEADER
from agelab.data.history.synthetic import versions
from agelab.machine.image import tools
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid

SECONDS, MIB = 20, 300
"""Limits for a million operations."""
RATE = 15_000
"""Operations a second at least; Geriatrix came to 10,600 with the same profile."""
PER_FILE = 200
"""Bytes of the replayer's memory for each live file at most."""
GROWTH = 1.5
"""Limit for the growth of the replayer's own time per operation, from few files to many."""
FEW, MANY = 10_000, 1_000_000
TIMES = 3

MAKE = """
import json, resource, sys, time
from pathlib import Path
from pydantic import TypeAdapter
from agelab.data.history import artefact
from agelab.scenario.history import History
from agelab.store.artefacts import Store
from docs.make.page import grid

wanted = TypeAdapter(History).validate_python(json.loads(sys.argv[1]))
started = time.monotonic()
made = artefact.obtain_history(wanted, int(sys.argv[2]), 1, Store(Path(sys.argv[3])))
took = time.monotonic() - started
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(artefact.read_report(made).operations, took, int(peak) // 1024)
"""


@dataclass(frozen=True)
class Finding:
    """A row of a table, and whether it keeps the limit."""

    cells: tuple[str, ...]
    kept: bool = True


def figure(value: float) -> dict[str, object]:
    """Return a number in the form that a scenario gives it."""
    return {"value": value, "origin": "estimated"}


def repository(where: Path) -> Path:
    """Make a repository of small files with so many versions that checking out each is a million operations."""
    where.mkdir()
    process.run(["git", "-C", str(where), "init", "-q"])
    number = 0
    with (where / "stream").open("wb") as out:
        for count, version in enumerate(versions(1_600_000_000, 4_100_000_000, 1)):
            out.write(b"commit refs/heads/main\ncommitter n <e> %d +0000\ndata 0\n" % (1_000_000_000 + count))
            for change in version:
                number += 1
                if change.size is None:
                    out.write(b"D %s\n" % change.path)
                else:
                    out.write(b"M 100644 inline %s\ndata %d\n%d\n" % (change.path, len(str(number)), number))
    process.run(["git", "-C", str(where), "fast-import", "--quiet"], stdin=where / "stream")
    return where


def makings(work: Path) -> Iterator[Finding]:
    """Time a million operations by each engine."""
    half = {"fullness": figure(0.8), "points": 10}
    asked: list[tuple[str, dict[str, object], int]] = [
        ("profile", {"profile": "agrawal-2007", "overwrites": figure(12.5), **half}, 2_000_000_000),
        ("history", {"overwrites": figure(2.1), **half}, 2_000_000_000),
        ("churn", {"overwrites": figure(230), "freed": figure(0.3), **half}, 256_000_000),
        (
            "git",
            {"repository": str(repository(work / "repository")), "revision": "main", "points": 10},
            2_000_000_000,
        ),
    ]
    for engine, options, disk in asked:
        spec = json.dumps({"engine": engine, "name": "bench", **options})
        measured = []
        for number in range(TIMES):
            home = work / f"{engine}-{number}"
            argv = [sys.executable, "-c", MAKE, spec, str(disk), str(home)]
            operations, seconds, mib = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
            measured.append((float(seconds), int(mib), int(operations)))
        seconds_, mib_, operations_ = min(measured)
        scaled = seconds_ * 1e6 / operations_
        cells = (f"`{engine}`", f"{operations_:,}", f"{seconds_:.1f}", f"{scaled:.1f}", str(mib_))
        yield Finding(cells, scaled <= SECONDS and mib_ <= MIB)


@contextmanager
def ext4(work: Path, gigabytes: int, *options: str) -> Iterator[Path]:
    """Mount a new ext4 in a sparse file for the body; file and mount are removed afterwards."""
    image, where = work / "ext4.img", work / "mounted"
    where.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(gigabytes << 30)
    try:
        process.run(["mkfs.ext4", "-q", "-F", *options, str(image)])
        process.run(["mount", "-o", "loop", str(image), str(where)])
        try:
            yield where
        finally:
            process.run(["umount", str(where)])
    finally:
        image.unlink()


def carried_out(replay: Path, work: Path) -> Finding:
    """Time a history with a profile on ext4."""
    log = work / "profile.log"
    argv = [
        sys.executable,
        "-c",
        "import sys; from agelab.cli import main; sys.exit(main())",
        "history",
        "make",
    ]
    argv += ["profile", "--disk", str(2 << 30), "--fullness", "0.8", "--overwrites", "5", "-o", str(log)]
    subprocess.run(argv, check=True, capture_output=True)
    best, counted = 0.0, ""
    for _ in range(TIMES):
        with ext4(work, 2) as where:
            started = time.monotonic()
            done = subprocess.run([replay, "--allocate", log], cwd=where, check=True, capture_output=True, text=True)
            process.run(["sync", "-f", str(where)])
            took = time.monotonic() - started
        counted = done.stdout.split()[1]
        best = max(best, int(counted) / took)
    log.unlink()
    return Finding(
        ("`profile` (agrawal-2007) on ext4 of 2 GiB, 0.8 full", f"{int(counted):,}", f"{best:,.0f}"),
        best >= RATE,
    )


def path(number: int) -> bytes:
    """Return the path of a file: a thousand files for each directory, all paths of equal length."""
    return b"d%04d/f%07d" % (number // 1000, number)


def there(files: int) -> Iterator[bytes]:
    """Operations after which so many files are there."""
    yield HEADER + b"\n"
    for number in range(files):
        if number % 1000 == 0:
            yield b"mkdir d%04d\n" % (number // 1000)
        yield b"create %s\n" % path(number)


def used(files: int, operations: int) -> bytes:
    """Operations on files drawn among them: one is removed and made anew."""
    draw = random.Random(1)
    names = (path(draw.randrange(files)) for _ in range(operations // 3))
    return b"".join(b"unlink %s\ncreate %s\nwrite %s 0 4096\n" % (name, name, name) for name in names)


def fed(replay: Path, where: Path, options: tuple[str, ...], files: int, operations: int) -> tuple[float, int]:
    """Seconds for an operation with so many files there, and the replayer's peak memory, in bytes.

    The log is fed through a pipe: its first part can be waited for, and the memory looked at before the end.
    """
    pipe = where.parent / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([replay, *options, pipe], cwd=where, stdout=subprocess.DEVNULL) as child:
        try:
            with pipe.open("wb") as log:
                log.writelines(there(files))
                log.flush()
                _drained(log.fileno())
                tail = used(files, operations)
                started = time.monotonic()
                log.write(tail)
                log.flush()
                _drained(log.fileno())
                took = time.monotonic() - started
                status = Path(f"/proc/{child.pid}/status").read_text()
        finally:
            pipe.unlink()
    if child.returncode:
        raise AgelabError(f"replay: exit {child.returncode}")
    return took / operations, int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _drained(pipe: int) -> None:
    """Wait until the reader has taken everything."""
    while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]:
        time.sleep(0.001)


def growths(replay: Path, work: Path) -> Iterator[Finding]:
    """Time the replayer with few files and with many."""

    def best(operations: int, *options: str, where: Path) -> list[tuple[float, int]]:
        measured = {
            files: [fed(replay, where, options, files, operations) for _ in range(TIMES)] for files in (FEW, MANY)
        }
        return [min(measured[files]) for files in (FEW, MANY)]

    empty = work / "empty"
    empty.mkdir()
    few, many = best(3_000_000, "--dry", where=empty)
    grown = many[1] - few[1]
    yield Finding(
        (
            "memory",
            f"{few[1] / 1024:,.0f} KiB",
            f"{many[1] / 1024:,.0f} KiB",
            f"{grown / (MANY - FEW):.3f} bytes a file",
        ),
        grown <= PER_FILE * (MANY - FEW),
    )
    times = f"{many[0] / few[0]:.2f} times"
    yield Finding(("own time", _ns(few[0]), _ns(many[0]), times), many[0] <= GROWTH * few[0])
    real = []
    for files in (FEW, MANY):
        with ext4(work, 6, "-N", "1200000") as where:
            real.append(fed(replay, where, ("--allocate",), files, 150_000))
    yield Finding(("with ext4", _ns(real[0][0]), _ns(real[1][0]), f"{real[1][0] / real[0][0]:.2f} times"))


def _ns(seconds: float) -> str:
    return f"{seconds * 1e9:,.0f} ns"


def table(head: tuple[str, ...], rows: list[Finding]) -> str:
    """In Markdown; what misses its limit is marked."""
    marked = [(*row.cells[:-1], row.cells[-1] + ("" if row.kept else " (misses its limit)")) for row in rows]
    return "\n".join(grid(head, marked))


def measure(_: argparse.Namespace) -> Answer:
    """Make histories and carry one out; 1 where one is slower or larger than it may be."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        work = Path(name)
        replay = work / "replay"
        process.run(["gcc", "-std=gnu11", "-O2", "-static", "-o", str(replay), str(tools.SOURCES / "replay.c")])
        made = list(makings(work))
        ran = [carried_out(replay, work)]
        grown = list(growths(replay, work))
    files = (f"{FEW:,} files", f"{MANY:,} files")
    tables = [
        table(("engine", "operations", "s", "s a million", "peak MiB"), made),
        table(("replayed", "operations", "operations a second"), ran),
        table(("of the replayer, an operation with", *files, "growth"), grown),
    ]
    kept = all(row.kept for row in (*made, *ran, *grown))
    return Answer({"history": "\n\n".join(tables)}, status=0 if kept else 1)


def main() -> int:
    """Return the exit code."""
    return command.run(command.parser(__doc__), measure)


if __name__ == "__main__":
    sys.exit(main())
