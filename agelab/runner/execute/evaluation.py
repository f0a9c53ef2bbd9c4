"""What makes samples, measures and a status of what a guest has said: code and data of the host, which no key has.

A cell that was evaluated by others has perhaps other samples, or none of a metric that is new. So it stands for no cell
of today.
"""

from dataclasses import asdict
from functools import cache

from agelab.base import hashing, places
from agelab.base.hashing import key_of
from agelab.runner.plan.cell_spec import CellSpec

CODE = "agelab.evaluate"
"""The package that evaluates; the modules that it imports are a part of it."""
CARRIES_OUT = ("cell.py", "phases.py")
"""Modules beside this one that say which boots count, and give a cell a status for what its host saw."""


@cache
def code() -> list[str]:
    """Return the hashes of the code that evaluates, as it was when first asked for."""
    place = places.PACKAGE / "runner" / "execute"
    return [hashing.code_hash(CODE), *(hashing.file_code_hash(place / name) for name in CARRIES_OUT)]


def evaluated_by(spec: CellSpec) -> str:
    """Return the hash of all that evaluates a cell: code, and the data files that say what to make of output.

    Those are the files of its filesystems and of its programs.
    """
    filesystems = [
        filesystem.model_dump(mode="json") if filesystem else None
        for filesystem in (spec.filesystem, spec.companion)
    ]
    workload = spec.workload
    programs = {name: program.model_dump(mode="json") for name, program in workload.programs.items()}
    metrics = {name: asdict(metric) for name, metric in workload.metrics.items()}
    return "sha256:" + key_of([code(), filesystems, programs, metrics, spec.scenario.measures])
