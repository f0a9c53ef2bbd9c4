"""Metrics that the registry does not have, in tables, comparisons, sweeps, the page and exports, as any other."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from agelab.analysis.cells import load, seed_groups
from agelab.analysis.decision import decide, parse_question
from agelab.base.errors import InputError
from agelab.cli.bisect import bisect
from agelab.cli.compare import compare
from agelab.cli.export import export
from agelab.cli.report import report
from agelab.cli.sweep import sweep
from agelab.present.view.run_tables import run_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import Sample
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from tests.build import run_builder
from tests.build.scenario_builder import ECHO, MY_OPS, chosen

METRICS: dict[str, dict[str, str | None]] = {
    "my_ops": {"unit": "1/s", "meaning": "operations", "better": "higher"},
    "my_pain": {"unit": "s", "meaning": "waiting", "better": "lower"},
    "my_size": {"unit": "B", "meaning": "bytes", "better": None},
}
SEEDS = (1, 2, 3, 4, 5)


def sample(step: str, metric: str, value: float | None) -> Sample:
    why = None if value is not None else "the step printed nothing"
    return Sample(step=step, metric=metric, value=value, unit=METRICS[metric]["unit"] or "", not_measured=why)


def made(home: Path, factor: float = 1, kernel: str = "6.1") -> RunDirectory:
    """A run of five seeds, whose aged disk has half of the operations; ``factor`` is of all of them."""
    cells = run_builder.cells(["ext4"], SEEDS, kernel=kernel)
    spec = {"spec": f"debian:{kernel}", "release": kernel, "version": f"{kernel}.1-1"}
    run = run_builder.begin(home, cells, metrics=METRICS, kernel=spec)
    for number, seed in enumerate(SEEDS):
        near = 1 + seed / 10_000
        samples = [
            run_builder.sample("aged/mine", 2.0 * near), run_builder.sample("control/mine", 1.0 * near),
            run_builder.sample("mine", 2.0, metric="slowdown"),
            sample("aged/mine.one", "my_ops", 50 * factor * near),
            sample("control/mine.one", "my_ops", 100 * near),
            sample("aged/mine.one", "my_pain", 3e-5 / factor * near),
            sample("control/mine.one", "my_pain", 1e-5 * near),
            sample("plain", "my_size", 4e6), sample("plain", "my_ops", None),
        ]  # fmt: skip
        run_builder.end(run, number, samples, inputs={"seed": seed})
    return run


def test_show_prints_aged_beside_control_and_what_was_not_measured(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_blocks(run_blocks(made(home)))
    shown = " ".join(capsys.readouterr().out.split())
    assert "mine.one my_ops 1/s 50.005 100.01 0.500" in shown
    assert "mine.one my_pain s 3.0003e-05 1.0001e-05 3.000" in shown
    assert "plain my_size MB 4" in shown
    assert "not measured: plain my_ops: the step printed nothing" in shown


def test_a_comparison_knows_which_way_is_better(home: Path) -> None:
    first, second = made(home), made(home, 2)
    done = CliRunner().invoke(compare, [first.name, second.name, "--json"])
    rows = [row for pair in json.loads(done.output)["pairs"] for row in pair["rows"]] if done.exit_code == 0 else []
    words = {row["metric"]: (row["verdict"], row["better"]) for row in rows if row["step"].startswith("aged/")}
    assert words["my_ops"] == ("higher", "right") and words["my_pain"] == ("lower", "right"), done.output
    table = CliRunner().invoke(compare, [first.name, second.name]).output
    assert "my_ops" in table and "better" in table


def test_a_sweep_shows_them_by_kernel(home: Path) -> None:
    runs = [made(home), made(home, 3, "6.12")]
    shown = CliRunner().invoke(sweep, [run.name for run in runs]).output
    assert "my_ops" in shown, shown


def test_the_page_has_a_table_of_them(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(report, [made(home).name, "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "What programs measured" in text and "my_ops" in text and "aged / unaged" in text
    assert ">1/s<" in text and ">/s<" not in text
    assert "is test mine" not in text  # its name says that already
    plain = run_builder.begin(home, run_builder.cells(["ext4"]))
    run_builder.end(plain, 0, [run_builder.sample()], inputs={})
    CliRunner().invoke(report, [plain.name, "-o", str(page)])
    assert "What programs measured" not in page.read_text()


def test_an_export_and_the_result_have_them(home: Path) -> None:
    run = made(home)
    rows = [
        json.loads(line) for line in CliRunner().invoke(export, [run.name, "--format", "jsonl"]).output.splitlines()
    ]
    assert {row["unit"] for row in rows if row["metric"] == "my_ops"} == {"1/s"}
    assert run.as_json()["metrics"] == METRICS


def test_a_series_has_the_definition_of_its_run(home: Path) -> None:
    [group] = seed_groups(load(made(home)))
    own = group.series["aged/mine.one", 1, "my_ops"].definition
    assert own and (own.better, own.meaning) == ("higher", "operations")
    registered = group.series["aged/mine", 1, "elapsed"].definition
    assert registered and registered.speed
    mean = group.steps["aged/mine.one", "my_ops"].definition
    assert mean == own


def test_a_bisect_takes_them_and_knows_which_there_are() -> None:
    howto = Path(__file__).parents[3] / "docs/howto/fio-aged.toml"
    words = ["--scenario", str(howto), "--good", "6.1", "--bad", "6.12", "--metric"]
    done = CliRunner().invoke(bisect, [*words, "fio.read:fio_read_bandwith"])
    assert done.exit_code and "no metric 'fio_read_bandwith'; did you mean fio_read_bandwidth" in str(done.exception)
    done = CliRunner().invoke(bisect, [*words, "fia.read:fio_read_bandwidth"])
    assert done.exit_code and "no step 'fia.read' in fio-aged" in str(done.exception)


def test_a_question_may_be_about_a_metric_of_the_scenario(tmp_path: Path) -> None:
    chosen(tmp_path, ECHO, metrics=MY_OPS)
    scenario, auto = str(tmp_path / "ten-lines.toml"), cast(Any, "auto")
    own = resolve(RunOptions(name=scenario, seeds=auto, ask="best:echo:my_ops")).selection.workload.metrics
    assert parse_question("best:echo:my_ops", own).better == "higher"
    with pytest.raises(InputError, match="no metric 'my_opz'; did you mean my_ops"):
        resolve(RunOptions(name=scenario, seeds=auto, ask="best:echo:my_opz"))
    with pytest.raises(InputError, match="no metric 'my_ops'"):
        resolve(RunOptions(name="aging", seeds=auto, ask="best:copy:my_ops"))


@pytest.mark.parametrize(("ask", "found"), [("best:mine:my_ops", "xfs"), ("worst:mine:my_ops", "ext4")])
def test_a_look_knows_which_way_they_are_better(home: Path, ask: str, found: str) -> None:
    cells = run_builder.cells(["ext4", "xfs"], SEEDS)
    run = run_builder.begin(home, cells, metrics=METRICS)
    for number, cell in enumerate(cells):
        value = {"ext4": 10, "xfs": 90}[cell.variant] + cell.seed / 100
        run_builder.end(run, number, [sample("mine", "my_ops", value)], inputs={"number": number})
    groups = seed_groups(load(run))
    own = {name: one.metric for name, one in run.plan().metrics.items()}
    look = decide(parse_question(ask, own), groups, Fraction(5, 100))
    assert look.decided and look.said.startswith(f"{ask.partition(':')[0]} is {found}"), look.said
