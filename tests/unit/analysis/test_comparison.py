"""The tables of a comparison, without a command line."""

from fractions import Fraction
from pathlib import Path

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import load, seed_groups
from agelab.analysis.comparison import Comparison, compare_steps
from tests.build import run_builder


def test_of_a_slowdown_at_several_points_of_a_history_the_last_is_compared(tmp_path: Path) -> None:
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    for number, last in enumerate((4.0, 8.0)):
        points = enumerate((1.0, 2.0, last), 1)
        run_builder.end(run, number, [run_builder.sample("read", value, "slowdown", at) for at, value in points])
    base, other = seed_groups(load(run))
    for everything, places in ((False, [3]), (True, [3, 1, 2])):
        [table] = compare_steps(Comparison(base, (other,)), HostNoise(), everything)
        assert [row.row.left.repetition for row in table.rows] == places
        assert table.steps[0].ratio == Fraction(2) and table.steps[0].row.left.title == "read 3/3"
