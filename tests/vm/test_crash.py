"""Crash states in real guests: who keeps its promises, who cannot, and that a state comes again."""

from pathlib import Path

import pytest

from agelab.capsule import crash as capsule
from agelab.cli.options import open_store
from agelab.machine.drive.record import RequestKind
from agelab.runner.crash import crash, guests, oracle
from agelab.runner.crash.crash import Answer

pytestmark = pytest.mark.vm
CALLS = "create A/new; append A/new 0 4096; fsync A/new; fsync A; rename A/new A/bar; sync"
SOURCE = """#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	int fd = open("A/new", O_WRONLY | O_CREAT, 0644);

	return fd < 0 || write(fd, "all", 3) != 3 || fsync(fd) || rename("A/new", "A/bar");
}
"""
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
    again = crash.replay(ext3.name, states[0], open_store(), times=2)
    assert again.same == 2 and again.found != []


@pytest.mark.full
def test_what_was_wrong_is_wrong_again_in_a_file_of_another_store(tmp_path: Path) -> None:
    ext3 = asked(CALLS, "ext3", defaults="period")
    packed = tmp_path / "run.crash"
    capsule.pack(ext3.name, open_store(), packed)
    own = open_store().crashes / ext3.name
    own.rename(tmp_path / "away")  # the store is another one then, but for what guests are made of
    assert capsule.unpack(packed, open_store(), None) == ext3.name
    seen = crash.check(ext3.name, open_store())
    assert len(seen) == len(ext3.violations) > 0
    assert [one for one in seen if not (one.same_disk and one.same_verdict)] == []


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


@pytest.mark.full
def test_a_c_program_is_compiled_and_watched(tmp_path: Path) -> None:
    source = tmp_path / "save.c"
    source.write_text(SOURCE)
    answer = asked(str(source), "ext3", defaults="period")
    assert "fsync A/new" in [call.text for call in guests.load(open_store().crashes / answer.name).calls[0]]
    assert lost_promises(answer)


@pytest.mark.full
def test_a_check_of_ones_own_sees_what_nobody_promised(tmp_path: Path) -> None:
    check = tmp_path / "check"
    check.write_text("#!/bin/sh\n[ ! -e A/moved ] || [ -s A/moved ]\n")
    calls = "create A/new; append A/new 0 4096; rename A/new A/moved; append B/foo 0 100; fsync B/foo"
    answer = asked(calls, "ext4", check=str(check))
    assert [found.kind for found in answer.violations if not found.known] == [oracle.Kind.CHECK]
    assert [found.kind for found in answer.differences] == [oracle.Kind.EMPTIED]
    seen = crash.replay(answer.name, answer.differences[0].state, open_store())
    assert [found.kind for found in (*seen.found, *seen.differences)] == [oracle.Kind.CHECK, oracle.Kind.EMPTIED]


@pytest.mark.full
def test_each_cut_of_a_scenarios_step_is_looked_at() -> None:
    answer = asked("recovery:work", "ext3", defaults="period", budget=1.0)
    assert answer.states > 1000
    assert lost_promises(answer)


@pytest.mark.full
def test_what_the_modelled_drive_keeps_and_what_is_discarded_are_states() -> None:
    answer = asked("unlink A/bar; sync", "ext4", options=("discard",))
    part = guests.load(open_store().crashes / answer.name).parts[0]
    assert {entry.kind for entry in part.entries} >= {RequestKind.DISCARD, RequestKind.KEPT}
    assert [found for found in answer.violations if not found.is_torn] == []
    seen = crash.replay(answer.name, f"0:{len(part.entries)}:m", open_store())
    assert seen.found == []
