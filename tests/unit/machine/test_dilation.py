"""Dilation: what a guest is told where a second of its clock stands for another time of the machine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import phases
from agelab.scenario.machine import BytePrice, Machine
from harness import dilation
from harness import machine as machines
from harness.dilation import Dilation
from tests.build.cell_builder import CORPUS, spec


def twice_as_fast(cell: CellSpec) -> CellSpec:
    """Instructions that take half as long as the guest's clock says."""
    cycles = cell.machine.instructions_per_cycle
    clock = cell.machine.clock_mhz.model_copy(update={"value": 1000 / cycles.value})
    machine: Machine = cell.machine.model_copy(update={"clock_mhz": clock, "shift": 1})
    return replace(cell, machine=machine)


def made(cell: CellSpec) -> dict[str, Any]:
    return guest_plan(cell, CORPUS, phases(cell.scenario, CORPUS)[0])


@pytest.mark.parametrize(
    ("name", "option"),
    [("aging-ext4", "commit=10"), ("aging-reiserfs", "commit=60"), ("aging-jfs", None), ("aging-xfs", None)],
)
def test_timers_are_longer_on_the_guests_clock_where_the_machine_is_faster(name: str, option: str | None) -> None:
    plan = made(twice_as_fast(spec(name)))
    assert plan["dilation"] == 0.5
    timers = {key: value for key, value in plan["memory"]["sysctl"].items() if "centisecs" in key}
    xfs = {"fs/xfs/xfssyncd_centisecs": "6000"} if name == "aging-xfs" else {}
    assert timers == {"vm/dirty_expire_centisecs": "6000", "vm/dirty_writeback_centisecs": "1000", **xfs}
    mount = plan["disks"][0]["mount"]
    given = mount[mount.index("-o") + 1].split(",") if "-o" in mount else []
    assert [word for word in given if word.startswith("commit=")] == ([option] if option else [])


def test_what_a_byte_costs_is_told_in_instructions_where_a_drive_is_modelled() -> None:
    machine = spec().machine
    price = BytePrice(read=0.5, written=2.0, origin="calibrated")
    machine = machine.model_copy(update={"byte_price": price})
    a_kib = 1024 * machine.instructions_per_cycle.value
    prices = {"read": round(a_kib / 2), "written": round(2 * a_kib)}
    modelled = spec(drives=("model:seagate-st3120026as",))
    assert made(replace(modelled, machine=machine))["copy_prices"] == prices
    assert made(replace(spec(), machine=machine))["copy_prices"] is None
    free = machine.model_copy(update={"byte_price": None})
    assert made(replace(modelled, machine=free))["copy_prices"] is None
    assert made(replace(modelled, machine=machine, clock="wall"))["copy_prices"] is None


@pytest.mark.parametrize("cycles", [-0.1, 100.1, float("nan")])
def test_a_price_below_zero_or_above_100_cycles_is_refused(cycles: float) -> None:
    with pytest.raises(ValidationError, match=r"written\n  Input should be"):
        BytePrice(read=0, written=cycles, origin="estimated")


def test_the_module_is_told_both_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "MODULE", tmp_path)
    machines.price_copies({"read": 0, "written": 5120})
    assert (tmp_path / "read_price").read_text() == "0"
    assert (tmp_path / "written_price").read_text() == "5120"


def test_in_real_time_there_is_none() -> None:
    cell = replace(twice_as_fast(spec()), clock="wall")
    assert cell.dilation == 1 and made(cell)["dilation"] == 1


def test_the_scheduler_takes_the_machines_time(tmp_path: Path) -> None:
    (tmp_path / "iosched").mkdir()
    (tmp_path / "iosched/read_expire").write_text("500\n")
    Dilation(1.0).scale_scheduler(tmp_path)
    assert (tmp_path / "iosched/read_expire").read_text() == "500\n"
    Dilation(0.25).scale_scheduler(tmp_path)
    assert (tmp_path / "iosched/read_expire").read_text() == "2000"


def test_the_module_is_told_in_millionths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dilation, "MODULE", tmp_path / "dilation")
    Dilation(0.992063).tell_module()
    assert (tmp_path / "dilation").read_text() == "992063"
