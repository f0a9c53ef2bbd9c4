"""The block layer before a modelled drive in a guest: each choice has times of its own, and the same ones each time."""

from pathlib import Path
from typing import Any

import pytest

from tests.vm.cells import run, scenario, step

pytestmark = pytest.mark.vm

STEPS = step("write", 'cp -r "$SOURCE" tree; sync') + step(
    "read",
    "find tree -type f | sort > /run/files; for rest in 0 1; do"
    ' awk "NR % 2 == $rest" /run/files | tr "\\n" "\\0" | xargs -0 cat > /dev/null & done; wait',
    'caches = "remount"',
)
CHOICES = ("scheduler=mq-deadline", "scheduler=bfq", "scheduler=none", "read_ahead_kib=16")


def cell(path: Path, block: str, code: int = 0) -> dict[str, Any]:
    """The one cell of a run with that block layer."""
    [found] = run(str(path), "--disks", "model:seagate-st340016a", "--block", block, code=code)
    return found


def elapsed(cell: dict[str, Any], name: str) -> float:
    [value] = [s["value"] for s in cell["samples"] if (s["step"], s["metric"]) == (name, "elapsed")]
    return float(value)


@pytest.mark.full
def test_each_scheduler_and_read_ahead_has_times_of_its_own_and_the_same_each_time(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, mib=8)
    found = {block: cell(path, block) for block in CHOICES}
    assert len({one["inputs_key"] for one in found.values()}) == len(CHOICES)
    times = {block: elapsed(one, "read") for block, one in found.items()}
    assert len(set(times.values())) == len(CHOICES), times
    again = cell(path, "scheduler=bfq")
    assert (again["inputs_key"], again["digest"]) == (
        found["scheduler=bfq"]["inputs_key"],
        found["scheduler=bfq"]["digest"],
    )


def test_what_the_kernel_refuses_fails_the_cell_in_words(tmp_path: Path) -> None:
    """bfq takes a penalty of 1 at least, and makes 1 of 0 without a word."""
    failed = cell(scenario(tmp_path, STEPS, mib=8), "scheduler=bfq,back_seek_penalty=0", code=1)
    assert (failed["status"], failed["reason"]) == (
        "failed",
        "drive0: the kernel has iosched/back_seek_penalty = 1, not 0",
    )


BESIDE = """
[beside]
filesystem = "ext3"
mib = { value = 128, origin = "estimated" }
partition = { at = 400, origin = "estimated" }
holds = "corpus"
origin = "estimated"
"""


def test_a_scattered_source_is_read_more_slowly(tmp_path: Path) -> None:
    read = step("read", 'find "$SOURCE" -type f -print0 | xargs -0 cat > /dev/null')
    path = scenario(tmp_path, BESIDE + read, mib=8)
    pristine, scattered = (
        run(str(path), "--disks", "model:seagate-st340016a", "--source", state)[0]
        for state in ("pristine", "scattered")
    )
    assert elapsed(scattered, "read") > elapsed(pristine, "read")
    assert scattered["inputs_key"] != pristine["inputs_key"]
