"""Job files: places that are not on the disk under test, files that they include, and fio without a job file."""

import re
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.runner.prepare.brought_files import brought
from agelab.scenario import job_files, selection, toml_files, workloads
from tests.build.scenario_builder import chosen

FIO = {"name": "rand", "program": "fio", "job": "mine.fio", "origin": "estimated"}
ALONE = {"name": "rand", "program": "fio", "origin": "estimated"}


def errors(directory: Path, *steps: dict[str, Any], job: str = "", **more: Any) -> list[str]:
    """What is said of a scenario with that job file, a line for each error."""
    (directory / "mine.fio").write_text(job)
    try:
        chosen(directory, *steps, **more)
    except InputError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize(
    "option",
    [
        "directory=/tmp", "directory = /tmp ; a comment", "filename=/dev/sdb", "filename=here:/dev/sdb",
        "opendir=/etc", "directory=..", "directory=/mnt/../tmp", "directory=${NOWHERE}/x",
        "directory=${HOME}", "write_bw_log=/tmp/bw", "write_lat_log=/root/lat", "write_iolog=/x",
        "read_iolog=/home/me/trace", "replay_redirect=/dev/sda", "filename_format=/tmp/$jobname.$filenum",
        "filename=$DEVICE", "filename=/mnt2/x", "directory=/dev/disk",
    ],
)  # fmt: skip
def test_a_place_that_is_not_on_the_disk_is_an_error_with_its_line(tmp_path: Path, option: str) -> None:
    [line] = errors(tmp_path, FIO, job=f"[global]\n# directory=/tmp\nsize=1m\n{option}\n[one]\nrw=read\n")
    assert line.startswith(
        f"{tmp_path / 'ten-lines.toml'}: steps[0].job: mine.fio:4: {option.split()[0].split('=')[0]}="
    )


@pytest.mark.parametrize(
    "option",
    [
        "directory=.", "directory=/mnt", "directory=/mnt/sub:/mnt/other", "filename=${DEVICE}",
        "filename=/dev/disk/under-test", "filename=a:b", "filename=${SIZE}", "directory=${PWD}/x",
        "read_iolog=${SOURCE}/log", "description=/tmp", "read_iolog=${BROUGHT}/traces/log",
        "exec_prerun=/bin/true", ";filename=/dev/sdb", "write_bw_log=bw",
    ],
)  # fmt: skip
def test_a_place_on_the_disk_and_what_is_only_read_are_taken(tmp_path: Path, option: str) -> None:
    (tmp_path / "traces").mkdir()
    job = f"[one]\nrw=read\nsize=1m\n{option}\n"
    sizes = {"SIZE": {"value": 1, "origin": "estimated"}}
    assert errors(tmp_path, FIO, job=job, bring=["./traces"], sizes=sizes) == []


def test_a_job_named_after_a_device_works_on_it(tmp_path: Path) -> None:
    [line] = errors(tmp_path, FIO, job="[global]\nrw=read\n[/dev/sdb] ; the second\n[/mnt/x]\n[one:/two three]\n")
    assert "mine.fio:3: name=/dev/sdb: it is not on the disk under test" in line


@pytest.mark.parametrize(
    "argument",
    [
        *("--output=log.json", "--output log.json", "-output=log", "--minimal", "--client=host"),
        *("--output-format=terse", "--output-format normal"),
    ],
)
def test_an_argument_that_hides_what_is_read_is_an_error(tmp_path: Path, argument: str) -> None:
    [line] = errors(tmp_path, {**ALONE, "arguments": f"--name=x --rw=read {argument}"})
    assert f"steps[0].arguments: {argument}: leave it out" in line


@pytest.mark.parametrize("argument", ["--output-format=json+", "--output-format=normal,json", "--status-interval=1"])
def test_an_argument_with_which_the_output_can_be_read_is_taken(tmp_path: Path, argument: str) -> None:
    assert errors(tmp_path, {**ALONE, "arguments": f"--name=x --rw=read {argument}"}) == []


def test_an_error_says_what_to_write_instead(tmp_path: Path) -> None:
    [line] = errors(tmp_path, FIO, job="[one]\ndirectory=/tmp\n")
    assert "it is not on the disk under test: it would be measured in the guest's memory" in line
    assert "leave it out" in line and "${DEVICE} for the disk itself" in line
    [line] = errors(tmp_path, FIO, job="[one]\ndirectory=${PLACE}/x\n")
    assert "there it is '/x'" in line
    [line] = errors(tmp_path, FIO, job="[one]\nfilename=$DEVICE\n")
    assert "braces around a variable: ${DEVICE}" in line


@pytest.mark.parametrize(
    ("program", "arguments", "shown"),
    [
        ("fio", "--name=x --directory=/tmp", "--directory=/tmp"),
        ("fio", "--name=x --filename /dev/sdb", "--filename /dev/sdb"),
        ("fio", "--name=x -directory='/tmp'", "-directory=/tmp"),
        ("fio", '--name=x --directory="$HOME"', "--directory=$HOME"),
        ("dbench", "-D /tmp 2", "-D /tmp"),
        ("dbench", "-D/tmp 2", "-D/tmp"),
        ("bonnie", "-s 4 -d /tmp", "-d /tmp"),
        ("fs-mark", "-d /dev/shm -n 3", "-d /dev/shm"),
        ("dbench", "'", "a shell does not take them"),
    ],
)
def test_a_place_among_the_arguments_is_an_error_too(tmp_path: Path, program: str, arguments: str, shown: str) -> None:
    [line] = errors(tmp_path, {"name": "a", "program": program, "arguments": arguments, "origin": "estimated"})
    assert f"steps[0].arguments: {shown}" in line


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("fio", '--name=x --filename="$DEVICE"'),
        ("fio", "--name=x --directory=$PWD/sub"),
        ("fio", "--name=x --directory=$(mktemp -d -p .)"),
        ("dbench", "-c /usr/share/dbench/client.txt -D sub 2"),
        ("fs-mark", "-l /dev/null -d sub -n 3"),
        ("bonnie", "-d /mnt -s 4"),
    ],
)
def test_places_on_the_disk_are_taken_among_the_arguments(tmp_path: Path, program: str, arguments: str) -> None:
    assert errors(tmp_path, {"name": "a", "program": program, "arguments": arguments, "origin": "estimated"}) == []


def test_a_programs_own_words_have_places_as_well(tmp_path: Path) -> None:
    (tmp_path / "mail.pm").write_text("set location /tmp\nrun\n")
    step = {"name": "a", "program": "postmark", "job": "mail.pm", "origin": "estimated"}
    [line] = errors(tmp_path, step)
    assert "mail.pm:1: location=/tmp" in line


# ---- included files ----


def test_an_included_file_goes_where_the_job_file_goes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "common.inc").write_text("size=4m\ninclude parts/more.inc\n")
    (tmp_path / "parts/more.inc").write_text("include last.inc\n")
    (tmp_path / "parts/last.inc").write_text("bs=4k\n")
    (tmp_path / "mine.fio").write_text("[global]\ninclude common.inc\n[w]\nrw=write\n")
    selected = chosen(tmp_path, FIO)
    jobs = selected.workload.jobs
    assert list(jobs) == ["mine.fio", "common.inc", "parts/more.inc", "parts/last.inc"]
    assert jobs["parts/last.inc"] == b"bs=4k\n"
    assert {f"jobs/{name}" for name in jobs} <= set(brought(selected.workload).files)
    assert {path.name for path in selected.workload.sources} == {"mine.fio", "common.inc", "more.inc", "last.inc"}
    carried = selection.select(str(tmp_path / "ten-lines.toml"), text=selected.text, jobs=jobs)
    assert carried.workload.jobs == jobs
    with pytest.raises(InputError, match=r"include common\.inc: common\.inc is not among what was packed"):
        selection.select(str(tmp_path / "ten-lines.toml"), text=selected.text, jobs={"mine.fio": jobs["mine.fio"]})


@pytest.mark.parametrize(
    ("included", "said"),
    [
        ("/etc/common.inc", "an included file lies beside the job file, or below: copy it there"),
        ("../common.inc", "an included file lies beside the job file, or below: copy it there"),
        ("comon.inc", "no file in .*'comon.inc'; did you mean common.inc"),
        ("a b.inc", "its name may have letters"),
    ],
)
def test_a_file_that_cannot_be_included_is_an_error_with_its_line(tmp_path: Path, included: str, said: str) -> None:
    (tmp_path / "common.inc").write_text("size=4m\n")
    [line] = errors(tmp_path, FIO, job=f"[global]\ninclude {included}\n")
    assert re.search(rf"steps\[0\]\.job: mine\.fio:2: include {re.escape(included)}: .*{said}", line)


def test_a_place_in_an_included_file_is_told_with_that_files_line(tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("size=4m\ndirectory=/tmp\n")
    [line] = errors(tmp_path, FIO, job="[global]\ninclude common.inc\n")
    assert "steps[0].job: common.inc:2: directory=/tmp" in line


def test_files_that_include_one_another_come_to_an_end(tmp_path: Path) -> None:
    assert errors(tmp_path, FIO, job="include mine.fio\n") == []
    for number in range(12):
        (tmp_path / f"{number}.inc").write_text(f"include {number + 1}.inc\n")
    [line] = errors(tmp_path, FIO, job="include 0.inc\n")
    assert f"files are included {job_files.MOST_LEVELS} levels deep" in line
    for number in range(60):
        (tmp_path / f"{number}.inc").write_text("size=1m\n")
    [line] = errors(tmp_path, FIO, job="".join(f"include {number}.inc\n" for number in range(60)))
    assert f"{job_files.MOST_FILES} in all at most" in line


# ---- fio without a job file ----


def test_fio_takes_a_command_line_in_place_of_a_job_file(tmp_path: Path) -> None:
    arguments = "--name=x --rw=randread --size=4m"
    [step] = chosen(tmp_path, ALONE | {"arguments": arguments}).scenario.actions()
    with_job = workloads.program("fio").run
    assert step.run == f"{with_job.removesuffix(workloads.JOB_WORD)} {arguments}" and "JOB" not in step.run


def test_fio_without_either_says_what_it_takes(tmp_path: Path) -> None:
    [line] = errors(tmp_path, ALONE | {"arguments": "--rw=read"})
    assert "job: is missing: program fio takes a job file of fio, or arguments with --name" in line


def test_of_many_errors_the_first_are_told(tmp_path: Path) -> None:
    lines = "".join(f"filename=/dev/sd{number}\n" for number in range(5000))
    assert len(errors(tmp_path, FIO, job=lines)) == toml_files.MAX_ERRORS
