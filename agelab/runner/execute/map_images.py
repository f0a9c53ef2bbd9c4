"""The pictures of a cell: its disks block by block, and the layout score over its history."""

from collections.abc import Sequence
from pathlib import Path

from agelab import vega
from agelab.layout import picture
from agelab.layout.picture import MappedDisk
from agelab.model.result import Sample
from agelab.model.step_id import AGED, CONTROL, CURVE, MAP, ForkName, StepId
from agelab.runner.execute.disk_maps import DIRECTORY, DiskMap
from agelab.runner.plan.cell_spec import CellSpec

BLOCK_MAP, SCORE = "block-map.svg", "layout-score.svg"


def draw(directory: Path, spec: CellSpec, maps: Sequence[DiskMap], samples: Sequence[Sample]) -> None:
    """Write the pictures beside the maps; that of the layout score only where the scenario has a curve."""
    title = f"{spec.variant.name}: {spec.scenario.name}, {spec.disk_bytes / 1e6:.0f} MB"
    at_end = {ForkName.parse(found.name).kind: found for found in maps}
    disks = [
        MappedDisk(kind, spec.disk_bytes, at_end[kind].extents, at_end[kind].free)
        for kind in (AGED, CONTROL)
        if kind in at_end
    ]
    (directory / DIRECTORY).mkdir(exist_ok=True)
    (directory / DIRECTORY / BLOCK_MAP).write_text(picture.draw_disks(title, disks), encoding="utf-8")
    wanted = spec.scenario.curve
    if wanted is None:
        return
    at_points = spec.scenario.tests_at_points
    series = {
        kind: scores
        for kind in ((AGED, CONTROL) if at_points else (CURVE,))
        if (scores := _scores(samples, kind))
    }
    if not series:
        return
    heading = f"{title}: layout score over the history"
    if not at_points:
        series = {spec.variant.name: series[CURVE]}
        end = _scores(samples, AGED)
        heading += f"; at its end {end[0][1]:.3f}" if end and end[0][1] is not None else ""
    text = vega.plot(heading, f"repetitions of {wanted.step}", "layout score", series)
    (directory / DIRECTORY / SCORE).write_text(text, encoding="utf-8")


def _scores(samples: Sequence[Sample], kind: str) -> list[tuple[float, float | None]]:
    """Return the layout scores of one kind of disks, by point of the history."""
    return sorted(
        (sample.repetition, sample.value)
        for sample in samples
        if (sample.step, sample.metric) == (str(StepId(MAP, (kind,))), "layout_score")
    )
