"""What compare says of runs: inputs by name, the promise, and medians against the floor."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agelab.cli import main
from agelab.model.metrics import METRICS
from agelab.model.result import Cell, End, RunPlan, Sample, Status
from agelab.results import compare, rundir
from agelab.results.digest import digest
from agelab.results.rundir import RunDirectory

Values = dict[int, float | None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def make(
    home: Path,
    elapsed: dict[str, Values],
    *,
    inputs: dict[str, Any] | None = None,
    clock: str = "virtual",
    layout: str = "single",
    ends: dict[int, Status | None] | None = None,
    label: str = "small",
) -> str:
    """A run with a cell for each variant and seed, and what each took to copy; its name."""
    run = RunDirectory.create(home / "runs", label)
    cells = [
        Cell(
            variant=variant, filesystem=variant, layout=layout, kernel="6.1", machine="m", drives=("model:none",),
            defaults="period", seed=seed, accelerator="kvm" if clock == "wall" else "tcg",
        )
        for variant, values in elapsed.items() for seed in values
    ]  # fmt: skip
    plan = RunPlan(
        run=run.name, scenario="small", scale="quick", clock=clock, cells=tuple(cells), provenance={}
    )
    run.write_plan(plan)
    for number, cell in enumerate(cells):
        value = elapsed[cell.variant][cell.seed]
        found = {"seeds": {"run": cell.seed}, "plan": {"mkfs": cell.variant}, **(inputs or {})}
        run.write_inputs(number, found)
        why = None if value is not None else "no way to know"
        run.append(number, Sample(step="copy", metric="elapsed", value=value, unit="s", not_measured=why))
        run.append(number, Sample(step="copy", metric="seeks", value=7, unit="1"))
        status = (ends or {}).get(cell.seed, Status.OK)
        if status:
            why = None if status is Status.OK else "it stopped"
            said = digest(status, run.samples()[number], {})
            run.finish(number, End(status=status, reason=why, digest=said, host_seconds=1))
    return run.name


def seeds(*values: float | None) -> Values:
    return dict(enumerate(values, start=1))


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["compare", *words]) == code
    return capsys.readouterr().out


ONE = seeds(1.0, 1.1, 1.2, 1.3, 1.4)


@pytest.mark.parametrize(
    ("other", "row"),
    [
        (seeds(2.0, 2.1, 2.2, 2.3, 2.4), "copy 1.20 2.20 +1.00 +83.3 0.40 B higher"),
        (seeds(0.1, 0.2, 0.3, 0.4, 0.5), "copy 1.20 0.30 -0.90 -75.0 0.40 A higher"),
        (seeds(1.4, 1.5, 1.6, 1.7, 1.8), "copy 1.20 1.60 +0.40 +33.3 0.40 below the floor"),
        (seeds(1.0, 2.0, 2.0, 2.0, 2.0), "copy 1.2 2.0 +0.8 +66.7 1.0 below the floor"),
        (seeds(1.2, 1.2, 1.2, 1.2, 1.2), "copy 1.20 1.20 0.00 0.0 0.40 equal"),
        (seeds(9.0, 9.0, 9.0, 9.0), "copy 1.20 9.00 +7.80 +650.0 - no floor"),
        (seeds(9.0, 9.0, 9.0, 9.0, None), "copy 1.20 9.00 +7.80 +650.0 - no floor"),
        (seeds(None, None, None, None, None), "copy 1.20 ? B not measured"),
    ],
)
def test_a_row_has_both_medians_and_a_verdict(
    home: Path, capsys: pytest.CaptureFixture[str], other: Values, row: str
) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": other}, inputs={"kernel": "new"})
    shown = said(capsys, a, b)
    assert row in [" ".join(line.split()) for line in shown.splitlines()]
    assert ("  no floor: 4 seeds, five are needed\n" in shown) is row.endswith("no floor")
    assert "input kernel: None | new" in shown


def test_the_share_that_chance_puts_above_the_floor_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, inputs={"kernel": "new"})
    shown = said(capsys, a, b)
    assert "above the floor: 1 of all 2 results (--all shows each);" in shown
    assert "chance puts 4.76 % of them there at most, on average" in shown
    assert "seeks" not in shown
    assert "seeks" in said(capsys, a, b, "--all")


def test_two_variants_of_one_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = make(home, {"ext4": ONE, "xfs": seeds(2.0, 2.1, 2.2, 2.3, 2.4)})
    shown = said(capsys, "latest:ext4", f"{both}:xfs")
    assert "\next4, single | xfs, single: seeds 1,2,3,4,5 | seeds 1,2,3,4,5\n" in shown
    assert "  filesystem: ext4 | xfs\n  input plan.mkfs: ext4 | xfs\n" in shown
    assert "B higher" in shown and "EQUAL INPUTS" not in shown
    # Named on one side it is meant on both; unnamed, every variant is compared with itself.
    assert said(capsys, both, "latest:xfs").count("equal inputs, equal samples") == 1
    assert said(capsys, both, both).count("equal inputs, equal samples: seeds 1,2,3,4,5") == 2


def test_a_variant_that_is_not_there_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(home, {"ext4": ONE})
    assert main(["compare", "latest:ext3", "latest"]) == 2
    assert "no variant in run" in (err := capsys.readouterr().err) and "did you mean ext4?" in err
    assert main(["compare", "latest:", "latest"]) == 2
    assert "'latest:' names no variant" in capsys.readouterr().err


def test_runs_without_a_common_variant(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"xfs": ONE})
    assert "share no variant; two variants are compared so" in said(capsys, a, b)


def test_layouts_of_one_variant_are_compared_and_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"ext4": ONE}, layout="raid0", inputs={"layout": "raid0"})
    shown = said(capsys, a, b)
    assert "ext4, single | ext4, raid0" in shown and "  layout: single | raid0\n" in shown
    assert "different inputs, equal samples" in shown


def test_equal_inputs_and_different_samples_are_loud(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make(home, {"ext4": ONE}), make(home, {"ext4": {**ONE, 3: 1.25}})
    shown = said(capsys, a, b, code=1)
    assert "  equal inputs, equal samples: seeds 1,2\n" in shown
    assert "  EQUAL INPUTS AND DIFFERENT SAMPLES: that breaks agelab's promise" in shown
    assert "please report it: seed 3\n  sample copy 1 elapsed: 1.2 | 1.25\n" in shown
    assert "  digest: sha256:" in shown
    found = json.loads(said(capsys, a, b, "--json", code=1))
    assert [cell["promise_broken"] for cell in found["pairs"][0]["cells"]] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_another_digest_alone_breaks_the_promise(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What came back beside the samples is in the digest, too."""
    a, b = make(home, {"ext4": seeds(1.5)}), make(home, {"ext4": seeds(1.5)})
    run = rundir.find(home / "runs", b)
    back = {"aged/extents": hashlib.sha256(b"").hexdigest()}
    extents = run.cell(0) / rundir.map_file("aged/extents")
    extents.parent.mkdir(parents=True)
    extents.write_bytes(gzip.compress(b""))
    other = digest(Status.OK, run.samples()[0], back)
    run.finish(0, End(status=Status.OK, digest=other, maps=back, host_seconds=1))
    assert "EQUAL INPUTS AND DIFFERENT SAMPLES" in said(capsys, a, b, code=1)


def test_what_is_not_ok_is_left_out_and_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make(home, {"ext4": ONE})
    b = make(home, {"ext4": {**ONE, 4: 99.0, 5: 99.0}}, inputs={"x": 1}, ends={4: Status.HUNG, 5: None})
    shown = said(capsys, a, b)
    assert "  left out of the table: B, seed 4: it stopped\n" in shown
    assert "  left out of the table: B, seed 5: it has no end record\n" in shown
    assert f"  not finished: {b}: seed 5\n" in shown
    assert "no floor: 3 seeds, five are needed" in shown


def test_real_time_is_compared_by_the_same_rule_and_breaks_no_promise(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make(home, {"ext4": ONE}, clock="wall")
    b = make(home, {"ext4": seeds(2.0, 2.1, 2.2, 2.3, 2.4)}, clock="wall")
    shown = said(capsys, a, b)
    assert "wall clock; real time, each seed one repetition of it" in shown
    assert "equal inputs; real time is not the same twice" in shown
    assert "B higher" in shown and "EQUAL INPUTS" not in shown


def test_inputs_are_one_line_each_until_every_place_is_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make(home, {"ext4": ONE}, inputs={"qemu": {"command": ["-m", "768"], "version": 7, "clock": 1}})
    b = make(home, {"ext4": ONE}, inputs={"qemu": {"command": ["-m", "768", "-x"], "version": 8, "clock": 2}})
    shown = said(capsys, a, b)
    assert "  input qemu: 3 places (qemu.clock, qemu.command, ...)\n  (--inputs" in shown
    shown = said(capsys, a, b, "--inputs")
    assert "  input qemu.version: 7 | 8\n" in shown
    assert "  input qemu.command: only A: nothing | only B: -x\n" in shown


def test_of_two_lists_the_words_that_went_and_came() -> None:
    one, other = ["-m", "768", "-smp", "1", "-cpu", "a"], ["-m", "512", "-smp", "1", "-cpu", "a", "-s"]
    [found] = compare.inputs({"command": one}, {"command": other})
    assert found.words == (["768"], ["512", "-s"])
    [found] = compare.inputs({"steps": [{"a": 1}]}, {"steps": [{"a": 1}, {"b": [2]}]})
    assert found.words == ([], [{"b": [2]}])
    assert compare.Difference("kernel", "a", "b").words is None
    assert compare.Difference("drives", None, [1]).words is None


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
    assert compare.Difference(place, 1, 2).name == name


def test_the_headlines_are_metrics_that_there_are() -> None:
    assert set(compare.HEADLINES) <= set(METRICS)


def test_programs_get_exact_numbers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make(home, {"ext4": seeds(0.1, 0.2, 0.3, 0.4, 0.5)})
    b = make(home, {"ext4": seeds(1.1, 1.1, 1.1, 1.1, 1.3)}, inputs={"kernel": "new"})
    found = json.loads(said(capsys, a, b, "--json"))
    assert (found["schema"], found["left"]["run"], found["right"]["run"]) == (1, a, b)
    [pair] = found["pairs"]
    assert pair["left"]["variant"] == "ext4"
    assert [cell["seed"] for cell in pair["left"]["cells"]] == [1, 2, 3, 4, 5]
    assert pair["cells"][0]["inputs"] == [{"place": "kernel", "left": None, "right": "new"}]
    assert pair["rows"][0] == {
        "step": "copy",
        "repetition": 1,
        "metric": "elapsed",
        "unit": "s",
        "left": {"n": 5, "median": 0.3, "low": 0.1, "high": 0.5, "coverage": 0.9375, "spread": 0.4},
        "right": {"n": 5, "median": 1.1, "low": 1.1, "high": 1.3, "coverage": 0.9375, "spread": 0.2},
        "difference": 0.8,
        "difference_relative": pytest.approx(8 / 3),
        "floor": 0.4,
        "verdict": "B higher",
        "reason": None,
    }


def test_a_table_fits_eighty_columns(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make(home, {"ext4": seeds(1234.123456, 1234.5, 1234.6, 1234.7, 1234.8)})
    b = make(home, {"ext4": seeds(1234.123456, 1234.5, 1234.6, 1234.7, 1234.9)}, inputs={"kernel": "new"})
    table = said(capsys, a, b).partition("median A")[2]
    assert max(len(line) for line in table.splitlines()) <= 80
    assert "…" not in table
