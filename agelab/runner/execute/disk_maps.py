"""What the map boot brought back: kept as it is, and made into samples."""

import gzip
import hashlib
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.errors import AgelabError
from agelab.layout import extents, freespace
from agelab.layout import measures as layout
from agelab.layout.model import ExtentMap, FreeSpace, LayoutMeasure
from agelab.model.filesystem import FreeSpaceTool
from agelab.model.metrics import METRICS
from agelab.model.result import Sample
from agelab.model.step_id import MAP, ForkName, StepId
from agelab.results.run_directory import map_file
from agelab.runner.execute.forks import Forks
from agelab.runner.plan.boot import Boot
from agelab.runner.plan.cell_spec import MIB, PROCESSOR_MIB, CellSpec
from agelab.runner.plan.guest_plan import MAP_MEMORY_MIB, RESULTS_MIB, map_plan
from agelab.runner.plan.phases import DAYS
from agelab.vm.guest import MemoryDisk

DIRECTORY = "maps"
BROUGHT = re.compile(r"[a-z0-9-]+/(extents|free)(\.error)?")
"""What the harness calls what it brings back (harness/maps.py). Nothing else that a guest writes becomes a path."""
PIECE = 1 << 20
"""Bytes to take at a time."""
UNASKED = "the scenario does not ask for it"


@dataclass(frozen=True)
class Map:
    """What is known of one fork's layout; None with the reason where something is not."""

    name: str
    extents: ExtentMap | None
    free: FreeSpace | None
    no_extents: str = ""
    no_free: str = ""


def mapping_boot(spec: CellSpec, there: Forks, names: Sequence[str], results: Path) -> Boot:
    """The boot that looks at these forks; its last disk is the file ``results``."""
    forks = [] if spec.disk.real else [disk for name in names for disk in there.attached(name)]
    return Boot(
        name=f"{MAP}-",
        number=0,
        day=3 * DAYS,
        plan=map_plan(spec, names),
        memory_mib=MAP_MEMORY_MIB + PROCESSOR_MIB * (spec.vcpus - 1),
        disks=(*forks, MemoryDisk(results, RESULTS_MIB * MIB, written=True)),
        phase=MAP,
    )


def unpack(results: Path, directory: Path) -> dict[str, str]:
    """Take the files from the results disk to ``maps/`` of the cell, packed; the sha256 of each, unpacked.

    Raises AgelabError where the boot did not write them, or wrote anything else: a guest's word is data.
    """
    hashes: dict[str, str] = {}
    try:
        with tarfile.open(results, mode="r:") as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.type == tarfile.REGTYPE else None
                fits = BROUGHT.fullmatch(entry.name) and entry.size <= results.stat().st_size
                if content is None or not fits or entry.name in hashes:
                    raise AgelabError(f"the results disk holds {entry.name[:60]!r}, which is no map")
                found = hashlib.sha256()
                path = directory / map_file(entry.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    while data := content.read(PIECE):
                        found.update(data)
                        packed.write(data)
                hashes[entry.name] = found.hexdigest()
    except (
        tarfile.TarError,
        ValueError,
        OverflowError,
        MemoryError,
        EOFError,
        FileExistsError,
        NotADirectoryError,
    ) as error:
        raise AgelabError(f"the results disk cannot be read: {error}") from error
    return hashes


def read(directory: Path, spec: CellSpec, names: Sequence[str]) -> Iterator[Map]:
    """The maps of these forks from the cell's directory. Raises AgelabError for one that cannot be understood."""
    for name in names:
        place = directory / DIRECTORY / name
        found, no_extents = _extents(place, spec)
        free, no_free = _free(place, spec)
        yield Map(name, found, free, no_extents, no_free)


def _extents(place: Path, spec: CellSpec) -> tuple[ExtentMap | None, str]:
    """Where the files lie, or why that is not known."""
    if "extents" not in spec.scenario.measures:
        return None, UNASKED
    if spec.filesystem.extents == "none":
        return None, spec.filesystem.extents_why
    text, why = _printed(place, "extents")
    return extents.parse_extents(text) if text is not None else None, why


def _free(place: Path, spec: CellSpec) -> tuple[FreeSpace | None, str]:
    """What is free, or why that is not known."""
    tool = spec.filesystem.free_space
    if "free_space" not in spec.scenario.measures:
        return None, UNASKED
    if not isinstance(tool, FreeSpaceTool):
        return None, tool.why
    text, why = _printed(place, "free")
    try:
        return freespace.parse(tool.format, text) if text is not None else None, why
    except freespace.Unreadable as error:  # the output is kept; the rest of the map is sound
        return None, str(error)


def _printed(directory: Path, name: str) -> tuple[bytes | None, str]:
    """What a program printed, or why there is nothing."""
    path = directory / f"{name}.gz"
    if path.exists():
        return gzip.decompress(path.read_bytes()), ""
    failed = directory / f"{name}.error.gz"
    return None, gzip.decompress(failed.read_bytes()).decode() if failed.exists() else "nothing came back"


def samples(found: Map, wanted: Sequence[str]) -> list[Sample]:
    """The measures of a map. A point of the curve is a repetition of the step ``curve/map``, or ``aged/map``."""
    fork = ForkName.parse(found.name)
    found_measures: list[LayoutMeasure] = []
    if "extents" in wanted:
        found_measures += layout.layout_measures(found.extents, found.no_extents)
    if "free_space" in wanted:
        found_measures += freespace.measures(found.free, found.no_free)
    return [
        Sample(
            step=str(StepId(MAP, (fork.kind,))),
            metric=measure.metric,
            value=measure.value,
            unit=METRICS[measure.metric].unit,
            repetition=1 if fork.number is None else fork.number,
            not_measured=measure.not_measured,
        )
        for measure in found_measures
    ]
