"""Swap in a real guest: what does not fit into memory goes to the machine's drive for it."""

from pathlib import Path

import pytest

from tests.vm.cells import measured, run, scenario, step

pytestmark = pytest.mark.vm
TESTED = "model:seagate-st3400832a"
HOG = 'python3 -c "b\\"x\\" * (48 << 20)"'
"""Half as much again as the 32 MiB that there are."""
SWAPPED = 'grep -q "^/dev/drive1p1 " /proc/swaps && awk "/^pswpout/ { exit \\$2 < 1000 }" /proc/vmstat'


def test_what_does_not_fit_into_memory_goes_to_another_drive(tmp_path: Path) -> None:
    steps = step("hog", HOG) + step("swapped", SWAPPED)
    words = [str(scenario(tmp_path, steps)), "--machine", "pentium3-500", "--disks", TESTED]
    [cell] = run(*words)
    assert cell["drives"] == [TESTED]
    hog = measured(cell, "hog")
    # The step waits for a drive, and not for the one whose work it is told of.
    assert hog["cpu_iowait"] > 10 * sum(hog[name] for name in ("busy_seek", "busy_rotation", "busy_transfer"))
