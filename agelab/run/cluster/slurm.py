"""A Slurm array that runs a plan: one task a cell, no scheduler of ours."""

import shlex
from pathlib import Path

from agelab.base import atomic
from agelab.base.errors import InputError
from agelab.run.cluster import shared_plan
from agelab.run.cluster.shared_plan import SharedPlan

PLAN, SCRIPT = "plan.json", "array.sh"
MEMORY_MIB = 4096
"""For a guest and its disks, at quick scale; edit the script for a larger one."""
PART = 1000
"""Tasks of one array: Slurm takes indexes up to 1000 (MaxArraySize=1001), unless a site says otherwise."""
SCRIPT_TEXT = """#!/bin/sh
#SBATCH --job-name=agelab
#SBATCH --array=0-{last_of_part}
#SBATCH --cpus-per-task=1
#SBATCH --mem={memory_mib}M
#SBATCH --output={directory}/cell-%A-%a.log
# One cell a task; its result goes into the cache that AGELAB_CACHE names, which all hosts must see.
# The plan has cells 0 to {last}. An array of Slurm has {part} tasks at most here; its first cell is the argument:
#   {commands}
# PBS: the same with #PBS -J 0-{last_of_part} and $PBS_ARRAY_INDEX; FIRST_CELL=... in the environment is the first cell.
set -eu
: "${{AGELAB_CACHE:?name the cache that all hosts share}}"
cell=$((${{SLURM_ARRAY_TASK_ID:-$PBS_ARRAY_INDEX}} + ${{1:-${{FIRST_CELL:-0}}}}))
if [ "$cell" -gt {last} ]; then exit 0; fi
exec {agelab} worker --cell "$cell" {plan}
"""


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
        text = SCRIPT_TEXT.format(
            last=len(plan.cells) - 1,
            last_of_part=min(PART, len(plan.cells)) - 1,
            part=PART,
            commands=commands(place / SCRIPT, len(plan.cells)),
            memory_mib=MEMORY_MIB,
            directory=place,
            agelab=shlex.quote(agelab),
            plan=shlex.quote(str(place / PLAN)),
        )
        atomic.write(place / SCRIPT, text.encode())
        (place / SCRIPT).chmod(0o755)
    except OSError as error:
        raise InputError(f"--slurm {directory}: cannot be written: {error.strerror}") from error
    return place / SCRIPT
