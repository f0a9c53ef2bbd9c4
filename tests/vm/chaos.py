"""Killing agelab with SIGKILL at random moments, and looking at what that did."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agelab.base import atomic, orphans, process
from agelab.cli.options import open_store
from agelab.machine.vm import libvirt_daemon
from agelab.results.run_directory import RunDirectory
from agelab.runner.doctor import leftovers
from agelab.store.artefacts import Store
from tests.vm.cells import PROGRAM, SMALL, run, step

SHARED = ("image", "kernel", "root", "qemu", "tools", "drive", "buildroot", "guest")
"""Artefacts that a test's own home takes from the store of all tests, with the locks of both."""
SETTLED = 30.0
"""Seconds of the host after which nothing may be left of an agelab that was killed."""


def home(directory: Path, *own: str) -> Store:
    """A store whose runs, corpora and caches are the test's own, and artefacts of the ``own`` kinds."""
    users = open_store()
    store = Store(directory / "home")
    store.root.mkdir(parents=True)
    (users.home / "locks").mkdir(parents=True, exist_ok=True)
    (store.home / "locks").symlink_to(users.home / "locks")
    for kind in set(SHARED) - set(own):
        (users.root / kind).mkdir(parents=True, exist_ok=True)
        (store.root / kind).symlink_to(users.root / kind)
    if (users.home / "cache").exists():  # what was resolved once is resolved the same here
        (store.home / "cache").mkdir()
        for cache in ("resolved", "apt", "debs", "doctor"):
            (users.home / "cache" / cache).mkdir(exist_ok=True)
            (store.home / "cache" / cache).symlink_to(users.home / "cache" / cache)
    return store


def cheap(directory: Path, more: str = "") -> Path:
    """The cheapest cells that write, read and have samples: two filesystems, 4 MiB of data; ``more`` steps."""
    text = SMALL.read_text().split("[[variants]]")[0]
    for old, new in (("value = 24", "value = 4"), ("mib = { value = 320", "mib = { value = 64")):
        assert old in text
        text = text.replace(old, new)
    variants = "".join(f'[[variants]]\nname = "{name}"\nfilesystem = "{name}"\n' for name in ("ext2", "ext4"))
    steps = step("copy", 'cp -r "$SOURCE/." copy; sync') + step("read", "cat copy/*/* > /dev/null 2>&1 || true")
    path = directory / "cheap.toml"
    path.write_text(text.replace('name = "small"', 'name = "cheap"') + variants + steps + more)
    return path


@dataclass
class Chaos:
    """An agelab in a store of its own, its moments drawn from a seed."""

    store: Store
    words: tuple[str, ...]
    """The command line that begins the run."""
    seed: int = 0
    before: tuple[str, ...] = ()
    """Words before each command line."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables for agelab, beside this process's own."""
    owners: set[str] = field(default_factory=set)
    """All agelabs that were started."""
    kills: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """An agelab in that store, as a process of its own; what it says goes to said.log."""
        env = {**os.environ, "AGELAB_HOME": str(self.store.home), **self.environment}
        with (self.store.home / "said.log").open("ab") as said:
            child = subprocess.Popen([*self.before, PROGRAM, *words], env=env, stdout=said, stderr=said)
        self.owners.add(f"{child.pid}:{orphans.start_time(child.pid)}")
        return child

    def run(self, *words: str) -> str:
        """A run to its end, undisturbed. Its name."""
        code = self.start(*words).wait()
        said = (self.store.home / "said.log").read_text()
        assert code == 0, said[-3000:]
        return str(re.findall(r"agelab show (\S+)", said)[-1])

    def said(self) -> str:
        """Return its latest output."""
        return (self.store.home / "said.log").read_text()[-3000:]

    def end(self, run: Path, number: int) -> dict[str, Any]:
        """The end record of a cell."""
        record: dict[str, Any] = json.loads((run / "cells" / str(number) / "end.json").read_text())
        return record

    def next(self) -> tuple[str, ...]:
        """Return the next command: begin a run, or resume one."""
        unfinished_runs = [run for run in self.plans() if self.left(run)]
        return ("resume", unfinished_runs[-1].name) if unfinished_runs else self.words

    def plans(self) -> list[Path]:
        return sorted(plan.parent for plan in self.store.runs.glob("*/plan.json"))

    def left(self, run: Path) -> list[int]:
        """Cells that have not ended."""
        return RunDirectory(run).unfinished()

    def kill(self, after: float) -> None:
        """Let agelab do what is to be done for so many seconds, and kill it where it has not ended by then."""
        before = self.recorded()
        child = self.start(*self.next())
        try:
            code = child.wait(after)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            self.kills += 1
        else:
            assert code == 0, self.said()
        self.nothing_lost(before)

    def recorded(self) -> dict[Path, bytes]:
        """Return the finished records: plans, end records, and samples up to the last whole line."""
        found = {path: path.read_bytes() for path in self.store.runs.glob("*/plan.json")}
        for path in self.store.runs.glob("*/cells/*/end.json"):
            if json.loads(path.read_text())["status"] != "interrupted":
                found[path] = path.read_bytes()
        for path in self.store.runs.glob("*/samples.jsonl"):
            text = path.read_bytes()
            found[path] = text[: text.rfind(b"\n") + 1]
        return found

    def nothing_lost(self, before: dict[Path, bytes]) -> None:
        """Records stay as they are; samples are only ever added to."""
        for path, text in before.items():
            now = path.read_bytes()
            assert now.startswith(text) if path.suffix == ".jsonl" else now == text, path

    def still_there(self) -> list[str]:
        """Return the processes and mounts that killed agelabs left running."""
        numbers = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
        gone = {name for name in self.owners if orphans.is_dead(name)}
        found = [f"process {number}" for number in numbers if orphans.owner_of(number) in gone]
        return found + [f"mount {place}" for place in atomic.mounts(self.store.home)]

    def results(self, run: Path) -> list[tuple[Any, ...]]:
        """Return each cell's variant, seed, status, key and digest."""
        cells = json.loads((run / "plan.json").read_text())["cells"]
        ends = [self.end(run, number) for number, _ in enumerate(cells)]
        return [
            (cell["variant"], cell["seed"], end["status"], end["inputs_key"], end["digest"])
            for cell, end in zip(cells, ends, strict=True)
        ]


def wait_until(over: Callable[[], bool], seconds: float = SETTLED) -> bool:
    """Return True if the condition became true in that time."""
    until = time.monotonic() + seconds
    while not over():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def cleaned(store: Store) -> list[str]:
    """Return the leftovers of a store, and remove them; none may stay."""
    shared = [f"{store.root / kind}/" for kind in SHARED if (store.root / kind).is_symlink()]

    def found() -> list[str]:
        lines = [str(one) for one in leftovers.find(store)]
        return [line for line in lines if str(store.home) in line and not any(map(line.count, shared))]

    before = found()
    leftovers.clean(store, lambda _: None)
    assert found() == []
    return before


def domains(store: Store) -> list[str]:
    """libvirt's domains of a store's cells."""
    texts = [path.read_text() for path in store.runs.glob("*/cells/*/*domain-*.xml")]
    named = {re.findall(r"<name>(.*?)</name>", text)[0] for text in texts}
    with libvirt_daemon.keep_running():
        listed = process.run(["virsh", "--connect", libvirt_daemon.uri(), "list", "--all", "--name"]).stdout
    return sorted(named & set(listed.split()))


def faults(
    directory: Path, commands: Mapping[str, str], cells: Mapping[str, str] | None = None, deadline: int = 20
) -> Path:
    """A scenario on the smallest guest there is: a step that does a cell's command, one before it and one after.

    ``cells``: variant to the command that is its own; without it each command has a cell of its name. All cells have
    the same steps: which command it is, the filesystem's label says.
    """
    name = directory.name.replace("_", "-")
    text = SMALL.read_text().split("[[variants]]")[0].replace('name = "small"', f'name = "{name}"')
    text = text.replace("mib = { value = 24,", "mib = { value = 1,").replace("value = 320,", "value = 48,")
    variants = "".join(
        f'[[variants]]\nname = "{variant}"\nfilesystem = "ext4"\nmkfs_options = ["-L", "{own}"]\n\n'
        for variant, own in (cells or dict(zip(commands, commands, strict=True))).items()
    )
    cases = "".join(f"{one})\n{command}\n;;\n" for one, command in commands.items())
    body = step("fault", f'case "$(e2label "$DEVICE")" in\n{cases}esac', f"deadline = {deadline}")
    path = directory / f"{name}.toml"
    path.write_text(f"{text}\n{variants}\n{step('before', 'true')}{body}{step('after', 'true')}")
    return path


def ran(path: Path, *words: str) -> dict[str, dict[str, Any]]:
    """The cells of that scenario, by variant; each has kept what the step before the fault measured."""
    cells = {cell["variant"]: cell for cell in run(str(path), *words, code=1)}
    for cell in cells.values():
        assert "before" in {sample["step"] for sample in cell["samples"]}
    return cells


BURSTS = """
import random, sys, time
chosen = random.Random(int(sys.argv[1]))
while True:
    seconds = 10 ** chosen.uniform(-3, -0.3)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    time.sleep(2 * seconds)
"""
"""Works for a millisecond to half a second at a time, and rests twice as long."""


@contextmanager
def both_cores_busy() -> Iterator[None]:
    """Two processes that do nothing but take time away from the guest, now and then: its speed is never the same."""
    busy = [subprocess.Popen([sys.executable, "-c", BURSTS, str(seed)]) for seed in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
