"""Results of the map boot are kept and made into samples; and the slowdown beside the control."""

import gzip
import hashlib
import io
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from agelab.base.errors import AgelabError
from agelab.evaluate import maps
from agelab.evaluate.derived_samples import slowdowns
from agelab.present.view.run_tables import measures_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import Sample
from agelab.runner.execute import disk_maps
from agelab.runner.plan.cell_spec import CellSpec
from agelab.scenario.step import StepId
from harness import maps as guest
from tests.build.cell_builder import spec

EXTENTS = b"agelab-extents 1 4096 fibmap\nF 7 12288 12288 1 a\nE 0 40960 8192 0\nE 8192 81920 4096 0\n"
MIB = 1 << 20


def results(tmp_path: Path, **files: bytes) -> Path:
    """A results disk as the harness leaves it: a tar, and behind it the zeros of a disk."""
    path = tmp_path / "results"
    with path.open("wb") as disk, tarfile.open(fileobj=disk, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_error", ".error"))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    os.truncate(path, MIB)
    return path


def cell() -> CellSpec:
    return spec("aging-reiserfs")


def by_metric(found: list[Sample]) -> dict[str, Sample]:
    return {sample.metric: sample for sample in found}


def test_files_are_kept_packed_and_their_hashes_are_those_of_the_content(tmp_path: Path) -> None:
    hashes = maps.unpack(results(tmp_path, aged__extents=EXTENTS), tmp_path)
    assert hashes == {"aged/extents": hashlib.sha256(EXTENTS).hexdigest()}
    packed = (tmp_path / "maps/aged/extents.gz").read_bytes()
    assert gzip.decompress(packed) == EXTENTS
    maps.unpack(results(tmp_path, aged__extents=EXTENTS), tmp_path)
    assert (tmp_path / "maps/aged/extents.gz").read_bytes() == packed


@pytest.mark.parametrize("name", ["../../../end.json", "/etc/passwd", "aged/other", "aged/../extents"])
def test_nothing_that_the_harness_does_not_write_becomes_a_file(tmp_path: Path, name: str) -> None:
    cell = tmp_path / "cells/0"
    with pytest.raises(AgelabError, match="which is not a map"):
        maps.unpack(results(tmp_path, **{name: b"x"}), cell)
    assert not cell.exists()


def test_a_link_is_no_result(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "results", mode="w") as tar:
        entry = tarfile.TarInfo("aged/extents")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(AgelabError, match="which is not a map"):
        maps.unpack(tmp_path / "results", tmp_path / "cell")


def test_a_results_disk_without_a_tar_is_said(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_bytes(b"x" * 4096)
    with pytest.raises(AgelabError, match="the results disk cannot be read"):
        maps.unpack(path, tmp_path)


def hostile(name: str = "aged/extents", kind: bytes = tarfile.REGTYPE, **more: object) -> bytes:
    """A member of a tar that no harness writes."""
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in more.items():
        setattr(member, field, value)
    return member.tobuf(tarfile.GNU_FORMAT) + bytes(512)


@pytest.mark.parametrize(
    "member",
    [
        hostile("../../end.json", size=1),
        hostile("/etc/cron.d/x", size=1),
        hostile("aged/../../x", size=1),
        hostile("aged", kind=tarfile.DIRTYPE),
        hostile(kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
        hostile(kind=tarfile.LNKTYPE, linkname="../../end.json"),
        hostile(kind=tarfile.CHRTYPE, devmajor=1, devminor=8),
        hostile(kind=tarfile.FIFOTYPE),
        hostile(size=1 << 60),
        hostile("././@LongLink", kind=tarfile.GNUTYPE_LONGNAME, size=1 << 40),
        hostile("./PaxHeaders/x", kind=tarfile.XHDTYPE, size=1 << 62),
        hostile("a/b/c", size=1),
        hostile("a b", size=1),
        hostile("-/.hidden", size=1),
        hostile("aged/e\x1b[2J", size=1),
        hostile("././@LongLink", kind=tarfile.GNUTYPE_LONGNAME, size=300)[:512] + b"n" * 300 + bytes(212) + hostile(),
        hostile(size=1) + hostile(size=1),
    ],
)
def test_a_guest_cannot_write_anywhere_by_what_it_brings_back(tmp_path: Path, member: bytes) -> None:
    outside, cell = tmp_path / "end.json", tmp_path / "cells" / "0"
    cell.mkdir(parents=True)
    outside.write_text("mine")
    path = tmp_path / "results"
    path.write_bytes(member + bytes(10240))
    with pytest.raises(AgelabError, match="the results disk"):
        maps.unpack(path, cell)
    assert outside.read_text() == "mine"
    assert {made.relative_to(cell).parts[0] for made in cell.rglob("*")} <= {maps.DIRECTORY}
    assert not [made for made in tmp_path.rglob("*") if made.is_symlink()]


def test_a_map_becomes_samples_and_what_failed_is_not_measured_with_its_words(tmp_path: Path) -> None:
    failed = b"debugreiserfs exited 1: alas"
    maps.unpack(results(tmp_path, aged__extents=EXTENTS, aged__free_error=failed), tmp_path)
    [found] = disk_maps.reader(cell()).read(tmp_path, ["aged"])
    samples = by_metric(maps.samples(found, ("extents", "free_space")))
    assert {sample.step for sample in samples.values()} == {"aged/map"}
    assert (samples["extents"].value, samples["layout_score"].value) == (2, 0.5)
    assert samples["free_bytes"].value is None
    assert samples["free_bytes"].not_measured == "debugreiserfs exited 1: alas"


def test_free_space_that_cannot_be_read_costs_no_other_figure(tmp_path: Path) -> None:
    maps.unpack(results(tmp_path, aged__extents=EXTENTS, aged__free=b"something new"), tmp_path)
    [found] = disk_maps.reader(cell()).read(tmp_path, ["aged"])
    samples = by_metric(maps.samples(found, ("extents", "free_space")))
    assert samples["extents"].value == 2
    assert samples["free_bytes"].value is None and "debugreiserfs" in (samples["free_bytes"].not_measured or "")


def test_what_never_came_back_is_not_measured(tmp_path: Path) -> None:
    [found] = disk_maps.reader(cell()).read(tmp_path, ["aged"])
    samples = by_metric(maps.samples(found, ("extents", "free_space")))
    assert {sample.not_measured for sample in samples.values()} == {"nothing came back"}


def test_a_filesystem_that_tells_nothing_says_why() -> None:
    [found] = disk_maps.reader(spec("aging-zfs")).read(Path("/nowhere"), ["aged"])
    samples = by_metric(maps.samples(found, ("extents",)))
    assert samples["layout_score"].value is None and "FIEMAP" in (samples["layout_score"].not_measured or "")


def test_a_point_of_the_curve_is_a_repetition(tmp_path: Path) -> None:
    maps.unpack(results(tmp_path, **{"curve-12__extents": EXTENTS}), tmp_path)
    [found] = disk_maps.reader(cell()).read(tmp_path, ["curve-12"])
    assert {(s.step, s.repetition) for s in maps.samples(found, ("extents",))} == {("curve/map", 12)}


def test_pictures_are_drawn_of_what_is_known(tmp_path: Path) -> None:
    maps.unpack(results(tmp_path, aged__extents=EXTENTS, **{"curve-12__extents": EXTENTS}), tmp_path)
    names = ["curve-12", "aged"]
    found = list(disk_maps.reader(cell()).read(tmp_path, names))
    samples = [sample for one in found for sample in maps.samples(one, ("extents",))]
    disk_maps.draw(tmp_path, cell(), found, samples)
    assert "not measured" in (tmp_path / "maps" / disk_maps.BLOCK_MAP).read_text()
    assert "at its end 0.500" in (tmp_path / "maps" / disk_maps.SCORE).read_text()


def test_a_guest_that_brings_nothing_back_has_a_picture_without_maps(tmp_path: Path) -> None:
    disk_maps.draw(tmp_path, cell(), list(disk_maps.reader(cell()).read(tmp_path, ["aged"])), [])
    assert "not measured" in (tmp_path / "maps" / disk_maps.BLOCK_MAP).read_text()


def test_the_guest_keeps_what_programs_print_or_how_they_failed(tmp_path: Path) -> None:
    path = tmp_path / "tar"
    with path.open("wb") as disk, tarfile.open(fileobj=disk, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        guest.keep(tar, "aged/free", [sys.executable, "-c", "print('free')"], tmp_path, {})
        words = "import sys; print('half'); sys.exit('alas')"
        guest.keep(tar, "aged/extents", [sys.executable, "-c", words], tmp_path, {})
    hashes = maps.unpack(path, tmp_path)
    assert set(hashes) == {"aged/free", "aged/extents.error"}
    said = gzip.decompress((tmp_path / "maps/aged/extents.error.gz").read_bytes()).decode()
    assert said.endswith("exited 1: alas")


def elapsed(step: str, value: float | None, repetition: int = 1) -> Sample:
    return Sample(step=step, metric="elapsed", value=value, unit="s", repetition=repetition)


def test_the_slowdown_is_the_aged_disks_time_over_the_controls() -> None:
    samples = [
        elapsed("aged/read", 3.0), elapsed("control/read", 2.0), elapsed("read", 7.0),
        elapsed("aged/write", 1.0, 1), elapsed("aged/write", 1.0, 2), elapsed("control/write", 4.0, 2),
    ]  # fmt: skip
    found = {(s.step, s.repetition): s for s in slowdowns([StepId("read"), StepId("write")], samples)}
    assert found["read", 1].value == 1.5 and found["write", 2].value == 0.25
    assert found["write", 1].not_measured == "the test did not end on both disks"


def test_without_a_control_the_slowdown_is_not_measured_and_says_why() -> None:
    [one] = slowdowns([StepId("read")], [elapsed("aged/read", 3.0)], "a real disk")
    assert (one.value, one.not_measured) == (None, "a real disk")


def test_the_table_has_both_disks_side_by_side(tmp_path: Path) -> None:
    failed = b"debugreiserfs exited 1: alas"
    maps.unpack(results(tmp_path, aged__extents=EXTENTS, aged__free_error=failed), tmp_path)
    [found] = disk_maps.reader(cell()).read(tmp_path, ["aged"])
    control = replace(found, name="control")
    both = [elapsed("aged/read", 3.0), elapsed("control/read", 2.0), elapsed("aged/mount", 1.0)]
    both += [sample for one in (found, control) for sample in maps.samples(one, ("extents", "free_space"))]
    both += slowdowns([StepId("read")], both)
    console = Console(file=io.StringIO(), width=120, highlight=False)
    print_blocks(measures_blocks(both), console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    [read] = [line.split() for line in shown.splitlines() if line.startswith(" read ")]
    assert read == ["read", "3.000000", "2.000000", "1.500", "-", "-"]
    assert "mount" not in shown
    assert "layout score" in shown and "0.5000" in shown and "?" in shown
    assert "not measured: aged/map free_bytes and" in shown and "exited 1: alas" in shown
