"""Outputs of real programs, and of none, through their readers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agelab.evaluate.program_output import Reading, UnreadableOutput, read_program
from agelab.scenario import workloads
from agelab.scenario.units import time_power
from agelab.scenario.workload import OwnMetric

OUTPUTS = Path(__file__).parent / "program-output"
"""What the programs of Debian 12 printed."""


def readings(name: str, text: str) -> dict[str, Reading]:
    return {
        f"{reading.part}:{reading.metric}" if reading.part else reading.metric: reading
        for reading in read_program(workloads.program(name), text)
    }


def values(name: str, text: str) -> dict[str, float | None]:
    return {metric: reading.value for metric, reading in readings(name, text).items()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dbench", {"dbench_throughput": 73287800, "dbench_latency_max": 0.027077}),
        ("fs-mark", {"fs_mark_rate": 232.7, "fs_mark_overhead": 0.000322}),
        ("postmark",
         {"postmark_transactions": 20, "postmark_created": 29, "postmark_deleted": 29, "postmark_seconds": 1}),
        ("bonnie", {"bonnie_seeks": 5624}),
        ("bonnie-files", {"bonnie_create": 828, "bonnie_delete": 439}),
        ("fsx", {"fsx_operations": 1000}),
    ],
)  # fmt: skip
def test_the_numbers_of_a_real_output(name: str, expected: dict[str, float]) -> None:
    assert values(name.removesuffix("-files"), (OUTPUTS / f"{name}.txt").read_text()) == expected


@pytest.mark.parametrize("name", [program.name for program in workloads.programs()])
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


KINDS = (OUTPUTS / "fio-kinds.txt").read_text()
"""Of --output-format=normal,json: jobs with and without latencies and percentiles, clones, one that failed."""


def test_every_metric_of_the_program_is_one_that_the_reader_gives() -> None:
    metrics = {
        name.rpartition(":")[2] for text in (KINDS, (OUTPUTS / "fio.json").read_text()) for name in values("fio", text)
    }
    untrimmed = {metric for metric in workloads.program("fio").metrics if not metric.startswith("fio_trim")}
    assert metrics == untrimmed | {"fio_trim_bandwidth"}


def test_fio_s_own_text_says_the_same() -> None:
    """Its numbers have three digits; of one run, so they are those of the JSON beside them."""
    fio = values("fio", KINDS)
    [mean] = re.findall(r"sync \(usec\): .* avg=([\d.]+),", KINDS)
    assert fio["etcd:fio_sync_latency_mean"] == pytest.approx(float(mean) * 1e-6, rel=1e-4)
    [p99] = re.findall(r"sync percentiles \(usec\):.*?99\.00th=\[ *(\d+)\]", KINDS, re.DOTALL)
    assert fio["etcd:fio_sync_latency_p99"] == pytest.approx(int(p99) * 1e-6, rel=1e-3)
    assert fio["etcd:fio_sync_count"] == -(-256 * 1024 // 2300) - 1 == 113
    groups = re.findall(r"^ +(?:READ|WRITE|MIXED): bw=([\d.]+)([KM])iB/s", KINDS, re.MULTILINE)
    bandwidth = [float(number) * {"K": 1 << 10, "M": 1 << 20}[unit] for number, unit in groups]
    parts = (
        "etcd", "clones-all", "no-latency", "lat-percentiles", "other-percentiles", "no-percentiles",
        "unified",
    )  # fmt: skip
    ways = ("write", "read", "write", "read", "read", "read", "mixed")
    ours = [fio[f"{part}:fio_{way}_bandwidth"] for part, way in zip(parts, ways, strict=True)]
    assert ours == [pytest.approx(group, rel=5e-3) for group in bandwidth]


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        ("no-latency:fio_write_latency_mean", "fio measured no latency"),
        ("no-latency:fio_write_latency_p99", "fio measured no latency"),
        ("other-percentiles:fio_read_latency_p99", "percentile_list has no 99"),
        ("no-percentiles:fio_read_latency_p50", "asks fio for no percentiles"),
        ("clones-all:fio_read_latency_p99", "group_reporting=1"),
        (
            "trim:fio_trim_bandwidth",
            "job trim ended with error 25: func=td_io_queue, error=Inappropriate ioctl for device",
        ),
    ],
)
def test_what_fio_did_not_measure_is_not_measured_and_never_0(reading: str, why: str) -> None:
    missing = readings("fio", KINDS)[reading]
    assert missing.value is None and why in (missing.not_measured or "")


def test_percentiles_of_either_latency_are_read() -> None:
    fio = values("fio", KINDS)
    assert fio["lat-percentiles:fio_read_latency_p99"] and fio["lat-percentiles:fio_read_latency_mean"]


def test_of_several_documents_the_last_counts() -> None:
    text = (OUTPUTS / "fio-status.txt").read_text()
    assert text.count("\n{") + text.startswith("{") == 3
    assert values("fio", text)["copy:fio_write_bytes"] == 2 << 20
    with pytest.raises(UnreadableOutput, match="cannot be read"):
        values("fio", text[:-100])


def fio(**job: Any) -> list[Reading]:
    done = {
        "total_ios": 4, "bw_bytes": 10, "iops": 2.5, "io_bytes": 16, "lat_ns": {"N": 4, "mean": 3.0, "max": 4},
        "clat_ns": {"N": 4, "percentile": {"50.000000": 2}},
    }  # fmt: skip
    jobs = [{"jobname": "copy", "read": done} | job, {"jobname": "copy", "read": done}]
    return read_program(workloads.program("fio"), "fio: note\n" + json.dumps({"jobs": jobs}))


def test_jobs_of_one_name_are_told_apart_and_no_name_leads_anywhere() -> None:
    assert {reading.part for reading in fio()} == {"copy", "copy-2"}
    assert {reading.part for reading in fio(jobname="../../x y\x1b[0m")} == {"x-y-0m", "copy"}
    assert {reading.part for reading in fio(jobname="")} == {"job", "copy"}


def test_the_fdatasyncs_of_clones_are_counted_together() -> None:
    syncs = [{"lat_ns": {"N": n, "mean": 1e9 * n, "max": 5e9}, "total_ios": 0} for n in (1, 3)]
    jobs = [{"jobname": "log", "sync": sync} for sync in syncs]
    found = values("fio", json.dumps({"jobs": jobs}))
    assert (found["log-all:fio_sync_count"], found["log-all:fio_sync_latency_mean"]) == (4, 2.5)


def test_a_job_on_no_disk_has_no_numbers() -> None:
    idle, *others = fio(**{"job options": {"ioengine": "null", "rw": "randwrite"}})
    assert (idle.metric, idle.value) == ("fio_write_bandwidth", None)
    assert idle.not_measured == "ioengine=null works on no disk"
    assert {reading.part for reading in others} == {"copy-2"}


def test_a_failed_job_takes_none_of_the_others_away() -> None:
    failed, *others = fio(error=28)
    assert failed.value is None and failed.not_measured == "fio's job copy ended with error 28"
    document = {"global options": {"rw": "randwrite"}, "jobs": [{"jobname": "a", "error": 28, "job options": {}}]}
    assert "a:fio_write_bandwidth" in values("fio", json.dumps(document))
    assert {reading.part for reading in others} == {"copy-2"} and others[0].value == 10


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"read": {"total_ios": 1}}, "fio's result of job copy is not as expected: KeyError"),
        ({"read": {"total_ios": 1, "bw_bytes": "fast"}}, "is no number"),
        ({"read": {"total_ios": 1, "bw_bytes": 1e30}}, "no number that a result can hold"),
    ],
)
def test_a_job_that_is_none_is_told(job: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        fio(**job)


@pytest.mark.parametrize(
    ("unit", "power"),
    [
        ("s", 1), ("ms", 1), ("usec", 1), ("us/op", 1), ("usecs/op", 1), ("s_per_op", 1), ("min", 1),
        ("msec", 1), ("micros/op", 1), ("nanos", 1), ("1/s", -1), ("B/s", -1), ("files/s", -1),
        ("ops/sec", -1), ("MB/sec", -1), ("IOPS", -1), ("tps", -1), ("tpmC", -1), ("lookups/s", -1),
        ("bogo-ops/s", -1), ("kIOPS", -1), ("MBps", -1), ("op/min", -1), ("B", 0), ("1", 0), ("%", 0),
        ("files", 0), ("KiB", 0), ("s/s", 0), ("ops/file", 0),
    ],
)  # fmt: skip
def test_times_and_rates_are_told_by_their_units(unit: str, power: int) -> None:
    assert time_power(unit) == power


@pytest.mark.parametrize("unit", ["ops", "kops", "jiffies", "MHz", "mb_s", "us-op", "Mfps", "NOPM", "ticks_per_usec2"])
def test_a_unit_that_may_have_a_time_in_it_is_refused(unit: str) -> None:
    with pytest.raises(ValueError, match=unit):
        OwnMetric(unit=unit, meaning="something")
