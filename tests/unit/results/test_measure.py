"""One meaning of a measure in every verb: the mean over a step's repetitions, one of them, or one sum of all steps."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agelab import kernel as kernels
from agelab.analysis.cell_diff import CellPair
from agelab.analysis.cells import load, main_measures, seed_groups
from agelab.analysis.decision import decide, main_question, parse_question
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.kernel_runs import KernelRuns
from agelab.present.report.blocks import Charts
from agelab.present.report.page import build_page
from agelab.present.view.calibration import floors_blocks
from agelab.present.view.summary import outcome_blocks, result_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.measure import ALL_STEPS, MEAN, Measure, own_steps
from agelab.results.result import RunKernel
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.sequential import Outcome
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build import simulated_bisect as simulated
from tests.build.cli import Cli
from tests.build.run_builder import sample
from tests.build.simulated_bisect import planted

SEEDS = (1, 2, 3, 4, 5)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def on_kernel(release: str) -> RunKernel:
    return RunKernel(spec=f"debian:{release}", release=release, version=f"{release}-1")


def ten_lines(home: Path, kernel: str = "6.1.1") -> RunDirectory:
    """A run whose own steps are quicker on xfs, and all of it with mkfs and mount is quicker on ext4."""
    cells = run_builder.cells(["ext4", "xfs"], SEEDS)
    run = run_builder.begin(home, cells, scenario="ten-lines", kernel=on_kernel(kernel))
    for number, cell in enumerate(cells):
        own, making = {"ext4": (1.4, 0.4), "xfs": (0.9, 1.6)}[cell.variant]
        near = 1 + cell.seed / 1000
        steps = {
            "mkfs": making * near, "mount": 0.01, "copy": own * near, "prepare-a/copy": 9.0, "prepare": 9.0,
        }  # fmt: skip
        run_builder.end(run, number, [sample(step, took) for step, took in steps.items()], inputs={"n": number})
    return run


def copied(home: Path, kernel: str = "6.1.1") -> str:
    """A run that copies three times: ext4 slower with each, and with the seeds from the second on, xfs never."""
    cells = run_builder.cells(["ext4", "xfs"], SEEDS, kernel=kernel)
    run = run_builder.begin(home, cells, kernel=on_kernel(kernel))
    for number, cell in enumerate(cells):
        apart = (cell.seed - 3) / 1000
        copies = (1.0, 2.0 + apart, 6.0) if cell.variant == "ext4" else (2.0, 2.0, 2.0)
        rows = [sample("copy", took, repetition=at) for at, took in enumerate(copies, 1)]
        run_builder.end(run, number, [*rows, sample("mkfs", 50.0)], inputs={"n": number, "kernel": kernel})
    return run.name


def test_a_measure_is_written_as_it_is_read() -> None:
    assert Measure.parse("copy:elapsed") == ("copy", MEAN, "elapsed")
    assert Measure.parse("then/aged/fio.read:12:fio_read_iops") == ("then/aged/fio.read", 12, "fio_read_iops")
    for text in ("copy:elapsed", "copy:3:elapsed", "all steps:elapsed"):
        assert str(Measure.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("copy:elapsed:2", "copy:elapsed:2: the repetition comes before the metric: copy:2:elapsed"),
        ("copy", "copy: it is STEP:METRIC"),
        ("copy:0:elapsed", "copy:0:elapsed: it is STEP:METRIC"),
        (":elapsed", "it is STEP:METRIC"),
        ("a:b:c:d", "it is STEP:METRIC"),
        ("all steps:2:elapsed", "of all steps there is one sum, all steps:elapsed"),
        ("all steps:seeks", "of all steps there is one sum, all steps:elapsed"),
    ],
)
@pytest.mark.parametrize(
    "verb",
    [
        ("sweep", "latest", "--metric"),
        ("bisect", "--scenario", "aging", "--variant", "ext4", "--good", "6.1", "--bad", "6.12", "--metric"),
        ("run", "aging", "--seeds", "auto", "--ask"),
    ],
)  # fmt: skip
def test_every_verb_refuses_another_form_in_the_same_words(
    home: Path, cli: Cli, text: str, said: str, verb: tuple[str, ...]
) -> None:
    copied(home)
    copied(home, "6.12.1")
    asks = verb[-1] == "--ask"
    shown = cli.err(*verb, f"ext4:xfs:{text}" if asks and text[0] != ":" else text)
    assert said in shown or (asks and "it is worst:STEP:METRIC" in shown), shown


def test_all_steps_are_the_scenario_s_own() -> None:
    timed = ("mkfs", "mount", "copy", "aged/read", "prepare", "prepare-x", "read1", "strace/read1", "test")
    places = [(step, 1, "elapsed") for step in timed]
    places += [("test", 1, "slowdown"), ("read1/open", 1, "syscall_seconds")]
    assert own_steps(places) == ["copy"]


def test_the_summary_and_the_decision_name_the_same_as_the_quickest(
    home: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ten_lines(home)
    print_blocks(result_blocks(run))
    shown = " ".join(capsys.readouterr().out.split())
    assert "xfs. All steps, without mkfs and mount, together take 0.903 s" in shown
    groups = seed_groups(load(run))
    question = main_question(groups)
    assert str(question) == "best:all steps:elapsed"
    print_blocks(outcome_blocks(Outcome(question, decide(question, groups, Fraction(1, 100)), len(SEEDS), "")))
    asked, said, *_ = capsys.readouterr().out.strip().splitlines()
    assert asked == "Which is best by all steps, without mkfs and mount?" and said.startswith("decided: best is xfs")
    again = ten_lines(home, "6.12.1")
    rows = json_of(cli, "sweep", run.name, again.name)["rows"]
    sums = [row["median"] for row in rows if row["step"] == ALL_STEPS.step]
    assert sums == pytest.approx([1.4042, 1.4042, 0.9027, 0.9027])


def json_of(cli: Cli, *words: str) -> Any:
    return cli.json(*words, "--json")


def test_a_step_without_a_repetition_is_the_mean_of_all_in_every_verb(
    home: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, later = copied(home), copied(home, "6.12.1")
    asked = ("--metric", "copy:elapsed")
    means = {"ext4": 3.0, "xfs": 2.0}
    rows = json_of(cli, "sweep", name, later, *asked)["rows"]
    assert {(row["variant"], row["repetition"], row["median"]) for row in rows} == {
        (variant, 0, mean) for variant, mean in means.items()
    }
    pairs = json_of(cli, "compare", name, later)["pairs"]
    found = {
        (pair["left"]["variant"], row["left"]["median"])
        for pair in pairs
        for row in pair["rows"]
        if row["step"] == "copy"
    }
    assert found == {*means.items()}
    assert "copy, mean of 3" in cli.out("compare", name, later)
    assert "copy, mean of 3, elapsed, s" in cli.out("sweep", name, later, *asked)
    run = load(RunDirectory(home / "runs" / name))
    groups = seed_groups(run)
    said = decide(parse_question("best:copy:elapsed"), groups, Fraction(1, 100)).said
    assert said.startswith("best is xfs"), "the first copy is quicker on ext4"
    [part] = build_page([run]).parts
    blocks = [block for section in part.sections for block in section.blocks]
    [times] = [one for one in blocks if isinstance(one, Charts) and one.title == "Time of each step"]
    [words] = [chart.words for chart in times.charts if chart.title == "copy, mean of 3"]
    assert re.search(r"ext4 3\.0.*; xfs 2", words)
    print_blocks(
        floors_blocks(run.directory, run.directory, [(one, CellPair(*2 * one.results[:1])) for one in groups], False)
    )
    assert re.search(r"copy, mean of 3 +3\.0", capsys.readouterr().out)
    assert bisected(home, monkeypatch, Measure("copy", MEAN, "elapsed"), name) == [pytest.approx((1 + 1.998 + 6) / 3)]


def test_a_named_repetition_is_that_one_in_every_verb(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    name, later = copied(home), copied(home, "6.12.1")
    asked = ("--metric", "copy:1:elapsed")
    rows = json_of(cli, "sweep", name, later, *asked)["rows"]
    assert {(row["variant"], row["repetition"], row["median"]) for row in rows} == {("ext4", 1, 1.0), ("xfs", 1, 2.0)}
    assert "copy 1/3, elapsed, s" in cli.out("sweep", name, later, *asked)
    said = decide(
        parse_question("best:copy:1:elapsed"), seed_groups(load(RunDirectory(home / "runs" / name))), Fraction(1, 100)
    ).said
    assert said.startswith("best is ext4")
    assert bisected(home, monkeypatch, Measure("copy", 1, "elapsed"), name) == [1.0]


def bisected(home: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure, name: str) -> list[Any]:
    """Return what a bisect takes of the first cell of a run."""
    run = RunDirectory(home / "runs" / name)
    monkeypatch.setattr(kernels, "resolve", lambda *_, **__: None)
    monkeypatch.setattr(runner, "run", lambda *_: run)
    directory = simulated.asked(Store(home), planted(3), metric=measure)
    return [one.value for one in KernelRuns(directory, Store(home)).run("1", [1])][:1]


def test_a_bisect_takes_the_same_sum_of_all_steps(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bisected(home, monkeypatch, ALL_STEPS, ten_lines(home).name) == [pytest.approx(1.4014)]


def test_a_question_is_read_with_its_repetition(home: Path) -> None:
    store = Store(home)
    first = simulated.asked(store, planted(2, 3), metric=("copy", 1, "elapsed"))
    assert '"copy",1,"elapsed"' in "".join((first.path / "question.json").read_text().split())
    assert BisectDirectory.find(store, first.name).question().criterion == "copy:1:elapsed"


def test_what_a_scenario_is_about_is_one_list(home: Path) -> None:
    run = run_builder.begin(home, run_builder.cells(["ext4"]))
    rows = [sample("hdd/grep", 1.0 + at, "slowdown", at) for at in (1, 2, 3)]
    held = [sample("fill", 5, "content_bytes"), sample("fill-again", 4, "content_bytes")]
    run_builder.end(run, 0, [*rows, sample("read", 1.5, "slowdown"), *held, sample("copy")])
    assert [str(one) for one in main_measures(seed_groups(load(run)))] == [
        "hdd/grep:3:slowdown", "read:slowdown", "fill-again:content_bytes", "all steps:elapsed",
    ]  # fmt: skip
