"""``agelab compare``: inputs by name, equal inputs with equal samples, ratios with their verdicts."""

import gzip
import hashlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from agelab.analysis import cell_diff
from agelab.cli import main
from agelab.present.view.ratio_table import HEADLINES
from agelab.results import run_directory, run_lookup
from agelab.results.key_and_digest import digest
from agelab.results.result import End, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS
from tests.build import run_builder
from tests.build.cli import Cli
from tests.build.compared_runs import ONE, Values, make, seeds

pytestmark = pytest.mark.usefixtures("home")


FEW = "so few cannot exclude chance, four of one corpus can, or three of each of two"


def test_a_variant_whose_option_was_not_honoured_is_marked_and_not_judged(home: Path, cli: Cli) -> None:
    why = "discard: mount option discard: no discard reaches a modelled drive"
    run = make(home, {"ext4": ONE, "ext4-discard": ONE}, plan={"unhonoured": {"ext4-discard": why}})
    text = " ".join(cli.out("compare", f"{run}:ext4", f"{run}:ext4-discard").split())
    assert "ext4-discard, single (without discard)" in text
    assert "copy 1.20 1.20 1.00 0.79 1.27 not known" in text and why in text
    assert "no difference found" not in text
    cli.run("report", run, "-o", home / "page.html")
    page = (home / "page.html").read_text()
    assert "ext4-discard (without discard)" in page and why in page and "The next is ext4-discard" not in page
    assert f"ext4-discard ran without {why}" in " ".join(cli.out("show", run).split())


@pytest.mark.parametrize(
    ("other", "row"),
    [
        (seeds(2.0, 2.1, 2.2, 2.3, 2.4), "copy 1.20 2.20 1.83 1.54 2.20 B slower"),
        (seeds(0.1, 0.2, 0.3, 0.4, 0.5), "copy 1.20 0.30 0.25 0.08 0.42 B faster"),
        (seeds(1.4, 1.5, 1.6, 1.7, 1.8), "copy 1.20 1.60 1.33 1.08 1.64 B slower"),
        (seeds(1.0, 2.0, 2.0, 2.0, 2.0), "copy 1.2 2.0 1.54 0.83 2.00 not known, +8"),
        (seeds(1.2, 1.2, 1.2, 1.2, 1.2), "copy 1.20 1.20 1.00 0.86 1.20 not known, +55"),
        (ONE, "copy 1.20 1.20 1.000 equal"),
        (seeds(9.0, 9.0, 9.0, 9.0), "copy 1.20 9.00 7.50 6.43 9.00 B slower"),
        (seeds(9.0, 9.0, None, None, None), "copy 1.20 9.00 7.500 not known, few"),
        (seeds(9.0, 9.0), "copy 1.20 9.00 7.500 not known, few"),
        (seeds(None, None, None, None, None), "copy 1.20 ? B not measured"),
    ],
)
def test_a_row_has_both_medians_their_ratio_and_a_verdict(home: Path, cli: Cli, other: Values, row: str) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": other}, inputs={"kernel": "new"})
    shown = cli.out("compare", a, b)
    assert row in [" ".join(line.split()) for line in shown.splitlines()]
    short = " ".join(shown.split())
    assert (FEW in short) is row.endswith("few")
    assert ("to be known with 80 %" in short) is ("+" in row)
    assert "input kernel: nothing | new" in shown


@pytest.mark.parametrize(
    ("other", "percent", "code", "line"),
    [
        (seeds(2.0, 2.1, 2.2, 2.3, 2.4), "5", 1, "slower: copy: 1.83 times (1.54 to 2.20)"),
        (seeds(2.0, 2.1, 2.2, 2.3, 2.4), "90", 0, ""),
        (seeds(0.1, 0.2, 0.3, 0.4, 0.5), "5", 0, ""),
        (seeds(1.0, 2.0, 2.0, 2.0, 2.0), "5", 0, ""),
        (ONE, "0", 0, ""),
        (seeds(9.0, 9.0), "5", 1, "too few seeds to judge the steps' times, so the gate lets nothing pass"),
        (seeds(None, None, None, None, None), "5", 1, "too few seeds to judge"),
    ],
)
def test_a_gate_stops_what_is_slower_by_more_than_chance_and_its_margin(
    home: Path, cli: Cli, other: Values, percent: str, code: int, line: str
) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": other}, inputs={"kernel": {"release": "new"}})
    said = cli.err("compare", a, b, "--gate", percent, code=code)
    assert line in said and ("slower" in said) == line.startswith("slower")


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (seeds(2.0, 2.1, 2.2, 2.3, 2.4), "failure"),
        (ONE, None),
        (seeds(9.0, 9.0), "error"),
        (seeds(None, None, None, None, None), "skipped"),
    ],
)
def test_a_gate_writes_a_case_for_each_step(home: Path, tmp_path: Path, other: Values, kind: str | None) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": other}, inputs={"kernel": {"release": "new"}})
    file = tmp_path / "gate.xml"
    assert main(["compare", a, b, "--gate", "5", "--junit", str(file)]) == (kind is not None)
    [suite] = ElementTree.parse(file).getroot()
    [case] = suite
    assert case.get("name") == "copy" and [one.tag for one in case] == ([kind] if kind else [])
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    wanted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert counts == {"tests": "1", **{name: str(int(kind == one)) for name, one in wanted.items()}}
    assert main(["compare", a, b, "--junit", str(file)]) == 2


def test_markdown_has_a_row_for_each_step(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, inputs={"kernel": {"release": "new"}})
    shown = cli.out("compare", a, b, "--markdown").splitlines()
    assert shown[0] == "## ext4, single: A and B"
    assert "| copy | elapsed, s | 1.20 | 2.20 | 1.83 | 1.54 | 2.20 | B slower |" in shown
    assert {line.count("|") - line.count("\\|") for line in shown if line.startswith("|")} == {9}


def test_markdown_escapes_whatever_a_run_names(home: Path, cli: Cli) -> None:
    runs = [make(home, {"ext4": ONE}, cell={"kernel": f"6.{minor}|<b>`x`"}) for minor in (1, 2)]
    shown = cli.out("compare", *runs, "--markdown")
    assert "6.1\\|\\<b\\>\\`x\\`" in shown and "<b>" not in shown.replace("\\<b", "")


def test_how_much_of_all_differs_is_said(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, inputs={"kernel": "new"})
    shown = cli.out("compare", a, b)
    assert "1 of all 2 results differ (--all shows each): p <= 0.05 in a rank test" in shown
    assert "corrected for the comparisons of the metric; 1 is the same, within 5 %" in shown
    assert "not known:" not in shown and "outlier" not in shown
    assert "seeks" not in shown
    assert "seeks" in cli.out("compare", a, b, "--all")


def test_one_difference_among_seven_comparisons_is_not_known_yet_and_says_how_many_seeds_it_needs(
    home: Path, cli: Cli
) -> None:
    """Seven steps of which one differs: p is 7 * 2/252, and six seeds on each side give 7 * 2/924."""
    same = {f"step{n}": ONE for n in range(6)}
    a = make(home, {"ext4": ONE}, more=same)
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, inputs={"kernel": "new"}, more=same)
    shown = cli.out("compare", a, b)
    assert "copy 1.20 2.20 1.83 1.54 2.20 not known, +4" in [" ".join(line.split()) for line in shown.splitlines()]
    shown = " ".join(shown.split())
    assert (
        "not known, +4: needs about 4 more seeds on each side, if the spread stays what it is, to be known with 80 %"
        in shown
    )
    assert "0 of all" in shown and "slower" not in shown


def test_a_table_says_once_which_files_it_is_about_and_how_to_settle_what_is_open(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = {"directory": "/tmp", "name": "small.toml", "options": {}}
    a, b = (make(home, {"ext4": of}, inputs={"kernel": name}, plan={"command": command})
            for of, name in ((ONE, "old"), (SLOW, "new")))  # fmt: skip
    monkeypatch.setattr("sys.argv", ["/elsewhere/.venv/bin/agelab"])
    shown = cli.out("compare", a, b)
    assert "every verdict is about this one set of files: one corpus does not show that it holds for other" in shown
    [line] = [line.strip() for line in shown.splitlines() if "--corpora" in line]
    assert line == "/elsewhere/.venv/bin/agelab run small.toml --seeds 1,2,3,4,5 --corpora 1,2,3,4,5,6"
    a, b = (make(home, {"ext4": seeds(of), "xfs": seeds(of)}, inputs={"kernel": name}, plan={"command": command})
            for of, name in ((1.0, "old"), (2.0, "new")))  # fmt: skip
    shown = cli.out("compare", a, b, "--all")
    assert "one set of files" not in shown
    [line] = [line.strip() for line in shown.splitlines() if "--seeds" in line]
    assert line == "/elsewhere/.venv/bin/agelab run small.toml --seeds 1,2,3,4,5"


def test_which_seeds_are_missing_and_why_is_said(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": seeds(9.0, None, 9.0, None, None)}, inputs={"kernel": "new"})
    said_of_rows = f"not known, of copy elapsed: B has seeds 1,3: {FEW}; seeds 2,4,5: no way to know"
    assert said_of_rows in " ".join(cli.out("compare", a, b).split())
    b = make(home, {"ext4": seeds(*[None] * 5)}, inputs={"kernel": "new"})
    assert "  not measured: B, copy elapsed: seeds 1,2,3,4,5: no way to know\n" in cli.out("compare", a, b)
    names = {"ext4": ONE, "xfs": seeds(1.0, 1.1), "jfs": seeds(1.0, 1.1, 1.2)}
    make(home, names)
    shown = cli.out("compare", "latest")
    assert f"not known: xfs has seeds 1,2: {FEW}" in " ".join(shown.split())


def test_a_table_ends_with_what_it_comes_to(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, more={"mkfs": ONE, "fill": SLOW})
    b = make(home, {"ext4": SLOW}, more={"mkfs": ONE, "fill": ONE}, inputs={"kernel": "new"})
    for run, value in ((a, 0.2), (b, 0.9)):
        there = run_lookup.find(home / "runs", run)
        for number in range(5):
            for metric in ("slowdown", "layout_score", "extents"):
                known = value if metric != "extents" else 3
                there.append(number, Sample(step="read", metric=metric, value=known + number / 100, unit="1"))
            end = there.end(number)
            assert end is not None
            again = {"digest": digest(end.status, there.samples()[number], {})}
            there.finish(number, end.model_copy(update=again))
    shown = lines(cli.out("compare", a, b))
    at = shown.index("in short, B is slower faster worse better the same not known most")
    assert shown[at + 1 :] == [
        "elapsed 1 1 0 0 1 0 copy 1.83",
        "slowdown 0 0 1 0 0 0 read 4.18",
        "layout_score 0 0 0 1 0 0 read 4.18",
        "no difference found: extents",
    ]
    assert [line.endswith("B worse") for line in shown if line.startswith("read 0.22")] == [True, False]
    shown = lines(cli.out("compare", a, b, b))
    at = shown.index("in short slower faster worse better the same not known most of elapsed")
    assert shown[at + 1 : at + 3] == ["B 1 1 1 1 2 0 copy 1.83", "C 1 1 1 1 2 0 copy 1.83"]
    same = make(home, {"ext4": ONE}, inputs={"kernel": "newer"}, more={"mkfs": ONE, "fill": SLOW})
    assert lines(cli.out("compare", same, same))[-1] == "no difference found: elapsed"


def test_a_ratio_that_is_called_a_difference_is_not_shown_as_one(home: Path, cli: Cli) -> None:
    base = seeds(100.00001, 100.00002, 100.00003, 100.00004, 100.00005)
    a = make(home, {"ext4": base})
    b = make(home, {"ext4": {n: (v or 0) + 0.001 for n, v in base.items()}}, inputs={"kernel": "new"})
    shown = cli.out("compare", a, b)
    assert "copy 100.000030 100.001030 1.00001 1.00001 1.00001 B slower" in lines(shown)
    assert "copy 1.00001" in lines(shown)[-1]


def test_outliers_are_named_and_counted(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": {**ONE, 4: 77.0}}, inputs={"kernel": "new"})
    shown = cli.out("compare", a, b)
    assert "  outlier, counted: B, seed 4: copy elapsed 77 s\n" in shown
    [row, _] = cli.json("compare", a, b, "--json")["pairs"][0]["rows"]
    assert (row["left"]["outliers"], row["right"]["outliers"]) == ({}, {"4": 77})
    assert row["right"]["spread"] == 76


def test_a_repeated_step_is_one_line_its_mean_and_all_shows_each(home: Path, cli: Cli) -> None:
    again: Values = {seed: (value or 0) + 1 for seed, value in ONE.items()}
    a = make(home, {"ext4": ONE}, again=again)
    b = make(home, {"ext4": ONE}, again=again, inputs={"kernel": "new"})
    shown = [line.split() for line in cli.out("compare", a, b).splitlines()]
    assert [line[:3] for line in shown if line[:1] == ["copy,"]] == [["copy,", "mean", "of"]]
    assert not [line for line in shown if line[:2] == ["copy", "1/2"]]
    shown = [line.split() for line in cli.out("compare", a, b, "--all").splitlines()]
    assert [line[:3] for line in shown if line[:1] == ["copy"] and "/2" in line[1]] == [
        ["copy", "1/2", "1.20"],
        ["copy", "2/2", "2.20"],
    ]
    [pair] = cli.json("compare", a, b, "--json", "--all")["pairs"]
    assert [(row["repetition"], row["left"]["median"]) for row in pair["rows"][:1]] == [(0, 1.7)]
    assert [(row["repetition"], row["left"]["median"]) for row in pair["repetitions"]] == [(1, 1.2), (2, 2.2)]


def test_two_variants_of_one_run(home: Path, cli: Cli) -> None:
    both = make(home, {"ext4": ONE, "xfs": seeds(2.0, 2.1, 2.2, 2.3, 2.4)})
    shown = cli.out("compare", "latest:ext4", f"{both}:xfs")
    assert "\next4, single | xfs, single: seeds 1,2,3,4,5 | seeds 1,2,3,4,5\n" in shown
    assert "  filesystem: ext4 | xfs\n  input plan.mkfs: ext4 | xfs\n" in shown
    assert "B slower" in shown and "EQUAL INPUTS" not in shown
    # Named on one side it is meant on both; unnamed, every variant is compared with itself.
    assert cli.out("compare", both, "latest:xfs").count("equal inputs, equal samples") == 1
    assert cli.out("compare", both, both).count("equal inputs, equal samples: seeds 1,2,3,4,5") == 2


def test_a_variant_that_is_not_there_is_named(home: Path, cli: Cli) -> None:
    make(home, {"ext4": ONE})
    assert "has no variant or layout 'ext3'; it has ext4, single\n" in cli.err("compare", "latest:ext3", "latest")
    assert "'latest:' names no variant" in cli.err("compare", "latest:", "latest")


@pytest.mark.parametrize("others", [[], ["latest"]])
def test_a_run_without_cells_is_refused(home: Path, cli: Cli, others: list[str]) -> None:
    name = run_builder.begin(home, ()).name
    assert f"{name} has no cells: there is nothing to compare" in cli.err("compare", name, *others)


def test_runs_without_a_common_variant(home: Path, cli: Cli) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"xfs": ONE})
    err = cli.err("compare", a, b)
    assert f"share no variant: {a}: ext4, single; {b}: xfs, single" in err
    assert "agelab compare RUN:ext4 RUN:xfs" in err
    assert "B" in cli.out("compare", f"{a}:ext4", f"{b}:xfs")


def test_layouts_of_one_variant_are_compared_and_named(home: Path, cli: Cli) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"ext4": ONE}, layout="raid0", inputs={"layout": "raid0"})
    shown = cli.out("compare", a, b)
    assert "ext4, single | ext4, raid0" in shown and "  layout: single | raid0\n" in shown
    assert "different inputs, equal samples" in shown


def test_equal_inputs_and_different_samples_are_loud(home: Path, cli: Cli) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"ext4": {**ONE, 3: 1.25}})
    shown = cli.out("compare", a, b, code=1)
    assert "  equal inputs, equal samples: seeds 1,2\n" in shown
    assert "  EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise" in shown
    assert "please report it: seed 3\n  sample copy 1 elapsed: 1.2 | 1.25\n" in shown
    assert "  digest: sha256:" in shown
    found = cli.json("compare", a, b, "--json", code=1)
    assert [cell["promise_broken"] for cell in found["pairs"][0]["cells"]] == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_another_digest_alone_breaks_the_promise(home: Path, cli: Cli) -> None:
    """The digest covers the files that came back beside the samples."""
    a, b = make(home, {"ext4": seeds(1.5)}), make(home, {"ext4": seeds(1.5)})
    run = run_lookup.find(home / "runs", b)
    back = {"aged/extents": hashlib.sha256(b"").hexdigest()}
    extents = run.cell_directory(0) / run_directory.map_file("aged/extents")
    extents.parent.mkdir(parents=True)
    extents.write_bytes(gzip.compress(b""))
    other = digest(Status.OK, run.samples()[0], back)
    run.finish(0, End(status=Status.OK, digest=other, maps=back, host_seconds=1))
    assert "EQUAL INPUTS AND DIFFERENT SAMPLES" in cli.out("compare", a, b, code=1)


def test_what_is_not_ok_is_left_out_and_named(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": {**ONE, 3: None, 4: 99.0, 5: 99.0}}, inputs={"x": 1}, ends={4: Status.HUNG, 5: None})
    shown = cli.out("compare", a, b)
    assert "  left out of the table: B, seed 4: it stopped\n" in shown
    assert "  left out of the table: B, seed 5: not ended\n" in shown
    assert f"  not finished: {b}: seed 5\n" in shown
    few = f"not known, of copy elapsed: B has seeds 1,2: {FEW}; seed 3: no way to know"
    assert few in " ".join(shown.split())


def test_real_time_is_compared_by_the_same_rule_and_breaks_no_promise(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, clock="wall")
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, clock="wall")
    shown = cli.out("compare", a, b)
    assert "wall clock; real time, each seed one repetition of it" in shown
    assert "equal inputs; real time is not the same twice" in shown
    assert "B slower" in shown and "EQUAL INPUTS" not in shown


def test_inputs_are_one_line_each_until_every_place_is_asked_for(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, inputs={"qemu": {"command": ["-m", "768"], "version": 7, "clock": 1}})
    b = make(home, {"ext4": ONE}, inputs={"qemu": {"command": ["-m", "768", "-x"], "version": 8, "clock": 2}})
    shown = cli.out("compare", a, b)
    assert "  input qemu: 3 places (qemu.clock, qemu.command, ...)\n  (--inputs" in shown
    shown = cli.out("compare", a, b, "--inputs")
    assert "  input qemu.version: 7 | 8\n" in shown
    assert "  input qemu.command: only A: nothing | only B: -x\n" in shown


def test_values_that_python_calls_equal_are_other_inputs() -> None:
    """Their key is the hash of what is written: 1 is not true, and not 1.0."""
    assert [one.place for one in cell_diff.diff_inputs({"a": 1, "b": 1, "c": 0}, {"a": True, "b": 1.0, "c": 0})] == [
        "a",
        "b",
    ]


def test_of_two_lists_the_words_that_went_and_came() -> None:
    one, other = ["-m", "768", "-smp", "1", "-cpu", "a"], ["-m", "512", "-smp", "1", "-cpu", "a", "-s"]
    [found] = cell_diff.diff_inputs({"command": one}, {"command": other})
    assert found.list_changes == (["768"], ["512", "-s"])
    [found] = cell_diff.diff_inputs({"steps": [{"a": 1}]}, {"steps": [{"a": 1}, {"b": [2]}]})
    assert found.list_changes == ([], [{"b": [2]}])
    assert cell_diff.ValueDifference("kernel", "a", "b").list_changes is None
    assert cell_diff.ValueDifference("drives", None, [1]).list_changes is None


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("qemu.command[12]", "qemu"),
        ("ratios[0].name", "ratios"),
        ("image", "image"),
        ("making.plan.steps[3].run", "making.plan"),
        ("making.drives[0].bytes", "making.drives"),
        ("measuring", "measuring"),
    ],
)
def test_the_input_that_a_place_is_in(place: str, name: str) -> None:
    assert cell_diff.ValueDifference(place, 1, 2).name == name


def test_the_headlines_are_metrics_that_there_are() -> None:
    assert set(HEADLINES) <= set(METRICS)


def test_programs_get_exact_numbers(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": seeds(0.1, 0.2, 0.3, 0.4, 0.5)})
    b = make(home, {"ext4": seeds(1.1, 1.1, 1.1, 1.1, 1.3)}, inputs={"kernel": "new"})
    found = cli.json("compare", a, b, "--json")
    [pair] = found["pairs"]
    assert (found["schema"], pair["left"]["run"], pair["right"]["run"]) == (4, a, b)
    assert pair["labels"] == [] and pair["repetitions"] is None
    assert pair["left"]["variant"] == "ext4"
    assert [cell["seed"] for cell in pair["left"]["cells"]] == [1, 2, 3, 4, 5]
    assert pair["cells"][0]["inputs"] == [{"place": "kernel", "left": None, "right": "new"}]
    assert pair["rows"][0] == {
        "step": "copy",
        "repetition": 1,
        "metric": "elapsed",
        "unit": "s",
        "left": {
            "n": 5, "median": 0.3, "low": 0.1, "high": 0.5, "coverage": 0.9375, "spread": 0.4,
            "mean": 0.3, "outliers": {}, "spread_of": None,
        },
        "right": {
            "n": 5, "median": 1.1, "low": 1.1, "high": 1.3, "coverage": 0.9375, "spread": 0.2,
            "mean": 1.14, "outliers": {"5": 1.3}, "spread_of": None,
        },
        "difference": 0.8,
        "difference_relative": pytest.approx(8 / 3),
        "ratio": pytest.approx(11 / 3),
        "ratio_interval": pytest.approx([2.2, 11]),
        "shift": pytest.approx(11 / 3),
        "shift_interval": pytest.approx([2.2, 11]),
        "corpora": [
            {"corpus_seed": 1, "shift": pytest.approx(11 / 3), "interval": pytest.approx([2.2, 11])}
        ],
        "depends_on_data": False,
        "cliffs_delta": 1,
        "p": pytest.approx(2 / 252),
        "p_corrected": pytest.approx(2 / 252),
        "comparisons": 1,
        "host_floor": None,
        "margin": 0.05,
        "verdict": "higher",
        "general": None,
        "word": "slower",
        "better": "left",
        "reason": None,
        "more_seeds": None,
    }  # fmt: skip


def test_programs_get_each_repetition_and_sample_when_they_ask_for_all(home: Path, cli: Cli) -> None:
    """A run of sixty-five cells had 25 MB of them."""
    a = make(home, {"ext4": ONE}, again=ONE)
    b = make(home, {"ext4": SLOW}, again={**SLOW, 1: 1.0}, inputs={"kernel": "new"})
    [lean] = cli.json("compare", a, b, "--json")["pairs"]
    assert lean["repetitions"] is None
    assert [(cell["compared"], cell["differing"], cell["samples"]) for cell in lean["cells"]] == [
        (3, 1, None),
        *[(3, 2, None)] * 4,
    ]
    [whole] = cli.json("compare", a, b, "--json", "--all")["pairs"]
    assert [row["repetition"] for row in whole["repetitions"]] == [1, 2]
    assert whole["cells"][0]["samples"] == [{"place": "copy 1 elapsed", "left": 1.0, "right": 2.0}]
    assert whole["rows"] == lean["rows"]
    # What breaks the promise is always there, and so is that nothing differs.
    c = make(home, {"ext4": {**ONE, 3: 1.25}}, again=ONE)
    [pair] = cli.json("compare", a, c, "--json", code=1)["pairs"]
    assert [len(cell["samples"]) for cell in pair["cells"]] == [0, 0, 1, 0, 0]


@pytest.mark.usefixtures("eighty_columns")
@pytest.mark.parametrize("step", ["control/read", "control/random-read of many small files"])
def test_a_table_fits_eighty_columns(home: Path, cli: Cli, step: str) -> None:
    a = make(home, {"ext4": seeds(1234.123456, 1234.5, 1234.6, 1234.7, 1234.8)}, more={step: ONE})
    other = {"ext4": seeds(1234.123456, 1234.5, 1234.6, 1234.7, 1234.9)}
    b = make(home, other, more={step: SLOW}, inputs={"kernel": "new"})
    table = cli.out("compare", a, b).partition("  step")[2]
    assert (f"  {step} " in table) is (len(step) < 20)  # a long name stands above its figures
    assert max(len(line) for line in table.splitlines()) <= 80
    assert "…" not in table


SLOW = seeds(2.0, 2.1, 2.2, 2.3, 2.4)
MIDDLE = seeds(1.1, 1.2, 1.3, 1.4, 1.5)


def lines(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_one_run_alone_is_each_variant_against_the_first(home: Path, cli: Cli) -> None:
    make(home, {"ext4": ONE, "xfs": SLOW, "jfs": MIDDLE})
    shown = lines(cli.out("compare", "latest"))
    assert "A ext4, single: seeds 1,2,3,4,5, the base" in shown
    assert "B xfs, single: seeds 1,2,3,4,5" in shown and "inputs that differ: plan" in shown
    assert "step ext4 xfs jfs" in shown
    assert "copy 1.20 1.83 slower 1.08 ?" in shown
    shown = lines(cli.out("compare", "latest", "--base", "xfs"))
    assert "A xfs, single: seeds 1,2,3,4,5, the base" in shown
    assert "copy 2.20 0.55 faster 0.59 faster" in shown
    # A family has all sides: two comparisons of the metric.
    rows = [pair["rows"][0] for pair in cli.json("compare", "latest", "--json")["pairs"]]
    assert [row["comparisons"] for row in rows] == [2, 2]
    each = cli.out("compare", "latest", "--each")
    assert "\next4, single | xfs, single: seeds" in each and "\next4, single | jfs, single: seeds" in each


@pytest.mark.usefixtures("eighty_columns")
def test_many_sides_stand_in_parts_of_eighty_columns(home: Path, cli: Cli) -> None:
    names = [f"filesystem-{number}" for number in range(10)]
    make(home, {name: SLOW if at % 2 else ONE for at, name in enumerate(names)}, more={"control/random-read": ONE})
    shown = cli.out("compare", "latest", "--all")
    assert max(len(line) for line in shown.splitlines()) <= 80
    heads = [line.split()[1:] for line in shown.splitlines() if line.split()[:2] == ["step", names[0]]]
    assert len(heads) > 1 and [name for head in heads for name in head[1:]] == names[1:]


def test_three_runs_are_ratios_against_the_first(home: Path, cli: Cli) -> None:
    runs = [make(home, {"ext4": took, "xfs": ONE}, inputs={"k": n}) for n, took in enumerate((ONE, SLOW, MIDDLE))]
    shown = lines(cli.out("compare", *runs))
    assert "step A B C" in shown
    assert shown.count("copy 1.20 1.83 slower 1.08 ?") == 1 and shown.count("copy 1.20 1.000 = 1.000 =") == 1
    assert [line[0] for line in shown if " small, scale quick" in line] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ext4,raid0", "xfs,layout=raid0"),
        ("filesystem=ext4,kernel=6.1,layout=raid0", "variant=xfs,raid0"),
        ("ext4,machine=m,drives=model:none,defaults=period", "xfs"),
    ],
)
def test_cells_are_chosen_by_what_they_are(home: Path, cli: Cli, one: str, other: str) -> None:
    make(home, {"ext4": ONE, "xfs": SLOW}, layout="raid0", cell={"kernel": "6.1.0-56-amd64"})
    shown = cli.out("compare", f"latest:{one}", f"latest:{other}")
    assert "ext4, raid0 | xfs, raid0" in shown and "B slower" in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["latest:kernel=6.12", "latest"],
            "has no kernel '6.12'; it has 6.1\n",
        ),  # 6.1 is no 6.12, and 6.12 no 6.1
        (["latest:color=red", "latest"], "no choice 'color'; did you mean"),
        (["latest:ext4,xfs", "latest"], "names two of one kind: ext4 and xfs"),
        (["latest:ext5", "latest"], "has no variant or layout 'ext5'; it has ext4, xfs, single\n"),
        (["latest:ext4,defaults=today", "latest"],
         "has no defaults 'today' of variant ext4; it has period\n"),
        (["latest:ext4"], "has ext4, single alone: there is nothing to compare it with"),
        (["latest", "--base", "jfs"], "has no variant or layout 'jfs'; it has ext4, xfs, single\n"),
        (["latest", "--base", "ext4,layout=raid0"],
         "has no base 'ext4,layout=raid0'; it has ext4, single, xfs"),
        (["latest", "latest", "--base", "xfs"], "--base chooses among the variants of one run"),
        (["nowhere", "latest"], "no run 'nowhere'"),
        ([":ext4", "latest"], "':ext4' names no run"),
        (["", "latest"], "'' names no run"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(home: Path, cli: Cli, words: list[str], why: str) -> None:
    make(home, {"ext4": ONE, "xfs": SLOW})
    assert why.removesuffix("; did you mean") in cli.err("compare", *words)


WALL = {"clock": "wall"}


@pytest.mark.parametrize(
    ("plan", "cell", "why"),
    [
        ({"scale": "paper"}, {}, "scale quick | paper"),
        ({"scenario": "other"}, {}, "scenario small | other"),
        (WALL, {}, "clock virtual | wall"),
        ({"provenance": {"corpus_sha256": "b" * 64}}, {}, "data aaaaaaaaaaaa | bbbbbbbbbbbb"),
    ],
)
def test_what_is_not_comparable_is_refused_unless_told_and_labelled(
    home: Path, cli: Cli, plan: dict[str, Any], cell: dict[str, Any], why: str
) -> None:
    a = make(home, {"ext4": ONE}, plan={"provenance": {"corpus_sha256": "a" * 64}})
    b = make(home, {"ext4": SLOW}, inputs={"x": 1}, plan=plan, cell=cell)
    out, err = cli.run("compare", a, b, code=2)
    assert f"{a} and {b} are not comparable: {why}" in err and "--anyway" in err
    assert out == ""
    shown = cli.out("compare", a, b, "--anyway")
    assert f"  NOT COMPARABLE: {why}\n" in shown and "B slower" in shown
    found = cli.json("compare", a, b, "--anyway", "--json")
    assert found["pairs"][0]["labels"][0] == f"NOT COMPARABLE: {why}"
    third = make(home, {"ext4": MIDDLE}, inputs={"x": 2}, plan={"provenance": {"corpus_sha256": "a" * 64}})
    assert f"   NOT COMPARABLE: {why}\n" in cli.out("compare", a, b, third, "--anyway")


def test_what_is_not_timed_is_neither_compared_nor_gated_and_a_report_says_why(home: Path, cli: Cli) -> None:
    why = "not timed: the clock counts the instructions of 2 processors, which take turns"
    a = make(home, {"ext4": ONE}, plan={"provenance": {"model": why}})
    b = make(home, {"ext4": SLOW}, inputs={"x": 1}, plan={"provenance": {"model": why}})
    for words in ([a, b], [a, b, "--gate", "5"]):
        out, err = cli.run("compare", *words, code=2)
        assert why in err and "slower" not in out
    cli.run("report", b, "-o", home / "page.html")
    assert why in (home / "page.html").read_text()


def test_an_emulated_processor_is_not_compared_with_kvm(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, clock="wall")
    b = make(home, {"ext4": SLOW}, clock="wall", cell={"accelerator": "tcg"})
    assert "not comparable: processor KVM | emulated" in cli.err("compare", a, b)


def test_runs_that_share_some_of_their_data_are_comparable(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, plan={"provenance": {"corpus_sha256": "aa; bb"}})
    b = make(home, {"ext4": SLOW}, inputs={"x": 1}, plan={"provenance": {"corpus_sha256": "bb"}})
    assert "B slower" in cli.out("compare", a, b)


def test_cells_that_ran_together_in_real_time_are_labelled(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, clock="wall", plan={"command": {"options": {"jobs": 2}}})
    b = make(home, {"ext4": SLOW}, clock="wall", plan={"command": {"options": {"jobs": "hostile"}}})
    assert "cells at a time 2 | 1" in cli.out("compare", a, b)
    c = make(home, {"ext4": ONE}, plan={"command": {"options": {"jobs": 2}}})
    d = make(home, {"ext4": SLOW}, inputs={"x": 1})
    assert "cells at a time" not in cli.out("compare", c, d)


def test_the_same_cells_twice_are_called_that(home: Path, cli: Cli) -> None:
    make(home, {"ext4": ONE})
    assert "A and B are the same cells: no difference can show" in cli.out("compare", "latest", "latest")


def test_a_side_without_an_ok_cell_has_no_table(home: Path, cli: Cli) -> None:
    dead: dict[int, Status | None] = dict.fromkeys(ONE, Status.PANICKED)
    a, b = make(home, {"ext4": ONE}), make(home, {"ext4": ONE}, inputs={"kernel": "new"}, ends=dead)
    out, err = cli.run("compare", a, b, code=2)
    assert f"no cell of ext4, single of {b} is ok (panicked: it stopped)" in err
    assert "input kernel: nothing | new" in out and "verdict" not in out
    # One of three that is left: the others have their table.
    shown = cli.out("compare", a, b, make(home, {"ext4": SLOW}, inputs={"kernel": "newer"}))
    assert "left out of the table: seeds 1,2,3,4,5: it stopped" in shown and "step A C" in lines(shown)


def test_a_run_that_goes_on_is_compared_as_far_as_it_is(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": SLOW}, inputs={"kernel": "new"}, ends={5: None})
    monkeypatch.setattr(RunDirectory, "is_running", lambda self: self.name == b)
    shown = cli.out("compare", a, b)
    assert "it is still going on: compared as far as it is" in shown
    assert "left out of the table: B, seed 5: not ended" in shown


def test_what_no_other_run_has_is_named(home: Path, cli: Cli) -> None:
    a, b = make(home, {"ext4": ONE, "jfs": ONE}), make(home, {"ext4": SLOW, "xfs": ONE}, inputs={"x": 1})
    shown = cli.out("compare", a, b)
    assert f"not compared, for not every run has them: of {a} jfs, single" in " ".join(shown.split())
    assert f"not compared, for not every run has them: of {b} xfs, single" in " ".join(shown.split())


def test_of_a_cell_that_has_not_begun_no_input_differs(home: Path, cli: Cli) -> None:
    """It has none yet; what the other one has is no difference."""
    whole = {"making": {"plan": {"beside": None, "steps": [True]}}}
    name = make(home, {"ext4": ONE, "xfs": ONE, "jfs": ONE}, inputs=whole, ends={4: None, 5: None})
    run = run_lookup.find(home / "runs", name)
    for number in (3, 4, *range(5, 10)):
        (run.cell_directory(number) / "inputs.json").unlink()
        (run.cell_directory(number) / "end.json").unlink(missing_ok=True)
    shown = cli.out("compare", "latest:ext4", "latest:jfs")
    assert "beside" not in shown and "input making" not in shown
    assert "left out of the table: A, seeds 4,5: not begun\n" in shown
    assert "left out of the table: B, seeds 4,5: not ended\n" in shown
    # Where nothing has begun there is nothing to print before the error.
    out, err = cli.run("compare", "latest:ext4", "latest:xfs", code=2)
    assert out == "" and f"no cell of xfs, single of {name} is ok (not begun)" in err


def test_the_error_of_many_sides_without_an_ok_cell_is_short_and_names_a_base(home: Path, cli: Cli) -> None:
    variants = [f"filesystem-{number}" for number in range(13)]
    name = make(home, dict.fromkeys(variants, seeds(1.0)), ends={1: None})
    err = cli.err("compare", name)
    assert err.count("\n") == 1 and err.count("single") == 6 and "and 7 more" in err
    name = make(home, dict.fromkeys(variants[:3], seeds(1.0)))
    (run_lookup.find(home / "runs", name).cell_directory(0) / "end.json").unlink()
    assert "--base filesystem-1: that one has ok cells" in cli.err("compare", name)
    sides = [f"{name}:{variant}" for variant in variants[:3]]
    assert "--base" not in cli.err("compare", *sides), "of several sides there is none"


def test_of_several_sides_those_that_have_not_begun_are_one_line(home: Path, cli: Cli) -> None:
    name = make(home, {"ext4": ONE, "xfs": SLOW, "jfs": ONE, "zfs": ONE}, ends={})
    run = run_lookup.find(home / "runs", name)
    for number in (8, 9, *range(10, 20)):
        (run.cell_directory(number) / "end.json").unlink()
        if number != 8:
            (run.cell_directory(number) / "inputs.json").unlink()
    shown = cli.out("compare", "latest").splitlines()
    assert "   left out of the table: seed 4: not ended; seed 5: not begun" in shown
    assert "not begun: C jfs, single; D zfs, single" in shown and not any(line[:3] == "C  " for line in shown)


def test_more_sides_than_letters_have_two_of_them(home: Path, cli: Cli) -> None:
    make(home, {f"fs{number}": seeds(1.0) for number in range(29)})
    shown = cli.out("compare", "latest")
    assert shown.startswith("A-AC  ") and "\nZ  fs25, single" in shown and "\nAC  fs28, single" in shown


def test_values_that_differ_are_no_words_of_python(home: Path, cli: Cli) -> None:
    a = make(home, {"ext4": ONE}, inputs={"beside": {"size": None}, "sealed": True, "at": 1.5})
    b = make(home, {"ext4": ONE}, inputs={"beside": None, "sealed": False, "at": [{"k": None}]})
    shown = cli.out("compare", a, b, "--inputs")
    assert '  input beside: {"size": null} | nothing\n' in shown
    assert "  input sealed: true | false\n" in shown
    assert '  input at: 1.5 | [{"k": null}]\n' in shown
    one, other = make(home, {"ext4": seeds(1.0)}), make(home, {"ext4": seeds(None)}, inputs={"x": 1})
    assert "  sample copy 1 elapsed: 1.0 | nothing\n" in cli.out("compare", one, other, "--all")
    # One run seed each: the ratios, and why there is no verdict; of equal inputs what differs.
    other = make(home, {"ext4": seeds(2.5)}, inputs={"x": 1})
    shown = cli.out("compare", one, other)
    assert "copy 1.000000 2.500000 2.500 not known, few" in lines(shown)
    assert f"not known: A has seed 1, B has seed 1: {FEW}" in " ".join(shown.split())
    assert "sample copy" not in shown
