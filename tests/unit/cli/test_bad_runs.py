"""Bad input to every reader of runs: none breaks a page, a table or an export, and a terminal gets no orders."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import agelab
from agelab.base.sanitize import escape_controls
from agelab.results.run_directory import RunDirectory
from tests.build import hostile_runs
from tests.build.cli import Cli
from tests.build.hostile_runs import HOSTILE
from tests.build.run_readers import OBEYED, READERS, REFUSED, RESUME, WORDS, Readers

RUNS = 4
"""Runs that share the hostile texts."""


NOTHING_TO_COMPARE = ("no cell has begun", "no cells", "none is ok", "all unsupported")
"""Runs without a cell that is ok."""
STATES: dict[str, Callable[[Path], RunDirectory]] = {
    "no cell has begun": lambda home: hostile_runs.going_on(home, 0, 0),
    "some have ended": lambda home: hostile_runs.going_on(home, 1, 1),
    "all but one have ended": lambda home: hostile_runs.going_on(home, 2, 1),
}


@pytest.mark.parametrize("going_on", [True, False], ids=["going on", "given up"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("reader", [*WORDS, "load"])
def test_a_run_that_has_not_ended_is_read_as_far_as_it_is(
    readers: Readers, reader: str, state: str, going_on: bool
) -> None:
    run = STATES[state](readers.home)
    before = {path: path.stat().st_size for path in run.path.rglob("*")}
    with hostile_runs.held(run) if going_on else nullcontext():
        if reader == "report":
            assert run.name in " ".join(readers.page(run).words)
        elif reader == "load":
            frame = agelab.load()
            assert set(frame["cell"]) == {0, 1, 2}
            assert set(frame["status"]) <= {"ok", "interrupted"}
        elif reader in REFUSED or (reader.startswith("compare") and state in NOTHING_TO_COMPARE):
            readers.refused(reader, run)
        else:
            readers.good(reader, run)
    after = {path: path.stat().st_size for path in run.path.rglob("*") if path.name != "lock"}
    assert after == before, "a reader has written into the run"


def of_statuses(*statuses: str) -> Callable[[Path], RunDirectory]:
    """A run whose cells have all ended so, some of them with what they had measured before."""

    def make(home: Path) -> RunDirectory:
        cells = [hostile_runs.cell(name, seed) for name in ("ext4", "xfs") for seed, _ in enumerate(statuses)]
        why = {"reason": "Kernel panic - not syncing: it was so"}
        ends = {number: {"status": statuses[cell["seed"]], **why} for number, cell in enumerate(cells)}
        return hostile_runs.write(home, cells, ends, [*hostile_runs.samples(0), *hostile_runs.samples(1)])

    return make


EMPTY: dict[str, Callable[[Path], RunDirectory]] = {
    "no cells": lambda home: hostile_runs.write(home, [], {}, []),
    "no samples": lambda home: hostile_runs.write(home, [hostile_runs.cell()], {0: {"status": "ok"}}, []),
    "nothing measured": lambda home: hostile_runs.write(
        home,
        [hostile_runs.cell(), hostile_runs.cell("xfs")],
        {0: {"status": "ok"}, 1: {"status": "ok"}},
        [row for number in range(2) for row in hostile_runs.samples(number, why="no such counter")],
    ),
    "none is ok": of_statuses("failed", "panicked", "hung", "interrupted", "unsupported"),
    "all unsupported": of_statuses("unsupported"),
}


@pytest.mark.parametrize("state", EMPTY)
@pytest.mark.parametrize("reader", [*WORDS, "load"])
def test_a_run_with_nothing_in_it_is_read(readers: Readers, reader: str, state: str) -> None:
    run = EMPTY[state](readers.home)
    if reader == "report":
        said = " ".join(readers.page(run).words)
        assert ("it was so" in said) is (state in ("none is ok", "all unsupported"))
    elif reader == "load":
        assert len(agelab.load()) == sum(max(1, len(run.samples().get(n, []))) for n, _ in enumerate(run.plan().cells))
    elif state == "no cells" and reader.startswith(("sweep", "replicate")):
        assert f"{run.name} has no cells" in readers.refused(reader, run)
    elif reader in REFUSED or (reader.startswith("compare") and state in NOTHING_TO_COMPARE):
        readers.refused(reader, run)
    else:
        readers.good(reader, run)


GROUPS = {" ".join(names): [HOSTILE[name] for name in names] for names in ([*HOSTILE][at::RUNS] for at in range(RUNS))}
"""The hostile texts, some to a run."""


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("reader", [*WORDS, "load"])
def test_a_hostile_text_is_a_text(readers: Readers, reader: str, group: str) -> None:
    words = GROUPS[group]
    # A study is looked for by the scenario's name, so that its readers need one that there is.
    study = {"scenario": "aging"} if reader.startswith("replicate") else {}
    run = hostile_runs.hostile(readers.home, *words, **study)
    if reader == "report":
        found = readers.page(run)
        shown = " ".join(" ".join(found.words).split())
        assert not [word for word in words if " ".join(escape_controls(word).split()) not in shown]
    elif reader == "load":
        assert {escape_controls(word, kept="") for word in words} <= set(agelab.load()["variant"])
    elif reader == "resume":
        code, out, _ = readers.read(RESUME, run)
        assert code == 1 and "nothing is left to run" in out
    elif reader == "pack":
        readers.refused(reader, run)
    else:
        out = readers.good(reader, run)
        if reader == "show":
            shown = " ".join(out.split())
            assert not [word for word in words if " ".join(escape_controls(word).split()) not in shown]


def test_a_very_long_reason_is_a_reason(readers: Readers) -> None:
    """A console's last words may be many: no reader takes long over them."""
    long = "Kernel panic - not syncing: " + "x" * hostile_runs.LONG
    run = hostile_runs.write(readers.home, [hostile_runs.cell()], {0: {"status": "panicked", "reason": long}}, [])
    usual = csv.field_size_limit(2 * hostile_runs.LONG)
    try:
        for reader in ("show", "csv", "junit", "sweep", "replicate"):
            assert long in readers.good(reader, run)
    finally:
        csv.field_size_limit(usual)
    assert long in " ".join(readers.page(run).words)


def test_a_directory_may_have_any_name(readers: Readers) -> None:
    run = hostile_runs.going_on(readers.home, 3, 0)
    moved = RunDirectory(run.path.rename(run.path.with_name("x\x1b[2J\u202e\n<b>|=1")))
    for reader in [*READERS, "report", "resume"]:
        words = tuple("latest" if word == "RUN" else word for word in WORDS[reader])
        code, _, err = readers.read(words, moved)
        assert code == (2 if reader == "resume" else 0), err


def test_inputs_that_differ_are_shown_as_text(readers: Readers, cli: Cli) -> None:
    words = list(HOSTILE.values())
    runs = [hostile_runs.going_on(readers.home, 3, 0) for _ in range(2)]
    for run, said in zip(runs, (words, words[::-1]), strict=True):
        place = run.path / "cells" / "0" / "inputs.json"
        place.write_text(json.dumps({"making": {word: word for word in said[:9]}, "measuring": said}))
    code, out, _ = cli.ended("compare", runs[0].name, runs[1].name, "--inputs")
    assert code in (0, 1)
    assert not OBEYED.search(out) and "\\x1b[2J" in out and "input making." in out


WRITER = """
import sys, time
from pathlib import Path
from agelab.results.result import End, Sample, Status
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.run_directory import RunDirectory

run, until = RunDirectory(Path(sys.argv[1])), time.monotonic() + float(sys.argv[2])
with run.lock():
    turn = 0
    while time.monotonic() < until:
        turn += 1
        for number in range(3):
            if turn > 1 and number:
                run.restart_cell(number)
            elif turn > 1:
                continue
            run.write_inputs(number, {"turn": turn, "cell": number})
            rows = []
            for repetition in range(1, 30):
                row = Sample(step="copy", metric="elapsed", value=turn + repetition, unit="s", repetition=repetition)
                run.append(number, row)
                rows.append(row)
                if repetition % 7 == 0:
                    with (run.path / "samples.jsonl").open("a") as file:
                        file.write('{"cell": 0, "step": "co')
            status = Status.INTERRUPTED if number else Status.OK
            said = digest(status, rows, {})
            key = inputs_key({"turn": turn, "cell": number})
            run.finish(number, End(status=status, digest=said, inputs_key=key, host_seconds=1))
            if turn == 1 and number == 0:
                print("first cell written", flush=True)
print(turn)
"""
"""Carries a run out, in no time: the first cell once, the others again and again, as resume does."""


def test_a_run_is_read_while_it_is_written(readers: Readers) -> None:
    run = hostile_runs.going_on(readers.home, 0, 0)
    verbs = [READERS[name][0] for name in ("show", "show-json", "list", "csv", "junit", "compare")]
    seconds = 4
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run.path), str(seconds)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout and writer.stdout.readline() == "first cell written\n"
        looks = 0
        while writer.poll() is None:
            code, _, err = readers.read(verbs[looks % len(verbs)], run)
            assert code == 0, err
            [first, *_] = run.as_json()["cells"]
            assert len(first["samples"]) == 29
            looks += 1
        assert writer.returncode == 0 and int(writer.stdout.read()) > 1 and looks > len(verbs)
    run.verify()
