"""A bisect goes on from what its own store recorded, and from nothing that was put into its directory since."""

import json
import shutil
from pathlib import Path

import pytest

from agelab.bisect import kernel_runs
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.measurements import KernelOutcome, KernelVerdict, OutcomeKind
from agelab.cli import main
from agelab.results import checksummed, own
from agelab.results.conditions import Conditions
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build import simulated_bisect as simulated
from tests.build.cli import Cli
from tests.build.simulated_bisect import planted

LAST = 16


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tree") / "linux"
    simulated.history(path, LAST + 1)
    return path


def in_store(home: Path, patched: pytest.MonkeyPatch) -> Store:
    patched.setenv("AGELAB_HOME", str(home))
    patched.setattr(kernel_runs, "KernelRuns", lambda directory, *_, **__: simulated.Toy(directory))
    return Store(home)


STOPPED = {11: 10, 4: 4}
"""First bad commits, and where a search for each stopped."""


@pytest.fixture(scope="module")
def stopped(linux: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    """A store with bisects of that tree that stopped in their middle, with steps judged before; their names."""
    home, names = tmp_path_factory.mktemp("stopped") / "home", dict[int, str]()
    with pytest.MonkeyPatch.context() as patched:
        store = in_store(home, patched)
        for first_bad, at in STOPPED.items():
            behaviour = planted(first_bad, LAST, **{f"at_{at}": "disk full"})
            directory = simulated.asked_of_tree(store, linux, behaviour, "v6.0", f"v6.{LAST}")
            assert main(["bisect", "--continue", directory.name]) == 3
            (directory.path / simulated.BEHAVIOUR).write_text(json.dumps(planted(first_bad, LAST)))
            assert directory.rows("verdicts", KernelVerdict)
            names[first_bad] = directory.name
    return home, names


class Bisects:
    """Those bisects, in a store of a test's own."""

    def __init__(self, store: Store, names: dict[int, str], cli: Cli) -> None:
        self._cli = cli
        self.first, self.other = (BisectDirectory.find(store, names[one]) for one in STOPPED)

    def go_on(self, directory: BisectDirectory | None = None) -> str:
        """Go on with the first one; return its first bad commit, or the one line with which it is refused."""
        code, out, err = self._cli.ended("bisect", "--continue", (directory or self.first).name)
        if code == 0:
            return out.splitlines()[0].partition('"')[2].partition('"')[0]
        assert code == 2 and not out, err
        assert len([line for line in err.splitlines() if line.startswith("agelab: ")]) == 1
        return err


@pytest.fixture
def bisects(stopped: tuple[Path, dict[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Bisects:
    home, names = stopped
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    return Bisects(in_store(tmp_path / "home", monkeypatch), names, cli)


def test_a_bisect_goes_on_from_what_it_recorded(bisects: Bisects) -> None:
    directory = bisects.first
    before = simulated.calls(directory)
    assert bisects.go_on() == "11"
    assert not set(simulated.calls(directory)[len(before) :]) & set(before) - {"10 1"}
    assert bisects.go_on() == "11", "asked again"


@pytest.mark.parametrize("what", ["measured.jsonl", "verdicts.jsonl", "question.json", "conditions.json"])
@pytest.mark.parametrize("how", ["changed", "of another bisect"])
def test_a_record_that_was_changed_is_not_believed(bisects: Bisects, what: str, how: str) -> None:
    directory = bisects.first
    directory.conditions(Conditions.of(run_builder.plan(provenance={"qemu": "7"}), None))
    path = directory.path / what
    if how == "changed":
        line = json.loads(path.read_text().splitlines()[-1] if what.endswith("l") else path.read_text())
        line.pop("seal", None)
        line |= {"value": 9.0, "decision": "bad", "alpha": "1/2", "qemu": "8"}
        path.write_text(json.dumps(checksummed.seal(line)) + "\n")
    else:
        other = bisects.other
        other.conditions(Conditions.of(run_builder.plan(provenance={"qemu": "8"}), None))
        for name in (what, f"{what}{own.ENDING}"):
            if (other.path / name).exists():
                shutil.copy(other.path / name, directory.path / name)
    said = bisects.go_on()
    assert "was changed since" in said and "ask again: agelab bisect" in said


def test_lists_without_a_code_are_refused(bisects: Bisects) -> None:
    directory = bisects.first
    for path in directory.path.glob(f"*{own.ENDING}"):
        path.unlink()
    assert "was not begun in this store" in bisects.go_on()


@pytest.mark.parametrize("written", ["nothing", "half a line", "the line"])
@pytest.mark.parametrize("what", ["measured", "verdicts"])
def test_a_bisect_killed_while_it_added_to_a_list_goes_on(bisects: Bisects, what: str, written: str) -> None:
    directory = bisects.first
    path = directory.path / f"{what}.jsonl"
    before = path.read_bytes()
    measured, verdicts = directory.rows("measured", KernelOutcome), directory.rows("verdicts", KernelVerdict)
    directory.append(what, measured[0] if what == "measured" else verdicts[0])
    assert path.read_bytes() != before
    if written == "nothing":
        path.write_bytes(before)
    elif written == "half a line":
        path.write_bytes(path.read_bytes()[:-10])
    assert bisects.go_on() == "11"


HOOKS = ("post-checkout", "reference-transaction", "post-index-change")


def test_the_repository_that_lies_in_a_bisect_is_not_obeyed(bisects: Bisects, tmp_path: Path) -> None:
    directory = bisects.first
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\n")
    evil.chmod(0o755)
    with (directory.git / "config").open("a") as file:
        file.write(f"[core]\n\thooksPath = {tmp_path}/hooks\n\tpager = {evil}\n[gpg]\n\tprogram = {evil}\n")
    for place in (tmp_path / "hooks", directory.git / "hooks"):
        place.mkdir(exist_ok=True)
        for name in HOOKS:
            shutil.copy(evil, place / name)
    assert bisects.go_on() == "11"
    assert not (tmp_path / "mark").exists()


def test_the_log_of_git_that_lies_in_a_bisect_is_not_believed(bisects: Bisects) -> None:
    directory, other = bisects.first, bisects.other
    assert bisects.go_on(other) == "4"
    shutil.rmtree(directory.git)
    shutil.copytree(other.git, directory.git)
    assert bisects.go_on() == "11"


@pytest.mark.parametrize("name", ["log", "bisect.log", "bisect.lock", "reproduce.sh", "git"])
def test_a_link_in_a_bisect_leads_to_no_file_of_the_users(bisects: Bisects, tmp_path: Path, name: str) -> None:
    directory = bisects.first
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("kept\n")
    path = directory.path / name
    if name == "git":
        shutil.rmtree(path)
        path.symlink_to(mine)
    else:
        path.unlink(missing_ok=True)
        path.symlink_to(mine / "file")
    said = bisects.go_on()
    assert said == "11" if name == "git" else f"{name} is no regular file" in said
    assert [(one.name, one.read_text()) for one in mine.iterdir()] == [("file", "kept\n")]


def test_only_skipped_commits_that_are_left_are_the_answer_again(
    linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    store = in_store(tmp_path / "home", monkeypatch)
    broken = planted(11, LAST) | {str(one): OutcomeKind.NO_BUILD for one in range(9, 12)}
    directory = simulated.asked_of_tree(store, linux, broken, "v6.0", f"v6.{LAST}")
    first, calls = cli.out("bisect", "--continue", directory.name, code=1), simulated.calls(directory)
    assert cli.out("bisect", "--continue", directory.name, code=1) == first and simulated.calls(directory) == calls
