"""The rules of tests/conftest.py: no dependence on how the tests were started, no skip unnoticed where CI runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

PROJECT = Path(__file__).parents[3]
SKIPS = """
import pytest
from tests import capabilities

def test_of_a_capability():
    capabilities.skip("swap")

def test_of_a_program():
    {0}
"""
STARTED = """
import os, signal, subprocess, sys

CHILD = '''
import locale, os, signal
print(*(signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler) for one in (1, 2, 3, 15)))
print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), oct(os.umask(0)), locale.getpreferredencoding())
print(*(name for name in ("COLUMNS", "NO_COLOR", "MAKEFLAGS", "GIT_DIR") if name in os.environ))
'''

def test_it():
    os.kill(os.getpid(), signal.SIGHUP)  # ignored, as it was before
    said = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["True True True True", "0 0o22 UTF-8", ""]
"""


def run_pytest(directory: Path, text: str, *before: str, **environment: str) -> tuple[int, str]:
    """Run these tests under the project's conftest: pytest's exit code and output."""
    (directory / "test_it.py").write_text(text)
    words = ["-m", "pytest", "-q", "-rs", "-c", "/dev/null", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    known = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    done = subprocess.run(
        [*before, sys.executable, *words, str(directory)],
        cwd=PROJECT, env=known, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("skip", ['pytest.skip("no strace")', 'pytest.importorskip("no_such_module")'])
def test_where_ci_runs_a_test_is_skipped_for_a_listed_capability_only(tmp_path: Path, skip: str) -> None:
    code, said = run_pytest(tmp_path, SKIPS.format(skip))
    assert (code, "2 skipped" in said) == (0, True), said
    code, said = run_pytest(tmp_path, SKIPS.format(skip), CI="true")
    assert code == 1 and "1 failed, 1 skipped" in said, said
    assert "list its package in tests/host-packages.txt" in said and "no swap: a container" in said


def test_tests_do_not_depend_on_how_they_were_started(tmp_path: Path) -> None:
    shell = "trap '' HUP INT QUIT TERM; umask 077; exec \"$@\" <&-"
    odd = {
        "LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "30", "NO_COLOR": "1", "MAKEFLAGS": "-s",
        "GIT_DIR": "/x",
    }  # fmt: skip
    code, said = run_pytest(tmp_path, STARTED, "sh", "-c", shell, "sh", **odd)
    assert code == 0, said


def test_every_file_that_the_order_names_is_there() -> None:
    named = [conftest.IMAGE, *conftest.BESIDE_IT, *conftest.LONG]
    assert [one for one in named if not (PROJECT / "tests" / one).is_file()] == []
    assert len(set(named)) == len(named)
    assert not [one for one in conftest.BESIDE_IT if one.startswith("vm/")], "they would wait for the image"


def test_a_test_that_waits_for_ever_fails_with_what_runs_meanwhile_and_the_next_one_runs(tmp_path: Path) -> None:
    text = """
import subprocess
from tests import conftest
conftest.LIMIT = 1
def test_it():
    subprocess.run(["sleep", "1000"])
def test_next():
    pass
"""
    code, said = run_pytest(tmp_path, text)
    assert code == 1 and "1 failed, 1 passed" in said, said
    assert "it has not ended within 1 s" in said and "sleep 1000" in said.split("it has not ended", 1)[1]
