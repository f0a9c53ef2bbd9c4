"""The modelled drives keep to their data sheets in a real guest, and look like disks to its kernel."""

from collections.abc import Sequence
from typing import Any

import pytest

from agelab import kernel
from agelab.cli.options import open_store
from agelab.runner.bench import bench
from agelab.scenario import selection
from agelab.scenario.drive import Drive, SolidState
from validation.validate import figures, measured, memory_mib, validate
from validation.validate_job import WINDOW, job, step
from validation.validate_report import LIMIT, Figure

pytestmark = pytest.mark.vm
DISK, FLASH = (selection.drive(name) for name in ("seagate-st340016a", "samsung-970-evo-500"))
PAGES = 64


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return a guest's measurements of a disk and a flash drive."""
    told = job([DISK, FLASH])
    for drive in told[1:]:
        drive["window"] = WINDOW // 512
        drive["steps"] += [step("look", "look"), step("written back", "written_back", pages=PAGES)]
        # The curves are for the plot.
        drive["steps"] = [one for one in drive["steps"] if one["name"] not in ("seeks", "rates")]
    with bench(open_store(), kernel.DEFAULT, tmp_path_factory.mktemp("validation")) as place:
        return measured(place, told, memory_mib([DISK, FLASH]))


def test_a_disk_and_a_flash_drive_keep_to_their_data_sheets(found: dict[str, dict[str, Any]]) -> None:
    _within_the_limit(figures([DISK, FLASH], found), [DISK, FLASH])


@pytest.mark.full
def test_every_drive_keeps_to_its_data_sheet() -> None:
    every = [drive for drive in selection.drives() if not isinstance(drive.medium, SolidState)]
    _within_the_limit(validate(open_store(), kernel.DEFAULT, every).figures, every)


def _within_the_limit(compared: Sequence[Figure], drives: Sequence[Drive]) -> None:
    assert {one.drive for one in compared} == {drive.name for drive in drives}
    for one in compared:
        if one.reachable:
            assert one.measured == pytest.approx(one.sheet, rel=LIMIT), (one.drive, one.name)


@pytest.mark.parametrize(
    ("name", "drive", "rotational", "cache"),
    [("drive0", DISK, "1", "write back"), ("drive1", FLASH, "0", "write through")],
    ids=["disk", "flash"],
)
def test_it_looks_like_a_drive(
    found: dict[str, dict[str, Any]], name: str, drive: Drive, rotational: str, cache: str
) -> None:
    queue = found[name]["look"]
    assert queue["rotational"] == rotational
    assert (queue["logical_block_size"], queue["physical_block_size"]) == ("512", "512")
    assert "[none]" not in queue["scheduler"] and "[" in queue["scheduler"]
    assert queue["nr_requests"] == "128"
    assert int(queue["max_sectors_kb"]) == drive.max_request_kib.value
    # What flash keeps of its own loses nothing: it needs no flush.
    assert queue["write_cache"] == cache


@pytest.mark.parametrize(("name", "drive"), [("drive0", DISK), ("drive1", FLASH)], ids=["disk", "flash"])
def test_pages_beside_one_another_become_the_largest_requests(
    found: dict[str, dict[str, Any]], name: str, drive: Drive
) -> None:
    counted = found[name]["written back"]
    flush = found[name]["look"]["write_cache"] == "write back"
    whole = -(-PAGES * 4 // drive.max_request_kib.value)
    assert counted == {"requests": whole + flush, "merges": PAGES - whole, "sectors": PAGES * 8}
