"""Several machines on one: a Dask scheduler and workers on this host, and a run whose cells they take.

python -m bench.cluster_demo [WORKERS] [ARGUMENTS of agelab run...]

Each worker has a store of its own, in a temporary directory, as another machine has. What a cell needs they take from a
cache that all share (AGELAB_CACHE, or one that is made for them); the packages that are not for a cache, QEMU's, were
downloaded by the coordinator.
"""

import os
import subprocess
import sys
from pathlib import Path

from distributed import Nanny, Scheduler, SpecCluster

from agelab.base import atomic
from agelab.base.plain_path import temp_parent
from agelab.machine.vm import host
from agelab.runner.cluster.dask_cells import MEMORY, RESOURCE
from agelab.runner.reuse.cache import CACHE
from agelab.store.home import open_store

DEFAULT = ("aging-ext4", "--seeds", "1,2,3")
WORKERS = 3


def workers(count: int, place: Path, downloads: Path, cache: str) -> SpecCluster:
    """Start a scheduler and so many workers on this host, each with a store of its own below ``place``."""
    specs = {}
    for number in range(count):
        home = place / f"worker-{number}"
        home.mkdir()
        (home / "cache").symlink_to(downloads)
        options = {
            "nthreads": 4,  # one runs a cell, the others answer
            "resources": {RESOURCE: 1, MEMORY: host.memory_available() // count},
            "host": "127.0.0.1",
            "env": {"AGELAB_HOME": str(home), CACHE: cache},
        }
        specs[number] = {"cls": Nanny, "options": options}
    # Any free port for the dashboard: a scheduler beside it has the usual one.
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    return SpecCluster(workers=specs, scheduler=scheduler)


def main(words: list[str]) -> int:
    """Run the demonstration; return the exit status of agelab."""
    count = int(words.pop(0)) if words and words[0].isdigit() else WORKERS
    program = Path(sys.executable).with_name("agelab")
    store = open_store()
    with atomic.temp_dir(temp_parent()) as place:
        (place / "shared").mkdir()
        cache = os.environ.get(CACHE) or str(place / "shared")
        with workers(count, place, store.cache("debs").parent, cache) as cluster:
            address = cluster.scheduler_address.replace("tcp://", "dask://")
            command = [str(program), "run", *(words or DEFAULT), "--on", address]
            print(
                f"{count} workers, each with a store of its own below {place}: {' '.join(command)}",
                flush=True,
            )
            return subprocess.run(command, env={**os.environ, CACHE: cache}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
