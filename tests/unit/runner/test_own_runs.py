"""A store's own runs are answers and nobody else's; any run is shown, from wherever it lies."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.bisect import search
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.cli import main, resume
from agelab.kernel import build
from agelab.kernel.debian_kernel import AvailableKernel
from agelab.results import own, run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import recent_cells
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse.ended_cells import EndedCells
from tests.build import aging_runs, run_builder
from tests.build.cli import Cli
from tests.build.reuse_cells import KEY, ended


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("AGELAB_CACHE", str(tmp_path / "cache"))


def answer(home: Path, said: list[str]) -> float | None:
    """What the store answers for the key, and puts into the cache."""
    found = EndedCells(home / "runs", said.append)
    cell = found.restore(KEY, home / "taken")
    if cell is None:
        return None
    found.share(KEY, cell, home / "taken")
    return cell.samples[0].value


def in_cache(tmp_path: Path) -> int:
    return sum(path.is_file() for path in (tmp_path / "cache").rglob("*"))


def copied(run: RunDirectory, home: Path) -> RunDirectory:
    """A run that somebody copied into a store, as cp -r does."""
    return RunDirectory(Path(shutil.copytree(run.path, home / "runs" / run.path.name)))


def test_a_strangers_run_in_runs_answers_nothing_and_gets_into_no_cache(tmp_path: Path) -> None:
    strange, said = ended(tmp_path / "theirs", 9.0), list[str]()
    mine = copied(strange, tmp_path / "mine")
    mine.verify()
    assert answer(tmp_path / "mine", said) is None and in_cache(tmp_path) == 0
    assert said == [f"{mine.name}, cell 0, is not reused: this store did not measure it"]
    ended(tmp_path / "mine", 1.5)
    assert answer(tmp_path / "mine", said) == 1.5, "its digest disputes nothing, either"
    assert in_cache(tmp_path)


def test_a_run_with_the_secret_of_its_own_store_beside_it_answers_nothing_here(tmp_path: Path) -> None:
    strange = ended(tmp_path / "theirs", 9.0)
    ended(tmp_path / "mine", inputs={"another": 1}).path.rename(tmp_path / "mine/runs/20200101-000000-other")
    mine = copied(strange, tmp_path / "mine")
    for place in (mine.path, mine.path.parent, mine.path / "cells/0"):
        shutil.copy(tmp_path / "theirs" / own.SECRET, place)
    assert answer(tmp_path / "mine", []) is None


def test_a_record_that_was_changed_and_sealed_again_is_nobodys(tmp_path: Path) -> None:
    run, said = ended(tmp_path), list[str]()
    path = run.path / "cells/0/end.json"
    path.write_text(path.read_text().replace('"host_seconds": 1.0', '"host_seconds": 1.00'))
    assert answer(tmp_path, said) is None and "is not reused" in said[0]


def test_a_store_that_moves_as_a_whole_keeps_its_answers(tmp_path: Path) -> None:
    ended(tmp_path / "old", 2.5)
    (tmp_path / "old").rename(tmp_path / "new")
    assert answer(tmp_path / "new", []) == 2.5
    shutil.copytree(tmp_path / "new", tmp_path / "third")
    assert answer(tmp_path / "third", []) == 2.5


def test_a_run_of_an_older_agelab_is_shown_and_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    run, said = ended(tmp_path), list[str]()
    for path in (*run.path.rglob("*.code"), tmp_path / own.SECRET):
        path.unlink()
    assert answer(tmp_path, said) is None and "this store did not measure it" in said[0]
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    assert "copy" in cli.out("show", "latest")
    run.finish(0, run.end(0) or pytest.fail())  # a cell of it that is run now
    assert answer(tmp_path, said) == 1.5


def test_the_secret_is_its_owners_alone_and_stays_what_it_is(tmp_path: Path) -> None:
    ended(tmp_path)
    path = tmp_path / own.SECRET
    first = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600 and len(first) == own.SIZE
    ended(tmp_path)
    assert path.read_bytes() == first
    shared = tmp_path / "of-a-group"
    shared.mkdir()
    shared.chmod(0o775)
    ended(shared)
    assert (shared / own.SECRET).stat().st_mode & 0o777 == 0o660, "who may write the store may read its secret"
    path.write_bytes(b"cut")
    assert answer(tmp_path, []) is None
    ended(tmp_path, 3.5)
    assert answer(tmp_path, []) == 3.5


def test_how_long_cells_take_is_known_from_this_stores_own(tmp_path: Path) -> None:
    words: dict[str, Any] = {"scenario": "aging", "command": {"directory": "/", "name": "aging", "options": {}}}
    for home, seconds in (("theirs", 9e9), ("mine", 7.0)):
        run = run_builder.begin(tmp_path / home, [run_builder.cell()], **words)
        run_builder.end(run, 0, host_seconds=seconds)
    theirs = run_lookup.all_runs(tmp_path / "theirs/runs")[0]
    copied(RunDirectory(theirs.path.rename(theirs.path.with_name("20990101-000000-aging"))), tmp_path / "mine")
    now = run_builder.begin(tmp_path / "mine", [run_builder.cell()], **words)
    assert [end.host_seconds for _, end in recent_cells(now)] == [7.0]


@pytest.mark.parametrize(
    "verb",
    [
        "show {}", "show {} --json", "report {} -o r.html", "compare {}:ext4 {}:xfs", "compare {}", "export {}",
        "replicate {}", "sweep {}", "compare latest:ext4 {}:ext4 --anyway", "report latest {} -o r.html", "resume {}",
        "profile {} copy",
    ],
)  # fmt: skip
def test_verbs_read_runs_from_anywhere(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aging_runs.make(tmp_path / "mine", {"ext4": 1.3})
    made = tmp_path / "theirs/runs" / aging_runs.make(tmp_path / "theirs", {"ext4": 1.4, "xfs": 1.2})
    name = made.rename(made.with_name("20250101-000000-theirs")).name
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "mine"))
    (tmp_path / "a place, there").mkdir()
    there = tmp_path / "a place, there" / name
    (tmp_path / "theirs/runs" / name).rename(there)
    before = sorted(there.rglob("*"))
    monkeypatch.chdir(tmp_path / "a place, there")
    for path in (str(there), f"./{name}/"):
        code = main(word.format(path) for word in verb.split())  # type: ignore[arg-type]
        out, err = capsys.readouterr()
        if verb.startswith("resume"):
            assert code == 2 and f"{name} lies outside of this store" in err
        elif verb.startswith("profile"):
            assert code == 2 and "profile" in err and "no run" not in err
        else:
            assert code == ("--anyway" in verb), err  # of one key, with other digits
            assert made.name in out or not verb.startswith("show")
            assert f"agelab show '{there}' --json" in out or verb != "show {}"
    assert sorted(there.rglob("*")) == before


@pytest.mark.parametrize(("name", "said"), [
    ("./nothing", "nothing is no run: it has no plan.json"),
    ("/", "/ is no run: it has no plan.json"),
    ("here", "no run 'here'"),
])  # fmt: skip
def test_a_path_that_is_no_run_is_told(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    ended(tmp_path / "mine")
    ended(tmp_path / "theirs").path.rename(tmp_path / "here")
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path)
    err = cli.err("show", name)
    assert said in err and ("./here" in err) == (name == "here")


AVAILABLE = [
    AvailableKernel(release=f"{version}.0-1-amd64", version="1", suite="sid", headers=True)
    for version in ("5.10", "6.1")
]


def test_a_bisect_of_another_store_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Its measurements would be believed, and its store's programs run."""
    words = {"--scenario": "aging-ext4", "--metric": "copy:elapsed", "--good": "5.10", "--bad": "6.1"}
    asked = ["bisect", *(word for pair in words.items() for word in pair)]
    monkeypatch.setattr(search, "release_of", lambda wanted, *_, **__: f"{wanted}.0-1-amd64")
    monkeypatch.setattr(search, "available", lambda *_, **__: AVAILABLE)
    monkeypatch.setattr(build, "check_configuration", lambda *_: None)

    def stop(directory: BisectDirectory, *_: object) -> None:
        raise InputError(f"it goes on with {directory.name}")

    monkeypatch.setattr(search, "run_search", stop)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "theirs"))
    cli.run(*asked, code=2)
    [made] = (tmp_path / "theirs/bisects").glob("*-aging*")
    for name in ("latest", made.name, str(made)):
        assert f"it goes on with {made.name}" in cli.err("bisect", "--continue", name)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "mine"))
    assert "is a bisect of another store" in cli.err("bisect", "--continue", made)
    here = Path(shutil.copytree(made, tmp_path / "mine/bisects" / made.name))
    for name in ("latest", made.name, str(here)):
        assert "was not begun in this store" in cli.err("bisect", "--continue", name)


def test_two_runs_of_one_name_are_not_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    run = ended(tmp_path / "mine")
    shutil.copytree(run.path, tmp_path / run.path.name)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "mine"))
    assert "have the same name" in cli.err("export", "latest", str(tmp_path / run.path.name))
    assert main(["export", "latest", str(run.path)]) == 0, "one run, named twice"


def test_a_strangers_run_does_not_say_what_may_be_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunOptions] = []
    monkeypatch.setattr(resume, "execute", lambda options, run: seen.append(options))
    words = {"disks": "block:/dev/nowhere", "erase": "SERIAL"}
    command = {"directory": "/", "name": "aging-ext4", "options": words}
    run = run_builder.begin(tmp_path / "theirs", [run_builder.cell()], clock="wall", command=command)
    copied(run, tmp_path / "mine")
    named = ["--disks", "block:/dev/nowhere"]
    for home in ("theirs", "mine"):
        monkeypatch.setenv("AGELAB_HOME", str(tmp_path / home))
        assert main(["resume", run.name]) == 2  # neither does one's own
        main(["resume", run.name, *named])
        main(["resume", run.name, *named, "--erase", "MINE"])
    assert [one.erase for one in seen] == [(), ("MINE",)] * 2
