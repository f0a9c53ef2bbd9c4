"""What a drive's file may have besides a data sheet's figures: every error is told, and each reaches the module."""

import pytest
from pydantic import ValidationError

from agelab.machine.drive import geometry
from agelab.scenario import selection
from agelab.scenario.drive import MAX_SEEK_POINTS, MAX_ZONES, Drive, RotatingDisk, SeekTable, SolidState, ZoneTable

ESTIMATED = {"origin": "estimated", "note": "made up"}
POINTS = [(1, 1.0), (10, 2.0), (1000, 9.5)]
ZONES = [(0, 999, 500), (1000, 1999, 400)]


def made(**parts: dict[str, object]) -> Drive:
    """A drive of 8 GB with these figures in addition; the parts are those of a file."""
    raw = selection.drive("seagate-st340016a").model_dump()
    raw["sectors"]["value"] = 1_750_000
    for part, figures in parts.items():
        place = raw[part] if part in ("medium", "cache") else raw
        for name, value in figures.items():
            place[name] = value if isinstance(value, dict) else {"value": value, **ESTIMATED}
    return Drive.model_validate(raw)


def complaints(**parts: dict[str, object]) -> str:
    """The errors about such a drive."""
    with pytest.raises(ValidationError) as error:
        made(**parts)
    return str(error.value)


def words(drive: Drive) -> dict[str, str]:
    """What the module is given."""
    text = geometry.module_parameters(drive, name="drive0", run_seed=1, index=0)
    assert len(text) < 4096 - 400, "what a kernel module's parameter takes, and the guest appends memory"
    return dict(word.split("=", 1) for word in text.split())


def test_figures_reach_the_module() -> None:
    found = words(
        made(
            drive={"hit_overhead_us": 80, "write_overhead_us": 900},
            medium={
                "track_skew_ms": 1.5,
                "cylinder_skew_ms": 2.25,
                "reads_any_order": True,
                "seek": {"points": POINTS, **ESTIMATED},
                "zones": {"table": ZONES, **ESTIMATED},
            },
            cache={"write_segments": 1, "read_ahead_tracks": 2, "bus_after_percent": 75, "write_after_percent": 100},
        )
    )
    assert found["hit_overhead_ns"] == "80000"
    assert found["write_overhead_ns"] == "900000"
    assert (found["track_skew_ns"], found["cylinder_skew_ns"]) == ("1500000", "2250000")
    assert found["any_order"] == found["write_segments"] == "1"
    assert (found["read_ahead_tracks"], found["bus_after_percent"]) == ("2", "75")
    assert found["write_after_percent"] == "100"
    # 1,750,000 of 1,800,000 sectors hold data: zones and distances are so much smaller.
    assert found["zones"] == f"0:500,{1944 * 500}:400"
    assert found["seek"] == "1:1000000,10:2000000,972:9500000"


def test_a_drive_without_them_has_none_of_their_words() -> None:
    optional = {
        "seek", "any_order", "write_segments", "hit_overhead_ns", "track_skew_ns", "bus_after_percent",
    }  # fmt: skip
    for drive in selection.drives():
        if isinstance(drive.medium, SolidState):
            continue
        assert not optional & words(drive).keys()


def test_rates_with_skews_are_sustained_ones() -> None:
    """With a skew of half a revolution a track takes one and a half, so it holds half as much again."""
    skew = geometry.revolution_ns(disk(made())) / 2e6
    skewed = made(medium={"track_skew_ms": skew, "cylinder_skew_ms": skew})
    (_, plain), (_, wide) = geometry.zones(made(), disk(made()))[0], geometry.zones(skewed, disk(skewed))[0]
    assert wide == pytest.approx(1.5 * plain, abs=1)


def disk(drive: Drive) -> RotatingDisk:
    """A drive's medium."""
    assert isinstance(drive.medium, RotatingDisk)
    return drive.medium


def test_a_segment_may_be_smaller_than_a_request() -> None:
    """As in drives of the nineties."""
    drive = made(cache={"kib": 96, "segments": 3, "read_ahead_kib": 32})
    assert geometry.write_cache_bytes(drive) == 64 << 10
    assert geometry.write_cache_bytes(made(cache={"kib": 96, "segments": 1, "read_ahead_kib": 32})) == 96 << 10
    one = made(cache={"kib": 96, "segments": 3, "read_ahead_kib": 32, "write_segments": 1})
    assert geometry.write_cache_bytes(one) == 32 << 10


def test_every_error_is_told_with_its_place() -> None:
    said = complaints(
        drive={"hit_overhead_us": 0},
        medium={
            "track_skew_ms": 9.0,
            "seek": {"points": [(1, 2.0), (3, 1.5), (3, 4.0), (9, 3.0)], **ESTIMATED},
            "zones": {"table": [(0, 99, 500), (90, 199, 400), (250, 240, 0), (251, 10**9, 10**6)], **ESTIMATED},
        },
        cache={"write_segments": 40, "read_ahead_tracks": 3, "bus_after_percent": 101, "write_after_percent": 200},
    )
    for problem in (
        "hit_overhead_us: 0 is not 0.001 to 1e+06",
        "medium: track_skew_ms and cylinder_skew_ms are given together, or neither",
        "medium: track_skew_ms 9 is a revolution or more",
        "medium: seek.points[1]: the curve falls, from 2 ms to 1.5 ms",
        "medium: seek.points[2]: 3 cylinders come after 3",
        "medium: seek.points[3]: the curve falls, from 4 ms to 3 ms",
        "medium: zones.table[1]: overlaps the zone before: begins at cylinder 90, that ends at 99",
        "medium: zones.table[2]: leaves a gap of cylinders 200 to 249 to the zone before",
        "medium: zones.table[2]: ends at cylinder 240, before its first, 250",
        "medium: zones.table[2]: has 0 sectors per track",
        "medium: zones.table[3]: has 1000000 sectors per track, and not 1 to 100000",
        "medium: zones.table[3]: ends at cylinder 1000000000, which is more than 100000000",
        "cache: write_segments 40 are more than segments",
        "cache.read_ahead_tracks: 3 is not 1 to 2",
        "cache.bus_after_percent: 101 is not 0 to 100",
        "cache.write_after_percent: 200 is not 0 to 100",
    ):
        assert problem in said, said


@pytest.mark.parametrize(
    ("points", "problem"),
    [
        ([], "0 points, and not 1 to 128"),
        ([(n, 1.0) for n in range(1, MAX_SEEK_POINTS + 2)], "129 points, and not 1 to 128"),
        ([(2, 1.0)], "seek.points[0]: is of 2 cylinders: a curve begins at 1"),
        ([(1, 0.0)], "seek.points[0]: 0 ms is not more than 0 and 1000 at most"),
    ],
)
def test_a_seek_curve_that_is_none(points: list[tuple[int, float]], problem: str) -> None:
    assert any(problem in told for told in SeekTable(origin="estimated", points=tuple(points)).problems())


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([], "0 zones, and not 1 to 64"),
        ([(n, n, 1) for n in range(MAX_ZONES + 1)], "65 zones, and not 1 to 64"),
        ([(1, 5, 10)], "zones.table[0]: begins at cylinder 1, and not at 0"),
    ],
)
def test_zones_that_are_none(table: list[tuple[int, int, int]], problem: str) -> None:
    assert any(problem in told for told in ZoneTable(origin="estimated", table=tuple(table)).problems())


def test_zones_must_hold_the_drive() -> None:
    said = complaints(medium={"zones": {"table": [(0, 999, 500)], **ESTIMATED}})
    assert "medium: zones.table: 1000000 sectors, fewer than the drive's 1750000" in said


def test_the_largest_tables_fit_the_modules_parameter() -> None:
    points = [(1 + 9001 * n, 1.0 + n * 0.1234567) for n in range(MAX_SEEK_POINTS)]
    table = [(20_000 * n, 20_000 * n + 19_999, 4000 - n) for n in range(MAX_ZONES)]
    drive = made(medium={"seek": {"points": points, **ESTIMATED}, "zones": {"table": table, **ESTIMATED}, "heads": 2})
    assert len(words(drive)["seek"].split(",")) <= MAX_SEEK_POINTS
