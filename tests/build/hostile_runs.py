"""Build hostile and damaged runs on disk, as a writer would leave them who escapes and checks nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from agelab.base.hashing import key_of
from agelab.results.checksummed import SEAL
from agelab.results.run_directory import RunDirectory
from agelab.scenario.metrics import METRICS

LONG = 1_000_000
"""Characters of a name that is too long."""
HOSTILE = {
    "script": '<script>alert("in")</script><img src=x onerror=alert(1)>',
    "end-of-script": "</script></style></title><!--",
    "cdata": "]]> <![CDATA[ & &amp; &#0; <!DOCTYPE x>",
    "quotes": "\"double\" 'single' `back` \\ \\n",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+1",
    "minus": "-2+3",
    "at": "@SUM(1+1)*cmd",
    "tab-formula": "\t=1+1",
    "formula-in-another-cell": 'a;=1+1;"=2+2";@b\n=3+3\n"=4+4"\t=5+5',
    "full-width": "\uff1d1\uff0b1",
    "newlines": "two\r\nlines\nand\x0bmore\x0c\x85\u2028\u2029end",
    "nul": "a\x00b\x01\x02\x7f\x9b31m",
    "ansi": "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "osc8": "\x1b]8;;http://127.0.0.1:9/\x1b\\link\x1b]8;;\x1b\\",
    "bidi": "\u202etxt.exe \u2066 \u200f \u061c \ufeff",
    "rich": "[red]red[/red] [link=http://127.0.0.1:9/]x[/link] [/] :smile:",
    "markdown": "a | b ![x](http://127.0.0.1:9/) [x](javascript:alert(1)) **b** `c` # <b>",
    "xml": "\ufffe\uffff\U0001f600",
    "template": "{{ 7 * 7 }} {% raw %} ${x} %s {0}",
    "path": "../../../../tmp/x/..",
    "empty": "",
    "blank": "   ",
}
"""Hostile texts for names and kernel messages."""
STEPS = ("copy", "aged/read", "control/read")


def cell(variant: str = "ext4", seed: int = 1, word: str | None = None) -> dict[str, Any]:
    """A plan's cell; each of its words is ``word`` where that is given."""
    names = {
        "variant": variant, "filesystem": variant, "layout": "single", "kernel": "6.1.0-56-amd64", "machine": "m",
        "accelerator": "tcg",
    }  # fmt: skip
    said = names if word is None else dict.fromkeys(names, word)
    drives = ["model:none"] if word is None else [word, word]
    return {**said, "drives": drives, "defaults": "period", "seed": seed}


def samples(number: int, word: str | None = None, why: str | None = None) -> Iterator[dict[str, Any]]:
    """A cell's samples, with a step, a metric and a unit that are ``word``; with ``why`` none of them has a value."""
    value = None if why is not None else 1.5 + number
    reason = {} if why is None else {"not_measured": why}

    def row(step: str, metric: str, unit: str, repetition: int = 1) -> dict[str, Any]:
        about = {"cell": number, "step": step, "metric": metric, "unit": unit, "repetition": repetition}
        return {**about, "value": value, **reason}

    for step in (*STEPS, *([] if word is None else [word, f"aged/{word}", f"control/{word}"])):
        for repetition in (1, 2):
            yield row(step, "elapsed", "s", repetition)
    for test in ("read", *([] if word is None else [word])):
        yield row(test, "slowdown", "1")
    for metric in ("layout_score", "free_extents", "extents"):
        for side in ("aged/map", "control/map"):
            yield row(side, metric, METRICS[metric].unit)
    if word is not None:
        yield row("copy", word, word)
        yield {**row("copy", "requests", word), "value": None, "not_measured": word}
        yield row(f"strace/{word}/{word}", "syscall_seconds", "s")
        yield row(f"strace/{word}/{word}", "syscall_share", "1")
    if why is not None:
        for metric in METRICS:
            yield row(f"every/{metric}", metric, METRICS[metric].unit)


def write(
    home: Path,
    cells: Sequence[Mapping[str, Any]],
    ends: Mapping[int, Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    **plan: Any,
) -> RunDirectory:
    """The run of these cells, their end records and samples; ``plan`` stands in place of what a plan has."""
    run = RunDirectory.create(home / "runs", "bad")
    said = {
        "schema": 1, "run": run.name, "scenario": "aging", "scale": "quick", "clock": "virtual", "cells": cells,
        "kernel": {"spec": "debian:6.1", "release": "6.1.0-56-amd64", "version": "6.1.192-2"}, "provenance": {},
        **plan,
    }  # fmt: skip
    (run.path / "plan.json").write_text(sealed(said))
    (run.path / "samples.jsonl").write_text("".join(sealed(row) + "\n" for row in rows))
    for number, end in ends.items():
        place = run.path / "cells" / str(number)
        place.mkdir(parents=True)
        (place / "end.json").write_text(sealed({"host_seconds": 1.5, **end}))
    return run


def sealed(value: Mapping[str, Any]) -> str:
    """As agelab writes it; what has no canonical text (a lone surrogate, NaN) without a seal."""
    try:
        return json.dumps({**value, SEAL: key_of(value)})
    except ValueError:
        return json.dumps(value)


def unsealed(value: Mapping[str, Any]) -> str:
    """As somebody writes it who knows of no seal; DEEP and LARGE stand for what Python would not write."""
    text = json.dumps(value).replace('"DEEP"', "[" * 2000 + "]" * 2000)
    return text.replace('"LARGE"', "9" * 5000)


def hostile(home: Path, *words: str, **plan: Any) -> RunDirectory:
    """A run in which everything that is a text is one of those; two cells for each, and one of no harm."""
    cells = [cell(word=word, seed=seed) for word in words for seed in (1, 2)] + [cell("xfs")]
    ends: dict[int, Mapping[str, Any]] = {len(cells) - 1: {"status": "ok"}}
    rows = [*samples(len(cells) - 1)]
    for number, word in enumerate(words):
        ends[2 * number] = {"status": "ok", "reason": word, "disk": word}
        rows += samples(2 * number, word)
        task = {"pid": 7, "name": word, "state": word, "waits_in": word, "stack": [word, word]}
        status = ("panicked", "hung", "failed", "unsupported")[number % 4]
        ends[2 * number + 1] = {"status": status, "reason": word, "stuck": [task]}
    one, *_, other = words
    told = dict.fromkeys(("kernel", "qemu", "model", "corpus_sha256"), other)
    texts = {
        "scenario": one, "scale": other, "clock": one, "unstated": words, "histories": {one: {other: one}},
        "provenance": {**told, **{f"x{word}": [word, {word: word}] for word in words}},
        "kernel": {"spec": one, "release": other, "version": one},
        "command": {
            "directory": f"/nowhere/{one}", "name": other, "options": {"corpus": one, "control": None},
        },
    }  # fmt: skip
    return write(home, cells, ends, rows, **{**texts, **plan})


def going_on(home: Path, ended: int, begun: int, cells: int = 3) -> RunDirectory:
    """A run of which so many cells have ended, and the next ones begun; its last line is half written."""
    rows = [row for number in range(ended + begun) for row in samples(number)]
    run = write(
        home,
        [cell(name) for name in ("ext4", "xfs", "btrfs", "jfs")[:cells]],
        {number: {"status": "ok"} for number in range(ended)},
        rows,
    )
    half = sealed({"cell": 0, "step": "copy", "metric": "elapsed", "value": 1, "unit": "s"})[:40]
    with (run.path / "samples.jsonl").open("a") as file:
        file.write(half)
    for number in range(ended, ended + begun):
        place = run.path / "cells" / str(number)
        place.mkdir(parents=True)
        (place / "events-0.jsonl").write_text('{"event": "begin", "step": "co')
        (place / "inputs.json").write_text(json.dumps({"cell": number}))
    return run


@contextmanager
def held(run: RunDirectory) -> Iterator[None]:
    """Somebody carries the run out."""
    with (run.path / "lock").open("w") as file:
        flock(file, LOCK_EX)
        yield
