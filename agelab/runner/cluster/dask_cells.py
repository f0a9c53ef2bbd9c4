"""Cells on the workers of a Dask scheduler: one cell a task, each in a process of its own there."""

import base64
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from agelab.base import atomic, fileio, process
from agelab.base.errors import AgelabError, HostError
from agelab.base.plain_path import temp_parent
from agelab.base.process import ProcessFailed
from agelab.base.sanitize import escape_controls
from agelab.debian import snapshot
from agelab.runner.cluster import scheduler, shared_plan
from agelab.runner.cluster.shared_plan import SharedPlan
from agelab.runner.execute.answers import CellLost
from agelab.runner.execute.guests import TIMEOUT_VARIABLE
from agelab.runner.prepare.capacity import DISKS_VARIABLE
from agelab.runner.reuse import cache, ended_cells
from agelab.runner.reuse.ended_cells import MOST_SENT, CellKey, EndedCell, OtherKey
from agelab.scenario.seeds import CellName
from agelab.store.parcel import Refused

RESOURCE, MEMORY = "cell", "memory"
"""The resources of a worker: the cells that it runs at a time, and the bytes of memory that all of them may take."""
RETRIES = 2
"""Times that a cell is sent again where its task raised. Dask itself sends one again whose worker was lost."""
LOOK = 5.0
"""Seconds between two looks at the workers."""
SILENCE = 60.0
"""Seconds without any worker after which a cell is given up."""
GRACE = 30.0
"""Seconds for a worker's agelab to end its guests."""
LAST_WORDS = 300
Resources = dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]
Answer = tuple[str, str, str]
_RESOURCES = TypeAdapter(Resources)
OF_A_WORKER = ("AGELAB_HOME", "TMPDIR", "XDG_DATA_HOME", snapshot.VARIABLE, DISKS_VARIABLE, TIMEOUT_VARIABLE)
"""Variables that a worker's agelab takes from it, beside those of reuse."""


class DaskCells:
    """The workers of a scheduler."""

    def __init__(self, client: Any, plan: SharedPlan) -> None:
        self._client = client
        self._plan = plan
        self._numbers = {plan.name_of(number): number for number in range(len(plan.cells))}
        self._stop = f"agelab-stop-{secrets.token_hex(8)}"
        self._stopped = False

    def slots(self, memory: int) -> int:
        """Return how many such cells the workers of now run at a time, one at least: one is waited for."""
        return max(1, sum(_room(worker, memory) for worker in self._workers()))

    def run(self, cell: CellName, key: CellKey, directory: Path, memory: int) -> EndedCell:
        """Have a worker run the cell. Raises CellLost."""
        plan = self._plan.of_one(self._numbers[cell])
        task = self._client.submit(
            work, plan.model_dump_json(by_alias=True).encode(), self._stop,
            resources={RESOURCE: 1, MEMORY: memory}, retries=RETRIES, pure=False,
        )  # fmt: skip
        try:
            host, text, why = self._awaited(task, memory)
            if why:
                raise CellLost(f"{host}: {why}")
            sent = _decoded(text)
            return ended_cells.unpack(sent, key, directory)
        except OtherKey as error:
            differs = shared_plan.other_key(sent, key, directory / "inputs.json")
            more = f": {differs}" if differs else ""
            raise CellLost(f"{host}: a cell of another key{more}") from error
        except Refused as error:
            raise CellLost(f"{host}: {error}") from error
        finally:
            task.release()

    def stop(self) -> None:
        """End the guests of all workers, and wait for no cell any more."""
        from distributed import Event

        if not self._stopped:
            self._stopped = True
            with suppress(Exception):  # the scheduler is gone, and so are its workers' connections
                Event(self._stop, client=self._client).set()

    def _awaited(self, task: Any, memory: int) -> Answer:
        """Wait for a task as long as there are workers with room for it. Raises CellLost."""
        from distributed import TimeoutError as NotYet

        alone = 0.0
        while not self._stopped:
            try:
                return _answer(task.result(timeout=LOOK))
            except NotYet:
                there = self._workers()
                alone = 0.0 if any(_room(worker, memory) for worker in there) else alone + LOOK
                if alone >= SILENCE:
                    raise CellLost(_nobody(memory, among=len(there))) from None
            except Exception as error:  # whatever a lost worker, or a strange one, leaves behind
                why = _short(scheduler.error_text(error)) or type(error).__name__
                raise CellLost(f"no worker ran it to its end: {why}") from error
        raise CellLost("the run was ended")

    def _workers(self) -> list[Resources]:
        """Return the resources of each worker that is there; a worker that says nonsense is not."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        except Exception:  # the scheduler is gone, or says what cannot be read
            return []
        resources = []
        for worker in workers:
            with suppress(LookupError, TypeError, ValidationError):
                resources.append(_RESOURCES.validate_python(worker["resources"]))
        return resources


@contextmanager
def connected(address: str, plan: SharedPlan) -> Iterator[DaskCells]:
    """Connect to the scheduler at ``dask://host:port``; an error or an interrupt ends the cells that run.

    Raises InputError for an address that is none, and HostError where nobody answers or is not trusted.
    """
    url = scheduler.address_of(address)
    try:
        from distributed import Client
    except ImportError as error:
        raise HostError("--on takes Dask", hint="pip install 'agelab[cluster]'") from error
    scheduler.require_answer(address)
    with scheduler.reading():
        try:
            client = Client(url, timeout=scheduler.CONNECT_SECONDS, security=scheduler.security(), set_as_default=False)
        except Exception as error:  # whatever Dask makes of an answer that is none
            raise HostError(
                f"--on {address}: no scheduler answers there: {_short(str(error)) or type(error).__name__}",
                hint=scheduler.START,
            ) from error
        cells = DaskCells(client, plan)
        try:
            yield cells
        except BaseException:
            cells.stop()
            raise
        finally:
            client.close()


def _short(text: str) -> str:
    """Return a text of others as the end of one line."""
    return escape_controls(" ".join(text.split()))[:LAST_WORDS]


def _answer(result: object) -> Answer:
    """Return what ``work`` has returned on a worker. Raises TypeError for anything else."""
    match result:
        case (str(host), str(sent), str(why)):
            return _short(host), sent, _short(why)
    raise TypeError("what it sent is no cell")


def _decoded(sent: str) -> bytes:
    """Return the bytes that a worker sent as text. Raises Refused."""
    try:
        return base64.b64decode(sent, validate=True)
    except ValueError as error:
        raise Refused("what it sent is no cell") from error


def _room(has: Resources, memory: int) -> int:
    """Return how many cells of so many bytes a worker with these resources runs at a time."""
    cells = int(has.get(RESOURCE, 0))
    return min(cells, int(has.get(MEMORY, 0) // memory)) if memory else cells


def _nobody(memory: int, among: int) -> str:
    """Return why a cell was waited for in vain."""
    if not among:
        return f"no worker has been there for {SILENCE:.0f} s"
    words = f'--resources "{RESOURCE}=1 {MEMORY}={-(-memory // 10**8) / 10}e9"'
    return f"none of {among} workers has room for it: start dask worker with {words}, or more"


def work(plan: bytes, stop: str) -> Answer:
    """Run the plan's one cell on this host, in a process of its own.

    Returns the host, and the cell or why there is none: text alone, which comes without the name of a type.
    """
    from distributed import Event, get_client

    from agelab.machine.vm import host

    stopped = Event(stop, client=get_client())
    ended = threading.Event()
    name = host.description()
    with atomic.temp_dir(temp_parent()) as place:
        shared_plan.write(place / "plan", SharedPlan.model_validate_json(plan))
        answer = place / "answer"
        command = [program(), "worker", "--cell", "0", "-o", str(answer), str(place / "plan")]
        threading.Thread(target=_watch, args=(stopped, ended), daemon=True).start()
        try:
            done = process.run(command, env=own_environment(), ok=(0, 1), grace=GRACE, give_up=ended.is_set)
            if not answer.exists():  # the cell has nothing that could be sent
                return name, "", _error_line(done.stderr, "it has sent nothing")
            return name, base64.b64encode(fileio.read_bytes(answer, MOST_SENT)).decode(), ""
        except ProcessFailed as error:
            return name, "", _error_line(error.stderr, str(error))
        except (OSError, AgelabError) as error:
            return name, "", _short(str(error))
        finally:
            ended.set()


def _watch(stopped: Any, ended: threading.Event) -> None:
    """Set ``ended`` when the coordinator says stop, however often the scheduler is lost, until it is set."""
    while not ended.is_set():
        try:
            if stopped.wait(timeout=1):
                ended.set()
        except (OSError, RuntimeError):
            ended.wait(1)


def _error_line(stderr: str, otherwise: str) -> str:
    """Return the line in which an agelab has told its error."""
    lines = stderr.strip().splitlines() or [otherwise]
    return next((line for line in reversed(lines) if line.startswith("agelab: ")), lines[-1])[:LAST_WORDS]


def program() -> str:
    """Return the agelab of this Python."""
    beside = Path(sys.executable).with_name("agelab")
    return str(beside) if beside.exists() else shutil.which("agelab") or "agelab"


def own_environment() -> dict[str, str]:
    """Return what an agelab of this worker needs of its environment."""
    kept = {name: os.environ[name] for name in OF_A_WORKER if name in os.environ}
    return {**kept, **cache.passed_on()}
