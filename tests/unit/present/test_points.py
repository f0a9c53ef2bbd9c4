"""The table of a disk that is measured on the way."""

import io

from rich.console import Console

from agelab.present.view.run_tables import drives_at_points, points_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.result import Sample
from agelab.scenario.metrics import METRICS


def sample(step: str, metric: str, value: float | None, point: int = 1, why: str | None = None) -> Sample:
    unit = METRICS[metric].unit
    return Sample(step=step, metric=metric, value=value, unit=unit, repetition=point, not_measured=why)


def shown(samples: list[Sample]) -> list[str]:
    console = Console(file=io.StringIO(), width=120, highlight=False)
    print_blocks(points_blocks(samples, drives_at_points(samples)), console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_there_is_a_row_for_each_point_and_none_for_a_mount() -> None:
    samples = [
        sample("replay", "refused", 7, 2),
        *(sample("then/mount", "elapsed", 0.1, number) for number in (1, 2, 3, 4)),
        *(sample(f"then/{kind}/scan", "elapsed", 2.0, n) for n in (1, 2) for kind in ("aged", "control")),
        sample("then/aged/scan", "dynamic_layout_score", 0.87654321, 2),
        sample("then/scan", "slowdown", 1.5),
        sample("then/scan", "slowdown", None, 2, "the test did not end on both disks"),
        sample("aged/map", "layout_score", 0.99),
        sample("aged/map", "layout_score", 0.98, 2),
        sample("control/map", "layout_score", 1, 2),
        sample("aged/map", "free_usable_1mib", 0.5, 2),
    ]
    assert drives_at_points(samples) == ["then"]
    lines = shown(samples)
    rows = [line.split() for line in lines if line.startswith(" ") and line.split()[0] in "1234"]
    assert rows == [
        ["1", "1.500", "-", "0.9900", "-", "-", "-", "-"],
        ["2", "?", "0.8765", "0.9800", "1.0000", "50.0", "-", "7"],
    ]
    assert lines[-1] == "  not measured: the test did not end on both disks"


def test_other_scenarios_have_no_points() -> None:
    assert drives_at_points([sample("aged/read", "elapsed", 1), sample("strace/read/open", "syscall_calls", 1)]) == []
