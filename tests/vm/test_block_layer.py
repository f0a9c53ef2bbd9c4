"""The block layer before a modelled drive in a guest: each choice has times of its own, and the same ones each time."""

from pathlib import Path
from typing import Any

import pytest

from tests.vm.cells import run, scenario, step

pytestmark = pytest.mark.vm

STEPS = step("write", 'for tree in 1 2; do cp -r "$SOURCE" $tree & done; wait; sync') + step(
    "read",
    "for tree in 1 2; do find $tree -type f -print0 | xargs -0 cat > /dev/null & done; wait",
    'caches = "remount"',
)
CHOICES = ("scheduler=mq-deadline", "scheduler=bfq", "scheduler=none", "read_ahead_kib=16")


def cell(path: Path, block: str, code: int = 0) -> dict[str, Any]:
    """The one cell of a run with that block layer."""
    [found] = run(str(path), "--disks", "model:seagate-st340016a", "--block", block, code=code)
    return found


def test_each_scheduler_and_read_ahead_has_times_of_its_own_and_the_same_each_time(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS)
    found = {block: cell(path, block) for block in CHOICES}
    assert len({one["inputs_key"] for one in found.values()}) == len(CHOICES)
    elapsed = {
        block: [s["value"] for s in one["samples"] if s["step"] == "read" and s["metric"] == "elapsed"]
        for block, one in found.items()
    }
    assert len({value for [value] in elapsed.values()}) == len(CHOICES), elapsed
    again = cell(path, "scheduler=bfq")
    assert (again["inputs_key"], again["digest"]) == (
        found["scheduler=bfq"]["inputs_key"],
        found["scheduler=bfq"]["digest"],
    )


def test_what_the_kernel_refuses_fails_the_cell_in_words(tmp_path: Path) -> None:
    """bfq takes a penalty of 1 at least, and makes 1 of 0 without a word."""
    failed = cell(scenario(tmp_path, STEPS), "scheduler=bfq,back_seek_penalty=0", code=1)
    assert (failed["status"], failed["reason"]) == (
        "failed",
        "drive0: the kernel has iosched/back_seek_penalty = 1, not 0",
    )
