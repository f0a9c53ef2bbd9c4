"""Several machines on one: a Dask scheduler and workers on this host, and a run whose cells they take.

python -m bench.cluster_demo [WORKERS] [ARGUMENTS of agelab run...]
"""

import subprocess
import sys
from pathlib import Path

from distributed import LocalCluster

from agelab.cluster.dask_cells import MEMORY, RESOURCE
from agelab.vm import host

DEFAULT = ("aging-ext4", "--seeds", "1,2")


def main(words: list[str]) -> int:
    """Run the demonstration; return the exit status of agelab."""
    count = int(words.pop(0)) if words and words[0].isdigit() else 2
    program = Path(sys.executable).with_name("agelab")
    with LocalCluster(
        n_workers=count,
        threads_per_worker=4,  # one runs a cell, the others answer
        resources={RESOURCE: 1, MEMORY: host.memory_available() // count},
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # any free port: a scheduler beside it has the usual one
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        command = [str(program), "run", *(words or DEFAULT), "--on", address]
        print(f"{count} workers: {' '.join(command)}", flush=True)
        return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
