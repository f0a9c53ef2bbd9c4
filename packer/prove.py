"""Prove, in the guest, that it can make, mount, write, read back and check each filesystem.

Each is proved with its own kernel modules alone, and leaves nothing to the next: what it leaves is its failure.

usage: prove.py PLAN PROOF. Standard-library Python; it is run by Packer, never in a cell. PLAN is what
agelab.machine.image.proof.Plan writes, PROOF what its Proof reads.
"""

import errno
import json
import os
import signal
import subprocess  # noqa: TID251 - the guest has no agelab
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MOUNTPOINT = Path("/run/proof")
TOOLS = "/run/agelab/tools"  # programs that are in no package, where the proof needs any
MODULES = Path("/run/agelab/modules")
PATIENCE = 5.0  # seconds for what a filesystem started to end
TIMEOUT = 120  # seconds of the guest for one command: a filesystem that hangs is a finding, not a reason to wait
WIPED = 4 << 20  # bytes at either end of the disk, where every filesystem keeps what it is recognised by
FILES = 20


class Failed(Exception):
    """A command of the proof did not do what it should."""


def run(argv: Sequence[str]) -> None:
    """Run a command; raises Failed with the last of what it said when it does not succeed."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT
        )
    except FileNotFoundError:
        raise Failed(f"{argv[0]} is not in the image") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv)}: not done after {TIMEOUT} s") from None
    if done.returncode:
        last_lines = " / ".join(done.stdout.decode(errors="replace").strip().split("\n")[-4:])
        raise Failed(f"{' '.join(argv)}: exit {done.returncode}: {last_lines[-300:]}")


def path(number: int) -> Path:
    return MOUNTPOINT / f"directory-{number % 3}" / f"file-{number}"


def content(number: int) -> bytes:
    """A file's bytes: of sizes that make tails, single blocks and extents (251 bytes to 816 kB)."""
    return bytes((number * 7 + position) % 251 for position in range(251)) * (1 + number * number * 9)


def write() -> None:
    for number in range(FILES):
        path(number).parent.mkdir(exist_ok=True)
        path(number).write_bytes(content(number))


def read_back() -> None:
    for number in range(FILES):
        if path(number).read_bytes() != content(number):
            raise Failed(f"{path(number)} does not hold what was written to it")


def read_back_alone() -> None:
    """Read back where nothing can be written."""
    read_back()
    try:
        (MOUNTPOINT / "written").write_bytes(b"")
    except OSError as error:
        if error.errno == errno.EROFS:
            return
        raise
    raise Failed("mounted read-only, it took a new file")


def mounts() -> set[str]:
    return {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()}


def processes() -> dict[int, str]:
    """The programs that run, by their process: no thread of the kernel, and no zombie."""
    programs = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                programs[int(entry.name)] = str((entry / "exe").readlink())
    return programs


def inserted() -> list[str]:
    """The modules of the kernel, the last inserted first."""
    return [line.split()[0] for line in Path("/proc/modules").read_text().splitlines()]


def insert(modules: Sequence[tuple[str, bool]]) -> None:
    """Insert those modules that are not there; Raises Failed for one that is needed and cannot be."""
    there = set(inserted())
    for name, optional in modules:
        if name not in there:
            try:
                run(["insmod", str(MODULES / f"{name}.ko")])
            except Failed:
                if not optional:
                    raise


def left_behind(mounted: set[str], running: dict[int, str], there: set[str]) -> Iterator[str]:
    """Remove what was not there before, and name it; modules are removed and not named, unless they are in use."""
    for place in sorted(mounts() - mounted, reverse=True):
        yield f"{place} mounted"
        subprocess.run(["umount", "-l", place], stdin=subprocess.DEVNULL, check=False)
    end = time.monotonic() + PATIENCE
    while processes().keys() - running.keys() and time.monotonic() < end:
        time.sleep(0.1)
    for process, program in processes().items():
        if process not in running:
            yield f"{program} running"
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    for name in inserted():
        if name not in there:
            try:
                run(["rmmod", name])
            except Failed as error:
                yield f"module {name}: {error}"


@contextmanager
def alone(modules: Sequence[tuple[str, bool]]) -> Iterator[None]:
    """Prove with these modules, and leave nothing behind. Raises Failed for what was left."""
    before = (mounts(), processes(), set(inserted()))
    try:
        insert(modules)
        yield
    except BaseException:
        for _ in left_behind(*before):
            pass  # the first failure is the reason
        raise
    if left := list(left_behind(*before)):
        raise Failed(f"it leaves behind: {'; '.join(left)[:300]}")


def wipe(device: Path) -> None:
    """Leave nothing by which the filesystem before could be recognised."""
    with device.open("r+b") as disk:
        size = disk.seek(0, os.SEEK_END)
        for offset in (0, size - WIPED):
            disk.seek(offset)
            disk.write(bytes(WIPED))


def prove(commands: dict[str, list[str]], device: Path) -> None:
    """Make, mount, write, unmount; mount again and read back; the same read-only; list its free space; check.

    Raises Failed or OSError.
    """
    wipe(device)
    run(commands["mkfs"])
    for mount, use in (("mount", write), ("mount", read_back), ("mount_read_only", read_back_alone)):
        run(commands[mount])
        try:
            use()
            run(["sync"])
        finally:
            run(commands["umount"])
        if os.path.ismount(MOUNTPOINT):
            raise Failed(f"{' '.join(commands['umount'])} left it mounted")
    if commands["free_space"]:
        run(commands["free_space"])
    run(commands["fsck"])


def result(item: dict[str, Any], device: Path) -> dict[str, str | None]:
    reason = None
    try:
        with alone(item["modules"]):
            prove(item, device)
    except (Failed, OSError) as error:
        reason = str(error)
    status = "failed" if reason else "ok"
    print(f"{item['filesystem']} ({item['defaults']}): {reason or 'ok'}", flush=True)
    return {
        "filesystem": item["filesystem"],
        "defaults": item["defaults"],
        "status": status,
        "reason": reason,
    }


def main(plan: Path, proof: Path) -> None:
    todo = json.loads(plan.read_text())
    os.environ["PATH"] += f":{TOOLS}"
    MOUNTPOINT.mkdir(exist_ok=True)
    proof.write_text(json.dumps([result(item, Path(todo["device"])) for item in todo["items"]]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
