"""Cells on workers with stores of their own have the digests of a serial run, whatever becomes of some workers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from tests.build.waiting import until
from tests.vm.aged import HISTORY, MEASURES, TESTS
from tests.vm.cells import PROGRAM, agelab, newest, runs, scenario, store_of_parts

pytestmark = [pytest.mark.vm, pytest.mark.full]
DASK = str(Path(sys.executable).with_name("dask"))
RESOURCES = ("--resources", "cell=1 memory=6e9")


@pytest.fixture
def scheduler() -> Iterator[LocalCluster]:
    """A scheduler without workers."""
    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster:
        yield cluster


@contextmanager
def workers(cluster: LocalCluster, homes: list[Path]) -> Iterator[str]:
    """Start a worker for each of these stores; yield the scheduler's address for --on."""
    with ExitStack() as stack:
        words = ["--nworkers", "1", "--nthreads", "4", *RESOURCES, "--no-dashboard"]
        for home in homes:
            command = [DASK, "worker", cluster.scheduler_address, *words]
            child = subprocess.Popen(command, env={**os.environ, "AGELAB_HOME": str(home)}, cwd=home)
            stack.callback(child.wait)
            stack.callback(child.terminate)
        with Client(cluster) as client:
            client.wait_for_workers(len(homes), timeout=120)
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def guests(homes: list[Path]) -> list[int]:
    """List the processes of QEMU whose files are in these stores."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"qemu-system" in words.split(b"\0")[0] and any(str(home).encode() + b"/" in words for home in homes):
            found.append(int(path.parent.name))
    return found


def digests(path: Path) -> list[tuple[str, str, dict[str, str]]]:
    """Key, digest and maps of each cell of the newest run."""
    cells = json.loads(agelab("show", newest(path).name, "--json").stdout)["cells"]
    return [(cell["inputs_key"], cell["digest"], cell["maps"]) for cell in cells]


def test_three_workers_have_the_digests_of_a_serial_run(
    tmp_path: Path, scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(store_of_parts(tmp_path / "coordinator")))
    path = scenario(tmp_path, HISTORY + TESTS, head=MEASURES)
    homes = [store_of_parts(tmp_path / f"worker-{number}") for number in range(3)]
    found = []
    with workers(scheduler, homes) as address:
        for words in ((), ("--on", address)):
            done = agelab("run", str(path), "--seeds", "1,2", "--fresh", *words)
            assert done.returncode == 0, done.stdout + done.stderr
            found.append(digests(path))
            started = [*newest(path).glob("cells/*/*domain*.xml")]
            assert bool(started) is not bool(words)  # the coordinator starts no guest for what workers run
    assert found[0] == found[1] and all(digest for _, digest, _ in found[0])


def test_an_interrupted_run_that_other_workers_go_on_with_has_the_digests_of_a_serial_run(
    tmp_path: Path, scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the guests of all workers; a guest that is killed marks its cell; others bring the rest."""
    monkeypatch.setenv("AGELAB_HOME", str(store_of_parts(tmp_path / "coordinator")))
    path = scenario(tmp_path, HISTORY + TESTS, head=MEASURES)
    homes = [store_of_parts(tmp_path / f"worker-{number}") for number in range(5)]
    first, later = homes[:2], homes[2:]
    words = [PROGRAM, "run", str(path), "--seeds", "1,2,3", "--fresh", "--on"]
    with workers(scheduler, first) as address:
        child = subprocess.Popen([*words, address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: len(guests(first)) == 2 or child.poll() is not None, 240)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 130 and said.splitlines()[-1].startswith("agelab: interrupted"), said
        until(lambda: not guests(first))
    begun = newest(path)
    with workers(scheduler, later[:1]) as address:
        resumed = [PROGRAM, "resume", begun.name, "--on", address]
        child = subprocess.Popen(resumed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: guests(later) or child.poll() is not None, 240)
        for guest in guests(later):
            os.kill(guest, signal.SIGKILL)
        said, _ = child.communicate(timeout=500)
        assert child.returncode == 1 and said.count("interrupted") >= 1, said
    with workers(scheduler, later[1:]) as address:
        done = agelab("resume", begun.name, "--on", address)
        assert done.returncode == 0, done.stdout + done.stderr
    assert runs(path) == {begun} and not [*begun.glob("cells/*/*domain*.xml")]  # no guest of the coordinator's own
    elsewhere = digests(path)
    done = agelab("run", str(path), "--seeds", "1,2,3", "--fresh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(path) == elsewhere and all(digest for _, digest, _ in elsewhere)
