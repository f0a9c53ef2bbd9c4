"""Helpers of the benchmarks: wait for a quiet machine, medians, tables."""

import os
import select
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agelab.base.errors import HostError


def guests() -> list[int]:
    """List the process ids of the QEMU guests that run on this machine."""
    pids = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith("qemu-system"):
                pids.append(int(comm.parent.name))
        except OSError:  # it ended while we looked
            continue
    return sorted(pids)


def quietly(start: Callable[[], float], patience: float) -> float:
    """Call ``start`` while no other guest runs on this machine: on two cores a guest would disturb the measurement.

    Waits for others to end, and starts again when one came meanwhile. Raises HostError after ``patience``
    seconds without a quiet moment.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if guests():
            time.sleep(1)
            continue
        took = start()
        if not guests():
            return took
    raise HostError(
        f"other guests run on this machine: process {', '.join(map(str, guests()))}",
        hint="wait until they have ended: their load would be part of the measurement",
    )


def time_until(
    argv: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    is_complete: Callable[[bytes], bool],
    patience: float,
) -> tuple[float, bytes]:
    """Return host seconds from the start of a command until its output is complete, and all of the output.

    Waits for the command's end. Raises HostError where that does not come within ``patience`` seconds, or its output
    is not complete then; the output is in ``log``.
    """
    began = time.monotonic()
    child = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        heard, output = _hear(child, log, is_complete, began + patience)
        child.wait(patience)
    except subprocess.TimeoutExpired:
        heard, output = None, b""
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # its own session: nothing else is in it
            child.wait()
    if heard is None:
        raise HostError(f"{Path(argv[0]).name} did not say what it should; its output is in {log}")
    return heard - began, output


def _hear(
    child: "subprocess.Popen[bytes]", log: Path, is_complete: Callable[[bytes], bool], deadline: float
) -> tuple[float | None, bytes]:
    """Return when the output was complete, by the host's monotonic clock, or None; and the output to its end."""
    assert child.stdout
    poll = select.poll()
    poll.register(child.stdout, select.POLLIN)
    output = b""
    heard = None
    with log.open("wb") as sink:
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            piece = os.read(child.stdout.fileno(), 1 << 16)
            if not piece:
                break
            sink.write(piece)
            output += piece
            if heard is None and is_complete(output):
                heard = time.monotonic()
    return heard, output


def spread(values: Sequence[float]) -> str:
    """Median and range of host seconds."""
    return f"{statistics.median(values):6.2f}  {min(values):6.2f} - {max(values):.2f}"
