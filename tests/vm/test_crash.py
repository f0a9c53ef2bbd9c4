"""Crash states in real guests: who keeps its promises, who cannot, and that a state comes again."""

from pathlib import Path

import pytest

from agelab.cli.options import open_store
from agelab.runner.crash import crash, oracle
from agelab.runner.crash.crash import Answer

pytestmark = pytest.mark.vm
CALLS = "create A/new; append A/new 0 4096; fsync A/new; fsync A; rename A/new A/bar; sync"
PROGRAM = """#!/bin/sh
echo hello >A/new
sync
mv A/new A/foo
"""


def asked(workload: str, filesystem: str, **words: object) -> Answer:
    whole: dict[str, object] = {"kernel": "debian:6.1", "defaults": "today", "options": (), "mib": None}
    whole |= {"seed": 1, "drawn": 2, "budget": 2.0, **words}
    return crash.run(crash.ask(workload, filesystem, **whole), open_store())  # type: ignore[arg-type]


def lost_promises(answer: Answer) -> list[str]:
    return [found.state for found in answer.violations if oracle.Kind(found.kind).is_promise]


def test_ext4_keeps_what_it_promised_and_ext3_without_barriers_does_not() -> None:
    ext4 = asked(CALLS, "ext4")
    assert [found for found in ext4.violations if not found.is_torn] == []
    assert ext4.looked > 10
    ext3 = asked(CALLS, "ext3", defaults="period")
    states = lost_promises(ext3)
    assert states
    again = [crash.replay(ext3.name, states[0], open_store()) for _ in range(2)]
    assert again[0].disk == again[1].disk
    assert again[0].found == again[1].found != []


@pytest.mark.full
def test_nothing_is_kept_on_a_drive_that_ignores_what_keeps_it() -> None:
    assert lost_promises(asked("append A/foo 0 4096; fsync A/foo", "ext4", ignored=("flush", "fua")))


@pytest.mark.full
def test_a_script_is_watched_call_by_call(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(PROGRAM)
    answer = asked(str(script), "ext4")
    assert answer.promises
    assert [found for found in answer.violations if not found.is_torn] == []
