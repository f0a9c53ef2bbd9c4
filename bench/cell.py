"""Processor seconds of a whole cell by phase and by part, side by side with another checkout, in turns.

    .venv/bin/python -m bench.cell aging-reiserfs --against <checkout or commit> [--repeat N]

A scenario's name may have options behind it: "aging --jobs 2". Both checkouts run it once, which is not counted and
leaves a warm store, then N times in turns. This checkout uses AGELAB_HOME. The other one has a store of its own in
the cache of that one, so neither meets artefacts of the other. A commit is checked out into a temporary directory,
and runs in this checkout's .venv where that holds what the commit wants, else in one of its own.

Of the other checkout nothing is taken for granted but ``agelab run``, the tag in the environment of what it starts
(agelab/base/orphans.py), and that a guest's QEMU has the file of its events on its command line. The parts:

- agelab and the programs that it waits for: virt-install, hashing, copies (wait4).
- libvirt's daemons with their own programs, among them QEMU's probes. Other users of them would be counted, too.
- the guests: QEMU of each boot, read every 10 ms up to its end (agelab/machine/vm/processor_time.py).
"""

import argparse
import importlib.metadata
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab.base.errors import AgelabError, HostError, InputError
from agelab.base.hashing import key_of
from agelab.cli.options import open_store
from agelab.machine.vm.processor_time import Program, ProgramWatch
from agelab.present.report.blocks import Column, Table
from agelab.present.view.terminal import print_blocks
from agelab.store.artefacts import Store
from bench.common import guests

PROJECT = Path(__file__).resolve().parents[1]
AGELAB, LIBVIRT, ALL = "agelab and its programs", "libvirt's daemons", "all"
DAEMONS = ("libvirtd", "virtqemud", "virtlogd")
PHASES = ("making", "aged", "control", "map")
"""Phases in the order in which a cell goes through them; others stand behind them."""
EVENTS = re.compile(r"/cells/\d+/(?P<phase>.*?)-?events-(?P<boot>\d+)\.jsonl$")
"""The end of the word of QEMU's command line that names the boot's events."""
Part = tuple[str, str]
"""A part of a cell and, of a phase, the boot: empty for all of it."""
Costs = dict[Part, float]
"""Processor seconds by part."""


@dataclass(frozen=True)
class Checkout:
    """A version of agelab that can run."""

    name: str
    directory: Path
    program: tuple[str, ...]
    home: Path

    def run(self, words: Sequence[str]) -> Costs:
        """Run a scenario. Returns processor seconds by part. Raises HostError where a cell is not ok."""
        env = {**os.environ, "AGELAB_HOME": str(self.home), "PYTHONPATH": str(self.directory)}
        log = self.home / "bench-cell.log"
        with ProgramWatch(_is_wanted) as watch, log.open("wb") as output:
            began = time.monotonic()
            argv = [*self.program, "run", *words]
            child = subprocess.Popen(argv, env=env, stdout=output, stderr=output)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - began
        if child.returncode:
            raise HostError(f"agelab run of {self.name} ended with exit code {child.returncode}: see {log}")
        print(f"{self.name}: {seconds:.1f} s on the host's clock", file=sys.stderr)
        costs = parts(watch.programs(), child.pid)
        costs[AGELAB, ""] = usage.ru_utime + usage.ru_stime
        costs[ALL, ""] = sum(used for (_, boot), used in costs.items() if not boot)
        return costs


def _is_wanted(program: Program) -> bool:
    return program.is_guest or _is_daemon(program)


def _is_daemon(program: Program) -> bool:
    return bool(program.words) and Path(program.words[0]).name in DAEMONS


def parts(programs: Sequence[Program], agelab: int) -> Costs:
    """Sum up what libvirt's daemons have used, and what the guests of the agelab with that process id have."""
    costs: Costs = defaultdict(float)
    daemons = {program.pid for program in programs if _is_daemon(program)}
    for program in programs:
        if _is_daemon(program) and program.parent not in daemons:  # what a daemon forks it waits for
            costs[LIBVIRT, ""] += sum(program.used)
        elif program.is_guest and program.owner and program.owner.startswith(f"{agelab}:"):
            phase, boot = boot_of(program.words)
            for part in {(phase, ""), (phase, boot)}:
                costs[part] += program.used.own
    return costs


def boot_of(words: Sequence[str]) -> Part:
    """Return the phase and the boot of a guest, by its QEMU's command line; no boot of a guest that is of no cell."""
    for word in words:
        if match := EVENTS.search(word):
            return match["phase"] or PHASES[0], match["boot"]
    return "other guests", ""


def compare(words: Sequence[str], checkouts: Sequence[Checkout], repeat: int) -> list[list[Costs]]:
    """Run each checkout once for a warm store, then all in turns. Returns the runs of each."""
    runs: list[list[Costs]] = [[] for _ in checkouts]
    for turn in range(repeat + 1):
        for of, checkout in zip(runs, checkouts, strict=True):
            if strange := guests():
                print(f"other guests run: process {', '.join(map(str, strange))}", file=sys.stderr)
            measured = checkout.run(words)
            if turn:
                of.append(measured)
    return runs


def rows(runs: Sequence[Sequence[Costs]]) -> list[list[str]]:
    """Write the table: medians and ranges of two checkouts, and the ratio of the first one's medians to the other's."""
    every = {part for of in runs for costs in of for part in costs}
    lines = []
    for part in sorted(every, key=_order):
        phase, boot = part
        siblings = [other_phase for other_phase, _ in every if other_phase == phase]
        if boot and len(siblings) == 2:  # the phase says it already
            continue
        values = [[costs.get(part, 0) for costs in of] for of in runs]
        ours, theirs = (statistics.median(some) for some in values)
        texts = (text for some in values for text in (f"{statistics.median(some):.2f}", _range(some)))
        lines.append([f"  boot {boot}" if boot else phase, *texts, f"{ours / theirs:.2f}" if theirs else "-"])
    return lines


def _order(part: Part) -> tuple[int, str, int]:
    first = (AGELAB, LIBVIRT, *PHASES)
    phase, boot = part
    place = first.index(phase) if phase in first else len(first) + (phase == ALL)
    return place, phase, int(boot or -1)


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} - {max(values):.2f}" if len(values) > 1 else ""


@contextmanager
def checked_out(against: str, store: Store) -> Iterator[Checkout]:
    """Yield the other version: a directory, or a commit in a temporary work tree.

    Raises InputError where it is neither.
    """
    with ExitStack() as stack:
        directory = Path(against).resolve()
        if (directory / "agelab").is_dir():
            name = key_of({"directory": str(directory)})[:12]
        else:
            name = _git("rev-parse", "--verify", "--quiet", f"{against}^{{commit}}")[:12]
            if not name:
                raise InputError(f"{against} is neither a checkout of agelab nor a commit of this repository")
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agelab-"))) / name
            _git("worktree", "add", "--detach", str(directory), name)
            stack.callback(_git, "worktree", "remove", "--force", str(directory))
        home = store.cache("bench-cell") / name
        home.mkdir(parents=True, exist_ok=True)
        yield Checkout(name, directory, _program(directory), home)


def _git(*words: str) -> str:
    """Run git in this checkout. Returns its output: nothing where it fails quietly."""
    done = subprocess.run(["git", "-C", str(PROJECT), *words], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _program(directory: Path) -> tuple[str, ...]:
    """Return the command of a checkout: of its own .venv, or of this one's where that holds what it wants.

    Raises HostError where it has neither, and none can be made.
    """
    own = directory / ".venv" / "bin" / "agelab"
    if not own.exists():
        if _holds(directory / "requirements.txt"):
            return (str(Path(sys.executable).with_name("agelab")),)
        if subprocess.run(["sh", "agelab/setup.sh", "run"], cwd=directory).returncode:
            raise HostError(f"{directory} cannot be set up")
    return (str(own),)


def _holds(lock: Path) -> bool:
    """Return True where each package of a lock file is installed here in that version."""
    pins = re.findall(r"^([\w.-]+)==([^ ;]+)", lock.read_text(), re.MULTILINE)
    try:
        return all(importlib.metadata.version(name) == version for name, version in pins)
    except importlib.metadata.PackageNotFoundError:
        return False


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="bench.cell", description=__doc__.splitlines()[0])
    parser.add_argument("scenario", metavar="SCENARIO[-VARIANT]", help="with options of agelab run behind it")
    parser.add_argument("--against", required=True, metavar="CHECKOUT|COMMIT")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each that count")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("nothing is measured in no runs")
    try:
        store = open_store()
        store.home.mkdir(parents=True, exist_ok=True)
        with checked_out(options.against, store) as other:
            this = Checkout("this checkout", PROJECT, _program(PROJECT), store.home)
            runs = compare(shlex.split(options.scenario), (this, other), options.repeat)
    except AgelabError as error:
        print(f"bench.cell: {error}\n  {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    heads: list[Column] = [Column("processor seconds")]
    heads += [Column(head, "right") for head in ("here", "range", other.name, "range", "ratio")]
    print_blocks([Table(heads, rows(runs))])
    print(f"\n{options.scenario}: medians of {options.repeat} runs of each, in turns, after one that is not counted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
