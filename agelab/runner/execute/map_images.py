"""The pictures of a cell: its disks block by block, and the layout score over its history."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from agelab.analysis import vega
from agelab.evaluate.layout import picture
from agelab.evaluate.layout.picture import MappedDisk
from agelab.evaluate.maps import DIRECTORY, DiskMap
from agelab.results.result import Sample
from agelab.results.run_directory import picture_file
from agelab.runner.plan.cell_spec import CellSpec
from agelab.scenario.step import AGED, CONTROL, CURVE, MAP, ForkName, StepId
from agelab.store.artefacts import file_hash

BLOCK_MAP, SCORE = "block-map.svg", "layout-score.svg"


def draw(
    directory: Path, spec: CellSpec, maps: Sequence[DiskMap], samples: Sequence[Sample]
) -> dict[str, str]:
    """Write the pictures beside the maps; that of the layout score only where the scenario has a curve.

    Returns each file's sha256.
    """
    pictures = {BLOCK_MAP: _draw_blocks(spec, maps)}
    if text := _draw_scores(spec, samples):
        pictures[SCORE] = text
    (directory / DIRECTORY).mkdir(exist_ok=True)
    for name, text in pictures.items():
        (directory / DIRECTORY / name).write_text(text, encoding="utf-8")
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pictures.items()}


def are_there(directory: Path, pictures: Mapping[str, str]) -> bool:
    """Return whether a cell's directory has these pictures, as they were drawn."""
    try:
        return bool(pictures) and all(
            file_hash(directory / picture_file(name)) == wanted for name, wanted in pictures.items()
        )
    except (OSError, ValueError):
        return False


def _title(spec: CellSpec) -> str:
    return f"{spec.variant.name}: {spec.scenario.name}, {spec.disk_bytes / 1e6:.0f} MB"


def _draw_blocks(spec: CellSpec, maps: Sequence[DiskMap]) -> str:
    at_end = {ForkName.parse(found.name).kind: found for found in maps}
    disks = [
        MappedDisk(kind, spec.disk_bytes, at_end[kind].extents, at_end[kind].free)
        for kind in (AGED, CONTROL)
        if kind in at_end
    ]
    return picture.draw_disks(_title(spec), disks)


def _draw_scores(spec: CellSpec, samples: Sequence[Sample]) -> str | None:
    """Return the picture of the layout score over the history; None where there is none."""
    wanted = spec.scenario.curve
    if wanted is None:
        return None
    at_points = spec.scenario.tests_at_points
    series = {
        kind: scores
        for kind in ((AGED, CONTROL) if at_points else (CURVE,))
        if (scores := _scores(samples, kind))
    }
    if not series:
        return None
    heading = f"{_title(spec)}: layout score over the history"
    if not at_points:
        series = {spec.variant.name: series[CURVE]}
        end = _scores(samples, AGED)
        heading += f"; at its end {end[0][1]:.3f}" if end and end[0][1] is not None else ""
    return vega.plot(heading, f"repetitions of {wanted.step}", "layout score", series)


def _scores(samples: Sequence[Sample], kind: str) -> list[tuple[float, float | None]]:
    """Return the layout scores of one kind of disks, by point of the history."""
    return sorted(
        (sample.repetition, sample.value)
        for sample in samples
        if (sample.step, sample.metric) == (str(StepId(MAP, (kind,))), "layout_score")
    )
