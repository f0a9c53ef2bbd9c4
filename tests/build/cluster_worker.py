"""A Dask worker whose agelab is a stand-in: python -m tests.build.cluster_worker SCHEDULER BEHAVIOUR.

Run with ``--cell`` it is that stand-in, which ends at once, as told by AGELAB_STAND_IN: one word, or one for each cell.
"""

import asyncio
import json
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agelab.base.hashing import canonical_json
from agelab.results.key_and_digest import inputs_key
from agelab.results.result import CellOrigin
from agelab.results.run_directory import RunDirectory
from agelab.runner.cluster import dask_cells, scheduler, shared_plan
from agelab.runner.cluster.dask_cells import DaskCells
from agelab.runner.cluster.shared_plan import SharedPlan
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse import ended_cells
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.scenario.seeds import Seeds
from tests.build import reuse_cells

BEHAVIOUR = "AGELAB_STAND_IN"
MEMORY = 4_000_000_000
"""Bytes that the cells of a worker may take."""


def key_of(number: int) -> CellKey:
    """Return the key of a cell that the stand-in measures."""
    return reuse_cells.KEY._replace(inputs_key=inputs_key(_inputs(number)))


def _inputs(number: int) -> dict[str, Any]:
    return {"making": {"kernel": "6.1"}, "seeds": number}


def answer(number: int, more: float = 0.0, inputs: dict[str, Any] | None = None) -> bytes:
    """Return what a worker sends of that cell, which may have other inputs."""
    made_of = inputs or _inputs(number)
    with tempfile.TemporaryDirectory() as home:
        run: RunDirectory = reuse_cells.ended(Path(home), 1.0 + number + more, inputs=made_of)
        end = run.end(0)
        assert end
        origin = CellOrigin(run=run.name, host=f"host {os.environ.get('AGELAB_HOST', '?')}", ended="")
        cell = EndedCell(inputs=made_of, end=end, samples=tuple(run.samples()[0]), origin=origin)
        return ended_cells.pack(cell, run.cell_directory(0))


def _of_cell(behaviours: str, number: int) -> str:
    each = behaviours.split(",")
    return each[number] if len(each) > 1 else behaviours


def stand_in(words: list[str]) -> int:
    plan, output = shared_plan.read(Path(words[-1])), Path(words[words.index("-o") + 1])
    number = plan.cells[int(words[words.index("--cell") + 1])][3]
    match _of_cell(os.environ.get(BEHAVIOUR, ""), number):
        case "kills-worker":
            os.kill(int(os.environ["AGELAB_WORKER"]), signal.SIGKILL)
        case "full":
            print("agelab: the disk is full\n  free some space", file=sys.stderr)
            return 3
        case "nothing":
            print("agelab: the guest's disk image could not grow: no space", file=sys.stderr)
            return 1
        case "nonsense":
            output.write_bytes(b'{"ac/1": "x"}')
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "damaged":
            output.write_bytes(answer(number).replace(b'"value":', b'"other":', 1))
        case "another":
            output.write_bytes(answer(number + 1000))
        case "another-qemu":
            output.write_bytes(
                answer(number, inputs={**_inputs(number), "qemu": {"version": "QEMU 10.0", "hash": "b"}})
            )
        case "slow":
            Path(os.environ["AGELAB_MARK"]).write_text(str(os.getpid()))
            time.sleep(60)
        case _:
            output.write_bytes(answer(number))
    return 0


class Command(Exception):
    """What runs a command in the process that unpickles it, which marks that this was the coordinator."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (os.environ["AGELAB_IF_COORDINATOR"],)


def hostile(behaviour: str) -> Callable[[bytes, str], Any]:
    """Return what a hostile worker has in the place of the function that runs a cell."""

    def run(plan: bytes, stop: str) -> Any:
        from distributed import get_worker
        from distributed.protocol.serialize import Serialized

        command, worker = pickle.dumps(Command()), get_worker()
        answer = ("host", 10**15, ["no", "cell"])
        match _of_cell(behaviour, json.loads(plan)["cells"][0][3]):
            case "hostile-answer":
                return Command()
            case "hostile-part":
                return ("host", Command(), "")
            case "hostile-error":
                raise Command
            case "hostile-header":
                header = {"serializer": "dask", "type-serialized": command, "sub-header": {}}
                return Serialized(header, [b""])
            case "hostile-topics":
                for _ in range(20):
                    worker.log_event("warn", {"message": command, "category": command})
                    worker.log_event("print", "\x1b[31mprinted by a stranger")
                time.sleep(1)
        return answer

    return run


async def serve(address: str, behaviour: str) -> None:
    from distributed import Worker
    from distributed.security import Security

    os.environ[BEHAVIOUR], os.environ["AGELAB_WORKER"] = behaviour, str(os.getpid())
    if behaviour.startswith("hostile"):
        dask_cells.work = hostile(behaviour)  # type: ignore[assignment]
    if behaviour != "real":
        dask_cells.program = lambda: str(Path(__file__).with_name("cluster_stand_in.sh"))
    names = (BEHAVIOUR, "AGELAB_WORKER", "AGELAB_HOST", "AGELAB_MARK", "AGELAB_PYTHON", "AGELAB_TREE")
    dask_cells.own_environment = lambda: {name: os.environ[name] for name in names if name in os.environ}
    # As ``dask worker --tls-cert ...`` makes it: keys are left out where they are not given.
    named = {
        "tls_ca_file": scheduler.AUTHORITY,
        "tls_worker_cert": scheduler.CERTIFICATE,
        "tls_worker_key": scheduler.KEY,
    }
    security = Security(**{word: os.environ[name] for word, name in named.items() if name in os.environ})
    async with Worker(
        address,
        nthreads=4,
        resources={dask_cells.RESOURCE: 1, dask_cells.MEMORY: MEMORY},
        security=security,
        heartbeat_interval="200ms",
    ) as worker:
        await worker.finished()


if __name__ == "__main__":
    if "--cell" in sys.argv:
        sys.exit(stand_in(sys.argv))
    asyncio.run(serve(sys.argv[1], sys.argv[2]))


CELLS = 4


TREE = Path(__file__).parents[2]


def plan(**changes: object) -> SharedPlan:
    options = RunOptions(name="aging-ext4", directory="/", seeds=tuple(range(1, CELLS + 1)))
    fields = {
        "schema": 1, "agelab": version("agelab"), "command": options.to_plan(), "resolutions": {},
        "cells": [("ext4", "single", 1, seed) for seed in range(CELLS)],
    }  # fmt: skip
    return SharedPlan.model_validate_json(canonical_json(fields | changes))


def run(cells: DaskCells, number: int, place: Path) -> tuple[float | None, str]:
    """Have a cell run; return its first value and its host."""
    directory = place / str(number)
    directory.mkdir(exist_ok=True)
    found = cells.run(("ext4", "single", Seeds(1, number)), key_of(number), directory, MEMORY)
    assert (directory / "maps/aged/extents.gz").exists()
    return found.samples[0].value, found.origin.host
