"""Cells on other hosts: workers of a real Dask scheduler, each a process of its own, with a stand-in for agelab."""

import json
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed.core import clean_exception
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import Serialize, Serialized, ToPickle

from agelab.base.errors import AgelabError, HostError, InputError
from agelab.runner.cluster import dask_cells, scheduler, shared_plan
from agelab.runner.cluster.dask_cells import DaskCells
from agelab.runner.cluster.shared_plan import run_cell
from agelab.runner.execute.answers import CellLost
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, planned_cells, resolve
from agelab.runner.reuse import cache, ended_cells
from agelab.runner.reuse.ended_cells import OtherKey
from agelab.scenario.seeds import Seeds
from agelab.store.artefacts import Store
from agelab.store.parcel import Refused
from tests.build import cluster_worker
from tests.build.cli import Cli
from tests.build.cluster_worker import CELLS, MEMORY, TREE, answer, key_of, plan, run
from tests.build.waiting import until

DASK = str(Path(sys.executable).with_name("dask"))


@contextmanager
def worker(address: str, behaviour: str, host: str, place: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a worker on a host of that name."""
    more = {
        "AGELAB_HOST": host,
        "AGELAB_MARK": str(place / "mark"),
        "AGELAB_PYTHON": sys.executable,
        "AGELAB_TREE": str(TREE),
    }
    command = [sys.executable, "-m", "tests.build.cluster_worker", address, behaviour]
    with (
        (place / f"worker-{host}.log").open("wb") as log,
        subprocess.Popen(command, cwd=TREE, env={**os.environ, **more}, stdout=log, stderr=log) as child,
    ):
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def scheduler_process(place: Path) -> Iterator[str]:
    """Start Dask's scheduler on the loopback, in a process of its own as a user's is; yield its address."""
    log = place / "scheduler.log"
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with log.open("wb") as file, subprocess.Popen([DASK, "scheduler", *words], stdout=file, stderr=file) as child:
        try:
            said = re.compile(r"Scheduler at: *(tcp://[0-9.:]+)")
            until(lambda: said.search(log.read_text()) is not None)
            found = said.search(log.read_text())
            assert found
            yield found[1]
        finally:
            child.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler for all tests after which nothing but lost workers is left with it."""
    with scheduler_process(tmp_path_factory.mktemp("scheduler")) as address:
        yield address


@contextmanager
def cluster(address: str, place: Path, *behaviours: str, cells: int = CELLS) -> Iterator[DaskCells]:
    """Connect to a scheduler for so many cells, once earlier workers are gone, and start one of each behaviour."""
    asked = plan(cells=[("ext4", "single", 1, seed) for seed in range(cells)])
    with dask_cells.connected(address.replace("tcp://", "dask://"), asked) as connected, ExitStack() as stack:
        until(lambda: not connected._workers())
        for number, behaviour in enumerate(behaviours):
            stack.enter_context(worker(address, behaviour, str(number), place))
        if behaviours:
            connected._client.wait_for_workers(len(behaviours), timeout=60)
        yield connected


def test_each_cell_comes_back_verified_from_a_worker_that_has_memory_for_it(
    shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cells, "SILENCE", 1.0)
    monkeypatch.setattr(dask_cells, "LOOK", 1.0)
    (tmp_path / "large").mkdir()
    with cluster(shared, tmp_path, "", "") as cells:
        assert cells.slots(MEMORY) == cells.slots(MEMORY // 3) == 2  # of cells a worker has one
        found = [run(cells, number, tmp_path) for number in range(CELLS)]
        with pytest.raises(CellLost, match=r'none of 2 workers has room .*"cell=1 memory=4\.1e9"') as lost:
            cells.run(("ext4", "single", Seeds(1, 0)), key_of(0), tmp_path / "large", MEMORY + 1)
    assert "\n" not in str(lost.value)
    assert [value for value, _ in found] == [1.0, 2.0, 3.0, 4.0]
    assert {host for _, host in found} <= {"host 0", "host 1"}


TOLD = {
    "full": "agelab: the disk is full",
    "nothing": "agelab: the guest's disk image could not grow",
    "nonsense": "it has an entry that is not a regular file",
    "another": "a cell of another key",
    "damaged": "its list is not what was written",
    "dies": "was ended by SIGKILL",
    "another-qemu": "a cell of another key: qemu.version is QEMU 10.0 there, QEMU 7.2 here, and 1 more$",
}


def test_a_worker_that_sends_no_intact_cell_of_the_key_is_told_in_one_line(shared: str, tmp_path: Path) -> None:
    """The input that makes it another cell is named, where it is known."""
    here = {"making": {"kernel": "6.1"}, "seeds": len(TOLD) - 1, "qemu": {"version": "QEMU 7.2", "hash": "a"}}
    last = tmp_path / str(len(TOLD) - 1)
    last.mkdir()
    (last / "inputs.json").write_text(json.dumps(here))
    with cluster(shared, tmp_path, ",".join(TOLD), cells=len(TOLD)) as cells:
        for number, why in enumerate(TOLD.values()):
            with pytest.raises(CellLost, match=why) as lost:
                run(cells, number, tmp_path)
            assert "\n" not in str(lost.value)
    assert not list(tmp_path.rglob("*.gz"))


def test_the_cell_of_a_worker_that_was_killed_runs_on_another(shared: str, tmp_path: Path) -> None:
    with cluster(shared, tmp_path, "kills-worker") as cells, ExitStack() as stack:
        address = cells._client.scheduler.address
        stack.enter_context(worker(address, "", "later", tmp_path))
        found = [run(cells, number, tmp_path) for number in range(3)]
    assert [value for value, _ in found] == [1.0, 2.0, 3.0] and found[-1][1] == "host later"


def test_what_hostile_workers_send_runs_nothing_on_the_coordinator_and_says_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An object as the answer and as a part of it, an error, Dask's own header, the topics that are printed."""
    mark = command_here(tmp_path, monkeypatch)
    each = [f"hostile-{how}" for how in ("answer", "part", "error", "header", "topics")]
    with scheduler_process(tmp_path) as own, cluster(own, tmp_path, ",".join(each), cells=len(each)) as cells:
        for number, how in enumerate(each):
            with pytest.raises(CellLost) as lost:
                run(cells, number, tmp_path)
            said = str(lost.value)
            assert not mark.exists(), how
            assert "\n" not in said and ("no cell" in said or "is not read here" in said), how
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "said",
    [
        {"cell": "many"}, {"cell": -1}, {"cell": float("nan")}, {"memory": float("inf")}, {"cell": [1]}, ["cell"], None,
    ],
    ids=str,
)  # fmt: skip
def test_a_worker_that_says_nonsense_of_itself_is_none(said: object) -> None:
    good = {"resources": {"cell": 2, "memory": 1e300}}
    workers: dict[object, object] = {"tcp://[": good, "tcp://h:1": {"resources": said}, 5: {}, "tcp://h:2": said}
    client = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": workers})
    cells = DaskCells(client, plan())
    assert cells._workers() == [good["resources"]] and cells.slots(MEMORY) == 2


def test_a_scheduler_that_says_what_cannot_be_read_has_no_workers() -> None:
    def info(n_workers: int) -> None:
        raise pickle.UnpicklingError

    assert DaskCells(SimpleNamespace(scheduler_info=info), plan()).slots(MEMORY) == 1


def command_here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a hostile worker's command make a file if this process runs it; return that file."""
    monkeypatch.setenv("AGELAB_IF_COORDINATOR", f"test $PPID = {os.getpid()} && touch {place / 'ran'}")
    return place / "ran"


def test_no_part_of_a_message_of_the_scheduler_runs_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = command_here(tmp_path, monkeypatch)
    command = pickle.dumps(cluster_worker.Command())
    as_dask = Serialized({"serializer": "dask", "type-serialized": command, "sub-header": {}}, [b""])
    anywhere = dumps({"op": "event", "event": ToPickle(cluster_worker.Command())})
    with scheduler.reading():
        with pytest.raises(pickle.UnpicklingError):
            loads(anywhere)
        for one in (Serialize(cluster_worker.Command()), as_dask):
            assert loads(dumps({"result": one})) == {"result": scheduler.UNREAD}
        with pytest.raises(pickle.UnpicklingError):
            pickle.loads(command)
        assert clean_exception(command)[0] is Exception
    assert not mark.exists()
    with suppress(AttributeError):  # a library that Dask takes looks at an exception's cause
        pickle.loads(command)
    assert mark.exists()  # so this test can fail


def test_a_cell_whose_workers_were_all_lost_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler tells it by an object, which is not read."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    with (
        scheduler_process(tmp_path) as own,
        cluster(own, tmp_path, "kills-worker") as cells,
        pytest.raises(CellLost, match="see the logs of") as lost,
    ):
        run(cells, 0, tmp_path)
    assert "\n" not in str(lost.value)


def test_without_any_worker_a_cell_is_given_up(shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cells, "SILENCE", 1.0)
    monkeypatch.setattr(dask_cells, "LOOK", 1.0)
    with cluster(shared, tmp_path) as cells, pytest.raises(CellLost, match="no worker has been there"):
        run(cells, 0, tmp_path)


def test_an_agelab_of_another_version_is_told_in_one_line(shared: str, tmp_path: Path) -> None:
    """The worker's agelab is the real one here, and refuses the plan."""
    with cluster(shared, tmp_path, "real") as cells:
        cells._plan = plan(agelab="0.0.9")
        with pytest.raises(CellLost, match=r"is of agelab 0\.0\.9, this one is") as lost:
            run(cells, 0, tmp_path)
    assert "\n" not in str(lost.value)


def test_an_interrupt_ends_what_workers_run_and_who_waits_for_it(shared: str, tmp_path: Path) -> None:
    with cluster(shared, tmp_path, "slow") as cells, ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        stack.callback(cells.stop)  # however it goes: the pool waits for both
        waiting = [pool.submit(run, cells, number, tmp_path) for number in range(2)]  # one for the other
        mark = tmp_path / "mark"
        until(lambda: mark.exists() and bool(mark.read_text()))
        cells.stop()
        for one in waiting:
            with pytest.raises(CellLost):
                one.result(timeout=20)
        until(lambda: not Path(f"/proc/{mark.read_text()}").exists())


def test_nobody_at_the_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    with (
        pytest.raises(HostError, match="no scheduler answers there"),
        dask_cells.connected("dask://127.0.0.1:9", plan()),
    ):
        pass


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "dask://127.0.0.1", "dask://:1", "dask://h:x", "dask://a@h:1"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="it is dask://host:port"):
        scheduler.address_of(address)


def test_other_hosts_take_mutual_tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without TLS"):
        scheduler.address_of("dask://192.0.2.1:8786")
    assert scheduler.address_of("dask://localhost:8786") == "tcp://localhost:8786"
    monkeypatch.setenv(scheduler.CERTIFICATE, str(tmp_path / "none.crt"))
    assert scheduler.address_of("dask://192.0.2.1:8786") == "tls://192.0.2.1:8786"
    with pytest.raises(InputError, match="there is no such file"):
        scheduler.security()


# ---- what is sent ----


def test_a_changed_byte_of_what_was_sent_is_found(tmp_path: Path) -> None:
    sent = answer(1)
    assert ended_cells.unpack(sent, key_of(1), tmp_path).samples[0].value == 2.0
    for at in range(0, len(sent), 97):
        wrong = sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :]
        with pytest.raises(Refused):
            ended_cells.unpack(wrong, key_of(1), tmp_path / "other")
    assert not [*(tmp_path / "other").rglob("*.gz")]
    with pytest.raises(OtherKey):
        ended_cells.unpack(sent, key_of(2), tmp_path / "other")


# ---- the plan ----


@pytest.mark.parametrize(
    ("words", "variable", "fresh"),
    [({}, "", False), ({}, "0", False), ({}, "1", True), ({"fresh": True}, "", True), ({"verify": 0.5}, "", True)],
)
def test_a_worker_answers_with_no_known_cell_where_all_run_or_some_are_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: dict[str, object], variable: str, fresh: bool
) -> None:
    monkeypatch.setenv(cache.FRESH, variable)
    monkeypatch.setattr(shared_plan, "_resolutions", lambda *_: {})
    options = RunOptions(name="aging-ext4", directory="/", **words)  # type: ignore[arg-type]
    found = shared_plan.make(resolve(options), Store(tmp_path), Progress()).options
    assert found.fresh is fresh and found.verify is None


def test_a_task_takes_the_plan_of_its_cell_alone_which_is_the_same_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared_plan, "_resolutions", lambda *_: {})
    options = RunOptions(name="aging", directory="/", seeds=(1, 2), corpora=(3, 4), design="paired")
    whole = shared_plan.make(resolve(options), Store(tmp_path), Progress())
    cells = {one.name: one for one in planned_cells(options)}
    for number in range(len(whole.cells)):
        one, name = whole.of_one(number), whole.name_of(number)
        assert one.name_of(0) == name and len(one.cells) == 1
        assert {cell.name: cell for cell in planned_cells(one.options)}[name] == cells[name]
    many = plan(cells=[("ext4", "single", 1, seed) for seed in range(10_000)])
    assert len(many.of_one(7).model_dump_json()) < 2000


def test_a_plan_keeps_its_cells_and_refuses_another_agelab(tmp_path: Path) -> None:
    shared_plan.write(tmp_path / "plan", plan())
    found = shared_plan.read(tmp_path / "plan")
    assert found == plan() and found.name_of(3) == ("ext4", "single", Seeds(1, 3))
    assert found.options.seeds == (1, 2, 3, 4) and found.options.jobs == 1
    with pytest.raises(InputError, match="cells 0 to 3"):
        found.name_of(4)
    shared_plan.write(tmp_path / "plan", plan(agelab="0.1"))
    with pytest.raises(InputError, match=r"is of agelab 0\.1, this one"):
        shared_plan.read(tmp_path / "plan")


@pytest.mark.parametrize(
    "words", [{"clock": "wall"}, {"keep_disk": True}, {"timing": True}, {"disk": "abc"}, {"seeds": "auto"}]
)
def test_what_only_this_host_can_do_is_not_sent(words: dict[str, object]) -> None:
    with pytest.raises(InputError, match="cannot run on other hosts"):
        RunOptions(name="aging-ext4", directory="/", **words).require_shareable()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        {"disks": "file:{place}/notes.tar"},
        {"disks": "block:/dev/null"},
        {"disks": "pci:0000:00:01.0"},
        {"control": "{place}/control.ctl"},
        {"clock": "wall"},
    ],
)
@pytest.mark.parametrize("erase", ["", "disk-0123456789abcdef"])
def test_a_worker_takes_no_plan_that_could_not_have_been_made(
    tmp_path: Path, words: dict[str, str], erase: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agelab.runner.execute.runner.run_request", lambda *_: pytest.fail("it runs"))
    (tmp_path / "notes.tar").write_bytes(b"notes".ljust(1 << 20, b"\0"))
    (tmp_path / "control.ctl").write_text("filesystem ext4\n")
    command = RunOptions(name="aging-ext4", directory=str(tmp_path)).to_plan()
    command["options"] |= {name: word.format(place=tmp_path) for name, word in words.items()} | {"erase": erase}
    shared_plan.write(tmp_path / "plan", plan(command=command))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "agelab: the cells cannot run on other hosts: " in cli.err("worker", "--cell", "1", tmp_path / "plan")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_worker_runs_no_cell_that_the_plans_options_do_not_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agelab.runner.execute.runner.run_request", lambda *_: pytest.fail("it runs"))
    for cell in (["ext4", "single", 1, 9], ["ext9", "single", 1, 1], ["ext4", "raid0", 1, 1]):
        with pytest.raises(InputError, match=f"ask for no such cell: {cell[0]}, {cell[1]}"):
            run_cell(plan(cells=[cell]), 0, Store(tmp_path), Progress())


def test_the_array_has_a_task_for_each_cell(tmp_path: Path) -> None:
    script = shared_plan.write_array(tmp_path / "array", plan(), "/opt/a b/agelab")
    text = script.read_text()
    assert "#SBATCH --array=0-3\n" in text and "'/opt/a b/agelab' worker --cell" in text
    assert shared_plan.read(tmp_path / "array/plan.json") == plan()
    done = subprocess.run([script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode and "name the cache that all hosts share" in done.stderr


def test_a_plan_of_more_cells_than_an_array_takes_is_sent_in_parts(tmp_path: Path) -> None:
    said = tmp_path / "agelab"
    said.write_text('#!/bin/sh\necho "$3"\n')
    said.chmod(0o755)
    many = plan(cells=[("ext4", "single", 1, seed) for seed in range(2500)])
    script = shared_plan.write_array(tmp_path / "array", many, str(said))
    text = script.read_text()
    assert "#SBATCH --array=0-999\n" in text
    sent = shared_plan.array_commands(script, 2500)
    assert sent == f"for first in $(seq 0 1000 2499); do sbatch {script} $first; done" and f"#   {sent}\n" in text
    for task, first, cell in (("7", "", "7"), ("7", "2000", "2007"), ("500", "2000", "")):
        done = subprocess.run(
            [script, *([first] if first else [])],
            env={"PATH": os.environ["PATH"], "AGELAB_CACHE": "x", "SLURM_ARRAY_TASK_ID": task},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == cell


def test_a_worker_needs_the_directory_of_the_plan_for_the_users_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run_request(request: RunRequest, *_: object) -> None:
        ran.append(request.options.directory)

    monkeypatch.setattr("agelab.runner.execute.runner.run_request", run_request)
    store, gone = Store(tmp_path), str(tmp_path / "gone")
    for more in ({}, {"kernel": "6.12"}, {"kernel": "recipe:ufs"}):
        options = RunOptions(name="aging-ext4", directory=gone, **more)  # type: ignore[arg-type]
        run_cell(plan(command=options.to_plan()), 1, store, Progress())
    assert ran == ["/"] * 3
    for more in ({"name": "mine.toml"}, {"corpus": "data"}, {"kernel": "tree:linux"}):
        options = RunOptions(directory=gone, **{"name": "aging-ext4", **more})  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"{gone}, which this host does not have, and names"):
            run_cell(plan(command=options.to_plan()), 1, store, Progress())


def test_a_workers_agelab_takes_its_packages_from_where_the_worker_says(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"AGELAB_HOME": "/a", "AGELAB_SNAPSHOT": "/b", "AGELAB_CACHE": "/d"}
    for name, value in {**wanted, "AGELAB_OWNER": "me"}.items():
        monkeypatch.setenv(name, value)
    found = dask_cells.own_environment()
    assert wanted.items() <= found.items() and "AGELAB_OWNER" not in found


def test_the_stand_in_has_one_key_for_each_cell() -> None:
    assert len({cluster_worker.key_of(number) for number in range(CELLS)}) == CELLS
    assert issubclass(CellLost, AgelabError)


def test_a_worker_that_loses_its_scheduler_goes_on_listening_for_a_stop() -> None:
    class Stopped:
        """Dask's event, whose scheduler is gone for a moment."""

        asked = 0

        def wait(self, timeout: float) -> bool:
            self.asked += 1
            if self.asked == 1:
                raise OSError("Stream is closed")
            return self.asked == 3

    ended, stopped = threading.Event(), Stopped()
    dask_cells._watch(stopped, ended)
    assert ended.is_set() and stopped.asked == 3
