"""Guest output is data: none of its control characters reaches a terminal, and --json stays JSON."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from agelab.base.sanitize import escape_controls
from agelab.cli import agelab
from agelab.evaluate.derived_samples import repetition_ratios, syscall_shares
from agelab.results.result import EVENT, CellEnded, Sample, SampleSent, StepDone, StepFailed
from agelab.results.run_directory import RunDirectory
from agelab.scenario.step import Ratio
from tests.build import run_builder
from tests.build.cli import Cli

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \x7f \r back \u202etxt.exe \u2066 \u200f \u2028 \x00 \ufeff end"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def test_what_a_terminal_obeys_is_escaped_and_the_rest_left() -> None:
    found = escape_controls(HOSTILE)
    assert not OBEYED.search(found)
    assert "\\x1b[2J" in found and "\\u202etxt.exe" in found and found.endswith(" end")
    assert escape_controls("naïve Größe 文件\tand\nmore") == "naïve Größe 文件\tand\nmore"
    assert escape_controls("two\nlines", kept="") == "two\\nlines"
    assert escape_controls("\ud800") == "\\ud800"


def _event(**fields: object) -> str:
    return json.dumps(fields)


def test_events_hold_no_orders() -> None:
    sample = EVENT.validate_json(
        _event(event="sample", step=HOSTILE, repetition=1, metric=HOSTILE, value=1.5, unit=HOSTILE)
    )
    assert isinstance(sample, SampleSent)
    failed = EVENT.validate_json(_event(event="failed", step="a\nb", repetition=1, status=1, said=HOSTILE))
    assert isinstance(failed, StepFailed)
    ended = EVENT.validate_json(_event(event="end", status="failed", reason=HOSTILE))
    assert isinstance(ended, CellEnded) and ended.reason
    done = EVENT.validate_json(_event(event="step", step=HOSTILE, repetition=1))
    assert isinstance(done, StepDone)
    words = (sample.step, sample.metric, sample.unit, failed.said, ended.reason, done.step)
    assert not any(OBEYED.search(word) for word in words)
    assert failed.step == "a\\nb"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "[1]"])
def test_a_value_is_a_number_that_can_be_counted_with(value: str) -> None:
    line = '{"event":"sample","step":"a","repetition":1,"metric":"m","unit":"s","value":' + value + "}"
    with pytest.raises(ValidationError):
        EVENT.validate_json(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"failed","step":"a","repetition":1,"said":"","status":N}',
        '{"event":"step","step":"a","repetition":N}',
        '{"event":"begin","step":"a","repetition":N}',
        '{"event":"reboot","next":N}',
        '{"event":"sample","step":"a","repetition":N,"metric":"m","unit":"s","value":1}',
    ],
)
@pytest.mark.parametrize("number", ["-1", "9" * 400, "9" * 5000])
def test_a_number_that_python_could_not_even_print_is_no_event(line: str, number: str) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(line.replace("N", number))


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json('{"event":"end","status":"ok","reason":"\\ud800"}')


def hostile_run(runs: Path) -> RunDirectory:
    """A run whose guest has said the worst, written by somebody who does not escape anything."""
    run = run_builder.begin(runs.parent, [run_builder.cell()], scenario="hostile")
    row = {"cell": 0, "step": HOSTILE, "metric": "elapsed", "value": 1.0, "unit": "s", "repetition": 1}
    other = {**row, "metric": HOSTILE, "value": None, "not_measured": HOSTILE}
    (run.path / "samples.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(other) + "\n")
    task = {"pid": 1, "name": HOSTILE, "state": "D", "waits_in": HOSTILE, "stack": [HOSTILE]}
    end = {"status": "hung", "reason": HOSTILE, "stuck": [task], "host_seconds": 1}
    run.cell_directory(0).joinpath("end.json").write_text(json.dumps(end))
    return run


@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("list",), ("compare",)])
def test_a_result_that_is_shown_gives_no_orders(home: Path, words: tuple[str, ...]) -> None:
    run = hostile_run(home / "runs")
    verb, *options = words
    names = {"show": [run.name], "list": [], "compare": [run.name, run.name]}[verb]
    done = CliRunner().invoke(agelab, [verb, *names, *options])
    assert done.exit_code in (0, 1), done.output
    assert not OBEYED.search(done.output)
    if "--json" in options:
        [cell] = json.loads(done.output)["cells"]
        assert "\\x1b[2J" in cell["reason"]
    elif verb == "show":
        assert "\\x1b[2J" in done.output and "\\u202etxt.exe" in done.output


def test_an_error_gives_no_orders(home: Path, cli: Cli) -> None:
    (home / "runs").mkdir()
    said = cli.err("show", "x\x1b[2J")
    assert said and not OBEYED.search(said)


def test_forged_samples_break_neither_what_follows_from_them_nor_a_table(home: Path) -> None:
    run = hostile_run(home / "runs")
    rows = [
        Sample(step="copy", metric="throughput", value=1e-300, unit="B/s", repetition=1),
        Sample(step="copy", metric="throughput", value=1e19, unit="B/s", repetition=2),
        Sample(step="strace/read", metric="syscall_seconds", value=5e-324, unit="s"),
        Sample(step="other/read", metric="syscall_calls", value=1, unit="1"),
    ]
    ratio = Ratio(step="copy", metric="throughput", name="throughput_ratio")
    for sample in [*rows, *repetition_ratios([ratio], rows), *syscall_shares(rows)]:
        run.append(0, sample)
    assert [one.value for one in repetition_ratios([ratio], rows)] == [None]
    assert CliRunner().invoke(agelab, ["show", run.name]).exit_code == 0
