"""Run the tests of this folder in the laboratory's machine: all that were chosen of a module in one machine.

Outside, the first test of a module boots the machine that its ``LABORATORY`` describes and runs pytest in it; each test
then has the report that came out of it. Inside, they are tests like any others.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import AgelabError
from tests.lab.laboratory import Laboratory, last_words

HERE = Path(__file__).parent
INSIDE = "AGELAB_LAB" in os.environ
REPORTS = "reports"
_KNOWN = pytest.StashKey[dict[Path, Any]]()
"""What came out of the machine of each module."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests as the long ones of real guests that they are."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.vm)
            item.add_marker(pytest.mark.full)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Outside, take a test's reports from the machine of its module."""
    if INSIDE or item.path.parent != HERE:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(item: pytest.Item) -> list[pytest.TestReport]:
    known = item.session.stash.setdefault(_KNOWN, {})
    if item.path not in known:
        known[item.path] = _run(item)
    said: dict[str, list[Any]] = known[item.path]
    if found := said.get(item.nodeid):
        return found
    return [
        pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"the machine ended before this test:\n{said[''][0]}",
            "call",
        )
    ]  # fmt: skip


def _run(item: pytest.Item) -> dict[str, list[Any]]:
    """Run the chosen tests of an item's module; return their reports, and under "" what the machine said."""
    chosen = [one.nodeid for one in item.session.items if one.path == item.path]
    laboratory: Laboratory = item.module.LABORATORY  # type: ignore[attr-defined]
    factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
    job = factory.mktemp(f"lab-{item.path.stem}")
    (job / "chosen").write_text("".join(f"{one}\n" for one in chosen))
    argv = [".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "-q", f"@{job}/chosen"]
    try:
        told = laboratory.run(argv, job)
    except AgelabError as error:
        told = f"{last_words(job)}\n{error}"
    said: dict[str, list[Any]] = {"": [told]}
    written = job / REPORTS
    for line in written.read_text().splitlines() if written.exists() else ():
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=json.loads(line))
        said.setdefault(report.nodeid, []).append(report)
    return said


if INSIDE:
    _JOB = Path(os.environ["AGELAB_LAB_JOB"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Write each report down where the outside finds it."""
        report = yield
        data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
        with (_JOB / REPORTS).open("a") as file:
            file.write(json.dumps(data) + "\n")
        return report
