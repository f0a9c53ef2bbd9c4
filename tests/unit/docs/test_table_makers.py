"""What makers make of runs, and what is known of a table before its runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import HostError, InputError
from agelab.results.result import RunKernel, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan.cell_inputs import evaluated_by, harness_hash, parts_of_files
from agelab.runner.plan.cell_spec import cell_of
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series
from docs.make import block, findings, proof
from docs.make.__main__ import _print_plan
from docs.make.catalogue import Made, Table
from docs.make.forecast import forecast
from tests.build import aging_runs, run_builder, study_runs

WORDS = {"kernel": "k", "qemu": "q", "image": "i", "corpus_sha256": "c"}
QEMU = "QEMU emulator version 7.2.22"
POINTS = (("replay", "fullness", 0.5), ("then/scan", "slowdown", 1.5), ("aged/map", "layout_score", 0.9))
SLOWDOWNS = {"ext4": 1.4, "xfs": 1.1}


def run(home: Path, *, release: str = "6.1.0-56-amd64", **fields: object) -> RunDirectory:
    """A run of two variants, which knows its kernel and its QEMU."""
    run = RunDirectory(home / "runs" / aging_runs.make(home, SLOWDOWNS, release=release, **fields))  # type: ignore[arg-type]
    plan = run.plan()
    words = {"kernel": f"debian:6.1 = {release} (6.1.192-2)", "qemu": QEMU, "image": "i"}
    run.write_plan(plan.model_copy(update={"provenance": {**plan.provenance, **words}}))
    return run


def table(maker: str, **fields: object) -> Table:
    usual = {"name": "one", "page": "docs/page.md", "maker": maker, "runs": [{"name": "aging"}]}
    return Table.model_validate({**usual, **fields})


def made(maker: str, given: Sequence[RunDirectory], /, **fields: object) -> Made:
    return table(maker, **fields).made(given)


def test_show_has_the_cells_and_nothing_of_this_store(tmp_path: Path) -> None:
    found = run(tmp_path)
    text = made("printed:show", [found]).text
    assert text.startswith("```\next4, single on model:seagate-st3120026as, pentium4-2800, period defaults")
    assert " copy 12/12 " in text and "  status      ok" in text and "  digest      sha256:" in text
    assert text.endswith(f"```\n\nKernel debian:6.1 = 6.1.0-56-amd64 (6.1.192-2); {QEMU}.")
    assert found.name not in text and str(tmp_path) not in text and "leaves open" not in text


def test_the_promise_has_its_lines_and_the_begin_of_key_and_digest_twice(tmp_path: Path) -> None:
    runs = [{"name": "aging-ext4"}]
    text = made("printed:promise", [run(tmp_path)], lines=["mount"], runs=runs).text
    head, places, command, _, *lines, end = text.split("\n")
    assert head == end == "```" and "busy" in places and "without KVM" in places
    assert command.split("$ ")[1].strip() == command.split("$ ")[2] == "make scenario NAME=aging-ext4"
    assert {line.split()[0] for line in lines} == {"mount", "inputs_key", "digest"}
    assert all(line[:45].strip() == line[45:].strip() for line in lines)


def test_show_has_the_named_lines_with_dots_where_others_are_left_out(tmp_path: Path) -> None:
    text = made("printed:show", [run(tmp_path)], lines=["ext4,", "step", "mkfs", "copy", "digest"]).text
    lines = text.split("\n")
    assert [line.split()[0] for line in lines[1:9]] == [
        "ext4,", "...", "step", "mkfs", "...", "copy", "copy", "...",
    ]  # fmt: skip
    assert lines[9].startswith("  digest") and lines[2] == " ..."


def test_a_transcript_is_the_last_command_and_what_it_prints_and_no_day(home: Path) -> None:
    found = run(home)
    commands = ["export {runs} --format csv -o made.csv", "show {0}"]
    text = made("printed:transcript", [found], commands=commands).text
    assert text.startswith("```\n$ .venv/bin/agelab show YYYYMMDD-HHMM01-aging\n")
    assert "whole result: .venv/bin/agelab show YYYYMMDD-HHMM01-aging --json\n" in text and "made.csv" not in text
    assert found.name not in text and str(home) not in text and text.endswith(f"{QEMU}.")


def test_a_transcript_of_a_command_that_does_not_answer_is_not_made(home: Path) -> None:
    with pytest.raises(HostError, match="agelab show nothing ended with 2: no run"):
        made("printed:transcript", [run(home)], commands=["show nothing"])


def test_a_sweep_is_a_table_for_each_metric_and_a_plot(tmp_path: Path) -> None:
    runs = [run(tmp_path, release=release) for release in ("5.10.0-46-amd64", "6.1.0-56-amd64")]
    found = made("printed:sweep", runs, metrics=["read:slowdown"], pictures="page")
    assert "read, slowdown" in found.text and "layout_score" not in found.text
    assert "Kernel debian:6.1 = 5.10.0-46-amd64 (6.1.192-2), debian:6.1 = 6.1.0-56-amd64" in found.text
    assert [str(path) for path in found.files] == ["page/read-slowdown.svg"]
    assert "(page/read-slowdown.svg)" in found.text
    assert max(map(len, found.text.split("\n"))) <= 130


def test_a_summary_ends_before_its_cells(tmp_path: Path) -> None:
    text = made("printed:summary", [run(tmp_path, seeds=(1, 2, 3, 4, 5))]).text
    assert text.startswith("```\nWhich filesystem aged worst, and why?\n")
    assert "slowdown of read" in text and "status" not in text
    assert max(map(len, text.split("```")[1].split("\n"))) <= 80


def test_a_cell_that_is_not_ok_is_named_below_its_table(tmp_path: Path) -> None:
    found = run(tmp_path, statuses={"xfs": Status.UNSUPPORTED})
    assert "- xfs: unsupported" in made("aging", [found]).text
    columns = [{"head": "read", "of": "read:slowdown"}]
    assert "- xfs: unsupported" in made("measures", [found], columns=columns).text


def test_measures_are_medians_ranges_and_sums_over_seeds_and_sums_of_measures(tmp_path: Path) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4"], (1, 2, 3)), provenance=WORDS)
    for number, value in enumerate((1.0, 4.0, 2.0)):
        rows = [run_builder.sample("repair", value), run_builder.sample("recovery", 10 * value)]
        run_builder.end(run_, number, rows)
    columns = [
        {"head": "a", "of": "repair:elapsed"},
        {"head": "b", "of": "repair:elapsed", "shown": "range", "decimals": 1},
        {"head": "c", "of": "repair:elapsed", "shown": "sum", "decimals": 0},
        {"head": "d", "of": "repair:elapsed + recovery:elapsed", "factor": 10, "decimals": 0},
    ]
    text = made("measures", [run_], columns=columns).text
    assert "|  | a | b | c | d |" in text
    assert "| ext4 | 2.00 | 1.0 to 4.0 | 7 | 220 |" in text
    wrong = [*columns, {"head": "e", "of": "repair:2:elapsed"}]
    with pytest.raises(InputError, match="one: no cell has measured repair:2:elapsed"):
        made("measures", [run_], columns=wrong)


def test_cells_that_are_not_ok_are_named_with_their_seeds_where_others_are(tmp_path: Path) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4", "jfs"], (1, 2, 3)), provenance=WORDS)
    for number in range(6):
        status = Status.FAILED if number in (1, 2) or number > 2 else Status.OK
        run_builder.end(run_, number, [run_builder.sample("copy")], status=status, reason="no room")
    text = made("measures", [run_], columns=[{"head": "copy", "of": "copy:elapsed"}]).text
    assert text.split("\n")[-2:] == ["- ext4, seeds 2,3: failed: no room", "- jfs: failed: no room"]


@pytest.mark.parametrize(
    ("differs", "rows"),
    [
        ({}, ["| ext4 |"]),
        ({"layout": "raid0"}, ["| `single` |", "| `raid0` |"]),
        ({"machine": "m+source=scattered"}, ["| as it is |", "| source=scattered |"]),
        ({"variant": "xfs", "filesystem": "xfs"}, ["| ext4 |", "| xfs |"]),
    ],
)
def test_a_row_of_measures_is_named_by_what_tells_it_from_the_others(
    tmp_path: Path, differs: dict[str, Any], rows: list[str]
) -> None:
    cells = (run_builder.cell(), *([run_builder.cell(**{"variant": "ext4", **differs})] if differs else []))
    one = run_builder.begin(tmp_path, cells, provenance=WORDS)
    for number, _ in enumerate(cells):
        run_builder.end(one, number, [run_builder.sample("copy")])
    columns = [{"head": "copy", "of": "copy:elapsed"}]
    beside = run_builder.begin(tmp_path, [], provenance={**WORDS, "image": "with a layout's programs"})
    text = made("measures", [one, beside], columns=columns).text
    assert [line.removesuffix(" 1.50 |") for line in text.split("\n") if line.endswith("1.50 |")] == rows


def test_a_block_map_is_a_picture_of_its_variant(tmp_path: Path) -> None:
    (tmp_path / "ext4.svg").write_text("<svg/>")
    found = made("aging:block_maps", [run(tmp_path, pictures=tmp_path)], pictures="aging")
    assert found.files == {Path("aging/ext4.svg"): b"<svg/>"}
    assert "![block map of ext4, aged and control](aging/ext4.svg)" in found.text


@pytest.mark.parametrize(
    ("scale", "heading"), [("quick", "## Beside our runs"), ("paper", "## Beside our runs, at its own size")]
)
def test_a_study_has_counts_in_its_page_and_its_figures_as_data(tmp_path: Path, scale: str, heading: str) -> None:
    name = study_runs.make(tmp_path, "tum-2005", study_runs.printed("tum-2005"), scale=scale)
    found = RunDirectory(tmp_path / "runs" / name)
    beside = made("claims:beside_study", [found], name="study-tum-2005")
    assert beside.text.startswith(f"{heading}\n\n- **A**: scale {scale}, ")
    assert "\n| table means, single, elapsed (s): " in beside.text
    [(path, data)] = beside.files.items()
    assert str(path) == "studies/data/tum-2005.txt" and f"]({path.relative_to('studies')})" in beside.text
    assert "replicated**: " in data.decode()
    assert name not in beside.text + data.decode()
    counted = made("claims", [found]).text
    assert counted.startswith("| study |") and "| `tum-2005` | period, seed 1 | " in counted


def test_the_processors_times_are_a_table_and_a_figure(tmp_path: Path) -> None:
    used = {"copy-1g cpu_user": 0.5, "copy-1g cpu_system": 1.0, "copy-1g copy_stolen": 0.25}
    name = study_runs.make(tmp_path, "piszcz-2006", {"xfs": used})
    found = made("validation.processor", [RunDirectory(tmp_path / "runs" / name)])
    assert found.text.startswith("**piszcz-2006**, scale quick") and "| copy-1g |" in found.text
    assert [str(path) for path in found.files] == ["processor.svg"]
    assert found.files[Path("processor.svg")].startswith(b"<svg")


def test_a_history_has_a_table_and_its_plots(tmp_path: Path) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4-profile"]), provenance=WORDS, histories={"profile": {}})
    rows = [run_builder.sample(step, value, metric, point) for step, metric, value in POINTS for point in (1, 2)]
    run_builder.end(run_, 0, rows)
    found = made("curve", [run_], pictures="aging")
    assert "| ext4 | 1.50 | 1.50 |" in found.text
    pictures = {f"aging/curve-profile-{name}.svg" for name in ("scan", "layout")}
    assert {str(path) for path in found.files} == pictures
    assert all(f"]({path})" in found.text for path in pictures)


def test_a_cell_that_has_ended_is_known_until_the_harness_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = RunOptions(name="aging-ext4", seeds=(1, 2))
    specs = planned_cells(options)
    cells = tuple(cell_of(spec, "6.1.0-56-amd64") for spec in specs)
    run_ = run_builder.begin(
        tmp_path,
        cells,
        kernel=RunKernel(spec="debian:6.1", release="r", version="v"),
        command=options.to_plan(),
        provenance={"vcpus": 1},
    )
    inputs = {"making": {"harness": harness_hash(), **parts_of_files(specs[0])}}
    run_builder.end(
        run_, 0, [run_builder.sample()], inputs=inputs, evaluated_by=evaluated_by(specs[0]), host_seconds=60
    )
    mine = table("aging", runs=[{"name": "aging-ext4", "seeds": "1,2"}])
    there = block.Block("one", date(2026, 11, 25), "", text="0" * 16)
    monkeypatch.setattr(block, "find", lambda _: there)
    monkeypatch.setattr(proof, "is_current", lambda table, block: False)
    found = forecast(mine, tmp_path / "runs", 1)
    assert (found.cells, found.known, found.current) == (2, 1, False)
    assert found.time and found.time.high == 60
    assert found.row[-2] == "about 60 s"
    _print_plan([found, replace(found, table=mine)], 1)
    assert "in all: 1 cell, about 60 s; " in capsys.readouterr().out, "a cell of two tables is counted once"
    monkeypatch.setattr("docs.make.forecast.harness_hash", lambda: "another")
    assert forecast(mine, tmp_path / "runs", 1).known == 0


def test_a_finding_is_ratios_with_intervals_and_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"], (1, 2, 3, 4, 5)), provenance=WORDS)
    for number in range(10):
        aged = (2 if number < 5 else 1) + number % 5 / 100
        rows = [run_builder.sample("aged/read", aged), run_builder.sample("control/read", 1 + number % 5 / 100)]
        run_builder.end(run_, number, rows)
    figures = tmp_path / "findings.toml"
    monkeypatch.setattr(findings, "FIGURES", figures)
    figures.write_text(
        "[[findings.one]]\n"
        'what = "ext4, aged"\nof = "ext4 aged/read:elapsed"\nto = "ext4 control/read:elapsed"\n'
        "[[findings.one]]\n"
        'what = "xfs, aged"\nof = "1: xfs aged/read:elapsed"\nto = "xfs control/read:elapsed"\n'
    )
    text = made("findings", [run_]).text
    assert "| ext4, aged | 1.980 (1.942 to 2.020), slower |" in text
    assert "| xfs, aged | 1.000 (0.971 to 1.030), equal |" in text
    assert "`make tables NAME=one`: run seeds 1,2,3,4,5. Kernel k; q." in text


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ("ext4 read:elapsed", "ext4 read:elapsed: no cell has measured it"),
        ("etx4 copy:elapsed", "no variant 'etx4'; did you mean ext4?"),
        ("2: ext4 copy:elapsed", "2: ext4 copy:elapsed: its table has 1 runs"),
        ("ext4", "of: String should match pattern"),
    ],
)
def test_a_finding_of_what_was_not_measured_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, said: str
) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4"]), provenance=WORDS)
    run_builder.end(run_, 0, [run_builder.sample()])
    figures = tmp_path / "findings.toml"
    monkeypatch.setattr(findings, "FIGURES", figures)
    figures.write_text(f'[[findings.one]]\nwhat = "it"\nof = "{of}"\nto = "ext4 copy:elapsed"\n')
    with pytest.raises(InputError, match=said):
        made("findings", [run_])


def series(*values: int) -> Series:
    seeds = [Seeds(corpus=1, run=run) for run in range(1, len(values) + 1)]
    values_ = tuple((seed, Fraction(value)) for seed, value in zip(seeds, values, strict=True))
    return Series("check", 1, "files", "1", values_, ())


def test_a_share_of_cells_has_the_interval_of_clopper_and_pearson() -> None:
    whole = series(9, 9, 9, 9, 9)
    assert findings.share([(whole, whole)]) == "0 of 5 (0 to 52 %)"  # 1 - 0.025 ** (1 / 5) = 0.522
    assert findings.share([(whole, whole), (series(9, 8, 9, 0, 9), whole)]) == "2 of 10 (3 to 56 %)"


def test_the_claims_about_a_filesystem_are_those_whose_test_names_it(tmp_path: Path) -> None:
    name = study_runs.make(tmp_path, "piszcz-2006", study_runs.printed("piszcz-2006", table="II"), seeds=5)
    text = made("claims:about", [RunDirectory(tmp_path / "runs" / name)], lines=["reiser4"]).text
    assert "Making files: reiser4 is not far behind reiserfs. `touch-reiser4-close` | 1.01 | **replicated**" in text
    assert "`touch-reiserfs-led-before`" not in text


def test_a_claim_is_brought_back_or_taken_away_by_a_run_with_one_change(tmp_path: Path) -> None:
    theirs = study_runs.printed("tum-2005")
    level = {variant: dict.fromkeys(steps, 1.0) for variant, steps in theirs.items()}
    first = study_runs.make(tmp_path, "tum-2005", level, seeds=5)
    alone = study_runs.make(tmp_path, "tum-2005", level)
    second = study_runs.make(tmp_path, "tum-2005", theirs, defaults="today")
    runs = [RunDirectory(tmp_path / "runs" / name) for name in (first, alone, second)]
    asked = [
        {"name": "tum-2005", "seeds": "1,2,3,4,5"},
        {"name": "tum-2005"},
        {"name": "tum-2005", "defaults": "today"},
    ]
    text = made("claims:fallen", runs, runs=asked).text
    assert "| nothing: one run seed alone | none | none |" in text
    [row] = [one for one in text.split("\n") if one.startswith("| `DEFAULTS=today`")]
    _, _, back, away, _ = row.split("|")
    assert "`sum-xfs-far`" in back and away.strip() == "none"
    assert "No change alone brings back" in text


def test_readings_of_a_study_stand_side_by_side_and_what_is_not_counted_says_so(tmp_path: Path) -> None:
    theirs = study_runs.printed("tum-2005")
    low, high = (
        {variant: {step: times * value for step, value in steps.items()} for variant, steps in theirs.items()}
        for times in (0.6, 3)
    )
    names = [study_runs.make(tmp_path, "tum-2005", ours, scale="paper") for ours in (low, high)]
    runs = [RunDirectory(tmp_path / "runs" / name) for name in names]
    asked = [{"name": "tum-2005"}, {"name": "tum-2005", "instead": "cold"}]
    lines = made("claims:readings", runs, runs=asked).text.split("\n")
    assert "| step | layout | as it is | `INSTEAD=cold` | between |" in lines
    assert "| write | single | 4 of 4, 0.60 | 0 of 4, 3.00 | 4 of 4 |" in lines
    assert "| read3 (in a circle) | single | not counted | not counted | - |" in lines


def test_what_a_run_takes_is_its_cells_time_shared_between_two(tmp_path: Path) -> None:
    run_ = run_builder.begin(tmp_path, run_builder.cells(["ext4", "reiser4"]))
    run_builder.end(run_, 0, [run_builder.sample()], host_seconds=240.0)
    run_builder.end(run_, 1, status=Status.UNSUPPORTED, reason="no module", host_seconds=0.0)
    asked = {"name": "aging", "filesystem": "ext4,reiser4", "seeds": "1"}
    text = made("forecast:takes", [run_], runs=[asked]).text
    command = "make scenario NAME=aging FS=ext4,reiser4 SEEDS=1 JOBS=2"
    # As the run says at its start: "2 cells at once: up to 2.9 GB of disk".
    assert text.split("\n")[-1] == f"| `{command}` | 2, 1 unsupported | about 2 min | 2.9 |"
