"""The pictures of a cell: its disks block by block, and the layout score over its history."""

from collections.abc import Sequence
from pathlib import Path

from agelab.layout import curve, picture
from agelab.layout.picture import Disk
from agelab.model.result import Sample
from agelab.run.maps import DIRECTORY, STEP, Map
from agelab.run.phases import AGED, CURVE
from agelab.run.spec import CellSpec

BLOCK_MAP, SCORE = "block-map.svg", "layout-score.svg"


def draw(directory: Path, spec: CellSpec, maps: Sequence[Map], samples: Sequence[Sample]) -> None:
    """Write the pictures beside the maps: the curve's only where there is one."""
    title = f"{spec.variant.name}: {spec.scenario.name}, {spec.disk_bytes / 1e6:.0f} MB"
    disks = [
        Disk(found.name, spec.disk_bytes, found.extents, found.free)
        for found in maps
        if not found.name.startswith(CURVE)
    ]
    (directory / DIRECTORY / BLOCK_MAP).write_text(picture.side_by_side(title, disks))
    points: list[tuple[float, float | None]] = [
        (sample.repetition, sample.value)
        for sample in samples
        if (sample.step, sample.metric) == (f"{CURVE}/{STEP}", "layout_score")
    ]
    if points and spec.scenario.curve:
        step = spec.scenario.curve.step
        last = [s.value for s in samples if (s.step, s.metric) == (f"{AGED}/{STEP}", "layout_score")]
        heading = f"{title}: layout score over the history"
        if last and last[0] is not None:
            heading += f"; at its end {last[0]:.3f}"
        series = {spec.variant.name: sorted(points)}
        text = curve.plot(heading, f"repetitions of {step}", "layout score", series)
        (directory / DIRECTORY / SCORE).write_text(text)
