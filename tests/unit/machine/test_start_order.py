"""Cells that run several at a time start in the order of what they are expected to take; their numbers stay."""

import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agelab.base.errors import InputError
from agelab.machine.vm.hypervisor import Hypervisor
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.runner import RunSession, StartedRun
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build.cell_builder import CORPUS, spec

VARIANTS = ["ext4", "jfs", "zfs", "xfs"]
COMMAND: dict[str, Any] = {"directory": "/", "name": "aging", "options": {}}


def begun(home: Path, number: int, jobs: int) -> StartedRun:
    """A run of VARIANTS whose cells wait; it is the ``number``-th of those that go on together."""
    directory = run_builder.begin(home, run_builder.cells(VARIANTS), command=COMMAND)
    prepared = SimpleNamespace(
        request=SimpleNamespace(options=RunOptions(name="aging")),
        specs=[spec(f"aging-{variant}") for variant in VARIANTS],
        corpora=[CORPUS] * len(VARIANTS),
        jobs=jobs,
    )
    return StartedRun(cast(Any, prepared), directory, directory.plan(), {}, number * len(VARIANTS), cast(Any, None))


def started(runs: list[StartedRun], monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[str]]:
    """Return the cells' numbers in the order that was told, and where each one's end was written."""
    told: list[int] = []
    ended: list[str] = []

    class Told(Progress):
        def begin_runs(self, request: Any, runs: Any, waiting: Any, jobs: int) -> None:
            told.extend(waiting)

    def run_cell(_: RunSession, run: StartedRun, number: int, slots: object) -> None:
        ended.append(f"{run.plan.cells[number].variant} {run.first + number}")

    monkeypatch.setattr(RunSession, "run_cell", run_cell)
    RunSession(cast(Store, None), Told(), cast(Hypervisor, None), ExitStack()).run_cells(runs)
    return told, ended


def earlier(home: Path) -> None:
    before: RunDirectory = run_builder.begin(home, run_builder.cells(VARIANTS), command=COMMAND)
    for number, seconds in enumerate((30, 90, 400, 60)):
        run_builder.end(before, number, host_seconds=seconds)


def test_several_at_a_time_start_with_the_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier(tmp_path)
    told, ended = started([begun(tmp_path, 0, jobs=2)], monkeypatch)
    assert told == [2, 1, 3, 0]
    assert sorted(ended) == ["ext4 0", "jfs 1", "xfs 3", "zfs 2"]


def test_of_several_kernels_all_cells_are_in_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier(tmp_path)
    told, _ = started([begun(tmp_path, 0, jobs=3), begun(tmp_path, 1, jobs=3)], monkeypatch)
    assert told == [2, 6, 1, 5, 3, 7, 0, 4]


def test_one_at_a_time_they_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier(tmp_path)
    assert started([begun(tmp_path, 0, jobs=1)], monkeypatch) == ([0, 1, 2, 3], ["ext4 0", "jfs 1", "zfs 2", "xfs 3"])


def test_cells_begin_on_hosts_that_come_while_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ASK_AGAIN", 0.05)
    together = threading.Barrier(3)
    asked = [1, 1, 3]

    def cell() -> None:
        together.wait(30)

    runner._at_a_time(lambda: asked.pop(0) if len(asked) > 1 else asked[0], [cell] * 3, together.abort)
    assert asked == [3]


def test_an_error_abandons_what_runs_before_it_is_waited_for() -> None:
    abandoned = threading.Event()

    def fails() -> None:
        raise InputError("wrong")

    def waits() -> None:
        assert abandoned.wait(30)

    with pytest.raises(InputError, match="wrong"):
        runner._at_a_time(lambda: 2, [waits, fails, waits], abandoned.set)
