"""The real harness on this host, in a temporary directory, spoken to as the host speaks to it."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from agelab.evaluate import event_code
from agelab.results.result import (
    EVENT,
    CellEnded,
    Event,
    HarnessReady,
    PowerIsCut,
    RebootRequested,
    SampleSent,
    StepBegun,
    StepDone,
    StepFailed,
)
from agelab.scenario.metrics import METRICS

PROJECT = Path(__file__).resolve().parents[2]


def plan(*steps: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A plan without corpus and disk: what is left needs no privileges."""
    whole = {"name": "it", "repetition": 1, "run": "true", "caches": "keep", "sync": False, "pause": 0}
    whole |= {
        "expect": [0], "refuses": [], "deadline": 60, "moves": None, "records": [], "trace": None, "disk": 0,
    }  # fmt: skip
    return {
        "boot": 0,
        "first_step": 0,
        "booted_at": None,
        "entropy": "00" * 32,
        "dilation": 1.0,
        "start_at": None,
        "memory": {"available": None, "sysctl": {}},
        "corpus": None,
        "drives": [],
        "block": None,
        "copy_prices": None,
        "disks": [],
        "swap": None,
        "tell_mount": False,
        "links": {},
        "beside": None,
        "maps": [],
        "results": None,
        "refuses": [],
        "gone": [],
        "environment": {"CORPUS_SEED": "7"},
        "steps": [whole | step for step in steps],
    } | changes


def heard(tmp_path: Path, written: dict[str, Any]) -> list[Event]:
    """Every event of one boot of that plan."""
    (tmp_path / "plan.json").write_text(json.dumps(written))
    for name in ("mnt", "scratch"):
        (tmp_path / name).mkdir(exist_ok=True)
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from harness.main import main; main()"
    secret = bytes(range(event_code.SECRET_BYTES))
    (tmp_path / "secret").write_bytes(secret)
    places = {"plan": "plan.json", "secret": "secret", "events": "events", "mountpoint": "mnt", "scratch": "scratch"}
    words = [word for name, place in places.items() for word in (f"--{name}", str(tmp_path / place))]
    command = ["/usr/bin/python3", "-SB", "-c", program, str(PROJECT), *words, "--stay"]
    (tmp_path / "events").unlink(missing_ok=True)
    subprocess.run(command, check=True, timeout=60)
    lines = [line for line in (tmp_path / "events").read_text().splitlines() if line]
    decoded = [event_code.decode(line, secret) for line in lines]
    assert [number for number, _ in decoded] == [*range(1, len(lines) + 1)]
    return [EVENT.validate_json(text) for _, text in decoded]


def samples(events: list[Event], step: str, metric: str) -> list[SampleSent]:
    return [e for e in events if isinstance(e, SampleSent) and (e.step, e.metric) == (step, metric)]


def test_it_says_ready_then_each_step_then_the_end(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"name": "one"}, {"name": "two"}))
    assert isinstance(events[0], HarnessReady)
    assert [e.step for e in events if isinstance(e, StepDone)] == ["one", "two"]
    assert events[-1] == CellEnded(event="end", status="ok", reason=None)


def test_elapsed_covers_the_command_and_not_the_pause(tmp_path: Path) -> None:
    started = time.monotonic()
    events = heard(tmp_path, plan({"run": "sleep 0.3", "pause": 0.4}))
    whole = time.monotonic() - started
    [elapsed] = samples(events, "it", "elapsed")
    assert isinstance(elapsed.value, float)
    assert 0.3 <= elapsed.value <= whole - 0.4


def test_times_of_plan_and_samples_are_the_machines(tmp_path: Path) -> None:
    """A second of the guest's clock is half a second of this machine."""
    started = time.monotonic()
    step = {"run": "sleep 0.4", "pause": 0.2, "moves": 1000}
    events = heard(tmp_path, plan(step, dilation=0.5))
    assert time.monotonic() - started >= 0.8
    [elapsed], [throughput] = (samples(events, "it", metric) for metric in ("elapsed", "throughput"))
    assert isinstance(elapsed.value, float) and isinstance(throughput.value, float)
    assert 0.2 <= elapsed.value < 0.4
    assert abs(throughput.value * elapsed.value - 1000) < 1
    hung = heard(tmp_path, plan({"run": "sleep 1.2", "deadline": 0.5}, dilation=0.5))[-1]
    assert isinstance(hung, CellEnded) and "no end within 0.5 s" in (hung.reason or "")
    ended = heard(tmp_path, plan({"run": "sleep 0.7", "deadline": 0.5}, dilation=0.5))[-1]
    assert ended == CellEnded(event="end", status="ok", reason=None)


def test_a_path_leads_elsewhere_unless_something_is_there(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("found")
    links = {str(tmp_path / "some/where"): str(tmp_path / "target")}
    events = heard(tmp_path, plan({"run": f"grep -q found {tmp_path}/some/where"}, links=links))
    assert events[-1] == CellEnded(event="end", status="ok", reason=None)
    again = heard(tmp_path, plan({}, links=links))[-1]
    assert isinstance(again, CellEnded) and again.status == "failed"
    assert again.reason and again.reason.endswith("some/where is there already: nothing else can be found there")


def test_every_metric_is_registered_with_its_unit(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"moves": 1000, "sync": True}))
    found = {e.metric: e.unit for e in events if isinstance(e, SampleSent)}
    assert {"elapsed", "throughput", "sync_elapsed", "cpu_user", "requests", "space_used"} <= set(found)
    assert found == {metric: METRICS[metric].unit for metric in found}


def test_without_a_disk_its_counters_are_not_measured_and_say_why(tmp_path: Path) -> None:
    [requests] = samples(heard(tmp_path, plan({})), "it", "requests")
    assert requests.value is None
    assert requests.not_measured == "the kernel keeps no counters of it"


def test_steps_see_their_repetition_and_the_seed(tmp_path: Path) -> None:
    heard(tmp_path, plan({"run": 'echo "$REPETITION $CORPUS_SEED" > seen', "repetition": 3}))
    assert (tmp_path / "mnt" / "seen").read_text() == "3 7\n"


def test_an_unexpected_status_is_told_with_the_last_words(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"run": "echo alas >&2; exit 3"}, {"name": "next"}))
    [failed] = [e for e in events if isinstance(e, StepFailed)]
    assert (failed.step, failed.status, failed.said) == ("it", 3, "alas")
    assert samples(events, "next", "elapsed")


def test_an_expected_status_is_no_failure(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"run": "exit 3", "expect": [0, 3]}))
    assert not [e for e in events if isinstance(e, StepFailed)]


def test_a_step_past_its_deadline_is_hung_and_the_last(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"run": "sleep 30", "deadline": 0.2}, {"name": "never"}))
    ended = events[-1]
    assert isinstance(ended, CellEnded) and ended.status == "hung" and ended.reason
    assert ended.reason.startswith("step it, repetition 1: no end within 0.2 s of guest time; ")
    [sleeps] = [task for task in ended.stuck if task.name == "sleep"]
    assert sleeps.state in ("S", "R", "D")  # on a busy host it is still being loaded
    assert not samples(events, "never", "elapsed")


def test_each_step_is_told_of_before_it_begins(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"name": "one"}, {"name": "two", "repetition": 3}))
    kinds = [e for e in events if isinstance(e, StepBegun | StepDone)]
    assert [(type(e), e.step, e.repetition) for e in kinds] == [
        (StepBegun, "one", 1), (StepDone, "one", 1), (StepBegun, "two", 3), (StepDone, "two", 3),
    ]  # fmt: skip


def test_a_reboot_ends_the_boot_before_its_step_and_the_next_boot_begins_with_it(tmp_path: Path) -> None:
    steps = ({"name": "one"}, {"name": "two", "caches": "reboot"})
    events = heard(tmp_path, plan(*steps))
    assert events[-1] == RebootRequested(event="reboot", next=1)
    assert not samples(events, "two", "elapsed")
    events = heard(tmp_path, plan(*steps, boot=1, first_step=1))
    assert [e.step for e in events if isinstance(e, StepDone)] == ["two"]
    assert isinstance(events[-1], CellEnded)


def test_what_a_filesystem_cannot_hold_is_counted_and_is_no_failure(tmp_path: Path) -> None:
    link = "cp: cannot create symbolic link .*: Operation not permitted"
    line = "cp: cannot create symbolic link 'a': Operation not permitted"
    steps = [
        {"name": "links", "run": f'echo "{line}" >&2; echo "{line}" >&2; exit 1'},
        {"name": "more", "run": f'echo "{line}" >&2; echo "cp: no space" >&2; exit 1'},
        {"name": "mute", "run": "exit 1"},
        {"name": "good", "run": "true"},
    ]
    events = heard(tmp_path, plan(*steps, refuses=[link]))
    assert [(e.step, e.value) for e in events if isinstance(e, SampleSent) and e.metric == "refused"] == [("links", 2)]
    assert [e.step for e in events if isinstance(e, StepFailed)] == ["more", "mute"]


def test_what_a_step_takes_for_a_result_is_counted_with_what_the_filesystem_cannot_hold(tmp_path: Path) -> None:
    run = "echo 'cp: a: no link' >&2; echo 'cp: b: No space left on device' >&2; exit 1"
    full = {"refuses": ["cp: .*: No space left on device"]}
    steps: list[dict[str, Any]] = [{"name": "fill", "run": run, **full}, {"name": "other", "run": run}]
    events = heard(tmp_path, plan(*steps, refuses=["cp: .*: no link"]))
    assert [s.value for s in samples(events, "fill", "refused")] == [2]
    assert [e.step for e in events if isinstance(e, StepFailed)] == ["other"]


def test_a_step_records_the_number_that_it_prints(tmp_path: Path) -> None:
    steps = [
        {"name": "count", "run": "echo 42", "records": [["content_bytes", "B"]]},
        {"name": "words", "run": "echo 4 2", "records": [["content_bytes", "B"]]},
    ]
    events = heard(tmp_path, plan(*steps))
    [good] = samples(events, "count", "content_bytes")
    [bad] = samples(events, "words", "content_bytes")
    assert (good.value, good.unit) == (42, "B")
    assert bad.value is None and "no whole number: '4 2'" in (bad.not_measured or "")


def test_a_step_records_as_many_numbers_as_it_has_metrics_for(tmp_path: Path) -> None:
    both = {"records": [["files_synced", "1"], ["files_intact", "1"]]}
    steps = [{"name": "two", "run": "echo 7; echo 6", **both}, {"name": "one", "run": "echo 7", **both}]
    events = heard(tmp_path, plan(*steps))
    assert [samples(events, "two", metric)[0].value for metric in ("files_synced", "files_intact")] == [7, 6]
    [bad] = samples(events, "one", "files_intact")
    assert bad.value is None and bad.not_measured == "the step printed not 2 whole numbers: '7'"


def test_a_step_whose_power_is_cut_is_told_of_and_is_the_last(tmp_path: Path) -> None:
    run = 'echo 17 > "$SAFE"; sleep 30'
    events = heard(tmp_path, plan({"run": run, "cut_after": 0.5}, {"name": "never"}))
    told = events[-1]
    assert isinstance(told, PowerIsCut)
    assert (told.step, told.repetition, told.next, told.survived) == ("it", 1, 1, "17\n")
    assert 0 < time.monotonic() - told.at / 1e9 < 30
    [after] = samples(events, "it", "cut_after")
    assert after.value is not None and 0.5 <= after.value < 5
    # It never ended: there is nothing else to know of it.
    assert not samples(events, "it", "elapsed") and not samples(events, "never", "elapsed")


def test_a_step_that_ends_before_its_cut_fails_the_cell(tmp_path: Path) -> None:
    events = heard(tmp_path, plan({"run": "true", "cut_after": 20}, {"name": "never"}))
    assert events[-1] == CellEnded(
        event="end",
        status="failed",
        reason="step it, repetition 1, ended before its power was to be cut, 20 s after it began",
    )
    assert samples(events, "it", "elapsed") and not samples(events, "never", "elapsed")


def test_a_boot_after_the_last_step_was_cut_has_no_more_to_do(tmp_path: Path) -> None:
    ready, *between, ended = heard(tmp_path, plan({"run": "touch ran"}, boot=1, first_step=1))
    assert isinstance(ready, HarnessReady) and ready.boot == 1
    assert not [e for e in between if isinstance(e, StepBegun | StepDone | StepFailed)]
    assert {e.step for e in between if isinstance(e, SampleSent)} == {"boot"}
    assert ended == CellEnded(event="end", status="ok", reason=None)
    assert not (tmp_path / "mnt/ran").exists()


def test_a_refusal_that_names_an_odd_file_is_one_line(tmp_path: Path) -> None:
    run = r"printf 'replay: line 3: create a\rb: No space left on device\n' >&2; exit 1"
    events = heard(tmp_path, plan({"run": run, "refuses": ["replay: .*: No space left on device"]}))
    assert [one.value for one in samples(events, "it", "refused")] == [1]


def test_the_steps_know_what_the_filesystem_refuses(tmp_path: Path) -> None:
    """Some go on where nothing else went wrong (fill); grep and Python must read the patterns alike."""
    patterns = ["cp: cannot create .*: Operation not permitted", "ln: (a|b)"]
    run = (
        'printf "ln: b\\ncp: cannot create x: Operation not permitted\\n" | grep -qvxE "$REFUSES" && exit 1;'
        ' echo "ln: bc" | grep -qvxE "$REFUSES"'
    )
    events = heard(tmp_path, plan({"run": run}, {"run": "echo | grep -qvxE x", "name": "b"}, refuses=patterns))
    assert not [e for e in events if isinstance(e, StepFailed)]
