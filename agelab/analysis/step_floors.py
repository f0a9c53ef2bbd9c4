"""Measure the floor of the wall clock, by step and metric, from the same thing run twice."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from agelab.analysis.calibration import AA_SEEDS, Calibration, HostLoad, MeasuredHost, PairedSample, StepFloor
from agelab.analysis.cells import SeedGroup
from agelab.results.run_directory import RunDirectory
from agelab.stats.formatting import json_number
from agelab.stats.series import Series


def calibrate(
    seeded: RunDirectory, again: RunDirectory, pairs: Sequence[tuple[SeedGroup, SeedGroup]]
) -> tuple[MeasuredHost, Calibration] | None:
    """Calibrate the host from A and A'; None where no five run seeds measured anything both times."""
    plan = seeded.plan()
    floors = step_floors(pairs)
    if not floors:
        return None
    calibration = Calibration(
        day=datetime.now(UTC).date().isoformat(),
        agelab=version("agelab"),
        runs=(seeded.name, again.name),
        scenario=plan.scenario,
        scale=plan.scale,
        kernel=plan.cells[0].kernel,
        variants=tuple(dict.fromkeys(cell.label for cell in plan.cells)),
        seeds=tuple(dict.fromkeys(cell.seed for cell in plan.cells)),
        conditions=HostLoad.of(plan),
        floors=floors,
    )
    return MeasuredHost.of(plan), calibration


def step_floors(pairs: Sequence[tuple[SeedGroup, SeedGroup]]) -> tuple[StepFloor, ...]:
    """Measure by step what the same groups of cells, run twice (A and A'), differ by.

    A metric counts where five run seeds or more have measured it both times, unless its median is zero and some
    values are not.
    """
    samples: dict[tuple[str, str], list[tuple[str, PairedSample]]] = {}
    for group, again in pairs:
        for place, first in group.series.items():
            second = again.series.get(place)
            if second is None or min(len(first.values), len(second.values)) < AA_SEEDS:
                continue
            seen = PairedSample(
                variant=group.variant, layout=group.layout, repetition=first.repetition,
                first=_floats(first), second=_floats(second),
            )  # fmt: skip
            if seen.share is not None:
                samples.setdefault((first.step, first.metric), []).append((first.unit, seen))
    return tuple(_floor(step, metric, sampled) for (step, metric), sampled in samples.items())


def _floor(step: str, metric: str, sampled: Sequence[tuple[str, PairedSample]]) -> StepFloor:
    samples = [sample for _, sample in sampled]
    return StepFloor(
        step=step,
        metric=metric,
        unit=sampled[0][0],
        places=len(samples),
        widest=max(samples, key=lambda sample: sample.share or 0),
        farthest=max(samples, key=lambda sample: sample.shift or 0),
    )


def _floats(series: Series) -> tuple[float | int, ...]:
    return tuple(json_number(value) for _, value in series.values)
