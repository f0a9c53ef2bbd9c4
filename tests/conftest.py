"""The same tests however they are started: their order, their environment, and what CI does not let them skip."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import capabilities

TESTS = Path(__file__).parent
IMAGE = "vm/test_image.py"
"""Makes the image that all guests boot, for two minutes and more where the store is empty."""
BESIDE_IT = (
    *("unit/base/test_fuzz.py", "unit/docs/test_howto.py", "unit/bisect/test_bisect.py"),
    *("unit/cli/test_bad_runs.py", "unit/base/test_full_disk.py", "unit/docs/test_site.py"),
    *("unit/present/test_hostile_pages.py", "unit/cli/test_setup.py", "unit/present/test_report_browser.py"),
    *("unit/capsule/test_capsule.py", "unit/data/test_corpus_study.py"),
)
"""What needs no guest and takes long: for the other worker meanwhile, about as long as the image."""
LONG = (
    *("vm/test_block_layer.py", "vm/test_repeat.py", "vm/test_measured.py", "vm/test_drives.py"),
    *("vm/test_saved_guest.py", "vm/test_studies.py", "vm/test_chaos.py", "vm/test_host_faults.py"),
    *("vm/test_calibrate.py", "vm/test_histories.py", "vm/test_two_at_once.py", "vm/test_hostile_steps.py"),
    *("vm/test_names.py", "vm/test_layout_truth.py", "vm/test_trouble.py", "vm/test_security.py"),
    *("unit/runner/test_cluster.py", "unit/cli/test_locale.py", "unit/capsule/test_capsule_hostile.py"),
    *("unit/bisect/test_own_bisects.py", "unit/present/test_report.py", "unit/base/test_limits.py"),
    *("unit/runner/test_cluster_hosts.py", "unit/debian/test_snapshot.py"),
)
"""What takes longest of its folder, the longest first."""
FOLDERS = ("contract", "golden", "model", "vm", "unit")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "TERM": "xterm", "AGELAB_FRESH": "1"}
"""AGELAB_FRESH: a test that runs a cell twice is never served its own earlier answer."""
UNSET = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONWARNINGS"),
    "PYTHONDONTWRITEBYTECODE",  # each agelab that a test starts would compile itself, for as long as it runs
    *("LANGUAGE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("AGELAB_SNAPSHOT", "AGELAB_CACHE", "AGELAB_CACHE_CERT", "AGELAB_CACHE_KEY", "AGELAB_CACHE_CA"),
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"),
)
NOT_SKIPPED = (
    "where CI runs, a test is skipped for a capability of tests/capabilities.py only: make it run here "
    "(a program: list its package in tests/host-packages.txt), or list what a host may lack"
)
LIMIT, LIMIT_OF_FULL = 900, 7200
"""Seconds for one test, and for one that runs in ``make test-full`` only."""
IGNORED_BY_NOHUP = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests, and every program they start, the environment, umask and signals of a plain shell."""
    os.environ.update(ENVIRONMENT)
    for name in UNSET:
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in IGNORED_BY_NOHUP:
        if number in _told(config) or signal.getsignal(number) is signal.SIG_IGN:
            # The tests go on ignoring it; a program they start does not, since exec resets a handler.
            signal.signal(number, _ignore)


def _told(config: pytest.Config) -> list[int]:
    """Return the signals that the process which started this worker ignores."""
    numbers: list[int] = getattr(config, "workerinput", {}).get("ignored", [])
    return numbers


def _ignore(number: int, frame: object) -> None:
    """Do nothing."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist which signals to ignore."""
    node.workerinput["ignored"] = [int(one) for one in IGNORED_BY_NOHUP if signal.getsignal(one) is _ignore]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the image and what is long and needs none; then the guests; in each folder short files last.

    So nobody waits for the image, and both workers end together.
    """
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, int]:
    named = os.path.relpath(item.path, TESTS)
    folder = named.partition("/")[0]
    for order, files in enumerate(((IMAGE,), BESIDE_IT)):
        if named in files:
            return order, files.index(named)
    before = FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)
    return 2 + before, LONG.index(named) if named in LONG else len(LONG)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Fail a test that waits for ever, and say what runs on the host meanwhile."""
    seconds = LIMIT_OF_FULL if item.get_closest_marker("full") else LIMIT

    def fail(number: int, frame: object) -> None:
        words = ["ps", "-e", "-o", "pid,ppid,etimes,stat,wchan:30,args"]
        listed = subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout
        pytest.fail(f"it has not ended within {seconds} s\n{listed.decode(errors='replace')}")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI runs, fail a test that is skipped for anything but a listed capability."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not capabilities.is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}\n{NOT_SKIPPED}"
    return report
