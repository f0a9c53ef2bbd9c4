"""Programs, packages, files and metrics of a scenario's own: what it may ask for, and what is told of errors."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agelab.base import places
from agelab.base.errors import InputError
from agelab.runner.prepare import prepare
from agelab.runner.prepare.brought_files import PATH, brought, carried
from agelab.scenario import selection, workloads
from agelab.scenario.metrics import METRICS
from agelab.scenario.workload import GuestProgram
from harness import boot as harness
from tests.build.cell_builder import spec
from tests.build.scenario_builder import ECHO, MY_OPS, chosen

PROJECT = Path(__file__).parents[3]
FIO = {"name": "rand", "program": "fio", "job": "job.fio", "origin": "estimated"}


@pytest.fixture(params=[program.name for program in workloads.programs()])
def program(request: pytest.FixtureRequest) -> GuestProgram:
    return workloads.program(request.param)


def test_a_programs_metrics_are_its_own(program: GuestProgram) -> None:
    assert not set(program.metrics) & set(METRICS)
    assert {one.metric for one in program.numbers} <= set(program.metrics)


def test_the_project_has_the_programs_that_people_have() -> None:
    names = {program.name for program in workloads.programs()}
    assert names >= {"fio", "dbench", "fs-mark", "postmark", "bonnie", "fsx"}


def test_a_step_of_a_program_gets_its_command_and_its_job_file(tmp_path: Path) -> None:
    found = chosen(tmp_path, FIO | {"arguments": "--section=one"})
    [step] = found.scenario.actions()
    assert step.run.startswith("JOB=/run/agelab/jobs/job.fio\nfio --output-format=json ")
    assert step.run.endswith('"$JOB" --section=one')
    assert '--randseed="$CORPUS_SEED"' in step.run and "--allrandrepeat=1" in step.run
    assert found.workload.packages == ("fio",) and found.workload.jobs == {"job.fio": b"[one]\nrw=read\nsize=1m\n"}


def test_packages_of_programs_and_of_the_scenario_go_into_one_image(tmp_path: Path) -> None:
    dbench = {"name": "dbench", "program": "dbench", "arguments": "1", "origin": "estimated"}
    found = chosen(tmp_path, FIO, dbench, packages=["sysbench", "fio"])
    assert found.workload.packages == ("dbench", "fio", "sysbench")


def test_a_metric_of_ones_own_has_unit_meaning_and_direction(tmp_path: Path) -> None:
    found = chosen(tmp_path, ECHO, metrics=MY_OPS).workload.metrics["my_ops"]
    assert (found.unit, found.better, found.meaning) == ("1/s", "higher", "my operations in a second")


@pytest.mark.parametrize(
    ("steps", "more", "said"),
    [
        ([FIO | {"program": "fi"}], {}, r"steps\[0\]\.program: no program 'fi'; did you mean fio"),
        ([FIO | {"job": "jop.fio"}], {}, r"steps\[0\]\.job: no file in .*did you mean job\.fio"),
        ([FIO | {"job": ""}], {}, r"steps\[0\]\.job: is missing: program fio takes a job file of fio"),
        ([FIO | {"run": "fio"}], {}, r"steps\[0\]\.run: there is a program already"),
        ([FIO | {"job": "../.."}], {}, r"steps\[0\]\.job: '\.\.': its name may have letters"),
        ([FIO | {"program": "dbench"}], {}, r"steps\[0\]\.job: program dbench takes none: give it arguments"),
        ([FIO | {"records": ["my_ops"]}], {"metrics": MY_OPS},
         "records: agelab reads a program's output by the program's name"),
        ([{"name": "none", "origin": "estimated"}], {},
         "run is missing: a command for the shell, or a program"),
        ([ECHO], {}, "step 'mine': no metric 'my_ops'"),
        ([ECHO], {"metrics": MY_OPS | {"elapsed": MY_OPS["my_ops"]}},
         "metrics.elapsed: elapsed is one of agelab's metrics already .*choose another name"),
        ([FIO], {"metrics": {"fio_read_iops": MY_OPS["my_ops"]}}, "program fio has a metric of that name"),
        ([ECHO], {"metrics": {"my_ops": {"unit": "1/s"}}}, r"metrics\.my_ops\.meaning: is missing"),
        ([FIO | {"cut_after": 3}], {}, "step 'rand': its power is cut: its output is lost"),
        ([ECHO], {"metrics": MY_OPS, "packages": ["Fio!"]}, r"packages\[0\]: String should match"),
        ([FIO | {"job": "a\x00b/job.fio"}], {}, r"steps\[0\]\.job: .*it is no text, or no path"),
        ([ECHO], {"metrics": MY_OPS, "bring": ["x" * 300]}, r"bring\[0\]: .*xxx is not there"),
        ([ECHO], {"metrics": MY_OPS, "bring": ["./gone"]}, r"bring\[0\]: .*gone is not there"),
        ([{"name": "x", "program": "fsx", "arguments": "file", "origin": "estimated"}], {},
         r'program: fsx is in no Debian package: bring = \["\./fsx"\]'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line_with_its_place(
    tmp_path: Path, steps: list[dict[str, Any]], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        chosen(tmp_path, *steps, **more)
    [line] = str(caught.value).splitlines()
    assert re.search(said, line) and str(tmp_path / "ten-lines.toml") in line


def test_a_scenario_from_elsewhere_names_no_file_of_this_host(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    text = chosen(tmp_path, FIO, bring=["./mine"]).text
    with pytest.raises(InputError, match="bring: this scenario came from elsewhere"):
        selection.select(str(tmp_path / "ten-lines.toml"), text=text, jobs={"job.fio": b""})
    plain = chosen(tmp_path, FIO).text
    with pytest.raises(InputError, match=r"job: job\.fio is not among what was packed"):
        selection.select(str(tmp_path / "ten-lines.toml"), text=plain, jobs={})
    carried = selection.select(str(tmp_path / "ten-lines.toml"), text=plain, jobs={"job.fio": b"[other]"})
    assert carried.workload.jobs == {"job.fio": b"[other]"}


# ---- files that are brought ----


def test_a_program_of_ones_own_is_in_the_path_and_a_directory_too(tmp_path: Path) -> None:
    (tmp_path / "bench").write_bytes(b"\x7fELF")
    for name in ("suite/bin/go", "suite/data/words", "suite/usr/lib/libx.so.1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "suite/bin/run").symlink_to("go")
    found = brought(chosen(tmp_path, FIO, bring=["./bench", "suite"]).workload)
    assert found.files["tools/bench"] == b"\x7fELF" and found.files["jobs/job.fio"].startswith(b"[one]")
    assert found.files["brought/suite/bin/run"] == found.files["brought/suite/bin/go"] == b"suite/bin/go"
    assert found.environment["PATH"].endswith(":/run/agelab/tools:/run/agelab/brought/suite/bin")
    assert found.environment["LD_LIBRARY_PATH"] == "/run/agelab/brought/suite/usr/lib"
    assert "tools/keep-output" in found.files


def test_what_a_capsule_carries_is_in_the_guest_as_what_was_brought(tmp_path: Path) -> None:
    (tmp_path / "suite/lib").mkdir(parents=True)
    (tmp_path / "suite/test").write_text("#!/bin/sh")
    (tmp_path / "suite/lib/x.so").write_text("x")
    (tmp_path / "bench").write_text("x")
    here = chosen(tmp_path, ECHO, metrics=MY_OPS, bring=["suite", "bench"])
    files = brought(here.workload)
    kept = carried(files)
    assert sorted(kept) == ["bring/brought/suite/lib/x.so", "bring/brought/suite/test", "bring/tools/bench"]
    there = selection.select("ten-lines.toml", text=here.text, jobs=kept)
    assert brought(there.workload) == files


def test_the_path_of_steps_begins_as_the_harness_sets_it() -> None:
    assert f"{harness.PATH}:{harness.TOOLS}" == PATH


def test_what_leads_out_of_a_directory_is_not_brought(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/passwords").symlink_to("/etc/shadow")
    with pytest.raises(InputError, match="passwords leads out of it"):
        brought(chosen(tmp_path, ECHO, metrics=MY_OPS, bring=["suite"]).workload)


def test_what_no_result_could_name_is_not_brought(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / os.fsdecode(b"name\xff")).touch()
    with pytest.raises(InputError, match=r"name\\udcff is a name with bytes that are no UTF-8"):
        brought(chosen(tmp_path, ECHO, metrics=MY_OPS, bring=["suite"]).workload)


@pytest.mark.parametrize(
    ("bring", "number", "said"),
    [
        ([".."], 0, "it has no name that the guest could know it by: name the directory itself"),
        (["."], 0, "it has no name"),
        (["./"], 0, "it has no name"),
        ([""], 0, "it has no name"),
        (["/"], 0, "it has no name"),
        (["suite", "suite/../.."], 1, "it has no name"),
        (["...deb"], 0, "it has no name"),
        (["..deb"], 0, "it has no name"),
        (["~"], 0, "~ stands for no home here: write the whole path"),
        (["~/suite"], 0, "~ stands for no home here"),
        (["out"], 0, "it is a link out of its directory: name what it leads to, /"),
        (["/proc/self/root"], 0, "it is a link out of its directory"),
        (["suite", "./suite/"], 1, "'suite' is called suite in the guest, too"),
        (["suite", "suite.deb"], 1, "'suite' is called suite in the guest, too"),
        (["suite", "other/suite"], 1, "'suite' is called suite in the guest, too"),
        (["u\u0308b"], 0, "its name has characters that look like others"),
        (["\uff0e\uff0e"], 0, "its name has characters that look like others"),
        (["a\u202eb"], 0, r"its name has '\\u202e'"),
        (["a\u200bb"], 0, r"its name has '\\u200b'"),
        (["a:b"], 0, "its name has ':'"),
        (["a\nb"], 0, r"its name has '\\n'"),
        (["a\0b"], 0, r"its name has '\\x00'"),
    ],
)
def test_what_could_get_anywhere_but_its_own_place_in_the_guest_is_refused_with_its_place(
    tmp_path: Path, bring: list[str], number: int, said: str
) -> None:
    for name in ("suite", "other/suite"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "plan.json").write_text("{}")
    for name in ("suite.deb", "..deb", "...deb", "u\u0308b", "\uff0e\uff0e", "a\u202eb", "a\u200bb", "a:b", "a\nb"):
        (tmp_path / name).touch()
    (tmp_path / "out").symlink_to("/")
    with pytest.raises(InputError) as caught:
        chosen(tmp_path, ECHO, metrics=MY_OPS, bring=bring)
    [line] = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path}/ten-lines.toml: bring[{number}]: {bring[number]!r}: ")
    assert re.search(said, line)


def test_a_link_within_the_scenarios_directory_and_what_lies_beside_it_may_be_brought(tmp_path: Path) -> None:
    beside, home = tmp_path / "\u00fcber", tmp_path / "scenario"
    for place in (beside, home / "suite-1.2"):
        place.mkdir(parents=True)
        (place / "go").write_text("go")
    (home / "suite").symlink_to("suite-1.2")
    found = brought(chosen(home, ECHO, metrics=MY_OPS, bring=["suite", "../\u00fcber"]).workload)
    assert {"brought/suite/go", "brought/\u00fcber/go"} <= set(found.files)


@pytest.mark.parametrize("name", ["replay", "keep-output", "mkufs", "step-profile"])
def test_a_program_of_agelabs_own_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match="agelab has a program of that name in each guest"):
        brought(chosen(tmp_path, ECHO, metrics=MY_OPS, bring=[name]).workload)


def test_every_program_of_agelabs_guests_is_protected() -> None:
    from agelab.machine.image import tools
    from agelab.runner.prepare.brought_files import OWN_TOOLS

    sources = (tools.SOURCES, tools.FILESYSTEMS, tools.PROFILER)
    built = {name for place in sources for name in tools.programs(tools.source_files(place))}
    assert built | {path.name for path in (places.HARNESS / "output").iterdir()} == set(OWN_TOOLS)


def test_a_scenario_without_any_of_it_brings_nothing() -> None:
    found = brought(selection.select("aging-reiserfs").workload)
    assert not found.files and not found.environment and found.size == 0


# ---- the host's own look at a job file ----


def test_the_hosts_program_tells_what_it_refuses_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = chosen(tmp_path, FIO)
    strict = workloads.program("fio").model_copy(
        update={
            "check": ("sh", "-c", 'grep -q known "$0" || { echo "fio: bad option <rw=reed>" >&2; exit 1; }', "{job}")
        }
    )
    workload = replace(found.workload, programs={"fio": strict})
    cell = replace(spec(), scenario=found.scenario, workload=workload, brought=brought(workload))
    with pytest.raises(InputError, match=r"^step rand: job\.fio: fio: bad option <rw=reed>$"):
        prepare.check_jobs([cell])
    known = replace(cell.brought, files={**cell.brought.files, "jobs/job.fio": b"known"})
    prepare.check_jobs([replace(cell, brought=known)])
    absent = strict.model_copy(update={"check": ("no-such-program", "{job}")})
    prepare.check_jobs([replace(cell, workload=replace(workload, programs={"fio": absent}))])


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("--name=x --rw=reed", True),
        ("--name=x --rw=$WAY", True),
        ("--name=x --rw=read", False),
        ("--name=x --rw=$(echo reed)", False),
        ("--name=x --rw=reed 2>&1", False),
        ('--name=x --read_iolog="$SOURCE/log"', False),
    ],
)
def test_the_hosts_program_tells_what_it_refuses_of_arguments(tmp_path: Path, arguments: str, refused: bool) -> None:
    step = {"name": "rand", "program": "fio", "origin": "estimated", "environment": {"WAY": "reed"}}
    found = chosen(tmp_path, step | {"arguments": arguments})
    script = 'for word do case $word in --rw=reed|*=/log) echo "fio: bad rw" >&2; exit 1;; esac; done'
    strict = workloads.program("fio").model_copy(update={"check": ("sh", "-c", script, "fio", "{job}")})
    workload = replace(found.workload, programs={"fio": strict})
    cell = replace(spec(), scenario=found.scenario, workload=workload, brought=brought(workload))
    if not refused:
        prepare.check_jobs([cell])
        return
    with pytest.raises(InputError, match=r"^step rand: arguments: fio: bad rw$"):
        prepare.check_jobs([cell])
