"""Cells on workers with stores of their own have the digests of a serial run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from tests.vm.cells import agelab, newest, scenario, store_of_parts
from tests.vm.test_measured import HISTORY, MEASURES, TESTS

pytestmark = [pytest.mark.vm, pytest.mark.full]


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[str]:
    """The scheduler's address for --on; it has three workers, each with a store."""
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None))
        words = ["--nworkers", "1", "--nthreads", "4", "--resources", "cell=1 memory=6e9", "--no-dashboard"]
        for number in range(3):
            home = store_of_parts(tmp_path / f"worker-{number}")
            command = [
                str(Path(sys.executable).with_name("dask")),
                "worker",
                cluster.scheduler_address,
                *words,
            ]
            child = subprocess.Popen(command, env={**os.environ, "AGELAB_HOME": str(home)}, cwd=tmp_path)
            stack.callback(child.wait)
            stack.callback(child.terminate)
        with Client(cluster) as client:
            client.wait_for_workers(3, timeout=120)
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_three_workers_have_the_digests_of_a_serial_run(
    tmp_path: Path, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(store_of_parts(tmp_path / "coordinator")))
    path = scenario(tmp_path, HISTORY + TESTS, head=MEASURES)
    found = []
    for words in ((), ("--on", workers)):
        done = agelab("run", str(path), "--seeds", "1,2", "--fresh", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        cells = json.loads(agelab("show", "--json").stdout)["cells"]
        found.append([(cell["inputs_key"], cell["digest"], cell["maps"]) for cell in cells])
        started = [*newest(path).glob("cells/*/*domain*.xml")]
        assert bool(started) is not bool(words)  # the coordinator starts no guest for what workers run
    assert found[0] == found[1] and all(digest for _, digest, _ in found[0])
