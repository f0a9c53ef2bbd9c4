"""Check that a scenario gives the same digits every time, whatever else the host is doing.

    .venv/bin/python -m bench.repeat aging-reiserfs ["aging-ext4 --layout raid0" ...]
        [--runs 5] [--load] [--pauses] [--rebuild]

Runs each scenario, with the options behind its name, so many times with run seed 1: the second one from another
working directory, with --load every other one while every core of the host is busy, with --pauses every third one
while its guests are stopped (SIGSTOP) again and again, with --rebuild the last one in a new AGELAB_HOME, where kernel,
image, corpus and saved guests are made from scratch. Then once with run seed 2. All of the first
must have equal inputs keys and digests, the last one others.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agelab.base.errors import AgelabError
from agelab.cli.options import open_store
from docs.make.page import columns

QEMU = b"qemu-system-x86_64"

AGELAB = Path(sys.executable).with_name("agelab")
HEAD = ("scenario", "run", "host s", "peak MiB", "status", "inputs key", "digest")


@dataclass(frozen=True)
class Condition:
    """A variation of a run in something that must not matter, or in its seed."""

    seed: int = 1
    loaded: bool = False
    paused: bool = False
    elsewhere: bool = False
    rebuilt: bool = False

    def __str__(self) -> str:
        conditions = {
            "all cores busy": self.loaded,
            "guests paused": self.paused,
            "another directory": self.elsewhere,
            "all rebuilt": self.rebuilt,
        }
        return ", ".join([f"seed {self.seed}", *(name for name, true in conditions.items() if true)])


@dataclass(frozen=True)
class Outcome:
    """One run: host seconds, the host side's peak memory in MiB, and each cell's result."""

    condition: Condition
    seconds: float
    peak: float
    cells: tuple[dict[str, Any], ...]

    @property
    def ok(self) -> bool:
        return bool(self.cells) and all(cell["status"] == "ok" for cell in self.cells)

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Inputs key and digest of each cell."""
        return [(cell["inputs_key"], cell["digest"]) for cell in self.cells]


def conditions(runs: int, *, load: bool, pauses: bool, rebuild: bool) -> list[Condition]:
    """The variations, one for each run; the last has another seed."""
    first = [
        Condition(
            loaded=load and number % 2 == 1,
            paused=pauses and number % 3 == 2,
            elsewhere=number == 1,
            rebuilt=rebuild and number == runs - 1,
        )
        for number in range(runs)
    ]
    return [*first, Condition(seed=2)]


def carry_out(name: str, condition: Condition, home: Path) -> Outcome:
    """Run a scenario as a user does, under a condition."""
    with ExitStack() as stack:
        if condition.rebuilt:
            home = Path(tempfile.mkdtemp(prefix="rebuilt-", dir=home))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
        place = Path(stack.enter_context(tempfile.TemporaryDirectory())) if condition.elsewhere else Path.cwd()
        if condition.loaded:
            stack.enter_context(busy())
        if condition.paused:
            stack.enter_context(pausing(home))
        environment = {**os.environ, "AGELAB_HOME": str(home)}
        scenario, *words = shlex.split(name)
        scenario = str(Path(scenario).absolute()) if Path(scenario).is_file() else scenario
        argv = [str(AGELAB), "run", scenario, *words, "--seeds", str(condition.seed)]
        began = time.monotonic()
        output = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        child = subprocess.Popen(argv, cwd=place, env=environment, stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        if child.returncode not in (0, 1):
            raise AgelabError(f"agelab run {name} ended with exit code {child.returncode}")
        output.seek(0)
        shown = subprocess.run(
            [AGELAB, "show", _run_named(output.read()), "--json"],
            env=environment,
            check=True,
            capture_output=True,
        ).stdout
    return Outcome(condition, seconds, usage.ru_maxrss / 1024, tuple(json.loads(shown)["cells"]))


def _run_named(output: str) -> str:
    """Return the run that the output of ``agelab run`` names: the latest one may be another command's."""
    names: list[str] = re.findall(r"agelab show (\S+)", output)
    return names[-1]


@contextmanager
def busy() -> Iterator[None]:
    """Keep every core of the host busy."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            child = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(child.kill)
        yield


@contextmanager
def pausing(home: Path) -> Iterator[None]:
    """Stop every guest of a store for a quarter of a second in each second."""
    end = threading.Event()

    def pause() -> None:
        while not end.wait(0.75):
            for signal_number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in guests(home):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal_number)
                time.sleep(0.25 if signal_number == signal.SIGSTOP else 0)

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def guests(home: Path) -> list[int]:
    """List the processes of a store's guests."""
    pids = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes()
            if QEMU in words and b"guest=agelab-" in words and bytes(home) in words:
                pids.append(int(place.name))
    return pids


def complaints(name: str, outcomes: list[Outcome]) -> list[str]:
    """List the results that are not as they must be."""
    *same, other = outcomes
    lines = [f"{name}, {outcome.condition}: not ok" for outcome in outcomes if not outcome.ok]
    for outcome in same[1:]:
        for (first_key, first_digest), (key, digest) in zip(same[0].identity, outcome.identity, strict=True):
            if key != first_key:
                lines.append(f"{name}, {outcome.condition}: another inputs key (agelab compare names the input)")
            elif digest != first_digest:
                lines.append(f"{name}, {outcome.condition}: the same inputs key, another digest")
    for (first_key, first_digest), (key, digest) in zip(same[0].identity, other.identity, strict=True):
        if key == first_key or digest == first_digest:
            lines.append(f"{name}, {other.condition}: its seed makes no difference")
    return lines


def rows(name: str, outcome: Outcome) -> list[list[str]]:
    """Write the table's lines for one run."""
    lines = []
    for cell in outcome.cells:
        key, digest = ((cell[part] or "-").removeprefix("sha256:")[:16] for part in ("inputs_key", "digest"))
        spent = [f"{outcome.seconds:.1f}", f"{outcome.peak:.0f}"]
        lines.append([name, str(outcome.condition), *spent, cell["status"], key, digest])
    return lines


def main() -> int:
    """Run, print the table; 1 when anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="SCENARIO[-VARIANT]")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    parser.add_argument("--load", action="store_true", help="keep all cores busy during every other run")
    parser.add_argument("--pauses", action="store_true", help="pause the guests of every third run")
    parser.add_argument("--rebuild", action="store_true", help="make everything from scratch for the last run")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("there is nothing to compare with fewer than two runs")
    home = open_store().home
    home.mkdir(parents=True, exist_ok=True)
    lines: list[list[str]] = []
    wrong: list[str] = []
    try:
        for name in options.names:
            outcomes = []
            varied = conditions(options.runs, load=options.load, pauses=options.pauses, rebuild=options.rebuild)
            for condition in varied:
                print(f"{name}: {condition}", file=sys.stderr)
                outcomes.append(carry_out(name, condition, home))
                lines += rows(name, outcomes[-1])
            wrong += complaints(name, outcomes)
    except AgelabError as error:
        wrong.append(str(error))
    print(columns(HEAD, lines))
    print("\n".join(["", *wrong]) if wrong else "\nequal inputs, equal digests; another seed, another digest")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
