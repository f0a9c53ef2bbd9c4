"""No verb writes over a file unasked; the ending of a file decides an export's format."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agelab.cli import agelab
from agelab.cli.options import OutputFile
from tests.build import aging_runs
from tests.build.cli import Cli

OTHERS = {
    "corpus make --from", "history make --repository", "test --expect", "debug --script",  # are read
    "capsule pack --artifact", "plan --slurm", "sweep --plots", "track --page",  # directories
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for release in ("6.1.0-56-amd64", "6.12.1-amd64"):
        aging_runs.make(tmp_path / "home", {"ext4": 1.3, "xfs": 1.2}, release=release)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs(home: Path) -> list[str]:
    return sorted(path.parent.name for path in (home / "home/runs").glob("*/plan.json"))


def commands(found: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(found, click.Group):
        context = click.Context(found)
        for name in found.list_commands(context):
            command = found.get_command(context, name)
            assert command
            yield from commands(command, (*words, name))
    else:
        yield " ".join(words), found


def test_every_option_that_names_a_file_to_write_goes_through_one_door() -> None:
    paths = {
        f"{words} {option.opts[-1]}": option.type
        for words, command in commands(agelab)
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, click.Path)
    }
    assert {name for name, kind in paths.items() if not isinstance(kind, OutputFile)} == OTHERS
    written = {name.rpartition(" ")[0] for name in paths.keys() - OTHERS} | {"plan", "sweep", "new"}
    with_force = {words for words, command in commands(agelab) if any("--force" in p.opts for p in command.params)}
    assert with_force == written


@pytest.mark.parametrize(
    "verb",
    [
        "export latest -o mine",
        "export latest --format parquet -o mine",
        "report latest -o mine",
        "compare latest:ext4 latest:xfs --gate 5 --junit mine",
        "history make profile --disk 40M -o mine",
        "profile latest copy --svg mine",
        "capsule pack latest -o mine",
        "worker plan --cell 0 -o mine",
    ],
)
def test_a_file_that_is_there_is_not_written_over(verb: str, home: Path, cli: Cli) -> None:
    Path("mine").write_text("years of work")
    said = cli.err(*verb.split())
    assert "mine is there already" in said and "--force" in said and "Traceback" not in said
    assert Path("mine").read_text() == "years of work"


def test_a_file_with_the_name_of_a_page_is_nobodys_to_replace(home: Path, cli: Cli) -> None:
    name, verb = "report.html", ["report", "latest"]
    Path(name).write_text("<!DOCTYPE html><title>mine</title>")
    assert f"{name} is there already, and no page of agelab" in cli.err(*verb)
    assert Path(name).read_text() == "<!DOCTYPE html><title>mine</title>"
    cli.run(*verb, "--force")
    assert "agelab" in Path(name).read_text()
    first = Path(name).stat().st_ino
    cli.run(*verb)  # a page of agelab is replaced unasked
    assert Path(name).stat().st_ino != first


def test_what_goes_into_a_directory_writes_over_nothing(home: Path, cli: Cli) -> None:
    words = ["sweep", *runs(home), "--plots", "plots"]
    cli.run(*words)
    [*drawn] = sorted(Path("plots").iterdir())
    assert drawn and {path.suffix for path in drawn} == {".svg"}
    drawn[-1].write_text("mine")
    assert "is there already" in cli.err(*words) and drawn[-1].read_text() == "mine"
    assert cli.run(*words, "--force") and drawn[-1].read_text() != "mine"
    assert sorted(Path("plots").iterdir()) == drawn
    Path("array").mkdir()
    Path("array/plan.json").write_text("mine")
    assert "array/plan.json is there already" in cli.err("plan", "aging-ext4", "--slurm", "array")


def test_a_file_that_came_meanwhile_is_not_written_over(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from agelab.present.view import export

    def slow(runs: object) -> Iterator[str]:
        Path("a.csv").write_text("of another program")
        yield "x"

    monkeypatch.setitem(export.FORMATS, "csv", slow)
    cli.run("export", "-o", "a.csv", code=2)
    assert Path("a.csv").read_text() == "of another program"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.csv", b"run,"), ("a.jsonl", b'{"run"'), ("a.sqlite", b"SQLite format 3"), ("a.parquet", b"PAR1"),
        ("a.xml", b"<?xml"), ("A.CSV", b"run,"),
    ],
)  # fmt: skip
def test_the_ending_of_a_file_decides_its_format(name: str, begins: bytes, home: Path, cli: Cli) -> None:
    cli.run("export", "latest", "-o", name)
    assert Path(name).read_bytes().startswith(begins)


def test_a_format_that_the_ending_contradicts_is_an_error(home: Path, cli: Cli) -> None:
    assert "--format csv: the ending of a.parquet says parquet" in cli.err(
        "export", "--format", "csv", "-o", "a.parquet"
    )
    assert "samples: its ending names no format" in cli.err("export", "-o", "samples")
    assert not list(home.glob("*a*.p*")) and not Path("samples").exists()
    cli.run("export", "--format", "jsonl", "-o", "table.txt")
    cli.run("export", "--format", "junit", "-o", "cells.xml")
