"""A Slurm array that runs a plan: one task a cell, no scheduler of ours."""

import shlex
from pathlib import Path

from agelab import atomic
from agelab.cluster import shared_plan
from agelab.cluster.shared_plan import SharedPlan
from agelab.errors import InputError

PLAN, SCRIPT = "plan.json", "array.sh"
MEMORY_MIB = 4096
"""For a guest and its disks, at quick scale; edit the script for a larger one."""
SCRIPT_TEXT = """#!/bin/sh
#SBATCH --job-name=agelab
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task=1
#SBATCH --mem={memory_mib}M
#SBATCH --output={directory}/cell-%a.log
# One cell a task; its result goes into the cache that AGELAB_CACHE names, which all hosts must see.
# PBS: the same with #PBS -J 0-{last} and $PBS_ARRAY_INDEX.
set -eu
: "${{AGELAB_CACHE:?name the cache that all hosts share}}"
exec {agelab} worker --cell "${{SLURM_ARRAY_TASK_ID:-$PBS_ARRAY_INDEX}}" {plan}
"""


def write(directory: Path, plan: SharedPlan, agelab: str) -> Path:
    """Write plan and script into a directory, and return the script. Raises InputError where they cannot be written."""
    place = directory.absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        shared_plan.write(place / PLAN, plan)
        text = SCRIPT_TEXT.format(
            last=len(plan.cells) - 1,
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
