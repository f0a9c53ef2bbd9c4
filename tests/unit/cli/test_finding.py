"""Finding things: help and its examples, lists, completion, a scenario to begin with, runs that go."""

import json
import os
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any, cast

import click
import pytest

from agelab.base import catalogue
from agelab.base.errors import InputError
from agelab.base.verbs import VERBS
from agelab.cli import FIRST, agelab, completion, main
from agelab.cli.lists import USED
from agelab.present.view.artefacts import WHAT
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells, resolve
from agelab.scenario import selection
from agelab.scenario.metrics import METRICS
from tests.build import aging_runs
from tests.build.cli import AGELAB, Cli

NAMELESS = {"crash": "run", "history": "results"}
"""What a verb's words are for where they name none of its commands."""
COMMANDS = [
    (verb, shlex.split(line.partition(" #")[0].partition(" > ")[0].removeprefix('eval "$(').rstrip('" )')))
    for verb, lines in [("agelab", FIRST), *((verb, about.examples) for verb, about in VERBS.items())]
    for line in lines.strip().splitlines()
]


def test_every_verb_has_examples_of_its_own() -> None:
    for verb in VERBS:
        own = [words for of, words in COMMANDS if of == verb]
        assert len(own) >= 2 and any(words[1] == verb for words in own), verb


@pytest.mark.parametrize(("verb", "words"), COMMANDS, ids=lambda one: " ".join(one) if isinstance(one, list) else one)
def test_an_example_is_a_command(verb: str, words: list[str]) -> None:
    command: click.Command = agelab
    context = click.Context(agelab)
    assert words.pop(0) == "agelab"
    while isinstance(command, click.Group) and words:
        below = command.get_command(context, words[0])
        name = words.pop(0) if below else NAMELESS[command.name or ""]
        found = below or command.get_command(context, name)
        assert found
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_parser(context).parse_args(words)


def test_help_has_groups_and_what_most_people_need_comes_first(cli: Cli) -> None:
    shown = cli.out("help")
    assert [line for line in shown.splitlines() if line in ("Run:", "Look:", "Compare:", "Test:", "Keep:", "Host:")]
    assert max(map(len, shown.splitlines())) <= 80
    first, _, rest = cli.out("help", "run").partition("Other options:")
    assert "--seeds" in first and "--check" in first and "--machine-band" in rest and "Examples:" in rest
    assert "Usage: agelab kernel fetch" in cli.out("help", "kernel", "fetch")
    assert "no verb 'rn'; did you mean run, rm" in cli.err("help", "rn")
    assert "no kernel command 'fetsh'; did you mean fetch?" in cli.err("help", "kernel", "fetsh")


@pytest.mark.parametrize("what", catalogue.FILES)
def test_a_list_has_a_line_of_each_file(what: str, cli: Cli) -> None:
    listed = cli.json("list", what, "--json")[what]
    assert [row["name"] for row in listed] == sorted(path.stem for path in catalogue.FILES[what].glob("*.toml"))
    assert all(row["summary"] for row in listed)
    shown = cli.out("list", what)
    assert all(f" {row['name']} " in shown for row in listed) and f"to use one: {USED[what]}" in shown


def test_metrics_are_listed_and_a_misspelt_list_is_answered(cli: Cli) -> None:
    assert [row["name"] for row in cli.json("list", "metrics", "--json")["metrics"]] == [*METRICS]
    assert "no list 'filesystem'; did you mean filesystems" in cli.err("list", "filesystem")
    cli.run("list", "drives", "--refresh", code=2)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a store and the cache of a shell's words are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


def words(line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash gets for the last word of a line."""
    for name, value in {"_AGELAB_COMPLETE": "bash_complete", "COMP_WORDS": line}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    return cli.out().split()


@pytest.mark.parametrize(
    ("line", "there", "not_there"),
    [
        ("agelab re", "plain,report plain,resume", "plain,run"),
        ("agelab run --filesystem e", "plain,exfat plain,ext4", "plain,xfs"),
        ("agelab run --filesystem ext4,x", "plain,ext4,xfs", "plain,xfs"),
        ("agelab run aging-re", "plain,aging-reiserfs plain,aging-reiserfs-journal", "plain,aging"),
        ("agelab run aging --clock w", "plain,wall", "plain,virtual"),
        ("agelab run --trace ag", "plain,aging", "plain,ext4"),
        ("agelab run --see", "plain,--seeds", "plain,--kernel"),
        ("agelab show l", "plain,latest", "plain,list"),
        ("agelab disk ex", "plain,export", "plain,import"),
        ("agelab help k", "plain,kernel", "plain,run"),
        ("agelab list m", "plain,machines plain,metrics", "plain,runs"),
        ("agelab run --disks model:w", "plain,model:wd-wd2500jb", "plain,wd-wd2500jb"),
        ("agelab report -o ", "file,", "plain,latest"),
        ("agelab run mine", "file,", "plain,aging"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_a_shell_completes(line: str, there: str, not_there: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    given = words(line, cli, monkeypatch)
    assert {*there.split()} <= {*given} and not_there not in given


def test_the_second_time_no_verb_is_loaded(asked: Path) -> None:
    code = (
        "import sys; from agelab.cli import main; main([]);"
        "print(*({'pydantic', 'rich', 'agelab.cli.run'} & set(sys.modules)), file=sys.stderr)"
    )
    ask = {"_AGELAB_COMPLETE": "zsh_complete", "COMP_WORDS": "agelab run --filesystem x", "COMP_CWORD": "3"}
    said = [
        subprocess.run([AGELAB[0], "-c", code], env={**os.environ, **ask}, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert said[0].stdout == said[1].stdout == "plain\nxfs\n_\n"
    assert said[0].stderr.strip() and not said[1].stderr.strip()
    assert [path.name for path in (asked / "cache/agelab").iterdir()] == ["completion.json"]


def test_a_table_of_other_code_or_a_damaged_one_is_made_again(
    asked: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = asked / "cache/agelab/completion.json"
    before = words("agelab sh", cli, monkeypatch)
    for spoilt in ('{"key": "other", "table": {}}', "[", "{}"):
        cache.write_text(spoilt)
        assert words("agelab sh", cli, monkeypatch) == before == ["plain,show"]
    assert json.loads(cache.read_text())["table"]["commands"]["show"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_shells_own_part_is_printed(shell: str, cli: Cli) -> None:
    assert "_AGELAB_COMPLETE" in cli.out("completion", shell)


def test_the_new_scenario_is_one_and_says_what_each_part_is(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "mine.toml"
    assert f"agelab run {file} --check" in cli.out("new", file)
    scenario = selection.select(str(file)).scenario
    assert scenario.name == "mine" and scenario.tests and scenario.control and scenario.citation is None
    text = file.read_text()
    for part in tomllib.loads(text):
        [said] = [lines for lines in text.split("\n\n") if f"\n{part} = " in f"\n{lines}" or f"[{part}]" in lines]
        assert part == "summary" or said.startswith("#"), part
    assert "is there already" in cli.err("new", file)
    assert "ends in .toml" in cli.err("new", tmp_path / "mine")


def test_a_trial_is_one_cell_with_small_data_in_which_each_step_runs_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    main(["new", str(file)])
    [cell] = planned_cells(RunOptions(name=str(file), seeds=(1, 2, 3, 4, 5), trial=True))
    whole = planned_cells(RunOptions(name=str(file), seeds=(1, 2, 3, 4, 5)))
    assert resolve(RunOptions(name=str(file), trial=True)).scale_name == "check"
    assert len(whole) == 10 and cell.name == whole[0].name
    corpus = cell.scenario.corpus
    assert corpus and cell.scaled_bytes(corpus.mib) == 4 << 20 and cell.disk_bytes == whole[0].disk_bytes
    assert [step.repeat for step in cell.scenario.steps] == [1]
    [aging] = planned_cells(RunOptions(name="aging-curve-xfs", trial=True))
    assert aging.wanted_bytes == 64 << 20 and {getattr(one, "points", 0) for one in aging.scenario.histories} == {1}
    with pytest.raises(InputError, match="--check"):
        RunOptions(control="x", trial=True)
    with pytest.raises(InputError, match="--check"):
        RunOptions(name="aging", seeds=cast(Any, "auto"), trial=True)


@pytest.mark.parametrize("name", selection.scenario_names())
def test_every_scenario_can_be_tried(name: str) -> None:
    for scale in ("quick", "paper"):
        assert len(planned_cells(RunOptions(name=name, scale=scale, trial=True))) == 1


def test_runs_are_removed_by_name_but_not_while_they_run(
    home: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [aging_runs.make(home, {"ext4": 1.5}, seeds=(seed,)) for seed in (1, 2, 3)]
    for wrong in ([names[0], "nothing"], [str(home / "runs" / names[0])]):
        assert main(["rm", *wrong]) == 2
    with RunDirectory(home / "runs" / names[1]).lock():
        assert main(["rm", names[0], names[1]]) == 2
    assert f"{names[1]} is running" in capsys.readouterr().err
    assert cli.out("rm", names[0], "latest") == f"removed {names[0]}\nremoved {names[2]}\n"
    assert [path.name for path in (home / "runs").glob("[!.]*/")] == [names[1]]
    assert not list((home / "runs").glob(".2*"))


def test_the_store_says_what_each_kind_is(home: Path, cli: Cli) -> None:
    aging_runs.make(home, {"ext4": 1.5})
    assert WHAT["runs"] in " ".join(cli.out("store").split())
