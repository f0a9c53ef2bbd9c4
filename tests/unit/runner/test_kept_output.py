"""What steps print comes to the host by a disk of its own, and changes nothing where nobody reads it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.evaluate import step_output
from agelab.evaluate.step_output import PLACE_BYTES
from agelab.results.result import Sample
from agelab.runner.plan.guest_plan import DATA_DISK, guest_plan
from agelab.runner.plan.passes import is_keeper, output_bytes, outputs, with_keepers
from agelab.runner.plan.phases import MAKING, Phase, phases
from agelab.runner.plan.steps import StepPlan
from agelab.scenario import workloads
from agelab.scenario.metrics import Metric
from agelab.scenario.step import Action
from agelab.scenario.workloads import Workload
from tests.build.cell_builder import CORPUS, FIO, PLAIN, phase, spec

MINE = Action(name="mine", run="echo 2.5", records=("my_ops",), origin="estimated")
WORKLOAD = Workload(
    programs={"fio": workloads.program("fio"), "dbench": workloads.program("dbench")},
    metrics={
        "my_ops": Metric("1/s", "operations", "higher"),
        **{name: one.metric for program in workloads.programs() for name, one in program.metrics.items()},
    },
)


def test_a_step_that_prints_is_followed_by_one_that_keeps_it() -> None:
    kept = with_keepers(phase(PLAIN, FIO, MINE, PLAIN))
    assert [step.name for step in kept.steps] == [
        "copy", "fio", "fio.output", "mine", "mine.output", "copy",
    ]  # fmt: skip
    assert [step.run for step in kept.steps[1:3]] == [
        "exec >/run/agelab/said/output\nfio job",
        'exec keep-output /run/agelab/said/output "$OUTPUT_DISK" 0',
    ]
    assert kept.steps[4].run.endswith('"$OUTPUT_DISK" 1')
    assert [is_keeper(step.name) for step in kept.steps] == [False, False, True, False, True, False]
    assert [(output.place, str(output.step)) for output in outputs(kept, WORKLOAD.programs)] == [
        (0, "fio"),
        (1, "mine"),
    ]
    assert kept.steps[0].records == (("content_bytes", "B"),) and kept.steps[3].records == ()
    assert output_bytes(kept) == 2 * PLACE_BYTES


def test_forks_and_reboots_stay_where_they_are() -> None:
    rebooted = Action(name="again", run="true", caches="reboot", origin="estimated")
    kept = with_keepers(phase(FIO, FIO.model_copy(update={"name": "two"}), rebooted, forks={0: "a", 1: "b", 3: "c"}))
    assert {index: kept.steps[index - 1].name for index in kept.forks if index} == {2: "fio.output", 5: "again"}
    assert list(kept.forks.items()) == [(0, "a"), (2, "b"), (5, "c")]
    assert kept.steps[4].name == "again" and kept.steps[4].caches == "reboot"


def test_a_power_cut_takes_the_output_of_its_step() -> None:
    cut = replace(StepPlan.of(FIO, 1, CORPUS), cut_after=(1, 1))
    assert [step.name for step in with_keepers(Phase(MAKING, (cut,), 0)).steps] == ["fio"]
    assert output_bytes(Phase(MAKING, (cut,), 0)) == 0


def test_scenarios_whose_steps_nobody_reads_are_planned_as_before() -> None:
    cell = spec()
    for one in phases(cell.scenario, CORPUS):
        assert with_keepers(one) is one
        plan = guest_plan(cell, CORPUS, one)
        assert "OUTPUT_DISK" not in plan["environment"] and "PATH" not in plan["environment"]
        assert not {"output", "program"} & plan["steps"][0].keys()


def test_the_output_disk_comes_after_the_drives_and_before_what_a_control_is_copied_from() -> None:
    cell = spec()
    control = next(one for one in phases(cell.scenario, CORPUS) if one.name == "control")
    kept = with_keepers(replace(control, steps=(*control.steps, StepPlan.of(FIO, 1, CORPUS))))
    plan = guest_plan(cell, CORPUS, kept)
    first = DATA_DISK + len(cell.disk.memory_disks)
    assert plan["environment"]["OUTPUT_DISK"] == str(first)
    source = plan["drives"][plan["disks"][0]["source"]["members"][0][0]]
    assert source["partitions"][0]["disk"] == first + 1


def test_what_a_step_prints_is_kept_without_a_metric(tmp_path: Path) -> None:
    only = Action(name="df", run="df -i", keep=True, origin="estimated")
    kept = with_keepers(phase(only, PLAIN.model_copy(update={"keep": True})))
    assert [step.name for step in kept.steps] == ["df", "df.output", "copy", "copy.output"]
    text = b"Filesystem Inodes\nmine 7\n"
    [bytes_copied] = read(tmp_path, kept, text, b"42\n")
    assert (tmp_path / "df-1.output").read_bytes() == text
    assert (bytes_copied.step, bytes_copied.metric, bytes_copied.value) == ("copy", "content_bytes", 42)


def test_what_is_only_kept_may_be_more_than_is_kept(tmp_path: Path) -> None:
    only = Action(name="log", run="dmesg", keep=True, origin="estimated")
    assert read(tmp_path, with_keepers(phase(only)), b"x" * PLACE_BYTES) == []
    assert (tmp_path / "log-1.output").stat().st_size == PLACE_BYTES


# ---- from the disk to samples ----


def read(
    tmp_path: Path,
    kept: Phase,
    *texts: bytes,
    dilation: float = 1,
    ended: int | None = None,
    requests: int = 1,
    disk_bytes: int = 0,
) -> list[Sample]:
    disk = tmp_path / "output"
    with disk.open("wb") as file:
        for place, text in enumerate(texts):
            file.seek(place * PLACE_BYTES)
            file.write(text)
        file.truncate(output_bytes(kept))
    printed = list(outputs(kept, WORKLOAD.programs))
    there = [
        Sample(step=str(output.step), metric=metric, value=value, unit=unit)
        for output in printed[:ended]
        for metric, value, unit in (
            ("elapsed", 1, "s"),
            ("requests", requests, "1"),
            ("bytes_written", disk_bytes, "B"),
        )
    ]
    return list(step_output.samples(disk, printed, WORKLOAD.metrics, dilation, there))


@pytest.mark.parametrize(("dilation", "value"), [(1, 12.5), (0.5, 25), (2, 6.25)])
def test_a_number_of_ones_own_is_in_the_machines_time(tmp_path: Path, dilation: float, value: float) -> None:
    [found] = read(tmp_path, with_keepers(phase(MINE)), b"12.5\n", dilation=dilation)
    assert found == Sample(step="mine", metric="my_ops", value=value, unit="1/s")


DBENCH = Action(name="load", run="dbench 1", program="dbench", origin="estimated")


def test_a_time_grows_with_what_a_guests_second_stands_for_and_a_rate_shrinks(tmp_path: Path) -> None:
    text = b"Throughput 80 MB/sec  1 clients  1 procs  max_latency=4.000 ms\n"
    found = read(tmp_path, with_keepers(phase(DBENCH)), text, dilation=0.5)
    assert {one.metric: one.value for one in found} == {"dbench_throughput": 160e6, "dbench_latency_max": 0.002}


@pytest.mark.parametrize(
    ("text", "requests", "marked"),
    [
        (b"Throughput 80 MB/sec  1 clients  1 procs  max_latency=4.000 ms\n", 0, True),
        (b"Throughput 80 MB/sec  1 clients  1 procs  max_latency=4.000 ms\n", 1, False),
        (b"Throughput 0 MB/sec  1 clients  1 procs  max_latency=4.000 ms\n", 0, False),
    ],
)
def test_what_moved_data_while_the_disk_saw_no_request_is_not_of_this_disk(
    tmp_path: Path, text: bytes, requests: int, marked: bool
) -> None:
    samples = read(tmp_path, with_keepers(phase(DBENCH)), text, requests=requests)
    assert len(samples) == 2 and {sample.caveat is not None for sample in samples} == {marked}


@pytest.mark.parametrize(("disk_bytes", "marked"), [(0, True), (4000, True), (512_000, False), (1 << 20, False)])
def test_what_earlier_steps_left_to_be_written_does_not_hide_that_data_were_elsewhere(
    tmp_path: Path, disk_bytes: int, marked: bool
) -> None:
    """An ext4 that was just made writes some kilobytes of its own at any time, as guests show."""
    done = {"total_ios": 16, "bw_bytes": 10, "iops": 2.5, "io_bytes": 1 << 20}
    text = json.dumps({"jobs": [{"jobname": "cached", "write": done}]}).encode()
    samples = read(tmp_path, with_keepers(phase(FIO)), text, disk_bytes=disk_bytes)
    values = [sample for sample in samples if sample.value is not None]
    assert len(values) == 3 and {sample.caveat is not None for sample in values} == {marked}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "the step printed no number: nothing"),
        (b"fast\n", "the step printed no number: 'fast'"),
        (b"1 2\n", "the step printed no number: '1 2'"),
        (b"nan", "the step printed no number"),
        (b"1e999", "no number that a result can hold"),
        (b"\xff\x1b[31m1", "the step printed no number"),
        (b"1" * 50, "the step printed no number"),
        (b"7" * PLACE_BYTES, "more than the 1 MiB that is kept"),
    ],
)
def test_an_output_without_a_number_is_not_measured_and_says_why(tmp_path: Path, text: bytes, said: str) -> None:
    [found] = read(tmp_path, with_keepers(phase(MINE)), text)
    assert found.value is None and said in (found.not_measured or "")
    assert (found.step, found.metric, found.unit) == ("mine", "my_ops", "1/s")


def test_a_step_that_never_ended_has_no_samples(tmp_path: Path) -> None:
    kept = with_keepers(phase(MINE, MINE.model_copy(update={"name": "later"})))
    assert [one.step for one in read(tmp_path, kept, b"1", b"2", ended=1)] == ["mine"]


def test_a_number_that_a_program_left_out_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, with_keepers(phase(DBENCH)), b"Throughput 80 MB/sec  1 clients\n")
    assert [(one.metric, one.not_measured) for one in found] == [
        ("dbench_throughput", None),
        ("dbench_latency_max", "dbench printed no such number"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint", "why"),
    [
        (
            '{"jobs": [{"jobname": "trim", "error": 25}, {"jobname": "other", "sync": {"total_ios": 1}}]}',
            "fio: blocksize is larger than data set range",
            "fio's job trim ended with error 25",
        ),
        ('{"jobs": [{"jobname": "other", "sync": {"total_ios": 1}}]}', "a warning", "a warning"),
        ("usage\n", "No job(s) defined", "No job(s) defined"),
        ("usage\n", "", "fio printed no JSON: 'usage'"),
    ],
)
def test_a_failed_job_is_the_reason_of_its_step(tmp_path: Path, text: str, complaint: str, why: str) -> None:
    disk = tmp_path / "output"
    disk.write_bytes(text.encode().ljust(PLACE_BYTES, b"\0"))
    kept = list(outputs(with_keepers(phase(FIO)), WORKLOAD.programs))
    assert step_output.last_words(disk, kept, "fio", 1, complaint) == why
    assert step_output.last_words(disk, kept, "copy", 1, complaint) == complaint
