"""``agelab replicate``: runs beside the study that they follow, on a terminal, as JSON, in Markdown."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agelab.analysis.published import study
from agelab.analysis.published.claim_verdict import _counted
from agelab.analysis.published.outcome import ClaimComparison, ClaimOutcome
from tests.build import run_builder
from tests.build.cli import Cli
from tests.build.study_runs import make, printed

TUM = study.read_study("tum-2005")
STEPS = TUM.claims.sums["sum"]


pytestmark = pytest.mark.usefixtures("home")


def verdicts(cli: Cli, *words: str) -> dict[str, list[dict[str, Any]]]:
    """Claim to its verdicts, each with the letter of its side."""
    [one] = cli.json("replicate", *words, "--json")["studies"]
    return {claim["id"]: claim["verdicts"] for claim in one["claims"]}


def test_the_studys_own_times_replicate_every_claim_but_those_against_its_table(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"), seeds=5)
    found = {name: one["verdict"] for name, [one] in verdicts(cli, "latest").items()}
    against = {claim.id for claim in TUM.claims.claims if claim.conflict}
    untestable = {claim.id for claim in TUM.claims.claims if claim.untestable} | {
        "read3-same", "write-quicker-than-create", "recls1-reiserfs-clearly", "create-reiserfs-and-ext3-ahead",
        "delete-reiserfs-by-far",
    }  # fmt: skip
    assert {name for name, verdict in found.items() if verdict == "not replicated"} == against
    assert {name for name, verdict in found.items() if verdict == "could not be tested"} == untestable
    assert len(found) == 22


def test_a_table_shows_both_rankings_and_how_far_they_agree(home: Path, cli: Cli) -> None:
    ours = {name: dict.fromkeys(STEPS, 1.0 + number) for number, name in enumerate(("jfs", "xfs", "reiserfs", "ext3"))}
    ours["jfs"]["write"] = 2.5
    make(home, "tum-2005", ours)
    shown = cli.out("replicate", "latest")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    at = lines.index("write")
    assert lines[at + 1 : at + 5] == [
        "jfs 78.6286 2.5 0.25 1.00 1 1.25 2",  # 8 * 2.5 / 78.6: quick divides every size by 8
        "xfs 87.2465 2 0.18 1.11 2 1.00 1",
        "ext3 88.2535 4 0.36 1.12 3 2.00 4",
        "reiserfs 91.6702 3 0.26 1.17 4 1.50 3",
    ]
    assert "write 0.33 (chance 0.38)" in shown
    assert "A: tau-b of the sums -1.00 (chance 1) (4 variants, 4 steps)" in shown
    assert "Off is 8 x ours / theirs, as if all grew with the size of the data\n" in shown
    assert "write 0 0 4 0.26 1.19 xfs 0.71" in lines
    counts = "2 of 16 cells within 25 %, 0 more within a factor of 2, 14 beyond"
    assert f"- {counts}." in lines and f"table means, single, elapsed: {counts}" in lines
    assert "read3 (in a circle)" in lines
    assert (
        "- Not counted: read3 of ext3, xfs, reiserfs, jfs: in a circle: the size of the tree is what the drive's outer "
        "rate reads in the time of read3." in lines
    )
    assert "A: scale quick, virtual clock, period defaults, kernel 6.1.0-56-amd64, m, model:x, seed 1" in lines
    few = "1 seed cannot exclude chance, four of one corpus can, or three of each of two"
    assert f"{few}: an order of times counts from a lead of 1.05 on" in lines
    assert "A: not replicated: against jfs (few seeds)" in lines
    assert "A: could not be tested: the study prints no figure of its system calls" in lines
    assert any(line.startswith("the study contradicts itself (its table): the overview says so;") for line in lines)
    assert lines[-1].startswith("A: ") and lines[-1].endswith(" 7 could not be tested")


def test_from_four_run_seeds_on_the_rank_test_judges(home: Path, cli: Cli) -> None:
    values = printed("tum-2005")
    values["xfs"]["write"] = values["ext3"]["write"] - 10**-6
    make(home, "tum-2005", values, seeds=5)
    [found] = verdicts(cli, "latest")["write-xfs-and-jfs-ahead"]
    assert (found["verdict"], found["reason"]) == ("not replicated", "against ext3")
    assert found["few_seeds"] is None
    make(home, "tum-2005", values, seeds=3)
    [found] = verdicts(cli, "latest")["write-xfs-and-jfs-ahead"]
    assert (found["verdict"], found["reason"]) == (
        "not known",
        "against ext3: they differ by a factor of 1.000, and with 3 run seeds less than 1.05 says nothing",
    )
    assert found["few_seeds"] == 3


def test_what_is_missing_cannot_be_tested_and_says_why(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"), unsupported=("jfs",))
    found = verdicts(cli, "latest")
    [lost] = found["write-jfs-first"]
    assert (lost["verdict"], lost["reason"]) == (
        "could not be tested",
        "jfs, single: unsupported: this kernel has none",
    )
    [kept] = found["read1-reiserfs-poor"]
    assert kept["verdict"] == "replicated"
    shown = cli.out("replicate", "latest")
    assert "   left out: jfs, single, seed 1: unsupported: this kernel has none\n" in shown
    assert "jfs" in shown and " ? " in shown


def test_layouts_of_one_configuration_are_one_column_and_defaults_two(home: Path, cli: Cli) -> None:
    single = make(home, "fedorchuk-2008", printed("fedorchuk-2008"))
    raid = make(
        home, "fedorchuk-2008", printed("fedorchuk-2008", "raid0"), layout="raid0", drives=("model:x", "model:y")
    )  # fmt: skip
    today = make(home, "fedorchuk-2008", printed("fedorchuk-2008"), defaults="today")
    found = verdicts(cli, single, raid, today)
    letters = [(one["letter"], one["verdict"]) for one in found["raid-never-slower"]]
    assert letters == [("A", "replicated"), ("B", "could not be tested")]
    assert [one["letter"] for one in found["journal-slower"]] == ["A", "B"]
    assert "ext2, raid0 of scenario fedorchuk-2008 is in none of the runs" in found["raid-never-slower"][1]["reason"]
    reasons = {one["reason"] for judged in found.values() for one in judged}
    assert {more for reason in reasons if (more := reason.partition(" (and ")[2])} >= {
        "1 more reason)",
        "5 more reasons)",
    }
    page = cli.out("replicate", today, "--markdown")
    assert "\n### table 1, single, elapsed" in page and "\n### table 1, raid0" not in page
    assert "\nLeft out, as no run here has a figure of them: 1 table.\n" in page
    # The same cells once more, other drives, another kernel: columns of their own.
    again = make(home, "fedorchuk-2008", printed("fedorchuk-2008"))
    other = make(home, "fedorchuk-2008", printed("fedorchuk-2008", "raid0"), layout="raid0", drives=("model:none",))
    old = make(home, "fedorchuk-2008", printed("fedorchuk-2008", "raid0"), layout="raid0", kernel="5.10.0")
    [one] = cli.json("replicate", single, again, other, old, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [[single], [again], [other], [old]]
    # Only what differs in the layout alone is joined to it: not another machine, other defaults, another scale.
    raid_of = printed("fedorchuk-2008", "raid0")
    apart = [
        make(home, "fedorchuk-2008", raid_of, layout="raid0", machine="other"),
        make(home, "fedorchuk-2008", raid_of, layout="raid0", defaults="today"),
        make(home, "fedorchuk-2008", raid_of, layout="raid0", scale="paper"),
    ]
    [one] = cli.json("replicate", single, *apart, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [[single], *([name] for name in apart)]
    # The same run twice is one.
    [one] = cli.json("replicate", single, single, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [[single]]


@pytest.mark.parametrize("name", ["harness", "scenario", "vcpus"])
def test_runs_of_other_inputs_are_columns_of_their_own(home: Path, cli: Cli, name: str) -> None:
    names = [
        make(home, "tum-2005", {variant: printed("tum-2005")[variant]}, provenance={name: variant})
        for variant in ("ext3", "xfs")
    ]
    [found] = cli.json("replicate", *names, "--json")["studies"]
    assert [side["runs"] for side in found["sides"]] == [[one] for one in names]


def test_an_end_of_a_machines_band_is_a_column_of_its_own(home: Path, cli: Cli) -> None:
    names = [
        make(home, "tum-2005", {variant: printed("tum-2005")[variant]}, machine=machine)
        for variant, machine in (("ext3", "m"), ("xfs", "m:low"), ("jfs", "m:high"), ("reiserfs", "m:low"))
    ]
    [one] = cli.json("replicate", *names, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [[names[0]], [names[1], names[3]], [names[2]]]
    assert "2 of 4 variants were run; for the rest: agelab run tum-2005 --machine-band low" in cli.out(
        "replicate", *names
    )


def test_run_seeds_of_several_runs_are_one_column(home: Path, cli: Cli) -> None:
    names = [make(home, "tum-2005", {name: dict.fromkeys(STEPS, 1.0)}) for name in ("ext3", "jfs")]
    [one] = cli.json("replicate", *names, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [names]
    assert list(one["tables"][0]["steps"][0]["ours"][0]["values"]) == ["ext3", "xfs", "reiserfs", "jfs"]
    assert one["tables"][0]["steps"][0]["ours"][0]["variants"] == 2


NO = "could not be tested"


@pytest.mark.parametrize(
    ("claim", "words", "verdict", "reason"),
    [
        ("ext2-avi-behind", {}, NO, "it takes scale paper"),
        ("ext2-avi-behind", {"scale": "paper"}, "replicated", "it is so"),
        ("ext2-tree-first", {"scale": "corpus"}, NO, "scale corpus: the data are not the study's"),
        ("xfs-removal-record", {}, NO, "since Linux 3.3: xfs always delays its log"),
        ("xfs-removal-record", {"kernel": "3.2.0-4-amd64"}, "replicated", "2 of 2 are so"),
        ("split-ext-slow", {"scale": "paper"}, "replicated", "4 of 4 are so"),
        ("split-ext-slow", {"scale": "paper", "defaults": "today"}, NO, "it takes period defaults"),
        ("untar-reiserfs-led", {}, NO, "it compares with part I"),
    ],
)
def test_scale_defaults_and_kernel_that_a_claim_takes(
    home: Path, cli: Cli, claim: str, words: dict[str, Any], verdict: str, reason: str
) -> None:
    [scenario] = [one.name for one in study.all_studies() for known in one.claims.claims if known.id == claim]
    make(home, scenario, printed(scenario), **words)
    [found] = verdicts(cli, "latest")[claim]
    assert found["verdict"] == verdict and found["reason"].startswith(reason)


def test_figures_are_shown_even_where_nothing_can_be_tested(home: Path, cli: Cli) -> None:
    make(home, "fedorchuk-2008", printed("fedorchuk-2008"))
    [found] = verdicts(cli, "latest")["xfs-tree-order-of-magnitude"]
    assert [one["holds"] for one in found["ours"]["comparisons"]] == [True] * 7
    assert found["ours"]["comparisons"][0]["figure"] == pytest.approx(1013 / 88, abs=0.001)


def test_other_filesystems_stand_in_and_are_called_so(home: Path, cli: Cli) -> None:
    rows = printed("fedorchuk-2005")
    ours = {f"{name}-{variant.partition('-')[2]}": steps for name in ("ext3", "ufs") for variant, steps in rows.items()}
    make(home, "fedorchuk-2005", ours)
    found = verdicts(cli, "latest")["slow-drive-last"]
    assert [(one["filesystem"], one["stand_in"], one["verdict"]) for one in found] == [
        ("ufs2, ufs", False, "could not be tested"),
        ("ext3", True, "replicated"),
        ("ufs", True, "replicated"),
    ]
    assert found[0]["reason"].startswith("it is UFS2 with SoftUpdates under FreeBSD")
    shown = cli.out("replicate", "latest")
    assert "   A ufs2, ufs: could not be tested: it is UFS2" in shown
    so = "replicated: 5 of 5 are so; 1 left out, in a circle (few seeds)"
    assert f"   A ext3 (stands in), A ufs (stands in): {so}\n" in shown
    page = cli.out("replicate", "latest", "--markdown")
    assert "\n  - **A ext3 (stands in), A ufs (stands in): could not be tested**: " in page
    assert "For the study's own filesystem (ufs2, ufs) no claim could be tested: it is UFS2" in page


def test_processor_time_is_a_percentage_of_the_steps_time(home: Path, cli: Cli) -> None:
    steps = {"touch": 10.0, "touch cpu_user": 2.0, "touch cpu_system": 5.5}
    make(home, "piszcz-2006", {"ext2": steps, "jfs": {**steps, "touch cpu_system": 1.0}})
    [one] = cli.json("replicate", "latest", "--json")["studies"]
    [table] = [t for t in one["tables"] if (t["table"], t["metric"]) == ("II", "cpu_percent")]
    values = table["steps"][0]["ours"][0]["values"]
    assert values["ext2"]["value"] == pytest.approx(75, abs=0.001)
    assert values["jfs"]["value"] == pytest.approx(30, abs=0.001)


def aging(**each: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Variants with their first and last copy, and the tests' times, all the same."""
    tests = {f"aged/{name}": 1.0 for name in ("read", "write", "list", "search", "space")}
    return {name: {**tests, "aged/write": last} for name, (_, last) in each.items()}


def test_lost_charts_are_read_both_ways_and_repetitions_are_the_tables(home: Path, cli: Cli) -> None:
    copies = {"btrfs": (1.0, 1.23), "ext3": (1.5, 1.6), "jfs": (1.6, 1.84), "xfs": (2.0, 2.1)}
    run = run_builder.begin(home, run_builder.cells(copies))
    for number, (first, last) in enumerate(copies.values()):
        took = enumerate((first, (first + last) / 2, last), start=1)
        measured = [run_builder.sample("copy", value, repetition=turn) for turn, value in took]
        run_builder.end(run, number, [*measured, run_builder.sample("fill", 0.86, "fullness")])
    found = {name: one["verdict"] for name, [one] in verdicts(cli, "latest").items()}
    assert (found["start-ext3"], found["end-ext3"]) == ("replicated", "replicated")
    assert (found["start-jfs"], found["kept-jfs"]) == ("replicated", "replicated")
    assert found["kept-btrfs-and-xfs"] == "not replicated"  # xfs keeps its speed here
    assert found["full-btrfs"] == "replicated"
    assert found["space-ext3"] == found["tests-jfs"] == "could not be tested"
    shown = cli.out("replicate", "latest")
    assert "1.36-1.5625" in shown and "table start, single, elapsed (times the other)" in shown
    assert "no figures to compare with: a lost chart" in shown


def test_runs_of_the_space_scenario_belong_to_the_aging_study(home: Path, cli: Cli) -> None:
    space = make(home, "space", {"ext3": {"count space_used": 112.0}, "xfs": {"count space_used": 100.0}})
    [one] = verdicts(cli, space)["space-ext3"]
    assert one["verdict"] == "replicated"
    old = make(home, "aging", {"btrfs": {"fill fullness": 0.86}})
    found = verdicts(cli, old, space)
    assert [one["verdict"] for one in (*found["space-ext3"], *found["full-btrfs"])] == ["replicated"] * 2


def test_a_scenario_of_one_seed_beside_one_of_five_says_which_claims_lack_seeds(home: Path, cli: Cli) -> None:
    counted = {"ext3": {"count space_used": 112.0}, "xfs": {"count space_used": 100.0}, "reiser4": {}}
    space = make(home, "space", counted, unsupported=("reiser4",))
    filled: dict[str, dict[str, float]] = {"btrfs": {"fill fullness": 0.86}, "reiser4": {}}
    old = make(home, "aging", filled, seeds=5, unsupported=("reiser4",))
    shown = " ".join(cli.out("replicate", old, space).split())
    assert "left out: reiser4, single, seeds 1,2,3,4,5: unsupported" in shown
    assert "claims marked (few seeds): 1 seed cannot exclude chance" in shown
    assert "claims marked" not in cli.out("replicate", space)


def test_studies_follow_one_another(home: Path, cli: Cli) -> None:
    names = [make(home, name, printed(name)) for name in ("tum-2005", "piszcz-2006")]
    found = cli.json("replicate", *names, "--json")
    assert (found["schema"], [one["study"] for one in found["studies"]]) == (1, ["tum-2005", "piszcz-2006"])


def test_markdown_has_the_ratios_side_by_side(home: Path, cli: Cli) -> None:
    ours = printed("tum-2005")
    twice = {step: 2 * value - 10**-6 for step, value in ours["jfs"].items()}
    make(home, "tum-2005", {**ours, "jfs": twice}, scale="paper")
    page = cli.out("replicate", "latest", "--markdown")
    head = "| step |  | ext3 | xfs | reiserfs | jfs | tau-b | 25 % | x 2 | beyond | step's | own |"
    assert f"\n{head}\n" in page
    assert (
        "\n| recls2 | theirs | 41.4939 | 67.5777 | 25.279 | 80.6649 |  |  |  |  |  |  |\n"
        "|  | A | 41.4939 (1.00) | 67.5777 (1.00) | 25.279 (1.00) | 161.33 (2.00) | 1.00 (chance 0.042), 4 | "
        "3 | 1 | 0 | 1.00 | 1.00 |\n" in page
    )
    assert "\n| read3 (in a circle) | theirs | 39.4209 | " in page
    assert "| in all | A |  |  |  |  | 1.00 (chance 0.042), 4 steps | 12 | 4 | 0 | 1.00 | 1.00 |" in page
    assert "\n- A, behind each value in brackets: ours / theirs\n" in page
    rate = TUM.rates["write-jfs-first"][0]
    assert (
        f"\n- write: jfs is fastest. `write-jfs-first` *Base rate {rate:.2f}.*\n  - theirs: 1.11\n"
        "  - **A: not replicated**: 0.55 (against xfs (few seeds))\n" in page
    )


def test_few_comparisons_are_shown_unless_all_are_asked_for(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"))
    assert "     and 2 more; --all shows them\n" in cli.out("replicate", "latest")
    values = printed("piszcz-2006")
    for step in ("copy-tree", "cat-1g"):
        values["ext3"][step] *= 2  # in remove-tree the study itself has a difference
    make(home, "piszcz-2006", values)
    few = cli.out("replicate", "latest").partition("ext2-and-ext3-same")[2].partition("more; --all")[0]
    assert len(re.findall(r" no *\n", few)) == 3
    assert few.index("cat-1g: ext3 / ext2") < few.index("touch: ext3 / ext2")
    shown = cli.out("replicate", "latest", "--all")
    assert "--all shows them" not in shown and "mkdir: ext3 / ext2" in shown


def test_an_emulated_wall_clock_is_called_so(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"), clock="wall")
    assert "wall clock, EMULATED" in cli.out("replicate", "latest")


def test_a_run_without_a_study_is_wrong_input(home: Path, cli: Cli) -> None:
    make(home, "capacity", {"ext3": {"fill": 1.0}})
    complaint = cli.err("replicate", "latest")
    assert "no published data for scenario 'capacity'" in complaint and "tum-2005" in complaint
    assert "no run 'lates'" in cli.err("replicate", "lates")
    cli.run("replicate", code=2)
    assert "--json and --markdown: one of them" in cli.err("replicate", "latest", "--json", "--markdown")


def test_comparisons_that_could_not_be_made_are_not_counted_as_false() -> None:
    made, not_made = ClaimComparison("a", Fraction(1), False), ClaimComparison("b", None, None, "not ended")
    found = _counted(ClaimOutcome("every", (made, not_made, not_made)))
    assert found == "0 of 1 are so; 2 could not be compared"
