"""The summary at the end of a run, and sparklines."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from agelab.analysis.cells import RunSet, load
from agelab.present.report.answer.headline import answers
from agelab.present.report.blocks import Column, Table
from agelab.present.view import sparkline
from agelab.present.view.summary import result_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import End, Sample, Status
from agelab.results.run_directory import RunDirectory
from tests.build import run_builder
from tests.build.aging_runs import COPIES, make
from tests.build.cli import Cli

Ended = Callable[[RunDirectory], list[str]]
"""The lines that are printed at the end of a run."""


@pytest.fixture
def ended(capsys: pytest.CaptureFixture[str]) -> Ended:
    def lines(run: RunDirectory) -> list[str]:
        print_blocks(result_blocks(run))
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return lines


def made(home: Path, *words: object, **more: object) -> RunDirectory:
    return RunDirectory(home / "runs" / make(home, *words, **more))  # type: ignore[arg-type]


@pytest.mark.usefixtures("eighty_columns")
def test_the_summary_has_the_worst_first_a_line_for_each_cell_and_says_that_the_seeds_are_too_few(
    tmp_path: Path, ended: Ended
) -> None:
    run = made(
        tmp_path, {"ext4": 1.2, "xfs": 2.4, "reiser4": 1, "reiserfs-journal": 1.2}, seeds=(1, 2),
        statuses={"reiser4": Status.UNSUPPORTED}, unfinished=1,
    )  # fmt: skip
    lines = ended(run)
    wide = [line for line in lines[4:] if len(line) > 80]
    assert wide == ["  agelab run aging --filesystem ext4,xfs,reiser4,reiserfs-journal --seeds 1,2,3,4,5"]
    bars = [line.replace(")", "").split() for line in lines if "━" in line]
    lengths = [(row[0], next(len(word) for word in row if "━" in word)) for row in bars]
    assert lengths == [("xfs", 16), ("ext4", 8), ("reiserfs-journal", 8)]
    assert all(len(row[-2]) == COPIES for row in bars)
    said = " ".join(" ".join(lines).split())
    assert "Not known yet. As measured, the highest slowdown is xfs's: " in said
    assert said.count("cannot exclude chance, four of one corpus can, or three of each of two.") == 1
    assert "faster" not in "".join(lines) and "slower" not in "".join(lines)
    digest = run.end(0)
    assert digest and digest.digest
    assert f" ext4, seed 1             ok          {digest.digest[:19]}" in lines
    assert " reiser4, seed 1          unsupported this kernel has none" in lines
    assert " reiserfs-journal, seed 2 interrupted" in lines
    assert " reiser4, seed 2          unsupported as above" in lines
    assert f"every sample, key and digest: agelab show {run.name}" in lines


@pytest.mark.usefixtures("eighty_columns")
def test_many_cells_fit_a_screen_and_those_that_ended_alike_have_one_line(tmp_path: Path, ended: Ended) -> None:
    reason = "reiser4 is in no kernel of Debian's, and its module does not build against this one either"
    thirteen = {f"xfs-{number}": 1 + number / 5 for number in range(12)} | {"reiser4": 1}
    run = made(tmp_path, thirteen, seeds=(1, 2, 3, 4, 5), statuses={"reiser4": Status.UNSUPPORTED}, reason=reason)
    run.finish(2, End(status=Status.FAILED, reason="step copy exited 1", host_seconds=1))
    run.finish(3, End(status=Status.FAILED, reason="step copy exited 1", host_seconds=1))
    lines = ended(run)
    [command] = [line for line in lines if len(line) > 80]
    assert len(lines) <= 45 and command.startswith("  agelab run ")
    said = " ".join(" ".join(lines).split())
    assert "58 ok xfs-0 (seeds 1,2,5), xfs-1, xfs-2, xfs-3," in said and "xfs-11 2 failed" in said
    assert "2 failed xfs-0 (seeds 3,4): step copy exited 1 5 unsupported reiser4: reiser4 is in no" in said
    assert said.count("is in no kernel") == 1 and "sha256" not in said


@pytest.mark.usefixtures("eighty_columns")
def test_the_answer_says_why_where_there_is_one(tmp_path: Path, ended: Ended) -> None:
    run = made(tmp_path, {"ext4": 1.2, "xfs": 2.4}, seeds=(1, 2, 3, 4, 5))
    [answer] = answers(RunSet((load(run),)))
    said = " ".join(" ".join(ended(run)).split())
    assert f"- {answer.because[0]} - {answer.because[1]} - {answer.because[2]} slowdown of read" in said


@pytest.mark.usefixtures("eighty_columns")
def test_the_summary_has_both_sentences_and_the_command_that_runs_more_corpora(tmp_path: Path, ended: Ended) -> None:
    slowdowns = {"ext4": 1.39, "jfs": 1.41, "xfs": 1.24, "btrfs": 2.17}
    corpora = {"corpora": (1, 2), "on_corpora": {("btrfs", 2): 1.9}}
    lines = ended(made(tmp_path, slowdowns, seeds=(1, 2, 3, 4, 5), **corpora))
    said = " ".join(" ".join(lines).split())
    assert "btrfs, in reading every file. That takes 2.0" in said
    assert "How sure: on both sets of files it is slowed down most: 2.1" in said
    assert said.count("Two corpora do not show that it holds for other files; needs 4 more corpora.") == 1
    [command] = [line for line in lines if "--corpora" in line]
    assert command.endswith("--filesystem ext4,jfs,xfs,btrfs --seeds 1,2,3,4,5 --corpora 1,2,3,4,5,6")


@pytest.mark.usefixtures("eighty_columns")
def test_with_seeds_enough_the_spread_stands_beside_the_median(tmp_path: Path, ended: Ended) -> None:
    lines = ended(made(tmp_path, {"ext4": 1.2, "xfs": 2.4}, seeds=(1, 2, 3, 4, 5)))
    [xfs] = [line for line in lines if line.startswith(" xfs ") and "━" in line]
    assert "(0.0" in xfs
    said = " ".join(" ".join(lines).split())
    assert "in brackets: the spread over the seeds; which differences are chance: agelab compare" in said


def test_elsewhere_digests_are_whole(tmp_path: Path, ended: Ended) -> None:
    run = made(tmp_path, {"ext4": 1.2, "xfs": 2.4})
    end = run.end(1)
    assert end and f" xfs, seed 1  ok     {end.digest}" in ended(run)


def test_a_run_of_one_cell_prints_all_of_it_and_only_show_draws_its_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, ended: Ended
) -> None:
    run = made(tmp_path, {"ext4": 1.2})
    lines = ended(run)
    assert f" copy {COPIES}/{COPIES} " in "\n".join(lines) and "▁" not in "".join(lines)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    shown = [line.rstrip() for line in cli.out("show").splitlines()]
    drawn = [line for line in shown if "▁" in line]
    assert [line.split(":")[0] for line in drawn] == [f"  copy 1-{COPIES}, MB/s", f"  delete 1-{COPIES}, s"]
    assert [line for line in shown if line not in drawn] == lines


@pytest.mark.usefixtures("eighty_columns")
def test_a_run_whose_every_cell_failed_has_no_bars(tmp_path: Path, ended: Ended) -> None:
    failed = dict.fromkeys(("ext4", "xfs"), Status.FAILED)
    lines = ended(made(tmp_path, {"ext4": 1.2, "xfs": 2.4}, statuses=failed))
    assert "Nothing: no cell ended ok." in lines and "━" not in "".join(lines)
    assert " ext4, seed 1 failed this kernel has none" in lines and " xfs, seed 1  failed as above" in lines
    assert sum("this kernel has none" in line for line in lines) == 1


@pytest.mark.usefixtures("eighty_columns")
def test_a_power_cut_has_no_order(tmp_path: Path, ended: Ended) -> None:
    run = made(tmp_path, {"ext4": 1.2, "xfs": 2.4})
    run.append(0, Sample(step="copy", metric="cut_after", value=0.5, unit="s"))
    lines = ended(run)
    assert "━" not in "".join(lines) and "aged worst" not in "".join(lines) and " xfs, seed 1  ok" in "\n".join(lines)


def test_bars_begin_at_zero_and_curves_go_from_the_lowest_to_the_highest() -> None:
    assert sparkline.bar(1, 2, 8, "utf-8") == "━━━━" and sparkline.bar(1.1, 2, 8, "utf-8") == "━━━━╸"
    assert sparkline.bar(2, 2, 8, "ascii") == "########" and sparkline.bar(0, 0, 8, "utf-8") == ""
    assert sparkline.row([1, 2, None, 8], "utf-8") == "▁▂ █" and sparkline.row([1, 8], "iso-8859-1") == "_#"
    assert sparkline.row([3, 3, 3], "utf-8") == "▁▁▁" and sparkline.row([None], "utf-8") == ""


def test_a_table_that_is_too_wide_comes_in_parts_and_loses_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    heads = [Column(" step"), *(Column(f"column {at}", "right") for at in range(12))]
    rows = [(" copy", *(f"{at}.123456" for at in range(12)))]
    print_blocks([Table(heads, rows)], Console(width=80, color_system=None))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and [line[:5] for line in lines] == [
        " step", " copy", "", " step", " copy",
    ]  # fmt: skip
    assert [word for line in lines[1::3] for word in line.split()[1:]] == list(rows[0][1:])
    print_blocks([Table(heads, rows, together=5)], Console(width=80, color_system=None))
    figures = [line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.startswith(" copy")]
    assert list(map(len, figures)) == [5, 7]
    print_blocks([Table(heads, rows)], Console(width=1000, color_system=None))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_only_the_virtual_clock_has_guest_time(tmp_path: Path) -> None:
    for clock, word in (("virtual", "guest"), ("wall", "real")):
        run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]), clock=clock)
        for number in (0, 1):
            run_builder.end(run, number, [run_builder.sample()])
        [answer] = answers(RunSet((load(run),)))
        assert f"together take 1.500 s of {word} time" in answer.verdict
