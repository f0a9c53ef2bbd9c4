"""A Slurm array that runs a plan: one task a cell, no scheduler of ours."""

import shlex
from pathlib import Path

from agelab.base import atomic, templates
from agelab.base.errors import InputError
from agelab.runner.cluster import shared_plan
from agelab.runner.cluster.shared_plan import SharedPlan

PLAN, SCRIPT = "plan.json", "array.sh"
MEMORY_MIB = 4096
"""For a guest and its disks, at quick scale; edit the script for a larger one."""
PART = 1000
"""Tasks of one array: Slurm takes indexes up to 1000 (MaxArraySize=1001), unless a site says otherwise."""


def commands(script: Path, cells: int) -> str:
    """Return the shell line that sends all cells."""
    name = shlex.quote(str(script))
    if cells <= PART:
        return f"sbatch {name}"
    return f"for first in $(seq 0 {PART} {cells - 1}); do sbatch {name} $first; done"


def write(directory: Path, plan: SharedPlan, agelab: str) -> Path:
    """Write plan and script into a directory, and return the script. Raises InputError where they cannot be written."""
    place = directory.absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        shared_plan.write(place / PLAN, plan)
        text = templates.fill(
            "array.sh",
            {},
            cells=len(plan.cells),
            tasks=min(PART, len(plan.cells)),
            part=PART,
            commands=commands(place / SCRIPT, len(plan.cells)),
            memory_mib=MEMORY_MIB,
            directory=place,
            agelab=agelab,
            plan=str(place / PLAN),
        )
        atomic.write(place / SCRIPT, text.encode())
        (place / SCRIPT).chmod(0o755)
    except OSError as error:
        raise InputError(f"--slurm {directory}: cannot be written: {error.strerror}") from error
    return place / SCRIPT
