"""Runs of a study's scenario, as ``agelab replicate`` finds them: made without a guest."""

from collections.abc import Mapping
from pathlib import Path

from agelab.model.base import Defaults
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.published import study
from agelab.results.digest import digest
from agelab.results.run_directory import RunDirectory


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
    """A run of that scenario: variant to step to seconds (or ``step metric`` to value); its name."""
    run = RunDirectory.create(home / "runs", scenario)
    cells = [
        Cell(
            variant=variant, filesystem=variant.partition("-")[0], layout=layout, kernel=kernel, machine=machine,
            drives=drives, defaults=defaults, seed=seed,
        )
        for variant in values for seed in range(1, seeds + 1)
    ]  # fmt: skip
    plan = RunPlan(
        run=run.name, scenario=scenario, scale=scale, clock=clock, cells=tuple(cells),
        provenance={"kernel": kernel, **provenance},
    )  # fmt: skip
    run.write_plan(plan)
    for number, cell in enumerate(cells):
        if cell.variant in unsupported:
            run.finish(number, End(status=Status.UNSUPPORTED, reason="this kernel has none", host_seconds=1))
            continue
        for words, value in values[cell.variant].items():
            step, _, metric = words.partition(" ")
            sample = Sample(step=step, metric=metric or "elapsed", value=value + cell.seed / 10**6, unit="s")
            run.append(number, sample)
        run.finish(
            number, End(status=Status.OK, digest=digest(Status.OK, run.samples()[number], {}), host_seconds=1)
        )
    return run.name


def printed(name: str, layout: str = "single", table: str | None = None) -> dict[str, dict[str, float]]:
    """The study's own times, as if we had measured them."""
    one = study.read(name)
    found: dict[str, dict[str, float]] = {}
    for figure in one.figures.of(table or one.claims.tables[0].id):
        if figure.layout == layout and figure.metric == "elapsed" and figure.step not in one.claims.sums:
            found.setdefault(figure.variant, {})[figure.step] = float(figure.value)
    return found
