"""Real git bisect over a made-up kernel tree: what it finds, in how many steps, and how it goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from math import ceil, log2
from pathlib import Path
from random import Random

import pytest

from agelab.base.errors import HostError, InputError
from agelab.bisect import git_search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory, Symptom
from agelab.bisect.measurements import Decision, KernelOutcome, OutcomeKind
from agelab.present.view.bisect import answer_lines
from agelab.store.artefacts import Store
from tests.build import simulated_bisect as simulated
from tests.build.simulated_bisect import LAST, planted
from tests.build.waiting import until
from tests.capabilities import needs_root


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of commits 0 to LAST."""
    path = tmp_path_factory.mktemp("tree") / "linux"
    simulated.history(path, LAST + 1)
    return path


def asked(
    store: Store, linux: Path, behaviour: Mapping[str, object], last: int = LAST, **other: object
) -> BisectDirectory:
    return simulated.asked_of_tree(store, linux, behaviour, "v6.0", f"v6.{last}", **other)


def name(found: BisectAnswer) -> str:
    """The subject of the one commit that was found."""
    assert found.found, found.names
    return found.names[0].partition(" ")[2].strip('"')


JUMP = 5
"""Verdicts that git's jump away from a skipped commit may cost."""


def steps_allowed(found: BisectAnswer, candidates: int) -> int:
    return ceil(log2(candidates)) + found.skipped + JUMP


@pytest.mark.parametrize(
    ("first_bad", "last"),
    [(64, 64), (20, 47), (1, 1), *(pytest.param(*one, marks=pytest.mark.full) for one in ((1, 64), (33, 64), (2, 3)))],
)
def test_the_commit_is_found_in_as_many_steps_as_halving_takes(
    store: Store, linux: Path, first_bad: int, last: int
) -> None:
    directory = asked(store, linux, planted(first_bad, last), last)
    found = simulated.carry_out(directory)
    assert name(found) == str(first_bad)
    assert found.before.name.endswith(f'"{first_bad - 1}"') and found.after.kernel == found.possible[0]
    assert (found.before.values[0], found.after.values[0]) == (1.0, 2.0)
    assert found.steps <= ceil(log2(last)) and found.skipped == 0 and not found.remarks
    ends = ["0 1", f"{last} 1", "0 2"]
    assert simulated.calls(directory)[:3] == ends and len(simulated.calls(directory)) == 10 + found.steps
    assert json.loads((directory.path / "answer.json").read_text())["steps"] == found.steps


def test_the_user_s_tree_is_not_touched(store: Store, linux: Path) -> None:
    def state() -> list[str]:
        return sorted(
            f"{path.relative_to(linux)} {path.stat().st_mtime_ns} {path.stat().st_size}"
            for path in linux.rglob("*")
            if path.name != "index"  # git status may refresh it
        )

    before = state()
    directory = asked(store, linux, planted(20))
    assert name(simulated.carry_out(directory)) == "20"
    assert state() == before
    log = (directory.path / "bisect.log").read_text()
    assert "git bisect start" in log and "# first bad commit: [" in log


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 6))])
def test_commits_that_cannot_be_judged_are_skipped_and_cost_no_more_than_themselves(
    store: Store, linux: Path, seed: int
) -> None:
    random = Random(seed)
    first_bad = random.randint(5, LAST - 5)
    broken = random.sample(range(1, LAST), 12)
    kinds = [
        OutcomeKind.NO_BUILD, OutcomeKind.NO_BOOT, OutcomeKind.PANICS, OutcomeKind.HANGS, OutcomeKind.FAILS,
        OutcomeKind.UNSUPPORTED, OutcomeKind.NOT_MEASURED,
    ]  # fmt: skip
    behaviour = planted(first_bad) | {
        str(one): random.choice(kinds) for one in [32, *broken] if abs(one - first_bad) > 1
    }
    found = simulated.carry_out(asked(store, linux, behaviour))
    assert name(found) == str(first_bad)
    assert found.skipped >= 1 and found.steps <= steps_allowed(found, LAST)


def test_a_broken_range_around_the_change_leaves_a_range(store: Store, linux: Path) -> None:
    behaviour = planted(30) | {str(one): OutcomeKind.NO_BUILD for one in range(28, 32)}
    directory = asked(store, linux, behaviour)
    found = simulated.carry_out(directory)
    assert not found.found
    assert {one.partition(" ")[2] for one in found.names} == {f'"{one}"' for one in range(28, 33)}
    assert found.before.name.endswith('"27"') and found.after.name.endswith('"32"')
    said = "\n".join(answer_lines(found))
    assert "the first bad is one of 5" in said and "does not build: it does not compile" in said


def test_a_hang_is_skipped_and_may_be_the_symptom(store: Store, linux: Path) -> None:
    found = simulated.carry_out(asked(store, linux, planted(40, at_32=OutcomeKind.HANGS)))
    assert name(found) == "40" and found.skipped == 1
    hangs = {str(one): OutcomeKind.HANGS if one >= 40 else 1.0 for one in range(LAST + 1)} | {"32": OutcomeKind.PANICS}
    directory = asked(store, linux, hangs, symptom=Symptom.HANG)
    found = simulated.carry_out(directory)
    assert name(found) == "40" and found.what == "symptom hang"
    assert next(one for one in found.judged if one.kind is OutcomeKind.PANICS).decision is Decision.UNDECIDED
    assert simulated.calls(directory)[:2] == ["0 1", "64 1"]  # one run of each end
    assert any(line.startswith("  before   runs to its end") for line in answer_lines(found))
    assert any(line.startswith("  after    hangs: so it was planted") for line in answer_lines(found))


def searching(directory: BisectDirectory) -> subprocess.Popen[bytes]:
    """Search in a process of its own."""
    root = Path(__file__).parents[3]
    argv = [sys.executable, "-m", "tests.build.simulated_bisect", str(directory.path)]
    return subprocess.Popen(argv, cwd=root, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root)})


def test_a_killed_search_is_gone_on_with_and_nothing_is_measured_twice(store: Store, linux: Path) -> None:
    directory = asked(store, linux, planted(21, at_24="killed"))
    killed = searching(directory)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    so_far = simulated.calls(directory)
    assert so_far[-1] == "24 1"
    found = simulated.carry_out(BisectDirectory(directory.path))
    assert name(found) == "21"
    again = simulated.calls(directory)[len(so_far) :]
    assert again[0] == "24 1" and not set(again[1:]) & set(so_far)
    assert found.steps <= ceil(log2(LAST))
    count = len(simulated.calls(directory))
    assert simulated.carry_out(directory) == found  # asked again it has the answer
    assert len(simulated.calls(directory)) == count


def test_what_is_the_host_s_fault_stops_the_search_with_its_own_words(store: Store, linux: Path) -> None:
    directory = asked(store, linux, planted(21, at_16="disk full"))
    with pytest.raises(HostError, match=r"^the disk is full$") as raised:
        simulated.carry_out(directory)
    assert raised.value.hint == "free some space"
    assert [one.name for one in directory.path.glob("verdicts.jsonl")] == ["verdicts.jsonl"]
    (directory.path / simulated.BEHAVIOUR).write_text(json.dumps(planted(21)))
    assert name(simulated.carry_out(directory)) == "21"


def test_a_search_that_was_interrupted_while_git_began_it_begins_anew(store: Store, linux: Path) -> None:
    directory = asked(store, linux, planted(20))
    searched = directory.question().tree
    assert searched
    git_search._start(directory, searched)
    (directory.git / "BISECT_HEAD").unlink()  # the log is there, and the first commit is not chosen yet
    assert name(simulated.carry_out(directory)) == "20"


@needs_root
def test_a_tree_of_another_user_is_searched_without_being_trusted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated.history(tmp_path / "linux", 5)
    for path in (tmp_path / "linux", tmp_path / "linux" / ".git"):
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[log]\nshowSignature = true\n")
    assert name(simulated.carry_out(asked(store, tmp_path / "linux", planted(2, 4), 4))) == "2"


def test_an_interrupt_lets_the_step_end_its_guest(store: Store, linux: Path) -> None:
    directory = asked(store, linux, planted(21, at_32="slow"))
    begun = searching(directory)
    until((directory.path / "begun").exists)
    with pytest.raises(InputError, match="is still going on"), directory.lock():
        pass
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said and begun.returncode != 0
    assert (directory.path / "tidied").exists()
    with directory.lock():
        pass
    assert not [one for one in directory.rows("measured", KernelOutcome) if one.kernel.endswith("32")]
    (directory.path / simulated.BEHAVIOUR).write_text(json.dumps(planted(21)))
    assert name(simulated.carry_out(directory)) == "21"


def test_the_side_of_a_merge_is_searched(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "linux"
    simulated.history(path, 9)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(path), *words], check=True, capture_output=True, env=simulated.ENV)

    git("checkout", "--quiet", "-b", "side", "v6.3")
    for number in (100, 101, 102):
        (path / "fs" / "side.c").write_text(str(number))
        git("add", "--all")
        git("commit", "--quiet", "--message", str(number))
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--message", "200", "side")
    values = {str(one): 1.0 for one in range(9)} | {"100": 1.0, "101": 2.0, "102": 2.0, "200": 2.0}
    found = simulated.carry_out(simulated.asked_of_tree(store, path, values, "v6.0", "main"))
    assert name(found) == "101" and found.before.name.endswith('"100"')
