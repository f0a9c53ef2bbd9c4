"""``agelab replicate`` on a terminal: what it says beside the figures."""

import json
import re
from pathlib import Path

import pytest

from agelab.results.run_directory import RunDirectory
from tests.build.cli import Cli
from tests.build.study_runs import make, printed

pytestmark = pytest.mark.usefixtures("home")


def said(cli: Cli, *words: str) -> str:
    return "\n".join(line.rstrip() for line in cli.out("replicate", *words).split("\n"))


def test_a_run_that_is_going_on_is_called_so(home: Path, cli: Cli) -> None:
    run = RunDirectory(home / "runs" / make(home, "tum-2005", printed("tum-2005")))
    (run.cell_directory(3) / "end.json").unlink()
    missing = "not ended"
    assert f"   left out: jfs, single, seed 1: {missing}\n" in said(cli, "latest")
    with run.lock():
        shown = said(cli, "latest")
    assert "   left out: jfs, single, seed 1: the run is still going on\n" in shown
    assert "could not be tested: jfs, single: the run is still going on\n" in shown
    assert missing not in shown


def test_what_a_filesystem_was_compared_among_is_named(home: Path, cli: Cli) -> None:
    make(home, "piszcz-2006", printed("piszcz-2006"))
    shown = said(cli, "latest")
    assert "     remove-files: xfs below reiser4 " in shown and "     touch: xfs below xfs#I " in shown
    assert "     copy-to-other: xfs below ext3 " in shown and "     find-files: reiser4 highest " in shown
    page = said(cli, "latest", "--markdown")
    assert "reiser4 is slower. `remove-files-xfs-not-last` *Tested: xfs below reiser4.* *Base rate 0.5" in page
    assert "Finding files: reiser4 is the slowest. `find-reiser4-last` *Base rate " in page
    [one] = json.loads(said(cli, "latest", "--json"))["studies"]
    [claim] = [claim for claim in one["claims"] if claim["id"] == "copy-to-other-xfs-before-ext3"]
    assert claim["verdicts"][0]["ours"]["comparisons"][0]["where"] == "copy-to-other: xfs below ext3"


def test_a_step_too_short_for_ticks_has_no_percentage(home: Path, cli: Cli) -> None:
    """The kernel counts in ticks of 10 ms: of 12 ms two of them would be 167 %."""
    long = {"touch": 0.5, "touch cpu_user": 0.1, "touch cpu_system": 0.2}
    short = {"touch": 0.012, "touch cpu_user": 0.01, "touch cpu_system": 0.01}
    make(home, "piszcz-2006", {"ext2": long, "ext3": short, "jfs": {**long, "touch cpu_user": 0.2}})
    [one] = json.loads(said(cli, "latest", "--json"))["studies"]
    [table] = [table for table in one["tables"] if (table["table"], table["metric"]) == ("II", "cpu_percent")]
    [ours] = table["steps"][0]["ours"]
    assert ours["values"]["ext3"]["reason"] == "too short for ticks of 10 ms"
    assert (ours["values"]["ext2"]["value"], ours["variants"]) == (pytest.approx(60, abs=0.001), 2)
    [times] = [table for table in one["tables"] if (table["table"], table["metric"]) == ("II", "elapsed")]
    assert times["steps"][0]["ours"][0]["variants"] == 3


@pytest.mark.parametrize(("seconds", "verdict"), [(0.09, "could not be tested"), (0.11, "replicated")])
def test_a_claim_on_processor_time_takes_half_a_second_in_all(
    home: Path, cli: Cli, seconds: float, verdict: str
) -> None:
    tests = [f"aged/{name}" for name in ("read", "write", "list", "search", "space")]
    values = dict.fromkeys(tests, seconds) | {f"{step} cpu_system": seconds / 3 for step in tests}
    make(home, "aging", {"btrfs": {**values, **{f"{step} cpu_user": 0.0 for step in tests}}})
    [one] = json.loads(said(cli, "latest", "--json"))["studies"]
    [[found]] = [claim["verdicts"] for claim in one["claims"] if claim["id"] == "cpu-system-btrfs"]
    assert found["verdict"] == verdict
    assert (found["reason"] == "too short for ticks of 10 ms") is (seconds < 0.1)


def test_a_variant_of_a_run_is_answered_with_the_run(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"))
    assert cli.err("replicate", "latest:ext3") == (
        "agelab: replicate takes whole runs, not 'latest:ext3'\n  agelab replicate latest\n"
    )


def test_each_study_begins_with_its_counts(home: Path, cli: Cli) -> None:
    names = [make(home, name, printed(name), seeds=5) for name in ("tum-2005", "piszcz-2006")]
    names.append(make(home, "tum-2005", printed("tum-2005"), seeds=5, defaults="today"))
    lines = said(cli, *names).splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith(("A: scale ", "B: scale "))]
    counted = "0 not replicated, 0 not known; not counted: 2 denied by the study itself, 2 uninformative, "
    assert len(heads) == 3 and all(re.fullmatch(r"   \d+ of \d+ replicated; .* tested", lines[at + 1]) for at in heads)
    assert lines[heads[0] + 1] == lines[heads[1] + 1] and counted in lines[heads[0] + 1]
    assert f"B: {lines[heads[0] + 1].strip()}" in lines


def test_a_run_of_one_variant_says_how_to_have_the_rest(home: Path, cli: Cli) -> None:
    ext2 = printed("piszcz-2006")["ext2"]
    make(home, "piszcz-2006", {"ext2": {"touch": ext2["touch"]}})
    shown = said(cli, "latest")
    assert "   1 of 6 variants were run; for the rest: agelab run piszcz-2006\n" in shown
    # Of four tables there is one with a step of ours: the times of part II.
    tables = shown.partition("\nclaims\n")[0]
    assert tables.count("\nThe study's table ") == 1 and "\n touch\n" in tables and "\n mkdir\n" not in tables
    assert "\nleft out, as no run here has a figure of them: 3 tables, 20 steps; --all shows them\n" in shown
    whole = said(cli, "latest", "--all")
    assert whole.partition("\nclaims\n")[0].count("\nThe study's table ") == 4 and "\n mkdir\n" in whole
    assert "left out" not in whole
    page = said(cli, "latest", "--markdown")
    assert "| touch |" in page and "| mkdir |" not in page
    assert "\nLeft out, as no run here has a figure of them: 3 tables, 20 steps.\n" in page
    make(home, "piszcz-2006", {"ext2": ext2, "xfs": ext2}, scale="paper", defaults="today")
    words = "agelab run piszcz-2006 --scale paper --defaults today"
    assert f"   2 of 6 variants were run; for the rest: {words}\n" in said(cli, "latest")


def test_a_run_of_every_variant_has_no_rest(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"))
    shown = said(cli, "latest")
    assert "were run" not in shown and "left out" not in shown
