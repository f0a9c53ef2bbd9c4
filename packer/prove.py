"""Prove, in the guest, that it can make, mount, write, read back and check each filesystem.

usage: prove.py PLAN PROOF. Standard-library Python; it is run by Packer, never in a cell. PLAN is what
agelab.image.proof.Plan writes, PROOF what its Proof reads.
"""

import errno
import json
import os
import subprocess  # noqa: TID251 - the guest has no agelab
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOUNTPOINT = Path("/run/proof")
TOOLS = "/run/agelab/tools"  # programs that are in no package, where the proof needs any
TIMEOUT = (
    120  # seconds of the guest for one command: a filesystem that hangs is a finding, not a reason to wait
)
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
        said = " / ".join(done.stdout.decode(errors="replace").strip().split("\n")[-4:])
        raise Failed(f"{' '.join(argv)}: exit {done.returncode}: {said[-300:]}")


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
    wanted = json.loads(plan.read_text())
    os.environ["PATH"] += f":{TOOLS}"
    MOUNTPOINT.mkdir(exist_ok=True)
    proof.write_text(json.dumps([result(item, Path(wanted["device"])) for item in wanted["items"]]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
