"""A kernel that is built here boots, and runs a scenario on a modelled drive."""

from pathlib import Path

import pytest

from tests.vm.cells import agelab, run, scenario, step

pytestmark = [pytest.mark.vm, pytest.mark.full]
RECIPE = "recipe:ufs"


def test_a_recipe_is_built_and_its_kernel_measures(tmp_path: Path) -> None:
    built = agelab("kernel", "build", RECIPE)
    assert built.returncode == 0, built.stdout + built.stderr
    assert f"to run with it: --kernel {RECIPE}" in built.stdout
    shown = agelab("kernel", "show", RECIPE).stdout
    assert "linux-source-6.1" in shown and "gcc" in shown and "reiser4    no module" in shown
    path = scenario(tmp_path, step("copy", 'cp -r "$SOURCE/." copy', "sync = true"), "ext4", "ufs")
    words = (str(path), "--kernel", RECIPE, "--disks", "model:seagate-st3120026as")
    cells = run(*words, "--jobs", "2")
    assert [(cell["variant"], cell["status"]) for cell in cells] == [("ext4", "ok"), ("ufs", "ok")]
    assert all("6.1." in cell["kernel"] and cell["drives"] == ["model:seagate-st3120026as"] for cell in cells)
    again = run(*words, "--filesystem", "ufs")
    assert [cell["digest"] for cell in again] == [cells[1]["digest"]]
