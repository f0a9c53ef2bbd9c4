"""A profile of real guests: it repeats on a loaded host, covers the step alone, and no key or digest knows of it."""

from pathlib import Path

import pytest

from agelab.analysis import profiles
from agelab.analysis.cells import load
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from tests.vm.cells import agelab, newest, run, scenario, step
from tests.vm.chaos import both_cores_busy

pytestmark = [pytest.mark.vm, pytest.mark.full]
STEPS = (
    step("copy", 'cp -r "$SOURCE" a', "sync = true")
    + step("spin", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done")
    + step("wait", "sleep 1")
    + step("read", "cat a/*/* | wc -c", 'caches = "reboot"')
)


def folded(path: Path) -> dict[str, str]:
    """File to content of the newest run's folded stacks."""
    place = newest(path) / "cells/0/profile"
    return {one.name: one.read_text() for one in place.glob("*.folded")}


def test_a_profile_repeats_and_no_key_or_digest_knows_of_it(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, "ext4", mib=8)
    [plain] = run(str(path))
    [quiet] = run(str(path), "--profile")
    first = folded(path)
    with both_cores_busy():
        [loaded] = run(str(path), "--profile", cwd=tmp_path)
    assert (plain["inputs_key"], plain["digest"]) == (quiet["inputs_key"], quiet["digest"])
    assert plain["samples"] == quiet["samples"] == loaded["samples"]
    assert sorted(first) == ["copy-1.folded", "read-1.folded", "spin-1.folded", "wait-1.folded"]
    assert folded(path) == first
    [cell] = load(RunDirectory(newest(path))).cells
    found = profiles.of_cell(cell)
    assert found and found.status is Status.OK and not any(one.lost for one in found.steps)
    spin, wait = (profiles.of_step("", [cell], name) for name in ("spin", "wait"))
    # The loop is all in the shell: neither the profiler's own start nor what the harness does is among the samples.
    elapsed = next(one.value for one in cell.samples if (one.step, one.metric) == ("spin", "elapsed")) or 0
    assert spin.stacks.tasks["sh"] > 0.95 * spin.stacks.samples
    assert spin.seconds == pytest.approx(elapsed, rel=0.05)
    assert wait.idle_share > 0.95
    copied = profiles.of_step("", [cell], "copy").stacks.under_function
    assert copied["vfs_read"] and copied["entry_SYSCALL_64_after_hwframe"] and copied["wb_workfn"]
    assert any(name.endswith("[ext4]") for name in copied)
    done = agelab("profile", newest(path).name, "read", "--against-step", "spin")
    assert done.returncode == 0 and "all functions: -" in done.stdout, done.stderr
