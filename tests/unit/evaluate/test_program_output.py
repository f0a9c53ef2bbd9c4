"""Outputs of real programs, and of none, through their readers."""

import json
from pathlib import Path
from typing import Any

import pytest

from agelab.evaluate.program_output import Reading, UnreadableOutput, read_program
from agelab.evaluate.program_output.reading import time_power
from agelab.scenario import workloads

OUTPUTS = Path(__file__).parents[1] / "program-output"
"""What the programs of Debian 12 printed."""


def values(name: str, text: str) -> dict[str, float]:
    return {
        f"{one.part}:{one.metric}" if one.part else one.metric: one.value
        for one in read_program(workloads.program(name), text)
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dbench", {"dbench_throughput": 73287800, "dbench_latency_max": 0.027077}),
        ("fs-mark", {"fs_mark_rate": 232.7, "fs_mark_overhead": 0.000322}),
        (
            "postmark",
            {
                "postmark_transactions": 20,
                "postmark_created": 29,
                "postmark_deleted": 29,
                "postmark_seconds": 1,
            },
        ),
        ("bonnie", {"bonnie_seeks": 5624}),
        ("bonnie-files", {"bonnie_create": 828, "bonnie_delete": 439}),
        ("fsx", {"fsx_operations": 1000}),
    ],
)
def test_the_numbers_of_a_real_output(name: str, expected: dict[str, float]) -> None:
    assert values(name.removesuffix("-files"), (OUTPUTS / f"{name}.txt").read_text()) == expected


@pytest.mark.parametrize("name", [one.name for one in workloads.programs()])
@pytest.mark.parametrize("text", ["", "Segmentation fault\n", "\x00\x1b[2J", "[" * 100_000, "{" * 100_000])
def test_what_is_no_output_of_the_program_is_told_in_one_line(name: str, text: str) -> None:
    with pytest.raises(UnreadableOutput) as caught:
        read_program(workloads.program(name), text)
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_each_job_of_fio_has_its_directions_with_rates_and_latencies() -> None:
    found = values("fio", (OUTPUTS / "fio.json").read_text())
    jobs = {name.partition(":")[0] for name in found}
    assert jobs == {"randread", "randwrite", "read", "mixed"}
    ways = {name.partition("fio_")[2].partition("_")[0] for name in found if name.startswith("mixed:")}
    assert ways == {"read", "write"}
    own = {name.partition(":")[2] for name in found if name.startswith("randwrite:")}
    assert own >= {"fio_write_iops", "fio_write_latency_p99", "fio_sync_latency_mean", "fio_sync_count"}
    for job in json.loads((OUTPUTS / "fio.json").read_text())["jobs"]:
        if job["jobname"] == "randread":
            assert found["randread:fio_read_bandwidth"] == job["read"]["bw_bytes"]
            assert found["randread:fio_read_latency_p50"] == pytest.approx(
                job["read"]["clat_ns"]["percentile"]["50.000000"] * 1e-9
            )


def test_every_metric_that_the_reader_gives_is_one_of_the_programs() -> None:
    program = workloads.program("fio")
    found = {one.metric for one in read_program(program, (OUTPUTS / "fio.json").read_text())}
    assert found == set(program.metrics)


def fio(**job: Any) -> list[Reading]:
    done = {
        "total_ios": 4, "bw_bytes": 10, "iops": 2.5, "io_bytes": 16, "lat_ns": {"mean": 3.0, "max": 4},
        "clat_ns": {"percentile": {"50.000000": 2}},
    }  # fmt: skip
    jobs = [{"jobname": "one", "read": done} | job, {"jobname": "one", "read": done}]
    return read_program(workloads.program("fio"), "fio: note\n" + json.dumps({"jobs": jobs}))


def test_jobs_of_one_name_are_told_apart_and_no_name_leads_anywhere() -> None:
    assert {one.part for one in fio()} == {"one", "one-2"}
    assert {one.part for one in fio(jobname="../../x y\x1b[0m")} == {"x-y-0m", "one"}
    assert {one.part for one in fio(jobname="")} == {"job", "one"}


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"error": 28}, "fio's job one ended with error"),
        ({"read": {"total_ios": 1}}, "fio's result of job one is not as expected: KeyError"),
        ({"read": {"total_ios": 1, "bw_bytes": "fast"}}, "is no number"),
        ({"read": {"total_ios": 1, "bw_bytes": 1e30}}, "no number that a result can hold"),
    ],
)
def test_a_job_that_failed_or_is_none_is_told(job: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableOutput, match=said):
        fio(**job)


@pytest.mark.parametrize(
    ("unit", "power"),
    [("s", 1), ("ms", 1), ("1/s", -1), ("B/s", -1), ("B", 0), ("1", 0), ("%", 0), ("files/s", -1)],
)
def test_times_and_rates_are_told_by_their_units(unit: str, power: int) -> None:
    assert time_power(unit) == power
