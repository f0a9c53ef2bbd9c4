"""Which tasks the harness tells of when a step's time is over."""

import subprocess
from typing import Any

import pytest

from harness.tasks import named, stuck


def task(name: str, state: str, waits_in: str = "") -> dict[str, Any]:
    return {"pid": 7, "name": name, "state": state, "waits_in": waits_in, "stack": []}


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([], ""),
        ([task("sync", "D", "wb_wait"), task("sh", "S", "do_wait")], "blocked: sync (D, wb_wait)"),
        ([task("sh", "R")], "its tasks: sh (R)"),
        ([task(name, "S", "f") for name in "abcd"], "its tasks: a (S, f), b (S, f), c (S, f)"),
    ],
)
def test_a_reason_names_the_blocked_or_else_the_steps_own(tasks: list[dict[str, object]], said: str) -> None:
    assert named(tasks) == said


def test_the_tasks_of_a_session_are_found() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as child:
        own = [one for one in stuck(child.pid) if one["pid"] == child.pid]
        assert len(own) == 1 and own[0]["name"] and isinstance(own[0]["stack"], list)
        child.communicate()
    assert not [one for one in stuck(child.pid) if one["state"] != "D"]
