"""Prove, in the guest, that it can make, mount, write, read back and check each filesystem.

usage: prove.py PLAN PROOF. Standard-library Python; it is run by Packer, never in a cell.
"""

import json
import os
import subprocess
import sys

MOUNTPOINT = "/run/proof"
TIMEOUT = 120  # seconds of the guest for one command: a filesystem that hangs is a finding, not a reason to wait
WIPED = 4 << 20  # bytes at either end of the disk, where every filesystem keeps what it is recognised by


class Failed(Exception):
    """A command of the proof did not do what it should."""


def run(argv):
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT
        )
    except FileNotFoundError:
        raise Failed(f"{argv[0]} is not in the image")
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv)}: not done after {TIMEOUT} s")
    if done.returncode:
        said = " / ".join(done.stdout.decode(errors="replace").split("\n")[-6:]).strip(" /")
        raise Failed(f"{' '.join(argv)}: exit {done.returncode}: {said[-300:]}")


def content(number):
    """A file's bytes: of sizes that make tails, single blocks and extents."""
    return bytes((number * 7 + position) % 251 for position in range(251)) * (1 + number * number * 9)


def write():
    for number in range(20):
        directory = f"{MOUNTPOINT}/directory-{number % 3}"
        os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/file-{number}", "wb") as file:
            file.write(content(number))


def read_back():
    for number in range(20):
        path = f"{MOUNTPOINT}/directory-{number % 3}/file-{number}"
        with open(path, "rb") as file:
            if file.read() != content(number):
                raise Failed(f"{path} does not hold what was written to it")


def wipe(device):
    with open(device, "r+b") as disk:
        size = disk.seek(0, os.SEEK_END)
        for offset in (0, size - WIPED):
            disk.seek(offset)
            disk.write(bytes(WIPED))


def prove(commands, device):
    wipe(device)
    run(commands["mkfs"])
    run(commands["mount"])
    try:
        write()
        run(["sync"])
    finally:
        run(["umount", MOUNTPOINT])
    run(commands["mount"])
    try:
        read_back()
    finally:
        run(["umount", MOUNTPOINT])
    run(commands["fsck"])


def main(plan_path, proof_path):
    with open(plan_path) as file:
        plan = json.load(file)
    os.makedirs(MOUNTPOINT, exist_ok=True)
    results = []
    for item in plan["items"]:
        reason = None
        try:
            prove(item, plan["device"])
        except (Failed, OSError) as error:
            reason = str(error)
        status = "failed" if reason else "ok"
        print(f"{item['filesystem']} ({item['defaults']}): {reason or 'ok'}", flush=True)
        results.append(
            {"filesystem": item["filesystem"], "defaults": item["defaults"], "status": status, "reason": reason}
        )
    with open(proof_path, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
