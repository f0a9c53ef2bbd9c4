"""Options that nothing honours, and disks that are too small: both are known before the first cell."""

from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import too_small
from agelab.runner.plan.unhonoured import unhonoured
from agelab.runner.prepare import prepare
from tests.build.cell_builder import cells
from tests.build.scenario_builder import chosen

FIO = {"name": "rand", "program": "fio", "job": "mine.fio", "origin": "estimated"}
ALONE = {"name": "a", "program": "fio", "origin": "estimated"}
RUN = {"name": "rm", "run": "rm -rf x", "origin": "estimated"}


def planned(directory: Path, *steps: dict[str, Any], variants: list[dict[str, Any]], **more: Any) -> list[CellSpec]:
    chosen(directory, *steps, variants=variants, **more)
    return cells(str(directory / "ten-lines.toml"))


def ext4(name: str = "ext4", **more: Any) -> dict[str, Any]:
    return {"name": name, "filesystem": "ext4", **more}


def test_a_mount_or_mkfs_option_that_asks_for_discards_is_told_by_variant(tmp_path: Path) -> None:
    variants = [
        ext4(),
        ext4("ext4-discard", mount_options=["discard"]),
        ext4("ext4-made", mkfs_options=["-E", "lazy_itable_init=0,discard"]),
        ext4("ext4-not", mount_options=["nodiscard"]),
        {"name": "btrfs", "filesystem": "btrfs", "mount_options": ["ssd,discard=async"]},
    ]
    found = unhonoured(planned(tmp_path, RUN, variants=variants))
    assert {name: why.split(": ")[:2] for name, why in found.items()} == {
        "ext4-discard": ["discard", "mount option discard"],
        "ext4-made": ["discard", "mkfs option discard"],
        "btrfs": ["discard", "mount option discard"],
    }
    assert "no discard (TRIM) reaches the drive" in found["btrfs"]


def test_a_solid_state_drive_takes_discards(tmp_path: Path) -> None:
    variants = [ext4("ext4-discard", mount_options=["discard"])]
    disk: dict[str, Any] = {
        "mib": {"value": 64, "origin": "estimated"},
        "drives": ["model:samsung-870-evo-500"],
        "partitions": [{"at": "outer", "origin": "estimated"}],
    }
    assert unhonoured(planned(tmp_path, RUN, variants=variants, disk=disk)) == {}


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (FIO, "step rand, mine.fio:2: rw=randtrim"),
        (RUN | {"run": "rm x; fstrim ."}, "step rm, fstrim"),
        (ALONE | {"arguments": "--name=x --rw=trimwrite"}, "step a, --rw=trimwrite"),
        (ALONE | {"arguments": "--name x --rw randtrim"}, "step a, --rw=randtrim"),
        (ALONE | {"arguments": "--name=x --rw=$WAY", "environment": {"WAY": "trim"}}, "step a, --rw=trim"),
    ],
)  # fmt: skip
def test_a_step_that_discards_is_told_too(tmp_path: Path, step: dict[str, Any], place: str) -> None:
    (tmp_path / "mine.fio").write_text("[one]\nrw=randtrim\nsize=1m\n")
    [why] = unhonoured(planned(tmp_path, step, variants=[ext4()])).values()
    assert why.startswith(f"discard: {place}: no discard")


def test_what_discards_nothing_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "mine.fio").write_text("[trim]\nrw=randwrite\nsize=1m\n")
    assert unhonoured(planned(tmp_path, FIO, RUN, variants=[ext4()])) == {}


def test_a_disk_that_is_too_small_for_all_is_an_error_before_the_first_cell(tmp_path: Path) -> None:
    xfs = {"name": "xfs", "filesystem": "xfs"}
    disk = {"mib": {"value": 192, "origin": "estimated"}, "partitions": [{"at": "outer", "origin": "estimated"}]}
    specs = planned(tmp_path, RUN, variants=[ext4(), xfs], disk=disk)
    lines: list[str] = []
    assert [too_small(spec)[:30] for spec in specs] == ["", "xfs needs 300 MiB of disk, xfs"]
    prepare.tell_too_small(specs, lines.append)
    assert lines == [f"{too_small(specs[1])}: such cells are not run"]
    with pytest.raises(InputError, match=r"^xfs needs 300 MiB of disk, xfs has [0-9.]+ MiB$") as caught:
        prepare.tell_too_small(specs[1:], lines.append)
    assert "make the disk larger" in caught.value.hint
