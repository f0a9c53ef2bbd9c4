"""A disk that is full or read-only, for real: small and closed filesystems in a mount namespace of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

UNSHARE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
AGELAB = Path(sys.executable).with_name("agelab")


def inside(home: Path, mount: str, script: str) -> subprocess.CompletedProcess[str]:
    """Python's ``script``, with ``HOME`` for the store's directory, after a shell's ``mount``."""
    body = (
        "import os\nfrom pathlib import Path\nHOME = Path(os.environ['AGELAB_HOME'])\n"
        "from agelab import cli\nfrom agelab.errors import HostError\nfrom agelab.store import Store\n"
        "from agelab.results.run_directory import RunDirectory\n" + script
    )
    words = [*UNSHARE, "sh", "-euc", f'{mount}; exec "$0" -c "$1"', sys.executable, body]
    told = {**os.environ, "AGELAB_HOME": str(home)}
    return subprocess.run(words, env=told, capture_output=True, text=True, check=False)


SMALL = 'mount -t tmpfs -o size=256k,mode=755 tmpfs "$AGELAB_HOME"'
CLOSED = 'mount --bind "$AGELAB_HOME" "$AGELAB_HOME"; mount -o remount,bind,ro "$AGELAB_HOME"'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def test_a_build_that_fills_the_disk_leaves_the_store_as_it_was(home: Path) -> None:
    script = """
def small(directory): (directory / "a").write_bytes(b"a" * 1000)
def large(directory): (directory / "b").write_bytes(b"b" * 400_000)
store = Store(HOME)
first = store.obtain("tools", {"n": 1}, small)
try:
    store.obtain("tools", {"n": 2}, large)
except HostError as error:
    print(error, "|", error.hint)
there = [path.name for path in (HOME / "store/tools").iterdir()]
print([one.key == first.key for one in store.all("tools")], first.damage(), there == [first.key])
print(store.obtain("tools", {"n": 3}, small).damage())
"""
    done = inside(home, SMALL, script)
    assert done.returncode == 0, done.stderr
    said, left, again = done.stdout.splitlines()
    assert "No space left on device" in said and "AGELAB_HOME" in said
    assert (left, again) == ("[True] [] True", "[]")


RUN = """
import errno
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.results import run_lookup
from agelab.results.digest import digest
def filled():
    try:
        with (HOME / "filler").open("wb", buffering=0) as file:
            while file.write(b"x" * 512): pass
    except OSError as error:
        assert error.errno == errno.ENOSPC
def full(what):
    try:
        what()
    except OSError as error:
        return error.errno == errno.ENOSPC
names = dict(variant="ext4", filesystem="ext4", layout="single", kernel="6.1", machine="m", defaults="period")
cell = Cell(**names, drives=(), seed=1)
run = RunDirectory.create(HOME / "runs", "aging")
told = dict(scenario="aging", scale="quick", clock="virtual", provenance={"x": "y" * 5000})
plan = RunPlan(run=run.name, cells=(cell, cell), **told)
sample = Sample(step="copy", metric="elapsed", value=1.5, unit="s")
"""


def test_a_plan_that_finds_no_room_is_no_run(home: Path) -> None:
    script = (
        RUN
        + "filled()\nprint(full(lambda: run.write_plan(plan)))\nprint(run_lookup.all_runs(HOME / 'runs'))\n"
    )
    done = inside(home, SMALL, script)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "[]"]), done.stderr


def test_what_had_landed_before_the_disk_was_full_stays_and_the_rest_follows_once_there_is_room(
    home: Path,
) -> None:
    script = (
        RUN
        + """
run.write_plan(plan)
run.append(0, sample)
measured = digest(Status.OK, [sample], {})
run.finish(0, End(status=Status.OK, digest=measured, measured=measured, host_seconds=1))
run.append(1, sample)
end = End(status=Status.OK, host_seconds=1, reason="r" * 5000)
filled()
landed = 0
while not full(lambda: run.append(1, sample)): landed += 1
print(full(lambda: run.finish(1, end)), run.unfinished())
print(len(run.samples()[0]), len(run.samples()[1]) == 1 + landed)
run_lookup.find(HOME / "runs", "latest")
(HOME / "filler").unlink()
run.restart_cell(1)
run.append(1, sample)
run.finish(1, end)
run.verify()
print(len(run.samples()[1]), run.unfinished())
"""
    )
    done = inside(home, SMALL, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True [1]", "1 True", "1 []"]


VERBS = (
    *(["list"], ["show"], ["disk", "list"], ["corpus", "list"], ["kernel", "list"], ["resume"]),
    *(["run", "aging-ext4"], ["age", "aging-ext4"], ["corpus", "make"], ["calibrate", "aging-ext4"]),
)


@pytest.mark.parametrize(
    "mount", [SMALL + '; cat /dev/zero > "$AGELAB_HOME/filler" 2> /dev/null || :', CLOSED]
)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_says_in_a_line_that_it_cannot_write(home: Path, mount: str, verb: list[str]) -> None:
    done = inside(home, mount, f"raise SystemExit(cli.main({verb!r}))")
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 2, 3), done.stderr
    wrote = "No space left" in done.stderr or "Read-only" in done.stderr or "MB free" in done.stderr
    looked = done.returncode == 0 or "there are no runs" in done.stderr
    assert (wrote and done.returncode == 3) or looked, done.stderr
