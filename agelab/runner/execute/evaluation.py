"""What makes samples, measures and a status of what a guest has said: code and data of the host, which no key has.

A cell that was evaluated by others has perhaps other samples, or none of a metric that is new. So it stands for no cell
of today.
"""

from dataclasses import asdict
from functools import cache
from pathlib import Path

from agelab.runner.plan.cell_spec import CellSpec
from agelab.store import file_hash, key_of

PACKAGE = Path(__file__).parents[2]
SOURCES = (
    "analysis/derived_samples.py",
    "layout/**/*.py",
    "model/console.py",
    "model/event.py",
    "model/metrics.py",
    "model/step_id.py",
    "model/workload.py",
    "program_output/**/*.py",
    "results/digest.py",
    "runner/execute/boot_events.py",
    "runner/execute/cell*.py",
    "runner/execute/disk_maps.py",
    "runner/execute/history_points.py",
    "runner/execute/phase_runner.py",
    "runner/execute/step_output.py",
)
"""Patterns of the modules, below the package, that make them."""


@cache
def sources() -> dict[str, str]:
    """Return the hash of each of these modules, as they were when first asked for."""
    found = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    return {str(path.relative_to(PACKAGE)): file_hash(path) for path in sorted(found)}


def evaluated_by(spec: CellSpec) -> str:
    """Return the hash of all that evaluates a cell: these modules, and the data files that say what to make of output.

    Those are the files of its filesystems and of its programs.
    """
    filesystems = [one.model_dump(mode="json") if one else None for one in (spec.filesystem, spec.companion)]
    workload = spec.workload
    programs = {name: one.model_dump(mode="json") for name, one in workload.programs.items()}
    metrics = {name: asdict(one) for name, one in workload.metrics.items()}
    return "sha256:" + key_of([sources(), filesystems, programs, metrics, spec.scenario.measures])
