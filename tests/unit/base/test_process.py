"""The one door to external programs."""

import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import HostError


def test_both_streams_and_the_status_come_back() -> None:
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], ok=(0, 3))
    assert done == process.Completed(3, "out\n", "err\n")


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_program_that_prints_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT", 8 << 20)
    with pytest.raises(process.TooMuchOutput, match="sh: it printed more than 8 MiB"):
        process.run(["sh", "-c", f"yes{stream}"], timeout=60)
    assert len(process.run(["head", "-c", str(8 << 20), "/dev/zero"]).stdout) == 8 << 20


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "SEARCH_PATH", str(tmp_path))
    with pytest.raises(HostError, match="virt-install is not installed") as caught:
        process.run(["virt-install", "--version"])
    assert caught.value.hint == "install the Debian package virtinst"
    assert process.which("virt-install") is None


def test_a_missing_directory_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="gone does not exist"):
        process.run(["true"], cwd=tmp_path / "gone")


def test_a_failure_shows_a_line_that_reproduces_it_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    argv = ["sh", "-c", 'echo "$WORD: $(basename "$PWD")" >&2; exit 7']
    with pytest.raises(process.ProcessFailed) as caught:
        process.run(argv, cwd=tmp_path / "with space", env={"WORD": "it's broken"})
    assert str(caught.value) == "sh failed (exit 7):\nit's broken: with space"
    assert caught.value.returncode == 7
    pasted = caught.value.hint.removeprefix("to see it again: ")
    again = subprocess.run(["sh", "-c", pasted], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (7, "it's broken: with space\n")


def test_a_failure_quotes_the_end_of_a_long_complaint() -> None:
    with pytest.raises(process.ProcessFailed) as caught:
        process.run(["sh", "-c", "seq 100 >&2; exit 1"])
    assert str(caught.value).splitlines()[1:] == [str(number) for number in range(89, 101)]


def test_a_complaint_on_standard_output_is_quoted_too() -> None:
    with pytest.raises(process.ProcessFailed, match="complaint"):
        process.run(["sh", "-c", "echo complaint; exit 1"])


def test_a_program_ended_by_a_signal_says_which() -> None:
    with pytest.raises(process.ProcessFailed, match="sh was ended by SIGABRT"):
        process.run(["sh", "-c", "kill -ABRT $$"])


def test_the_environment_is_built_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    lines = process.run(["env"], env={"EXTRA": "1"}).stdout.splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["https_proxy"] == "http://proxy.example:3128"
    assert seen["EXTRA"] == "1"
    assert seen["PATH"] == process.SEARCH_PATH
    assert "PYTHONPATH" not in seen


def test_standard_input_is_closed_or_a_file(tmp_path: Path) -> None:
    assert process.run(["cat"]).stdout == ""
    (tmp_path / "in").write_text("words")
    process.run(["cat"], stdin=tmp_path / "in", stdout=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "words"


def test_a_log_takes_both_streams_and_is_what_the_error_quotes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(process.ProcessFailed, match="one\ntwo"):
        process.run(["sh", "-c", "echo one; echo two >&2; exit 1"], log=log)
    assert log.read_text() == "one\ntwo\n"


def test_output_that_is_not_text_is_no_error() -> None:
    assert process.run(["printf", r"a\377b"]).stdout == "a�b"


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(HostError, match=r"did not finish within 0\.2 s"):
        process.run(["sh", "-c", f"echo $$ > {shlex.quote(str(pid))}; exec sleep 60"], timeout=0.2)
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_every_program_of_the_package_list_has_one_package() -> None:
    lines = process.PACKAGES_FILE.read_text().splitlines()
    programs = [line.split()[1] for line in lines if line and line[0] != "#" and line.split()[1] != "-"]
    assert len(programs) == len(set(programs))
    assert process.host_packages()["sqfstar"] == "squashfs-tools"


def test_a_vain_wait_is_ended_as_ctrl_c_would(tmp_path: Path) -> None:
    mark, log = tmp_path / "mark", tmp_path / "log"
    script = f"trap 'echo ended >> {log}; exit 7' INT; echo here; touch {mark}; while :; do sleep 0.1; done"
    started = time.monotonic()
    with pytest.raises(process.ProcessFailed, match="SIGINT"):
        process.run(["sh", "-c", script], log=tmp_path / "out", timeout=60, grace=10, give_up=mark.exists)
    assert time.monotonic() - started < 30
    assert log.read_text() == "ended\n"


def test_a_wait_that_is_not_vain_has_its_result_and_its_limit() -> None:
    assert process.run(["echo", "here"], give_up=lambda: False, grace=5).stdout == "here\n"
    with pytest.raises(HostError, match="did not finish within 1 s"):
        process.run(["sleep", "60"], timeout=1, grace=5, give_up=lambda: False)
