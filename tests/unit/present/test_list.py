"""``agelab list``: what a line says of a run, and that it fits."""

from pathlib import Path

import pytest
from rich.console import Console

from agelab.base import places
from agelab.present.view import run_tables, terminal
from agelab.present.view.cell_names import beside_docs, list_cells
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import ranges
from tests.build import run_builder
from tests.build.aging_runs import make as made
from tests.build.cli import Cli
from tests.build.study_runs import make

TIMES = {"ext4": {"copy": 1.0}, "reiserfs": {"copy": 1.0}}


def listed(cli: Cli) -> list[str]:
    return cli.out("list").splitlines()


pytestmark = pytest.mark.usefixtures("home")


def test_defaults_are_shown_and_seeds_that_are_not_just_1(home: Path, cli: Cli) -> None:
    make(home, "aging", TIMES)
    head, period = listed(cli)
    assert "seeds" not in head and period.split()[1:] == [
        "quick", "virtual", "period", "single", "model:x", "2", "ok",
    ]  # fmt: skip
    make(home, "aging", TIMES, defaults="today", seeds=6)
    head, today, period = listed(cli)
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
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int, head: str
) -> None:
    watched = Console(width=width, force_terminal=True, color_system=None)
    for module in (run_tables, terminal):
        monkeypatch.setattr(module, "open_console", lambda: watched)
    drives = ("model:samsung-hd501lj", "model:samsung-hd160hj")
    name = make(home, "fedorchuk-2008", TIMES, layout="raid0", drives=drives, unsupported=("reiserfs",))
    lines = listed(cli)
    assert lines[0].split() == head.split()
    assert max(map(len, lines)) <= max(width, 50)
    ends = [line.split("  ")[-1].strip() for line in (line.rstrip() for line in lines[1:]) if "model" not in line[:60]]
    assert lines[1].split()[0] == name
    assert " ".join(ends[: 1 if width > 50 else 2]) == "1 ok, 1 unsupported"
    assert all(drive in "".join(lines) for drive in drives) is ("drives" in head)


def test_seeds_in_a_row_are_a_range() -> None:
    assert [ranges(one) for one in ([3], [1, 2], [1, 2, 3, 7, 9, 10])] == ["3", "1-2", "1-3,7,9-10"]


def test_of_a_run_that_goes_on_cells_run_or_wait_for_their_turn(home: Path, cli: Cli) -> None:
    name = made(home, {"ext4": 1.2, "xfs": 1.4}, seeds=(1, 2), unfinished=3)
    run = RunDirectory(home / "runs" / name)
    assert listed(cli)[1].split("  ")[-1].strip() == "1 ok, 3 interrupted"
    with run.lock():
        run.cell_directory(1)  # begun
        run.finish(3, End(status=Status.INTERRUPTED, reason="the host ended it", host_seconds=1))
        assert listed(cli)[1].split("  ")[-1].strip() == "1 ok, 1 running, 2 waiting"
        shown = cli.out("show")
    assert "\n1 cell running, nothing measured: ext4 (seed 2)\n" in shown
    assert "\n1 cell waiting, nothing measured: xfs (seed 1)\n" in shown
    assert "  status      waiting\n" in shown and "interrupted" not in shown


def test_cells_are_named_by_variant_and_layout_and_by_seed_only_where_some_are_missing() -> None:
    cells = [
        run_builder.cell(variant, seed, layout=layout, defaults="today")
        for variant in ("ext4", "xfs")
        for layout in ("single", "raid0")
        for seed in (1, 2, 3)
    ]
    assert list_cells(cells[:3], cells) == "ext4" and list_cells(cells[6:8], cells) == "xfs (seeds 1,2)"
    assert list_cells(cells[:4], cells) == "ext4; ext4, raid0 (seed 1)"


def test_a_run_says_whether_its_digest_is_that_of_the_docs(
    home: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    run = run_builder.begin(home, run_builder.cells(["ext4"], (1, 2, 3)))
    for number in range(3):
        run_builder.end(run, number, inputs={"seed": number})
    ends = [end for number in range(3) if (end := run.end(number))]
    shown = [(ends[0].inputs_key, ends[0].digest), (ends[1].inputs_key, f"sha256:{0:064}")]
    pages = [home / "checkout/README.md", home / "checkout/docs/howto/page.md"]
    for page, (key, digest) in zip(pages, shown, strict=True):
        page.parent.mkdir(parents=True)
        page.write_text(f"```\n  inputs_key  {key}\n  digest      {digest}\n```\n")
    monkeypatch.setattr(places, "DOCS", home / "checkout/docs")
    assert beside_docs([*ends, None]) == [
        "the digest of the docs: yes",
        f"the digest of the docs: no, that is sha256:{0:064}",
    ]
    assert cli.out("show", run.name).count("the digest of the docs: ") == 2
    monkeypatch.setattr(places, "DOCS", home / "installed/docs")
    assert beside_docs(ends) == []
