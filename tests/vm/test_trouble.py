"""Cells that go wrong: each gets its status and its reason, nothing that had finished is lost."""

import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import pytest

from agelab.base import process
from agelab.machine.vm import libvirt_daemon
from tests.vm.cells import PROGRAM, agelab, run, runs, sampled, scenario, shown, step

pytestmark = pytest.mark.vm


def test_ctrl_c_keeps_the_samples_and_leaves_no_domain(tmp_path: Path) -> None:
    path = scenario(tmp_path, step("quick", "true") + step("long", "while :; do :; done"), mib=8)
    before = runs(path)
    # A job that a shell started in the background has been told to ignore Ctrl-C.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen([PROGRAM, "run", str(path)], stdout=nowhere, stderr=nowhere, preexec_fn=heard)
    try:
        samples = sampled(path, before, '"quick"')
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
    finally:
        child.terminate()
    [run_directory] = runs(path) - before
    assert samples.read_text().count('"quick"') > 3
    assert shown(run_directory.name)[0]["status"] == "interrupted"
    [xml] = run_directory.glob("cells/0/domain-0.xml")
    name = ElementTree.fromstring(xml.read_text()).findtext("name")
    with libvirt_daemon.keep_running():
        listed = process.run(["virsh", "--connect", libvirt_daemon.uri(), "list", "--all", "--name"]).stdout
    assert name and name not in listed.split()


def test_a_killed_run_is_resumed_and_has_the_digest_of_an_undisturbed_one(tmp_path: Path) -> None:
    steps = step("first", "cp -r $SOURCE/. .") + step("second", "sync; find . -type f | xargs -n 1 cat > /dev/null")
    path = scenario(tmp_path, steps, "ext2", "ext4", mib=8)
    before = runs(path)
    words = [PROGRAM, "run", path.name]
    child = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        sampled(path, before, '"cell":1,.*"step":"first"')
    finally:
        child.kill()
        child.wait()
    [killed] = runs(path) - before
    ended = (killed / "cells" / "0" / "end.json").stat().st_mtime_ns
    resumed = agelab("resume", killed.name)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert (killed / "cells" / "0" / "end.json").stat().st_mtime_ns == ended
    cells = shown(killed.name)
    [undisturbed] = run(str(path), "--filesystem", "ext4")
    assert [cell["status"] for cell in cells] == ["ok", "ok"]
    assert cells[1]["samples"] == undisturbed["samples"]
    assert (cells[1]["inputs_key"], cells[1]["digest"]) == (undisturbed["inputs_key"], undisturbed["digest"])
