"""Cells on three hosts, each with a network of its own, over mutual TLS: one is killed, one cut off, one far away."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agelab.base.errors import HostError
from agelab.runner.cluster import dask_cells, scheduler
from agelab.runner.cluster.dask_cells import DaskCells
from agelab.runner.reuse import ended_cells
from tests import capabilities
from tests.build import cluster_hosts
from tests.build.cluster_hosts import Authority, NetworkHost
from tests.build.cluster_worker import CELLS, MEMORY, TREE, answer, key_of, plan, run
from tests.build.waiting import until

SHORT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}
"""A host that is gone is noticed in seconds."""
DASK = str(Path(sys.executable).with_name("dask"))


@pytest.fixture(scope="module", autouse=True)
def _network_namespaces() -> None:
    if not cluster_hosts.can_be_added():
        capabilities.skip("network namespaces")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authorities") / "ours")


@contextmanager
def scheduler_at(address: str, certificates: Mapping[str, str], place: Path) -> Iterator[str]:
    """Start Dask's scheduler on an address of this host; yield host and port."""
    with socket.socket() as free:
        free.bind((address, 0))
        port = free.getsockname()[1]
    words = ["--host", address, "--port", str(port), "--protocol", "tls", "--no-dashboard"]
    command = [DASK, "scheduler", *words, *cluster_hosts.tls_words(certificates)]
    log = place / "scheduler.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(command, env={**os.environ, **SHORT}, stdout=file, stderr=file) as child,
    ):
        try:
            until(lambda: b"Scheduler at" in log.read_bytes(), log=log)
            yield f"{address}:{port}"
        finally:
            child.kill()


@contextmanager
def worker(
    host: NetworkHost, place: str, behaviour: str, certificates: Mapping[str, str], directory: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a worker on a host; what it says is in ``directory``."""
    own = directory / host.address
    own.mkdir()
    more = {
        **(SHORT | dict(certificates)),
        "AGELAB_HOST": host.address,
        "AGELAB_MARK": str(own / "mark"),
        "AGELAB_PYTHON": sys.executable,
        "AGELAB_TREE": str(TREE),
    }
    command = host.command(sys.executable, "-m", "tests.build.cluster_worker", f"tls://{place}", behaviour)
    with (own / "log").open("wb") as log:
        child = subprocess.Popen(command, cwd=TREE, env={**os.environ, **more}, stdout=log, stderr=log)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def hosts(count: int) -> Iterator[list[NetworkHost]]:
    with ExitStack() as stack:
        yield [stack.enter_context(NetworkHost.added(number)) for number in range(1, count + 1)]


@contextmanager
def connected(place: str, certificates: Mapping[str, str]) -> Iterator[DaskCells]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in certificates.items():
            patch.setenv(name, value)
        with dask_cells.connected(f"dask://{place}", plan()) as cells:
            yield cells


def test_hosts_that_are_killed_cut_off_and_far_away_bring_the_digits_of_a_serial_run(
    tmp_path: Path, authority: Authority
) -> None:
    """The cell of the one that is gone runs elsewhere; all else comes over the slow link."""
    with hosts(3) as (killed, cut, far), ExitStack() as stack:
        far.slow_down("2mbit")
        place = stack.enter_context(scheduler_at(killed.gateway, authority.issue("scheduler"), tmp_path))
        cells = stack.enter_context(connected(place, authority.issue("me")))
        for host, behaviour in ((killed, "kills-worker"), (cut, "slow"), (far, "")):
            mine = authority.issue(host.address)
            stack.enter_context(worker(host, place, behaviour, mine, tmp_path))
        cells._client.wait_for_workers(3, timeout=60)
        assert cells.slots(MEMORY) == 3
        pool = stack.enter_context(ThreadPoolExecutor(3))
        stack.callback(cells.stop)  # or the pool would wait for cells that may never come
        found = [pool.submit(run, cells, number, tmp_path) for number in range(CELLS)]
        mark = tmp_path / cut.address / "mark"
        until(mark.exists, log=tmp_path / cut.address / "log")
        cut.cut_off()
        brought = [one.result(timeout=120) for one in found]
    assert brought == [(serial_value(number), f"host {far.address}") for number in range(CELLS)]


def serial_value(number: int) -> float | None:
    """Return the first value of a cell that no cluster has run."""
    with tempfile.TemporaryDirectory() as place:
        return ended_cells.unpack(answer(number), key_of(number), Path(place)).samples[0].value


def test_a_certificate_of_another_authority_is_not_trusted_which_one_line_tells(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 5)
    strangers = Authority.make(tmp_path / "strangers").issue("stranger")
    trusting = {**strangers, scheduler.AUTHORITY: authority.issue("x")[scheduler.AUTHORITY]}
    with hosts(1) as (host,), scheduler_at(host.gateway, authority.issue("scheduler"), tmp_path) as place:
        for certificates in (strangers, trusting):
            with pytest.raises(HostError) as error, connected(place, certificates):
                pass
            assert "\n" not in str(error.value) and "its certificate, or ours, is not trusted: " in str(error.value), (
                error
            )
        with worker(host, place, "", strangers, tmp_path), connected(place, authority.issue("me")) as cells:
            log = tmp_path / host.address / "log"
            until(lambda: log.read_bytes().count(b"Waiting to connect") > 2, log=log)  # and will for ever
            assert not cells._workers()


def test_who_says_nothing_and_who_speaks_no_tls_are_told_in_one_line(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    mine = authority.issue("me")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        for certificates in ({}, mine):
            with (
                pytest.raises(HostError, match="no scheduler answers there in time") as told,
                connected(place, certificates),
            ):
                pass
            assert ("AGELAB_CLUSTER_CERT" in told.value.hint) != bool(certificates)
    with socket.create_server(("127.0.0.1", 0)) as chatty:

        def chat() -> None:
            while True:
                chatty.accept()[0].sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=chat, daemon=True).start()
        place = f"127.0.0.1:{chatty.getsockname()[1]}"
        with pytest.raises(HostError, match=r"is not trusted: WRONG_VERSION_NUMBER"), connected(place, mine):
            pass
