"""The kernel module's parameters follow the figures of each drive file."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from agelab.machine.drive import geometry
from agelab.scenario import selection
from agelab.scenario.drive import SECTOR, Drive, RotatingDisk, SolidState

DRIVES = [drive for drive in selection.drives() if not isinstance(drive.medium, SolidState)]
DISKS = [(drive, drive.medium) for drive in DRIVES if isinstance(drive.medium, RotatingDisk)]
WORDS = {
    "disk": "revolution_ns heads zones cylinders seek_min_ns seek_sqrt_ns seek_linear_ns write_settle_ns"
    " head_switch_ns phase_ns",
    "flash": "read_ns write_ns channels read_rate write_rate",
}
COMMON = "name kind sectors overhead_ns interface cache_bytes segments read_ahead_bytes write_back depth max_request"
each_drive = pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.name)
each_disk = pytest.mark.parametrize(("drive", "disk"), DISKS, ids=[drive.name for drive, _ in DISKS])


@each_disk
def test_the_zones_cover_the_drive_in_whole_tracks(drive: Drive, disk: RotatingDisk) -> None:
    table = geometry.zones(drive, disk)
    assert len(table) == geometry.ZONES
    assert table[0][0] == 0
    for (first, spt), (following, next_spt) in pairwise(table):
        assert first < following
        assert (following - first) % spt == 0
        assert next_spt <= spt
    last, spt = table[-1]
    assert last + 10 * spt < drive.sectors.value
    counts = [(second - first) // spt for (first, spt), (second, _) in pairwise(table)]
    counts.append(-(-(drive.sectors.value - last) // spt))
    assert max(counts) - min(counts) <= 2
    assert geometry.count_tracks(drive, table) == sum(counts)
    cylinders = geometry.count_cylinders(drive, disk, table)
    assert (cylinders - 1) * disk.heads.value < sum(counts) <= cylinders * disk.heads.value


@each_disk
def test_the_rates_at_the_edges_are_the_files(drive: Drive, disk: RotatingDisk) -> None:
    table = geometry.zones(drive, disk)
    rates = [spt * SECTOR / geometry.revolution_ns(disk) * 1e3 for _, spt in table]
    assert rates[0] == pytest.approx(disk.outer_mb_s.value, rel=0.005)
    assert rates[-1] == pytest.approx(disk.inner_mb_s.value, rel=0.005)
    step = (rates[0] - rates[-1]) / (geometry.ZONES - 1)
    assert all(one - other == pytest.approx(step, abs=0.08) for one, other in pairwise(rates))


@each_disk
def test_the_seek_curve_goes_through_the_files_figures(drive: Drive, disk: RotatingDisk) -> None:
    curve = geometry.seek_curve(disk)
    count = geometry.count_cylinders(drive, disk, geometry.zones(drive, disk))
    times = [curve.time(distance, count) for distance in range(count)]
    assert times[1] == disk.track_to_track_ms.value * 1e6
    assert times[-1] == pytest.approx(disk.full_stroke_ms.value * 1e6, abs=1)
    assert all(one <= other for one, other in pairwise(times))
    # Of the count ** 2 pairs of cylinders, 2 * (count - d) are d apart.
    total = sum(2 * (count - distance) * times[distance] for distance in range(1, count))
    assert total / (count * (count - 1)) == pytest.approx(disk.average_ms.value * 1e6, rel=0.005)


@each_drive
def test_the_settings_are_the_modules_words_in_integers(drive: Drive) -> None:
    text = geometry.module_parameters(drive, name="drive3", run_seed=1, index=3)
    words = dict(word.split("=") for word in text.split(" "))
    assert set(words) == set(f"{COMMON} {WORDS[drive.medium.kind]}".split())
    assert words.pop("name") == "drive3"
    assert words.pop("kind") == drive.medium.kind
    assert re.fullmatch(r"(\d+:\d+,){15}\d+:\d+|", words.pop("zones", ""))
    signed = {key for key, value in words.items() if not value.isdigit()}
    assert signed <= {"seek_linear_ns"}
    assert len(text) < 4096, "what a kernel module's parameter takes"


def test_the_run_seed_turns_the_platters_and_nothing_else() -> None:
    drive = selection.drive("seagate-st3120026as")
    texts = [geometry.module_parameters(drive, name="a", run_seed=s, index=i) for s, i in ((1, 0), (2, 0), (1, 1))]
    assert len(set(texts)) == 3
    assert len({re.sub(r"phase_ns=\d+", "", text) for text in texts}) == 1
    assert texts[0] == geometry.module_parameters(drive, name="a", run_seed=1, index=0)
    drawn = [geometry.phase(seed, 0, 8_333_333) for seed in range(200)]
    assert max(drawn) < 8_333_333
    assert sum(drawn) / 200 == pytest.approx(8_333_333 / 2, rel=0.15)


def test_the_write_cache_is_what_the_module_takes() -> None:
    header = Path("harness/drive/drive.h").read_text()
    [(factor, shift)] = re.findall(r"#define WRITE_CACHE_MOST \((\d+)ULL << (\d+)\)", header)
    assert int(factor) << int(shift) == geometry.WRITE_CACHE_MOST
    small, large = selection.drive("seagate-st3400832a"), selection.drive("wd-hus726t6tale6l4")
    whole, segments = small.cache.kib.value << 10, small.cache.segments.value
    assert geometry.write_cache_bytes(small) == whole - whole // segments
    assert geometry.write_cache_bytes(large) == geometry.WRITE_CACHE_MOST
    assert geometry.write_cache_bytes(selection.drive("samsung-860-evo-500")) == 0
    assert geometry.write_cache_bytes(selection.drive("samsung-870-evo-500")) == 4 << 20
    through = small.cache.write_back.model_copy(update={"value": False})
    cache = small.cache.model_copy(update={"write_back": through})
    assert geometry.write_cache_bytes(small.model_copy(update={"cache": cache})) == 0


def test_a_request_holds_a_page_or_the_module_refuses_the_drive() -> None:
    raw = selection.drive("seagate-st3120026as").model_dump()
    raw["max_request_kib"]["value"] = 3
    with pytest.raises(ValueError, match="max_request_kib: 3 is not 4 to 65536"):
        Drive.model_validate(raw)
