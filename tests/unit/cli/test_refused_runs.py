"""Runs that this agelab cannot have written are refused clearly; other runs are read all the same."""

import json
import re
from typing import Any

import pytest

import agelab
from agelab.base.errors import InputError
from agelab.results import run_directory
from tests.build import hostile_runs
from tests.build.cli import Cli
from tests.build.run_readers import REFUSED, WORDS, Readers


@pytest.mark.parametrize("harm", ["schema", "plan", "end", "sample", "cut"])
def test_one_that_cannot_be_read_does_not_keep_others_from_being_listed(readers: Readers, harm: str, cli: Cli) -> None:
    good_ones = [hostile_runs.going_on(readers.home, 3, 0) for _ in range(2)]
    run = hostile_runs.going_on(readers.home, 3, 0)
    plan, end, samples = (run.path / name for name in ("plan.json", "cells/0/end.json", "samples.jsonl"))
    if harm == "schema":
        run = hostile_runs.write(readers.home, [hostile_runs.cell()], {}, [], schema=2)
    elif harm == "plan":
        plan.write_text(hostile_runs.sealed({"run": run.name}))
    elif harm == "end":
        end.write_text(hostile_runs.sealed({"status": "wonderful", "host_seconds": 1}))
    elif harm == "cut":
        plan.write_text(plan.read_text()[:100])
    else:
        samples.write_text('{"cell": 0}\n' + samples.read_text())
    run_directory.record_latest(good_ones[0].path)
    out, err = cli.run("list", code=0 if harm == "sample" else 2)  # a list does not read samples
    assert all(one.name in out for one in good_ones)
    assert harm == "sample" or (run.name in err and len(err.splitlines()) <= 2 and run.name not in out)
    # The latest is another, which nothing is wrong with; asked for by its name this one is refused.
    assert good_ones[0].name in cli.out("show", "latest")
    assert run.name in cli.err("show", run.name)
    run_directory.record_latest(run.path)
    assert run.name in cli.err("show")


@pytest.mark.parametrize(
    ("schema", "said", "now"),
    [
        (2, "was made by a newer agelab: its results are of schema 2, this one reads 1", "read it with that agelab"),
        (10**30, "was made by a newer agelab", "read it with that agelab"),
        (0, "results are of schema 0: there has been no such one", "the first was 1"),
        (-1, "of schema -1: there has been no such one", "the first was 1"),
        ("1", 'of schema "1": there has been no such one', "the first was 1"),
        (True, "of schema true: there has been no such one", "the first was 1"),
        (None, "of schema null: there has been no such one", "the first was 1"),
    ],
)
@pytest.mark.parametrize("reader", ["show", "list", "csv", "replicate", "compare", "sweep", "report", *REFUSED])
def test_results_of_another_schema_are_refused_with_what_to_do(
    readers: Readers, reader: str, schema: object, said: str, now: str
) -> None:
    # Of a newer one this agelab cannot know what else is in it.
    run = hostile_runs.write(readers.home, [hostile_runs.cell()], {}, [], schema=schema, more={"that is": "not known"})
    code, out, err = readers.read(WORDS[reader], run)
    assert code == 2 and not out.strip() and run.name in err
    assert said in err and (reader == "list" or now in err)
    with pytest.raises(InputError, match=re.escape(said)):
        agelab.load(run.name)


ROW = {"cell": 0, "step": "copy", "metric": "elapsed", "unit": "s", "repetition": 1, "value": 1.5}
Unfit = tuple[str, dict[str, Any]]
UNFIT: dict[str, Unfit] = {
    "a lone surrogate in a plan": ("plan.json", {"scenario": "\ud800"}),
    "one in its provenance": ("plan.json", {"provenance": {"qemu": "\udfff"}}),
    "one as a name": ("plan.json", {"provenance": {"\udfff": 1}}),
    "one in a reason": ("cells/0/end.json", {"status": "failed", "reason": "\udc80", "host_seconds": 1}),
    "no number of a cell": ("samples.jsonl", {**ROW, "cell": float("inf")}),
    "a part of a cell": ("samples.jsonl", {**ROW, "cell": 0.5}),
    "a cell that is true": ("samples.jsonl", {**ROW, "cell": True}),
    "a cell too many": ("samples.jsonl", {**ROW, "cell": 9}),
    "no number": ("samples.jsonl", {**ROW, "value": float("nan")}),
    "no end of a number": ("samples.jsonl", {**ROW, "value": "LARGE"}),
    "no time": ("cells/0/end.json", {"status": "ok", "host_seconds": float("nan")}),
    "no end of time": ("cells/0/end.json", {"status": "ok", "host_seconds": float("inf")}),
    "time before its begin": ("cells/0/end.json", {"status": "ok", "host_seconds": -1}),
    "a map of another directory": (
        "cells/0/end.json", {"status": "ok", "host_seconds": 1, "maps": {"../../x": "00"}},
    ),
    "no status": ("cells/0/end.json", {"status": "fine", "host_seconds": 1}),
    "a name too long": ("samples.jsonl", {**ROW, "step": "x" * hostile_runs.LONG}),
    "a variant too long": ("plan.json", {"cells": [hostile_runs.cell("v" * hostile_runs.LONG)]}),
    "no end of brackets": ("plan.json", {"provenance": {"x": "DEEP"}}),
    "a seed that nothing has": ("plan.json", {"cells": [hostile_runs.cell(seed=2**70)]}),
}  # fmt: skip
"""Contents that no run of agelab has: file, and the object or part of the plan in it."""


@pytest.mark.parametrize("what", UNFIT)
@pytest.mark.parametrize("reader", ["show-json", "csv", "compare", "report", "resume"])
def test_what_cannot_be_a_result_is_refused_by_the_name_of_its_file(readers: Readers, reader: str, what: str) -> None:
    run = hostile_runs.going_on(readers.home, 1, 1)
    name, part = UNFIT[what]
    path = run.path / name
    if name == "plan.json":
        plan = json.loads(path.read_text())
        del plan["seal"]
        part = {**plan, **part}
    path.write_text(hostile_runs.unsealed(part) + "\n")
    assert name in readers.refused(reader, run)


def test_half_a_character_is_shown_as_one(readers: Readers) -> None:
    """A lone surrogate: JSON can write it, no text can hold it. A sample that has one is shown with its escape."""
    run = hostile_runs.write(readers.home, [hostile_runs.cell()], {0: {"status": "ok"}}, [{**ROW, "step": "a\ud800"}])
    for reader in ("show", "csv", "jsonl", "junit"):
        assert ("a\\ud800" in readers.good(reader, run).replace("\\\\", "\\")) is (reader != "junit")
