"""The command line as a user meets it: messages, exit codes, what it loads."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from agelab import cli
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.base.verbs import VERBS, as_called
from agelab.cli.options import open_store
from agelab.present.report.blocks import Text
from agelab.present.view.terminal import print_blocks
from agelab.runner.execute import runner
from tests.build.cli import AGELAB


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A verb ``doctor`` that does what the test puts under 'does': raise it, or return it."""
    act: dict[str, object] = {"does": None}

    @click.command()
    @click.option("--kernel")
    @click.option("--scale", type=click.Choice(["quick", "paper"]))
    @click.argument("name", required=False)
    def doctor(kernel: str, scale: str, name: str) -> object:
        does = act["does"]
        if isinstance(does, BaseException):
            raise does
        return does

    @click.group()
    def kernel() -> None:
        pass

    kernel.command("fetch")(lambda: None)
    commands = {"doctor": doctor, "kernel": kernel}
    monkeypatch.setattr(cli.Verbs, "get_command", lambda self, ctx, name: commands.get(name))
    return act


def test_help_is_quick_because_it_loads_no_verb() -> None:
    code = (
        "import sys; from agelab.cli import main; code = main(['--help']);"
        "heavy = {'pydantic', 'rich', 'libvirt', 'agelab.store.artefacts', 'agelab.base.process'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for verb in VERBS:
        assert f"\n  {verb} " in done.stdout


def test_a_run_computes_no_statistics_before_its_first_guest_and_loads_nothing_for_them() -> None:
    code = (
        "import sys, agelab.cli.run, agelab.runner.execute.runner;"
        "import agelab.present.view.progress, agelab.present.view.summary;"
        "sys.exit(str(sorted({'numpy', 'scipy', 'pandas', 'jinja2'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads_and_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert f"Usage: agelab {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["rnu"], "agelab: no verb 'rnu'; did you mean run?"),
        (["--verson"], "agelab: no option '--verson'; did you mean --version?"),
        (["doctor", "--kernl", "x"], "agelab: no option '--kernl'; did you mean --kernel, --help?"),
        (["doctor", "--qqq"], "agelab: no option '--qqq'; there are: --help, --kernel, --scale"),
        (["kernel", "fech"], "agelab: no kernel command 'fech'; did you mean fetch?"),
    ],
)
def test_an_unknown_name_is_one_line(
    argv: list[str], message: str, probe: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 2
    assert capsys.readouterr() == ("", message + "\n")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["doctor", "--scale", "huge"], ["--scale", "'quick'", "'paper'"]),
        (["doctor", "--kernel"], ["--kernel", "requires an argument"]),
        (["doctor", "a", "b"], ["unexpected extra argument", "b"]),
    ],
)
def test_wrong_usage_is_one_line_and_where_to_read_on(
    argv: list[str], words: list[str], probe: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert all(word in first for word in words)
    assert second.startswith("  see: agelab ")


@pytest.mark.parametrize(
    ("error", "code"), [(AgelabError, 1), (InputError, 2), (HostError, 3)], ids=lambda value: str(value)
)
def test_an_error_becomes_its_message_hint_and_exit_code(
    error: type[AgelabError], code: int, probe: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    probe["does"] = error("what is wrong", hint="what to do")
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr() == ("", "agelab: what is wrong\n  what to do\n")


@pytest.mark.parametrize(
    ("does", "code"), [(None, 0), (0, 0), (1, 1), (KeyboardInterrupt(), 130), (click.Abort(), 130)], ids=repr
)
def test_how_a_verb_ends_is_the_exit_code(
    does: object, code: int, probe: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    probe["does"] = does
    assert cli.main(["doctor"]) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_end_lets_the_verb_clean_up(name: str) -> None:
    code = f"""
import os, signal, sys, click
from agelab import cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job was told to ignore it
@click.command()
def verb():
    try:
        os.kill(os.getpid(), signal.{name})
        signal.pause()
    finally:
        print("cleaned up")
cli.Verbs.get_command = lambda self, ctx, name: verb
sys.exit(cli.main(["run"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (130, "cleaned up\n")
    assert done.stderr.strip() == "agelab: interrupted"


@pytest.mark.parametrize(("called", "typed"), [(".venv/bin/agelab", ".venv/bin/agelab"), ("pytest", "agelab")])
def test_a_hint_has_the_command_as_it_was_called(
    called: str,
    typed: str,
    probe: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "doctor"])
    probe["does"] = InputError("it is not there", "all runs: agelab list; agelab builds none")
    cli.main(["doctor"])
    assert capsys.readouterr().err == (f"agelab: it is not there\n  all runs: {typed} list; agelab builds none\n")
    print_blocks([Text("a page to read: agelab report latest")])
    assert capsys.readouterr().out == f"a page to read: {typed} report latest\n"


def test_a_command_that_is_on_the_path_needs_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "agelab"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(program), "run"])
    assert as_called("go on: agelab resume latest") == "go on: agelab resume latest"


@pytest.mark.parametrize("stopped", [KeyboardInterrupt(), HostError("no room", "free some space"), OSError(28, "full")])
def test_what_stops_a_run_ends_with_the_command_that_goes_on(
    stopped: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise stopped

    def started(_: runner.RunSession, prepared: object, *__: object) -> SimpleNamespace:
        return SimpleNamespace(prepared=prepared, directory=SimpleNamespace(name="20260101-000000-aging"))

    monkeypatch.setattr(runner, "prepare", lambda request, *_: SimpleNamespace(request=request))
    monkeypatch.setattr(runner, "connected", lambda _: nullcontext())
    monkeypatch.setattr(runner, "_opened_by_guests", lambda *_: [])
    monkeypatch.setattr(runner.RunSession, "start", started)
    monkeypatch.setattr(runner.RunSession, "run_cells", stop)
    monkeypatch.setattr(sys, "argv", [".venv/bin/agelab"])
    assert cli.main(["run", "aging-ext4", "--seeds", "1,2"]) in (3, 130)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "  go on: .venv/bin/agelab resume 20260101-000000-aging"


def test_what_is_nested_too_deeply_is_wrong_input(probe: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    """Python has one error for it, whoever reads: of archives, directories, JSON."""
    probe["does"] = RecursionError("maximum recursion depth exceeded")
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err.startswith("agelab: a file or a directory that was named is nested too deeply")


def test_a_bug_shows_its_traceback_and_has_an_exit_code_of_its_own(
    probe: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    probe["does"] = ZeroDivisionError("oops")
    assert cli.main(["doctor"]) == 70
    err = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in err
    assert "a bug in agelab" in err.splitlines()[-1]


def test_a_full_disk_under_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*AGELAB, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3 and done.stderr.startswith("agelab: No space left on device\n  free some space")
    assert done.stderr.count("\n") == 2


def test_a_reader_that_goes_away_is_no_cell_that_is_not_ok() -> None:
    """A shell says the same of cat and grep: 128 + SIGPIPE. Of 1 a script would think that a run went wrong."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*AGELAB, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    done = subprocess.run([*AGELAB, "frobnicate"], stderr=writer, text=True, check=False)
    os.close(writer)
    assert done.returncode == 2, "what is wrong stays wrong if nobody reads it"


def test_the_store_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "new"))
    assert open_store().home == tmp_path / "new"
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv("AGELAB_HOME", "")
    assert open_store().home == Path(cli.__file__).parents[2] / ".agelab"
    (tmp_path / "file").touch()
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="not a directory"):
        open_store()


def test_a_store_that_others_decide_on_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that QEMU is run with lies in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("AGELAB_HOME", str(home))
    assert cli.main(["list"]) == 0
    home.chmod(0o1777)
    with pytest.raises(InputError, match="anybody may write"):
        open_store()
    home.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1000)
    monkeypatch.setattr(Path, "stat", lambda path, **_: os.stat_result((0o40755, 0, 0, 1, 4242, 0, 0, 0, 0, 0)))
    with pytest.raises(InputError, match="belongs to the user 4242"):
        open_store()


@pytest.mark.parametrize("umask", [0, 0o027])
def test_what_is_made_is_writable_by_nobody_else_under_any_umask(umask: int, tmp_path: Path) -> None:
    body = (
        f"import os; os.umask({umask})\nfrom pathlib import Path\nfrom agelab import cli\n"
        "from agelab.cli.options import open_store\ncli.main(['list'])\n"
        "open_store().obtain('tools', {}, lambda place: (place / 'a').touch())\n"
    )
    environment = {**os.environ, "AGELAB_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", body], env=environment, check=True, stdout=subprocess.DEVNULL)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "home").rglob("*")}
    assert modes and not any(mode & 0o022 for mode in modes)
    assert all(mode & 0o027 == 0 for mode in modes) or umask != 0o027


def test_a_shell_that_asks_for_words_gets_them() -> None:
    asked = {"_AGELAB_COMPLETE": "bash_complete", "COMP_WORDS": "agelab run --desi", "COMP_CWORD": "2"}
    done = subprocess.run(AGELAB, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("plain,--design\n", "")
