"""The part of a solid-state drive that is simulated is a small drive of the same kind."""

import re
from dataclasses import replace

import pytest

from agelab.base.errors import InputError
from agelab.machine.disk import parse
from agelab.machine.drive import geometry, translation
from agelab.machine.drive.translation import Mapped
from agelab.runner.plan.cell_drive import CellDrive, Partition, profile
from agelab.scenario import selection
from agelab.scenario.drive import Drive, SolidState
from agelab.store.stored_disk import DISK_ALIGNMENT
from tests.build.cell_builder import spec

SSDS = [(drive, drive.medium) for drive in selection.drives() if isinstance(drive.medium, SolidState)]
MIB = 2048
"""Sectors of one."""
each_drive = pytest.mark.parametrize(("drive", "flash"), SSDS, ids=[drive.name for drive, _ in SSDS])


def words(drive: Drive, sectors: int) -> dict[str, str]:
    """The module's, for one partition of so many sectors."""
    text = geometry.module_parameters(drive, name="drive0", run_seed=1, index=0, mapped=Mapped(2048, 2048 + sectors))
    assert len(text) < 4096, "what a kernel module's parameter takes"
    return dict(word.split("=") for word in text.split(" "))


@each_drive
def test_the_settings_are_integers(drive: Drive, flash: SolidState) -> None:
    found = words(drive, 1024 * MIB)
    assert found.pop("name") == "drive0" and found.pop("kind") == "ssd"
    assert all(re.fullmatch(r"\d+", value) for value in found.values())
    assert int(found["dies"]) == flash.dies


@each_drive
@pytest.mark.parametrize("mib", [256, 1024, 16384])
def test_a_part_has_the_spare_of_the_whole(drive: Drive, flash: SolidState, mib: int) -> None:
    found = {name: int(value) for name, value in words(drive, mib * MIB).items() if value.isdigit()}
    kept = flash.reserve_lines.value + 2
    normal = found["lines"] - found.get("fast_lines", 0)
    spare = (normal - kept) * found["line_units"] / found["units"] - 1
    whole = (flash.spare_lines(drive.sectors.value) - kept) * flash.line_kib * 2 / drive.sectors.value
    assert whole <= spare < whole + found["line_units"] / found["units"] + 0.001
    stripe = found["dies"] * found["program_units"]
    assert found["line_units"] % stripe == 0
    fast = found.get("fast_lines", 0) * found["line_units"] / found["cell_bits"] * 4 / 1024
    wanted = flash.fast_mib.value * mib * MIB / drive.sectors.value if flash.fast_mib else 0
    assert fast == pytest.approx(wanted, rel=0.35)


@each_drive
def test_an_erase_costs_a_page_as_much_as_on_the_whole_drive(drive: Drive, flash: SolidState) -> None:
    found = words(drive, 1024 * MIB)
    whole = flash.erase_ms.value * 1e6 / flash.line_kib * 4
    assert int(found["erase_ns"]) / int(found["line_units"]) == pytest.approx(whole, rel=0.01)


def test_too_small_a_part_is_refused() -> None:
    with pytest.raises(InputError, match=r"8 MiB of samsung-870-evo-500 are too few: its dies write 1536 KiB") as error:
        words(selection.drive("samsung-870-evo-500"), 8 * MIB)
    [least] = re.findall(r"simulate (\d+) MiB", error.value.hint or "")
    assert words(selection.drive("samsung-870-evo-500"), int(least) * MIB)


def test_a_drive_begins_as_its_name_says() -> None:
    disk = spec(drives=("model:samsung-870-evo-500?begins=used",)).disk
    [place] = disk.member_places
    used, other, trimmed, *fresh = (
        spec(drives=(f"model:samsung-870-evo-500{begins}",)).disk.used(seed)
        for begins, seed in (
            ("?begins=used", 1), ("?begins=used", 2), ("?begins=trimmed", 1), ("?begins=fresh", 1), ("", 1),
        )
    )  # fmt: skip
    assert fresh == [{}, {}]
    found = used[place]
    assert found.at == disk.drives[0].partitions[0].bytes
    assert other == {place: replace(found, seed=other[place].seed)} != used
    assert trimmed == {place: replace(found, trimmed=True)} != used
    assert {"name", "kind"}.isdisjoint(word.split("=")[0] for word in found.words)
    with pytest.raises(InputError, match="only a modelled solid-state drive begins used"):
        profile(parse("model:seagate-st340016a?begins=used"))


def test_partitions_lie_side_by_side() -> None:
    used = parse("model:samsung-870-evo-500?begins=used")
    beside = CellDrive(used, profile(used), None, (Partition(2048, 256 * MIB), Partition(2048 + 256 * MIB, 64 * MIB)))
    mapped = beside.mapped
    assert mapped and (mapped.base, mapped.units) == (2048, 320 * 256)
    apart = CellDrive(used, profile(used), None, (Partition(2048, 256 * MIB), Partition(10**8, 64 * MIB)))
    with pytest.raises(InputError, match="two partitions of the solid-state drive samsung-870-evo-500 have"):
        apart.settings("drive0", 1, 0)


def test_an_odd_partition_shares_its_first_and_last_unit() -> None:
    assert (Mapped(63, 63 + 100).base, Mapped(63, 63 + 100).units) == (56, 14)


def test_the_map_lies_behind_the_first_partition() -> None:
    fresh = parse("model:samsung-870-evo-500")
    found = profile(fresh)
    assert found and isinstance(found.medium, SolidState)
    drive = CellDrive(fresh, found, None, (Partition(2048, 256 * MIB + 1), Partition(2049 + 256 * MIB, 64 * MIB)))
    assert drive.mapped
    table = translation.table_bytes(found, found.medium, drive.mapped)
    first, second = drive.memory_disks
    assert first % DISK_ALIGNMENT == 0 and 0 <= first - (256 << 20) - 4096 - table < DISK_ALIGNMENT
    assert second == 64 << 20
