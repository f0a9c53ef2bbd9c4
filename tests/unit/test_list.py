"""``agelab list``: what a line says of a run, and that it fits."""

from pathlib import Path

import pytest
from rich.console import Console

from agelab.cli import main, tables
from agelab.cli.tables import ranges
from tests.unit.published_runs import make

TIMES = {"ext4": {"copy": 1.0}, "reiserfs": {"copy": 1.0}}


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["list"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


def test_defaults_are_shown_and_seeds_that_are_not_just_1(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(home, "aging", TIMES)
    head, period = listed(capsys)
    assert "seeds" not in head and period.split()[1:] == [
        "quick",
        "virtual",
        "period",
        "single",
        "model:x",
        "2",
        "ok",
    ]
    make(home, "aging", TIMES, defaults="today", seeds=6)
    head, today, period = listed(capsys)
    assert head.split()[:6] == ["run", "scale", "clock", "defaults", "seeds", "layout"]
    assert today.split()[1:] == ["quick", "virtual", "today", "1-6", "single", "model:x", "12", "ok"]
    assert period.split()[1:] == ["quick", "virtual", "period", "single", "model:x", "2", "ok"]


@pytest.mark.parametrize(
    ("width", "head"),
    [
        (120, "run scale clock defaults layout drives its cells"),
        (90, "run scale clock defaults layout its cells"),
        (80, "run scale clock defaults its cells"),
        (70, "run scale defaults its cells"),
        (50, "run its cells"),
        (30, "run its cells"),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_and_whole_words(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, head: str
) -> None:
    watched = Console(width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(tables, "open_console", lambda: watched)
    drives = ("model:samsung-hd501lj", "model:samsung-hd160hj")
    name = make(home, "fedorchuk-2008", TIMES, layout="raid0", drives=drives, unsupported=("reiserfs",))
    lines = listed(capsys)
    assert lines[0].split() == head.split()
    assert max(map(len, lines)) <= max(width, 50)
    ends = [
        line.split("  ")[-1].strip()
        for line in (line.rstrip() for line in lines[1:])
        if "model" not in line[:60]
    ]
    assert lines[1].split()[0] == name
    assert " ".join(ends[: 1 if width > 50 else 2]) == "1 ok, 1 unsupported"
    assert all(drive in "".join(lines) for drive in drives) is ("drives" in head)


def test_seeds_in_a_row_are_a_range() -> None:
    assert [ranges(one) for one in ([3], [1, 2], [1, 2, 3, 7, 9, 10])] == ["3", "1-2", "1-3,7,9-10"]
