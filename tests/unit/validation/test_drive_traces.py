"""Traces of real drives are read into frozen types, and every line that is none is told with its number."""

from dataclasses import replace
from math import sqrt
from pathlib import Path
from random import Random

import pytest

from agelab.base.errors import InputError
from tests.build import traced_drive
from validation import traced_profile
from validation.drive_traces import Mechanics, Request, Zone, read_all, stands_before
from validation.traced_profile import Figures, bus_rate, mean_seek, profile, rising, time_at


def complaint(directory: Path) -> str:
    """The error about a directory."""
    with pytest.raises(InputError) as error:
        read_all(directory)
    return str(error.value)


def test_the_files_of_a_drive(tmp_path: Path) -> None:
    [drive] = read_all(traced_drive.write(tmp_path, trace="R Hit 100 8 1234.5 20000.25\nW Miss 7 2 900 1\n"))
    assert drive.name == "made-up"
    assert drive.requests == (Request(False, 100, 8, 1234.5, 20000.25), Request(True, 7, 2, 900.0, 1.0))
    mechanics, electronics = drive.mechanics, drive.electronics
    assert (mechanics.surfaces, mechanics.cylinders, mechanics.sectors) == (4, 2000, 780_000)
    assert [(zone.first, zone.last, zone.per_track) for zone in mechanics.zones] == [(0, 999, 110), (1001, 1999, 90)]
    assert (mechanics.zones[0].track_skew, mechanics.rpm, mechanics.write_settling) == (12.0, 7200, 0.5)
    assert mechanics.seek[0] == (1, 1.5)
    assert len(mechanics.seek) == 6
    assert (electronics.segments, electronics.segment_sectors, electronics.write_back) == (3, 281, False)
    assert electronics.read_hit == pytest.approx(0.3)
    assert electronics.write == pytest.approx(0.95)


@pytest.mark.parametrize(("level", "overhead"), [(0, 0.95), (1, 0.95), (2, 0.45)])
def test_a_write_is_a_hit_of_a_drive_with_full_write_caching(tmp_path: Path, level: int, overhead: float) -> None:
    """As DiskSim's disk_write_arrive has it for FULL_FASTWRITE."""
    specs = traced_drive.SPECS.replace("Fast write level = 0", f"Fast write level = {level}")
    [drive] = read_all(traced_drive.write(tmp_path, diskspecs=specs))
    assert drive.electronics.write == pytest.approx(overhead)
    assert drive.electronics.write_back is (level > 0)


def test_every_line_that_is_no_request_is_told(tmp_path: Path) -> None:
    good = "R Hit 100 8 1000 20000\n"
    bad = [
        "X Hit 1 2 3 4", "R Hit 1 2 3", "R Hit one 2 3 4", "W Hit 1 0 3 4", "W Hit 1 2 nan 4",
        "R Hit 1 2 -3 4",
    ]  # fmt: skip
    message = complaint(traced_drive.write(tmp_path, trace=good + "".join(f"{line}\n{good}" for line in bad)))
    for number in range(2, 14, 2):
        assert f"line {number}: " in message, message
    assert "line 3: " not in message


def test_the_errors_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    traced_drive.write(
        tmp_path,
        trace="nothing\n" * 130,
        model=traced_drive.MODEL.replace("= 4,", "= four,", 1).replace("= 1001,", "= 900,"),
        diskspecs=traced_drive.SPECS.replace("Segment size (in blks) = 281", "Segments = 281"),
        seek="1,\t2\n2,\tfast\n",
    )
    message = complaint(tmp_path)
    for problem in (
        "made-up.trace: line 1: is no request: 'nothing'",
        "line 100: ",
        "made-up.trace: and 30 more",
        "made-up.model: Number of data surfaces: ",
        "the zone at cylinder 900 overlaps the one before",
        "made-up.seek: line 2: is no distance and time: '2,\\tfast'",
        "made-up.diskspecs: Segment size (in blks): Field required",
    ):
        assert problem in message, message


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"trace": ""}, "has no file that ends in .trace"),
        ({"model": ""}, "made-up.model"),
        ({"seek": ""}, "made-up.seek"),
        ({"model": traced_drive.MODEL.partition("Mechanical")[0]}, "instead of"),
        ({"model": "nothing"}, "no description of anything"),
        ({"model": traced_drive.MODEL * 2}, "does not describe one thing"),
        ({"model": traced_drive.MODEL.replace("extracted", "guessed")}, "Seek type 'guessed'"),
        ({"seek": "1,2\n1,3\n"}, "the distances do not rise"),
    ],
)
def test_a_directory_that_holds_no_traces(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    assert problem in complaint(traced_drive.write(tmp_path, **files))


def test_a_curve_of_two_pieces_needs_no_table(tmp_path: Path) -> None:
    """Ruemmler and Wilkes': a root, then a line."""
    equation = "hpl,\n HPL seek equation values = [ 300, 3.8, 0.33, 7.75, 0.0059, -1 ],"
    traced_drive.write(tmp_path, seek="", model=traced_drive.MODEL.replace("extracted,", equation))
    [drive] = read_all(tmp_path)
    curve = dict(drive.mechanics.seek)
    assert curve[1] == pytest.approx(4.13)
    assert curve[10] == pytest.approx(3.8 + 0.33 * sqrt(10))
    assert curve[1999] == pytest.approx(7.75 + 0.0059 * 1999)


def test_a_measured_curve_rises() -> None:
    curve = rising(((1, 1.9), (2, 2.0), (3, 1.8), (4, 1.7), (9, 5.0)))
    assert [distance for distance, _ in curve] == [1, 2, 3, 4, 9]
    assert [time for _, time in curve] == pytest.approx([1.85, 1.85, 1.85, 1.85, 5.0])
    assert time_at(curve, 4) == pytest.approx(1.85)
    assert time_at(curve, 8) == pytest.approx(1.85 + 3.15 * 4 / 5)
    assert time_at(curve, 100) == 5.0
    assert mean_seek([(1, 3.0), (2, 6.0)], 3) == pytest.approx(4.0)


def test_a_curve_of_too_many_points_keeps_those_that_matter() -> None:
    curve = [(distance, 1.0 + (distance >= 100) * 3.0) for distance in range(1, 201)]
    thinned = traced_profile._thinned(curve)
    assert len(thinned) <= 128
    assert len(traced_profile._thinned([(n, n**0.5) for n in range(1, 5000)])) == 128
    assert all(time_at(thinned, distance) == pytest.approx(time) for distance, time in curve)


def reads_over_a_bus() -> tuple[Request, ...]:
    """Requests of which the quickest reads take 100 us a sector."""
    random, requests = Random(1), []
    for _ in range(1000):
        sectors = random.choice((2, 8, 16, 32))
        away = random.choice((0, random.uniform(0, 20_000)))
        requests.append(Request(False, 0, sectors, 300 + 100 * sectors + away, 1))
        requests.append(Request(True, 0, sectors, 200, 1))
    requests.append(Request(False, 0, 64, 200, 1))
    return tuple(requests)


def test_the_bus_is_the_quickest_reads() -> None:
    assert bus_rate(reads_over_a_bus()) == pytest.approx(5.12, rel=0.001)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("speed", [1, 1.003])
def test_the_platters_tell_on_which_line_a_time_stands(own: bool, speed: float) -> None:
    """Requests on neighbouring sectors, each done when its last one has passed."""
    random, now, moments = Random(2), 0.0, []
    revolution = 60e6 / 7200 * speed
    for _ in range(200):
        first, gap = 1000 + random.randrange(20), random.uniform(9_000, 50_000)
        begun = now + gap
        done = begun + 2000 + (first / 110 * revolution - begun - 2000) % revolution
        moments.append((first, done - begun, gap))
        now = done
    gaps = [gap for _, _, gap in moments]
    stated = gaps if own else [*gaps[1:], 0.0]
    requests = [Request(True, first, 4, took, gap) for (first, took, _), gap in zip(moments, stated, strict=True)]
    mechanics = Mechanics(4, 1000, 400_000, (Zone(0, 999, 110, 0, 0),), 7200, 1, 0, ((1, 1.0),))
    assert stands_before(mechanics, requests, writes_tell=True) is own


def test_a_profile_is_made_of_what_is_known(tmp_path: Path) -> None:
    [traced] = read_all(traced_drive.write(tmp_path))
    extracted, manual, measured = (
        profile(traced, figures) for figures in (Figures.EXTRACTED, Figures.MANUAL, Figures.MEASURED)
    )
    assert extracted.cache.write_segments is None
    assert manual.cache.write_segments is not None
    for drive in (extracted, manual):
        assert drive.medium.kind == "disk"
        assert drive.medium.seek is None
        assert drive.medium.zones is None
        assert drive.medium.track_to_track_ms.value == 1.5
        assert drive.medium.write_average_ms.value == pytest.approx(drive.medium.average_ms.value + 0.5)
    assert measured.medium.kind == "disk"
    assert measured.medium.zones
    assert measured.medium.zones.table == ((0, 1000, 110), (1001, 1999, 90))


def test_a_sheet_has_no_extracted_figure(tmp_path: Path) -> None:
    """But those that a row adds: the electronics' times, the rate of the bus, or both."""
    traced = replace(read_all(traced_drive.write(tmp_path))[0], requests=reads_over_a_bus())
    sheet, overhead, bus, both = (
        profile(traced, figures)
        for figures in (Figures.SHEET, Figures.SHEET_OVERHEAD, Figures.SHEET_BUS, Figures.SHEET_BOTH)
    )
    for drive in (sheet, bus):
        assert (drive.overhead_us.value, drive.hit_overhead_us, drive.write_overhead_us) == (300, None, None)
    for drive in (overhead, both):
        assert drive.overhead_us.value == pytest.approx(650)
        assert drive.hit_overhead_us and drive.hit_overhead_us.value == pytest.approx(300)
        assert drive.write_overhead_us and drive.write_overhead_us.value == pytest.approx(950)
    assert [drive.interface.mb_per_s.value for drive in (sheet, overhead)] == [20, 20]
    assert [drive.interface.mb_per_s.value for drive in (bus, both)] == pytest.approx([5.12, 5.12], rel=0.001)
    for drive in (sheet, overhead, bus, both):
        assert drive.cache.read_ahead_kib.value == drive.cache.kib.value // drive.cache.segments.value // 2
        disk = drive.medium
        assert disk.kind == "disk"
        assert (disk.head_switch_ms.value, disk.track_skew_ms, disk.cylinder_skew_ms) == (1, None, None)
        assert disk.inner_mb_s.value == pytest.approx(0.55 * disk.outer_mb_s.value)
        assert disk.full_stroke_ms.value == pytest.approx(1.9 * disk.average_ms.value)
        assert disk.write_average_ms.value == pytest.approx(disk.average_ms.value + 1)


def test_files_that_make_no_profile_are_told(tmp_path: Path) -> None:
    specs = traced_drive.SPECS.replace("buffer segments = 3", "buffer segments = 40")
    [traced] = read_all(traced_drive.write(tmp_path, diskspecs=specs))
    with pytest.raises(InputError, match=r"made-up: cache\.segments: 40 is not 1 to 32"):
        profile(traced, Figures.MANUAL)
