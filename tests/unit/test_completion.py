"""Completion of words in a shell."""

import os
import pty
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from agelab.base.places import layout_names
from agelab.cli import agelab, main
from agelab.cli.completion import VARIABLE, Bash
from agelab.cli.types import SHORT_KEY
from agelab.scenario import selection
from tests.unit.aging_runs import make

PATIENCE = 120
"""Seconds to wait for a shell on a busy host."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "bash_complete")
    return tmp_path


def words(line: str) -> list[str]:
    """The words that the last one of a line can become, through click's own interface."""
    *before, incomplete = line.split(" ")
    found = ShellComplete(agelab, {}, "agelab", VARIABLE).get_completions(before[1:], incomplete)
    return [item.type if item.type != "plain" else item.value for item in found]


def test_scenarios_and_their_variants() -> None:
    assert words("agelab run agi") == ["aging", "aging-curve"] and words("agelab run agx") == []
    assert words("agelab age aging-r") == ["aging-reiserfs", "aging-reiserfs-journal", "aging-reiser4"]
    assert words("agelab run ./mine") == ["file"]
    for name in words("agelab calibrate "):
        for one in words(f"agelab calibrate {name}"):
            assert selection.select(one).variants
    assert len(words("agelab run aging-curve")) > 1


def test_runs_and_their_variants(home: Path) -> None:
    assert words("agelab show ") == []
    old = make(home, {"ext4": 1.2, "xfs": 1.3})
    new = make(home, {"reiserfs": 1.2}, scenario="aging-curve")
    for verb in ("show", "resume", "export", "report -o page.html", "replicate", "sweep", "capsule pack"):
        assert words(f"agelab {verb} ") == ["latest", new, old]
    assert words("agelab show lat") == ["latest"]
    assert words("agelab compare latest:") == ["latest:reiserfs"]
    assert words(f"agelab compare latest {old}:e") == [f"{old}:ext4"]
    assert words("agelab compare nothing:") == []


def test_files_of_this_project(home: Path) -> None:
    assert words("agelab run aging --filesystem reiser") == ["reiser4", "reiserfs"]
    assert words("agelab run aging --filesystem ext4,reiser") == ["ext4,reiser4", "ext4,reiserfs"]
    assert words("agelab run aging --filesystem ext4,ext") == ["ext4,ext2", "ext4,ext3"]
    assert words("agelab run aging --machine pentium3") == ["pentium3-500"]
    assert words("agelab run aging --disks model:seagate-st34") == [
        "model:seagate-st340016a",
        "model:seagate-st3400832a",
    ]
    assert words("agelab run aging --disks model:none,mo")[0] == "model:none,model:hitachi-hds722525vlat80"
    assert words("agelab export --format m") == ["markdown", "minutes"]
    assert words("agelab run aging --corpus ") == ["file"]
    assert words("agelab run aging --layout ") == layout_names()


def test_kernels_that_the_store_knows(home: Path) -> None:
    make(home, {"ext4": 1.2})
    stored = home / "store" / "kernel" / ("a" * 64)
    stored.mkdir(parents=True)
    (stored / "manifest.json").write_text('{"inputs": {"package": "linux-image-6.1.0-56-amd64"}}')
    assert words("agelab run aging --kernel debian:") == ["debian:6.1", "debian:6.1.0-56-amd64"]
    assert words("agelab kernel show debian:6.1.0") == ["debian:6.1.0-56-amd64"]
    assert all(word.startswith("recipe:") for word in words("agelab kernel build r"))


def test_keys_of_what_is_stored(home: Path) -> None:
    for key in ("ab" * 32, "cd" * 32):
        (home / "store" / "disk" / key).mkdir(parents=True)
        (home / "store" / "disk" / key / "manifest.json").write_text("{}")
    assert words("agelab disk rm a") == [("ab" * 32)[:SHORT_KEY]]
    assert words("agelab store list --kind ") == ["disk"]
    assert words(f"agelab run aging --disk {'cd' * 8}") == ["cd" * 32]


@pytest.mark.parametrize(
    "line", ["show ", "show latest", "run aging --kernel d", "disk rm ", "compare latest:", "corpus show "]
)
def test_a_damaged_store_gives_no_word_and_no_message(
    home: Path, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = home / "runs" / "20260101-000000-aging"
    run.mkdir(parents=True)
    (run / "plan.json").write_bytes(b'{"kernel": \xff')
    (home / "runs" / "latest").mkdir()
    (home / "store" / "kernel" / "x").mkdir(parents=True)
    (home / "store" / "kernel" / "x" / "manifest.json").mkdir()
    found = words(f"agelab {line}")
    assert found in ([], ["latest", run.name], ["latest"])
    assert capfd.readouterr() == ("", "")


def test_a_store_that_cannot_be_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("AGELAB_HOME", str(home / "file"))
    assert words("agelab show ") == [] and words("agelab run aging --kernel deb") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{VARIABLE}={shell}_complete" in script and "_agelab_completion" in script


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("agelab run x --disks model:non", ["none"]),
        ("agelab run x --disks=model:non", ["none"]),
        ("agelab run x --layout=ra", ["raid0", "raid1", "raid5"]),
        ("agelab run x --layout ra", ["raid0", "raid1", "raid5"]),
    ],
)
def test_bash_gets_what_follows_its_last_break(
    line: str, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_BREAKS", " \t\n\"'><=;|&(:")
    assert Bash(agelab, {}, "agelab", VARIABLE).complete() == "\n".join(f"plain,{word}" for word in said)


def test_a_real_bash_completes(home: Path, tmp_path: Path) -> None:
    """Typed on a terminal, with a tab at the end: where one word is possible bash writes it out."""
    command = f'{shlex.quote(sys.executable)} -c "import sys; from agelab.cli import main; sys.exit(main())"'
    (tmp_path / "agelab").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (tmp_path / "agelab").chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "PROMPT_COMMAND")}
    environ |= {"PATH": f"{tmp_path}:{environ['PATH']}", "PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
        start_new_session=True, cwd=Path(__file__).parents[2],
    ) as shell:  # fmt: skip
        os.close(theirs)
        try:
            os.write(ours, b'eval "$(agelab completion bash)"; echo ready$((1))\n')
            _until(ours, b"ready1")
            os.write(ours, b"agelab run aging --disks model:seagate-st3120\t")
            _until(ours, b"seagate-st3120026as")
        finally:
            shell.kill()
    os.close(ours)


def _until(terminal: int, wanted: bytes) -> None:
    """Read what comes until that does."""
    heard = b""
    while wanted not in heard:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, heard
        heard += os.read(terminal, 1 << 16)
