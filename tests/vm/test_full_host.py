"""A host whose disk is full: one clear line, what had finished is there, and agelab resume goes on."""

import json
from pathlib import Path

import pytest

from tests.vm.cells import run, scenario, step
from tests.vm.roomless import privately

pytestmark = pytest.mark.vm

FILL = 'cat /dev/zero > "$AGELAB_HOME/runs/filler" 2> "$AGELAB_HOME/full" || true\n'
FREE = 'rm "$AGELAB_HOME/runs/filler"\n'
SHOW = 'agelab show --json > "$AGELAB_HOME/shown"\n'


def test_a_disk_that_grows_beyond_the_hosts_room_interrupts_its_cell(tmp_path: Path) -> None:
    """QEMU ends with SIGBUS: its disk is memory that the host cannot give it."""
    steps = step("first", "true") + step("grow", "dd if=/dev/zero of=a bs=1M count=120")
    path = scenario(tmp_path, steps)
    script = """
    export AGELAB_DISKS=files
    code=0; agelab run "$SCENARIO" > "$AGELAB_HOME/said" 2>&1 || code=$?; test $code = 1
    agelab show --json > "$AGELAB_HOME/before"
    mount -o remount,size=1G "$AGELAB_HOME/runs"
    agelab resume > /dev/null
    """
    home = tmp_path / "home"
    done = privately(home, "100m", script + SHOW, SCENARIO=path)
    said = (home / "said").read_text()
    assert done.returncode == 0, done.stdout + done.stderr + said
    assert "Traceback" not in said
    [before] = json.loads((home / "before").read_text())["cells"]
    assert before["status"] == "interrupted" and "full" in before["reason"]
    assert "first" in {sample["step"] for sample in before["samples"]}
    [after] = json.loads((home / "shown").read_text())["cells"]
    [undisturbed] = run(str(path))
    assert after["status"] == "ok"
    assert (after["inputs_key"], after["digest"]) == (undisturbed["inputs_key"], undisturbed["digest"])


@pytest.mark.full
def test_a_host_that_is_full_for_a_while_when_samples_land_stops_the_run(tmp_path: Path) -> None:
    """Records on disk stay; samples lost here or on the way from the guest are measured again."""
    work = "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); cat /proc/self/stat > /dev/null; done"
    steps = step("first", "true") + "".join(step(f"work{number}", work) for number in range(8))
    path = scenario(tmp_path, steps)
    script = f"""
    agelab run "$SCENARIO" > "$AGELAB_HOME/said" 2>&1 & child=$!
    until grep -q first "$AGELAB_HOME"/runs/*/samples.jsonl; do sleep 0.1; done 2> /dev/null
    {FILL}
    sleep 4
    {FREE}
    code=0; wait $child || code=$?; echo $code > "$AGELAB_HOME/code"
    agelab show --json > "$AGELAB_HOME/before"
    agelab resume > /dev/null
    """
    home = tmp_path / "home"
    done = privately(home, "400m", script + SHOW, SCENARIO=path)
    said = (home / "said").read_text()
    assert done.returncode == 0, done.stdout + done.stderr + said
    assert "No space left" in (home / "full").read_text()
    assert "Traceback" not in said
    # Whether the sample's own line finds no room, or the guest's, which is noticed in the end.
    assert (home / "code").read_text().strip() in ("1", "3") and ("No space left" in said or "was full" in said)
    [before] = json.loads((home / "before").read_text())["cells"]
    assert before["status"] == "interrupted", before
    assert "first" in {sample["step"] for sample in before["samples"]}
    [after] = json.loads((home / "shown").read_text())["cells"]
    [undisturbed] = run(str(path))
    assert (after["inputs_key"], after["digest"]) == (undisturbed["inputs_key"], undisturbed["digest"])
