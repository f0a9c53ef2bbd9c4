"""A matrix: a step once for each combination of the values that it names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.runner.prepare import prepare
from agelab.runner.prepare.brought_files import brought
from tests.build.cell_builder import spec
from tests.build.scenario_builder import chosen

FIO = {"name": "fio", "program": "fio", "job": "mine.fio", "origin": "estimated"}
FILL = {"name": "fill", "run": "touch file", "origin": "estimated"}
MATRIX = {"bs": ["4k", "64k"], "iodepth": [1, 32]}
JOB = "[one]\nrw=randread\nsize=1m\nbs=${BS}\niodepth=${IODEPTH}\n"


def names(directory: Path, *steps: dict[str, Any], job: str = JOB, **more: Any) -> list[str]:
    (directory / "mine.fio").write_text(job)
    return [action.name for action in chosen(directory, *steps, **more).scenario.actions()]


def test_each_combination_is_a_step_of_its_own(tmp_path: Path) -> None:
    assert names(tmp_path, FILL, FIO, matrix=MATRIX) == [
        "fill",
        *("fio-bs-4k-iodepth-1", "fio-bs-4k-iodepth-32", "fio-bs-64k-iodepth-1", "fio-bs-64k-iodepth-32"),
    ]


def test_a_step_finds_its_values_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "mine.fio").write_text(JOB)
    selected = chosen(tmp_path, FIO | {"environment": {"MINE": "a b"}}, matrix=MATRIX)
    step = selected.scenario.actions()[1]
    assert step.environment == {"MINE": "a b", "BS": "4k", "IODEPTH": "32"}
    assert step.run.startswith("export MINE='a b' BS=4k IODEPTH=32\nJOB=/run/agelab/jobs/mine.fio\nfio ")


def test_a_step_is_combined_with_the_values_that_it_names_alone(tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("iodepth=${IODEPTH}\n")
    steps = ({"name": "dd", "run": "dd bs=$BS", "origin": "estimated"}, FIO)
    found = names(tmp_path, *steps, job="include common.inc\n[one]\nrw=read\n", matrix=MATRIX)
    assert found == ["dd-bs-4k", "dd-bs-64k", "fio-iodepth-1", "fio-iodepth-32"]


def test_tests_and_cycles_are_combined_too(tmp_path: Path) -> None:
    (tmp_path / "mine.fio").write_text(JOB)
    step = {"name": "dd", "run": "dd bs=${BS}", "origin": "estimated"}
    scenario = chosen(tmp_path, {"repeat": 2, "cycle": [step]}, tests=[FIO], matrix=MATRIX).scenario
    assert [action.name for action in scenario.actions()] == ["dd-bs-4k", "dd-bs-64k"]
    assert len(scenario.tests) == 4


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ({"bs": ["4k"], "depth": [1]}, "matrix.depth: no step names $DEPTH"),
        ({"bs": ["4k", "4K"]}, "matrix: two combinations of values have one name, dd-bs-4k"),
        ({"bs": ["/"]}, "matrix.bs: '/' has no letter or digit"),
        ({"bs": list(range(65))}, "matrix: 65 combinations for step dd: 64 at most"),
        ({"bs": []}, "matrix.bs: "),
        ({"path": ["x"]}, "matrix.path: $PATH has a meaning already"),
        ({"bs": ["x" * 150]}, "is a name of more than 100 characters"),
        ({"bs": ["a\nb"]}, "matrix.bs[0]"),
        ({"bs": [True]}, "matrix.bs[0]"),
    ],
)
def test_a_matrix_that_cannot_be_is_an_error(tmp_path: Path, matrix: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(tmp_path, {"name": "dd", "run": "dd bs=$BS", "origin": "estimated"}, matrix=matrix)
    assert said in str(caught.value) and "ten-lines.toml" in str(caught.value)


def test_a_value_is_a_place_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.fio:1: directory=\$\{DIR\}: there it is '/tmp'"):
        names(tmp_path, FIO, job="directory=${DIR}\n", matrix={"dir": ["sub", "/tmp"]})


def test_a_job_is_checked_with_the_values_of_its_step(tmp_path: Path) -> None:
    (tmp_path / "mine.fio").write_text("[one]\nrw=read\nsize=1m\ninclude more.inc\n")
    (tmp_path / "more.inc").write_text("bs=${BS}\n")

    def check(*values: str) -> None:
        found = chosen(tmp_path, FIO, matrix={"bs": [*values]})
        workload = found.workload
        prepare.check_jobs([replace(spec(), scenario=found.scenario, workload=workload, brought=brought(workload))])

    check("4k", "16k")
    with pytest.raises(InputError, match=r"^step fio-bs-many: mine\.fio: fio: failed parsing bs="):
        check("4k", "many")


def test_arguments_in_place_of_a_job_file_are_checked_too(tmp_path: Path) -> None:
    def check(arguments: str) -> None:
        step = {"name": "alone", "program": "fio", "arguments": arguments, "origin": "estimated"}
        found = chosen(tmp_path, step, matrix={"bs": ["4k"]})
        prepare.check_jobs([replace(spec(), scenario=found.scenario, workload=found.workload)])

    check('--name=x --rw=read --size=1m --bs="$BS" --filename="$DEVICE"')
    check("--name=$(date) --rw=reed --bs=$BS")
    with pytest.raises(InputError, match=r"^step alone-bs-4k: arguments: .*reed"):
        check("--name=x --rw=reed --size=1m --bs=$BS")
