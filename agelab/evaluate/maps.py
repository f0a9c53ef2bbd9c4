"""The maps of a cell's disks: their files, and their samples."""

import gzip
import hashlib
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import AgelabError
from agelab.evaluate.layout import extents, freespace
from agelab.evaluate.layout import measures as layout
from agelab.evaluate.layout.mapping import Mapping, parse_mapping
from agelab.evaluate.layout.model import ExtentMap, FreeSpace, LayoutMeasure
from agelab.results.result import Sample
from agelab.scenario.filesystem import Filesystem, FreeSpaceTool
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import MAP, ForkName, StepId

DIRECTORY = "maps"
MAP_FILE = re.compile(r"[a-z0-9-]+/(mapping|extents|free)(\.error)?")
"""Names of files on the results disk (harness/maps.py). Nothing else that a guest writes becomes a path."""
CHUNK = 1 << 20
"""Bytes to copy at a time."""
NOT_ASKED = "the scenario does not ask for it"


@dataclass(frozen=True)
class DiskMap:
    """The extents and free space of one fork; None with the reason where they are not known."""

    name: str
    extents: ExtentMap | None
    free: FreeSpace | None
    no_extents: str = ""
    no_free: str = ""
    mapping: Mapping | None = None
    """How the disk is made of its members; None for one partition, or with the reason where it is not known."""
    no_mapping: str = ""


def unpack(results: Path, directory: Path) -> dict[str, str]:
    """Copy the files of the results disk to ``maps/`` of the cell, compressed. Returns the sha256 of each content.

    Raises AgelabError where the disk holds no archive, or anything else in it: a guest's output is not trusted.
    """
    hashes: dict[str, str] = {}
    most = results.stat().st_size
    try:
        with tarfile.open(results, mode="r:") as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.type == tarfile.REGTYPE else None
                allowed = MAP_FILE.fullmatch(entry.name) and entry.size <= most
                if content is None or not allowed or entry.name in hashes:
                    raise AgelabError(f"the results disk holds {entry.name[:60]!r}, which is not a map")
                content_hash = hashlib.sha256()
                path = directory / DIRECTORY / f"{entry.name}.gz"
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    while data := content.read(CHUNK):
                        content_hash.update(data)
                        packed.write(data)
                hashes[entry.name] = content_hash.hexdigest()
    except (
        tarfile.TarError,
        ValueError,
        OverflowError,
        MemoryError,
        EOFError,
        RecursionError,
        FileExistsError,
        NotADirectoryError,
    ) as error:
        raise AgelabError(f"the results disk cannot be read: {error}") from error
    return hashes


@dataclass(frozen=True)
class MapReader:
    """Reads maps, as far as a scenario asks for them and a filesystem has them."""

    filesystem: Filesystem
    measures: Sequence[str]
    """What the scenario asks for."""
    assembled: bool
    """True if the disk is made of members."""

    def read(self, directory: Path, names: Sequence[str]) -> Iterator[DiskMap]:
        """Read the maps of these forks from the cell's directory. Raises AgelabError for one that cannot be parsed."""
        for name in names:
            files = directory / DIRECTORY / name
            known, no_extents = self._extents(files)
            free, no_free = self._free_space(files)
            mapping, no_mapping = self._mapping(files)
            yield DiskMap(name, known, free, no_extents, no_free, mapping, no_mapping)

    def _extents(self, files: Path) -> tuple[ExtentMap | None, str]:
        """Return the extents of all files, or the reason why they are not known."""
        if "extents" not in self.measures:
            return None, NOT_ASKED
        if self.filesystem.extents == "none":
            return None, self.filesystem.extents_why
        text, why = _output(files, "extents")
        return extents.parse_extents(text) if text is not None else None, why

    def _mapping(self, files: Path) -> tuple[Mapping | None, str]:
        """Return how the disk is made of its members, or why that is not known; neither for one partition."""
        if not self.assembled or "extents" not in self.measures or self.filesystem.extents == "none":
            return None, ""
        text, why = _output(files, "mapping")
        return (None, why) if text is None else (parse_mapping(text), "")

    def _free_space(self, files: Path) -> tuple[FreeSpace | None, str]:
        """Return the free space, or the reason why it is not known."""
        tool = self.filesystem.free_space
        if "free_space" not in self.measures:
            return None, NOT_ASKED
        if not isinstance(tool, FreeSpaceTool):
            return None, tool.why
        text, why = _output(files, "free")
        try:
            return freespace.parse(tool.format, text) if text is not None else None, why
        except freespace.UnexpectedOutput as error:  # the rest of the map is sound
            return None, str(error)


def _output(files: Path, name: str) -> tuple[bytes | None, str]:
    """Return the output of a program in the guest, or the reason why there is none."""
    path = files / f"{name}.gz"
    if path.exists():
        return b"".join(fileio.unpacked_pieces(path, fileio.MAP)), ""
    failed = files / f"{name}.error.gz"
    if not failed.exists():
        return None, "nothing came back"
    return None, b"".join(fileio.unpacked_pieces(failed, fileio.TEXT)).decode()


def samples(disk_map: DiskMap, measures: Sequence[str]) -> list[Sample]:
    """Return the measures of a map as samples. A point of the history is a repetition of ``aged/map``."""
    fork = ForkName.parse(disk_map.name)
    found_measures: list[LayoutMeasure] = []
    if "extents" in measures:
        found_measures += layout.layout_measures(disk_map.extents, disk_map.no_extents)
        if disk_map.mapping or disk_map.no_mapping:
            why = disk_map.no_extents or disk_map.no_mapping
            found_measures += layout.drive_measures(disk_map.extents, disk_map.mapping, why)
    if "free_space" in measures:
        found_measures += layout.free_space_measures(disk_map.free, disk_map.no_free)
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
