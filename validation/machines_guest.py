#!/usr/bin/python3 -SB
"""The part of validation/machines.py that runs in the guest: it times the calls of validation/machine_calls/calls.c."""

import base64
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/run/agelab")
from harness import machine
from harness.events import Events

PROGRAM, FILE = Path("/run/calls"), Path("/run/tmp/lmbench")
FILE_BYTES = 4 << 20


def main() -> None:
    """Run the program, say what it prints, and power off."""
    events = Events.open(Path("/dev/ttyS1"), b"")  # nothing else runs here that could write to it
    reason = ""
    try:
        job = json.loads(Path("/run/agelab/job.json").read_text())
        if job["copy_prices"]:
            machine.price_copies(job["copy_prices"])
        PROGRAM.write_bytes(base64.b64decode(job["program"]))
        PROGRAM.chmod(0o755)
        FILE.parent.mkdir()
        FILE.write_bytes(bytes(FILE_BYTES))
        done = subprocess.run([PROGRAM, FILE], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, nanoseconds = line.split()
            events.emit("call", name=name, ns=float(nanoseconds))
    except Exception as error:  # the host must hear of it before the guest is gone
        reason = repr(error)
    events.emit("end", reason=reason)
    machine.power_off()


main()
