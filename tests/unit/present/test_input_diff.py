"""``agelab compare`` of two cells with equal or different inputs."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.cli.compare import compare
from agelab.present.view.comparison import _short
from agelab.results.result import Status
from tests.build import run_builder


def one_cell(home: Path, seed: int, value: float, status: Status | None, clock: str = "virtual") -> str:
    """The name of a run of one cell whose copy took that long."""
    run = run_builder.begin(home, [run_builder.cell(seed=seed)], clock=clock)
    inputs = {"seeds": {"run": seed}}
    run_builder.end(run, 0, [run_builder.sample(value=value)], status=status, inputs=inputs)
    return run.name


@pytest.mark.parametrize(
    ("seed", "value", "status", "said"),
    [
        (1, 1.5, Status.OK, "  equal inputs, equal samples\n"),
        (2, 1.5, Status.OK, "  input seeds.run: 1 | 2\n"),
        (1, 1.6, Status.OK, "EQUAL INPUTS AND DIFFERENT SAMPLES"),
        (1, 1.6, None, "  not finished: "),
        (1, 1.6, Status.INTERRUPTED, "  not finished: "),
    ],
)
def test_equal_inputs_must_have_equal_samples(
    home: Path, seed: int, value: float, status: Status | None, said: str
) -> None:
    left, right = one_cell(home, 1, 1.5, Status.OK), one_cell(home, seed, value, status)
    shown = CliRunner().invoke(compare, [left, right]).output
    assert said in shown
    if status is not Status.OK:
        assert "EQUAL INPUTS" not in shown


def test_real_time_that_is_not_the_same_twice_breaks_no_promise(home: Path) -> None:
    names = [one_cell(home, 1, value, Status.OK, "wall") for value in (1.5, 1.6)]
    shown = CliRunner().invoke(compare, names).output
    assert "sample copy 1 elapsed: 1.5 | 1.6" in shown and "real time is not the same twice" in shown
    assert "EQUAL INPUTS" not in shown


def test_a_long_input_is_shown_from_where_it_parts() -> None:
    head = "x" * 100
    shown = _short(head + "one", head + "two")
    assert shown == "..." + "x" * 20 + "one | ..." + "x" * 20 + "two"
