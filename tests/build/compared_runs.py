"""Build runs whose cells differ in their seconds to copy."""

from pathlib import Path
from typing import Any

from agelab.results.result import Status
from tests.build import run_builder

Values = dict[int, float | None]


def make(
    home: Path,
    elapsed: dict[str, Values],
    *,
    inputs: dict[str, Any] | None = None,
    clock: str = "virtual",
    layout: str = "single",
    ends: dict[int, Status | None] | None = None,
    label: str = "small",
    more: dict[str, Values] | None = None,
    again: Values | None = None,
    plan: dict[str, Any] | None = None,
    cell: dict[str, Any] | None = None,
) -> str:
    """Build a run with a cell for each variant and seed, given its seconds to copy; return its name.

    ``more``: what other steps took; ``again``: the second copy; ``plan`` and ``cell``: what else is to be said there.
    """
    accelerator = "kvm" if clock == "wall" else "tcg"
    cells = tuple(
        run_builder.cell(variant, seed, **{"layout": layout, "accelerator": accelerator, **(cell or {})})
        for variant, values in elapsed.items()
        for seed in values
    )
    run = run_builder.begin(home, cells, label=label, **{"scenario": "small", "clock": clock, **(plan or {})})
    for number, one in enumerate(cells):
        measured = [run_builder.sample("copy", elapsed[one.variant][one.seed])]
        measured += [run_builder.sample(step, taken[one.seed]) for step, taken in (more or {}).items()]
        if again:
            measured.append(run_builder.sample("copy", again[one.seed], repetition=2))
        measured.append(run_builder.sample("copy", 7, "seeks"))
        found = {"seeds": {"run": one.seed}, "plan": {"mkfs": one.variant}, **(inputs or {})}
        status = (ends or {}).get(one.seed, Status.OK)
        why = None if status is Status.OK else "it stopped"
        run_builder.end(run, number, measured, status=status, inputs=found, reason=why)
    return run.name


def seeds(*values: float | None) -> Values:
    return dict(enumerate(values, start=1))


ONE = seeds(1.0, 1.1, 1.2, 1.3, 1.4)
