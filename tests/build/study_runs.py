"""Build runs of a study's scenario for ``agelab replicate``, without a guest."""

from collections.abc import Mapping
from pathlib import Path

from agelab.analysis.published import study
from agelab.base.types import Defaults
from agelab.results.result import Status
from tests.build import run_builder


def make(
    home: Path,
    scenario: str,
    values: Mapping[str, Mapping[str, float]],
    *,
    layout: str = "single",
    seeds: int = 1,
    defaults: Defaults = "period",
    scale: str = "quick",
    kernel: str = "6.1.0-56-amd64",
    machine: str = "m",
    drives: tuple[str, ...] = ("model:x",),
    clock: str = "virtual",
    unsupported: tuple[str, ...] = (),
    provenance: Mapping[str, object] = {},
) -> str:
    """Build a run of variant to step to seconds (or ``step metric`` to value); return its name."""
    cells = run_builder.cells(
        values, range(1, seeds + 1), layout=layout, kernel=kernel, machine=machine, drives=drives, defaults=defaults
    )  # fmt: skip
    run = run_builder.begin(
        home, cells, scenario=scenario, scale=scale, clock=clock, provenance={"kernel": kernel, **provenance}
    )
    for number, cell in enumerate(cells):
        run.write_inputs(number, {"cell": number})
        if cell.variant in unsupported:
            run_builder.end(run, number, status=Status.UNSUPPORTED, reason="this kernel has none")
            continue
        measured = []
        for words, value in values[cell.variant].items():
            step, _, metric = words.partition(" ")
            measured.append(run_builder.sample(step, value + cell.seed / 10**6, metric or "elapsed"))
        run_builder.end(run, number, measured)
    return run.name


def printed(name: str, layout: str = "single", table: str | None = None) -> dict[str, dict[str, float]]:
    """Return the study's own times as measured values."""
    one = study.read_study(name)
    found: dict[str, dict[str, float]] = {}
    for figure in one.figures.of(table or one.claims.tables[0].id):
        if figure.layout == layout and figure.metric == "elapsed" and figure.step not in one.claims.sums:
            found.setdefault(figure.variant, {})[figure.step] = float(figure.value)
    return found
