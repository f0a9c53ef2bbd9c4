#!/bin/sh
#SBATCH --job-name=agelab
#SBATCH --array=0-{{ tasks - 1 }}
#SBATCH --cpus-per-task=1
#SBATCH --mem={{ memory_mib }}M
#SBATCH --output={{ directory }}/cell-%A-%a.log
# One cell a task; its result goes into the cache that AGELAB_CACHE names, which all hosts must see.
# The plan has cells 0 to {{ cells - 1 }}. An array of Slurm has {{ part }} tasks at most here; its first cell is the argument:
#   {{ commands }}
# PBS: the same with #PBS -J 0-{{ tasks - 1 }} and $PBS_ARRAY_INDEX; FIRST_CELL=... in the environment is the first cell.
set -eu
: "${AGELAB_CACHE:?name the cache that all hosts share}"
cell=$((${SLURM_ARRAY_TASK_ID:-$PBS_ARRAY_INDEX} + ${1:-${FIRST_CELL:-0}}))
if [ "$cell" -gt {{ cells - 1 }} ]; then exit 0; fi
exec {{ agelab|sh }} worker --cell "$cell" {{ plan|sh }}
