"""Two agelabs in one store at the same time, and a host whose clock is put forward and back."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from tests.vm.chaos import Chaos, cheap, home, wait_until

pytestmark = pytest.mark.vm
DAY = 86400
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What a host's clock that was put forward or back shows: by how many seconds, the file $JUMP says at each look. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    long seconds = 0;
    FILE *file;
    int failed;

    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME && (file = fopen(getenv("JUMP"), "re"))) {
        if (fscanf(file, "%ld", &seconds) == 1)
            now->tv_sec += seconds;
        fclose(file);
    }
    return failed;
}
"""


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    """agelab in a store of its own, which has carried out an undisturbed run."""
    directory = tmp_path_factory.mktemp("two")
    made = Chaos(home(directory), ("run", str(cheap(directory))))
    made.run(*made.words)
    yield made


def begun(chaos: Chaos) -> tuple["subprocess.Popen[bytes]", Path]:
    """A run whose first guest has ended its first step."""
    known = set(chaos.plans())
    child = chaos.start(*chaos.words)

    def copied() -> bool:
        samples = [path / "samples.jsonl" for path in set(chaos.plans()) - known]
        return any(path.exists() and '"copy"' in path.read_text() for path in samples)

    assert wait_until(copied, 240), chaos.said()
    [run] = set(chaos.plans()) - known
    return child, run


def test_two_runs_of_two_cells_at_a_time_each_make_what_both_need_once_and_disturb_nothing(chaos: Chaos) -> None:
    """Four guests, of whom two are of one cell: of the same seeds, and so of the same UUID."""
    expected = chaos.results(chaos.plans()[0])
    known = set(chaos.plans())
    shutil.rmtree(chaos.store.root / "corpus")
    words = (*chaos.words, "--jobs", "2")
    children = [chaos.start(*words), chaos.start(*words)]
    assert [child.wait(600) for child in children] == [0, 0], chaos.said()
    runs = set(chaos.plans()) - known
    assert len(runs) == 2 and [chaos.results(run) for run in runs] == [expected] * 2
    assert not [path for run in runs for path in RunDirectory(run).transient_files()]
    assert len(list((chaos.store.root / "corpus").glob("*/manifest.json"))) == 1


def test_a_run_that_is_going_on_is_neither_resumed_nor_cleaned_away(chaos: Chaos) -> None:
    child, run = begun(chaos)
    assert chaos.start("resume", run.name).wait(60) == 2
    assert f"agelab: {run.name} is still going on" in chaos.said()
    assert chaos.start("doctor", "--clean").wait(60) == 0
    assert str(chaos.store.home) not in chaos.said().rpartition("still going on")[2]
    assert chaos.start("show", run.name, "--json").wait(60) == 0
    assert child.wait(240) == 0, chaos.said()
    assert chaos.results(run) == chaos.results(chaos.plans()[0])


@pytest.mark.full
def test_a_clock_that_is_put_back_changes_no_digest_and_not_which_run_is_the_latest(
    chaos: Chaos, tmp_path: Path
) -> None:
    (tmp_path / "clock.c").write_text(CLOCK)
    library, jump = tmp_path / "clock.so", tmp_path / "jump"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True)
    undisturbed = chaos.plans()[0]
    jump.write_text(f"{DAY}")
    chaos.environment = {"LD_PRELOAD": str(library), "JUMP": str(jump)}
    try:
        child, run = begun(chaos)
        jump.write_text(f"{-DAY}")
        assert child.wait(240) == 0, chaos.said()
    finally:
        chaos.environment = {}
    assert run == chaos.plans()[-1]  # by its name of tomorrow
    assert chaos.results(run) == chaos.results(undisturbed)
    child, now = begun(chaos)
    child.kill()
    child.wait()
    assert now < run and run_lookup.find(chaos.store.runs, "latest").path == now
    chaos.run("resume", "latest")
    assert chaos.results(now) == chaos.results(undisturbed)
