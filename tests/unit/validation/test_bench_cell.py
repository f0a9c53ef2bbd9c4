"""Whose processor seconds are whose in the bench of a cell, and how two checkouts stand beside each other."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.machine.vm.processor_time import Program, Times
from agelab.store.home import open_store
from bench import cell

HERE = "500:12345"
QEMU = ("/usr/bin/qemu-system-x86_64", "-name", "guest=agelab-1,debug-threads=on", "-serial")
NONE = Times(0, 0)


def guest(pid: int, events: str, seconds: float, *more: str, owner: str = HERE) -> Program:
    words = (*QEMU, f"file:/store/runs/x/cells/3/{events}", *more)
    return Program(pid, 1, 0, Times(seconds, 0), NONE, words, owner)


def test_guests_count_by_phase_and_boot_and_those_of_another_agelab_do_not() -> None:
    programs = [
        guest(10, "events-0.jsonl", 1.5),
        guest(11, "events-1.jsonl", 2.0, "-incoming", "file:/store/saved/state"),
        guest(12, "aged-events-0.jsonl", 4.0),
        guest(13, "aged-events-0.jsonl", 8.0, owner="50:12345"),
        Program(14, 1, 0, Times(0.5, 0), NONE, QEMU[:3], HERE),
    ]
    assert cell.parts(programs, 500) == {
        ("making", ""): 3.5, ("making", "0"): 1.5, ("making", "1"): 2.0, ("aged", ""): 4.0,
        ("aged", "0"): 4.0, ("other guests", ""): 0.5,
    }  # fmt: skip


def test_what_libvirts_daemon_forks_counts_once() -> None:
    daemon = ("libvirtd", "--config", "x")
    programs = [Program(20, 1, 0, Times(1.0, 0.25), NONE, daemon), Program(21, 20, 0, Times(0.25, 0), NONE, daemon)]
    assert cell.parts(programs, 500) == {(cell.LIBVIRT, ""): 1.25}


def test_two_checkouts_stand_side_by_side() -> None:
    ours: cell.Costs = {("all", ""): 10.0, ("making", ""): 6.0, ("making", "0"): 6.0}
    theirs: cell.Costs = {
        ("all", ""): 20.0, ("making", ""): 9.0, ("making", "0"): 4.0, ("making", "1"): 5.0,
        ("control", ""): 11.0, ("control", "0"): 11.0,
    }  # fmt: skip
    slower = {part: seconds + 2 for part, seconds in ours.items()}
    assert cell.rows([[ours, slower, slower], [theirs]]) == [
        ["making", "8.00", "6.00 - 8.00", "9.00", "", "0.89"],
        ["  boot 0", "8.00", "6.00 - 8.00", "4.00", "", "2.00"],
        ["  boot 1", "0.00", "0.00 - 0.00", "5.00", "", "0.00"],
        ["control", "0.00", "0.00 - 0.00", "11.00", "", "0.00"],
        ["all", "12.00", "10.00 - 12.00", "20.00", "", "0.60"],
    ]


def test_what_is_neither_checkout_nor_commit_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match="neither a checkout"), cell.checked_out("no-such", open_store()):
        pass


def test_a_checkout_uses_this_environment_where_that_holds_what_it_wants(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text((cell.PROJECT / "requirements.txt").read_text())
    [program] = cell._program(tmp_path)
    assert program.endswith("/agelab")
    lock.write_text(lock.read_text().replace("rich==", "rich==0."))
    assert not cell._holds(lock)
