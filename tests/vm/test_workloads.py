"""Programs that people have, in real guests: the how-to's examples, one digest each however loaded the host."""

import re
from pathlib import Path
from typing import Any

import pytest

from agelab.scenario import selection
from tests.vm.cells import agelab, newest, run, scenario, step, values
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
HOWTO = Path(__file__).parents[2] / "docs/howto"
PROGRAMS = HOWTO / "programs.toml"


@pytest.fixture(scope="module")
def quiet() -> dict[str, Any]:
    [cell] = run(str(PROGRAMS))
    return cell


@pytest.mark.full
def test_each_program_has_one_digest_on_a_quiet_and_on_a_loaded_host_and_in_two_directories(
    quiet: dict[str, Any], tmp_path: Path
) -> None:
    for file in HOWTO.glob("programs.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with both_cores_busy():
        [cell] = run("programs.toml", cwd=tmp_path)
    assert cell["status"] == quiet["status"] == "ok"
    assert (cell["inputs_key"], cell["digest"]) == (quiet["inputs_key"], quiet["digest"])


@pytest.mark.full
def test_what_each_program_prints_becomes_samples(quiet: dict[str, Any]) -> None:
    found = values(quiet)
    workload = selection.select(str(PROGRAMS)).workload
    for metric in ("dbench_throughput", "fs_mark_rate", "postmark_seconds", "bonnie_put_block", "files_found"):
        assert [value for (_, name), value in found.items() if name == metric and value], metric
    jobs = {name for name, _ in found if name.startswith("fio.")}
    assert jobs == {"fio.randread", "fio.randwrite", "fio.read", "fio.mixed"}
    assert found["fio.read", "fio_read_bytes"] == 4 << 20
    iops, latency = found["fio.randread", "fio_read_iops"], found["fio.randread", "fio_read_latency_mean"]
    assert iops and latency and 0.9 < iops * latency <= 1.001  # one read at a time
    assert {name for _, name in found if name in workload.metrics} >= {"fio_sync_latency_p99"}
    assert not [name for name, _ in found if name.endswith(".output")]


@pytest.mark.full
def test_fio_on_an_aged_disk_stands_beside_fio_on_a_new_one() -> None:
    path = HOWTO / "fio-aged.toml"
    assert len(path.read_text().splitlines()) <= 15
    [cell] = run(str(path))
    found = values(cell)
    assert cell["status"] == "ok"
    for job, metric in (("read", "fio_read_bandwidth"), ("randread", "fio_read_latency_p99")):
        assert all(found[f"{disk}/fio.{job}", metric] for disk in ("aged", "control"))
    shown = agelab("show", newest(path).name).stdout
    assert re.search(r"fio\.read +fio_read_bandwidth +MB/s +[\d.]+ +[\d.]+ +[\d.]+", shown), shown


def test_a_job_file_that_fio_refuses_is_told_in_fios_words(tmp_path: Path) -> None:
    """It says so as it runs, and not where the host's fio reads the file beforehand."""
    (tmp_path / "bad.fio").write_text("[one]\nrw=read\nsize=2k\nbs=4k\n")
    steps = step("x", "true").replace("run = '''true'''", 'program = "fio"\njob = "bad.fio"')
    [cell] = run(str(scenario(tmp_path, steps)), code=1)
    assert cell["status"] == "failed" and "size too small" in cell["reason"]
