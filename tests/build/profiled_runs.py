"""Build runs whose cells have profiles."""

import hashlib
from pathlib import Path
from typing import Any

from agelab.results.records import PROFILE, CellProfile, StepProfile
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from tests.build import run_builder

AGED = "cat;[cat];read;copy 60\ncat;[cat];read;ext4_walk_[ext4] 30\nkswapd0;shrink 10\n"


CONTROL = "cat;[cat];read;copy 62\nkswapd0;shrink 10\n"


STEPS = (("copy", 1, "cp;copy 3\n"), ("copy", 2, "cp;copy 4\n"), ("aged/read", 1, AGED), ("control/read", 1, CONTROL))


def profiled(
    home: Path,
    *variants: str,
    seeds: tuple[int, ...] = (1,),
    nanoseconds: int = 1000,
    steps: tuple[tuple[str, int, str], ...] = STEPS,
    **fields: Any,
) -> RunDirectory:
    """A run whose cells have these profiles."""
    run = run_builder.begin(home, run_builder.cells(variants or ("ext4",), seeds, **fields))
    for number, _ in enumerate(run.plan().cells):
        run_builder.end(run, number, [run_builder.sample(step, 1.0, repetition=n) for step, n, _ in steps])
        place = run.cell_directory(number) / PROFILE
        place.mkdir()
        kept = []
        for step, repetition, text in steps:
            file = f"{step.replace('/', '-')}-{repetition}.folded"
            (place / file).write_text(text)
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            samples = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
            kept.append(
                StepProfile(
                    step=step, repetition=repetition, file=file, sha256=sha256,
                    samples=samples, idle=samples, profiler=0, lost=0,
                )
            )  # fmt: skip
        run.write_beside(
            number,
            CellProfile(
                status=Status.OK, reason=None, key="sha256:k",
                instructions=500, nanoseconds=nanoseconds, steps=tuple(kept),
            ),
        )  # fmt: skip
    return run
