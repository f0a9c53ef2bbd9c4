"""One machine as two pairs of shift and dilation: the same times, bound by the disk, by the processor, and by both."""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from agelab.scenario import toml_files
from tests.vm.cells import agelab, newest, scenario, step

pytestmark = [pytest.mark.vm, pytest.mark.full]

STEPS = (
    step("processor", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done")
    + step("mixed", 'for number in 1 2 3 4 5 6 7 8; do cp -r "$SOURCE" $number; done; sync')
    + step("write", "head -c 80M /dev/zero > large; sync")
    + step("disk", "cat large > /dev/null", 'caches = "reboot"')
)
PROGRAM = (
    "import sys; from pathlib import Path; from agelab.scenario import toml_files;"
    "toml_files.SCENARIOS = Path(sys.argv.pop(1)); from agelab.cli import main; sys.exit(main())"
)


def elapsed(directory: Path, path: Path, shift: int) -> dict[str, float]:
    """Return means over run seeds, on a pentium4-2800 with another shift: where the platter stands is chance."""
    scenarios = directory / f"scenarios-{shift}"
    shutil.copytree(toml_files.SCENARIOS, scenarios)
    machine = scenarios / "machines/pentium4-2800.toml"
    text, count = re.subn(r"^shift = \d+$", f"shift = {shift}", machine.read_text(), flags=re.MULTILINE)
    assert count == 1
    machine.write_text(text)
    words = [
        sys.executable, "-c", PROGRAM, str(scenarios), "run", str(path), "--disks",
        "model:seagate-st3120026as",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads(agelab("show", newest(path).name, "--json").stdout)["cells"]
    found: dict[str, list[float]] = defaultdict(list)
    for one in (sample for cell in cells for sample in cell["samples"] if sample["metric"] == "elapsed"):
        found[one["step"]].append(one["value"])
    return {name: mean(values) for name, values in found.items()}


def test_the_same_machine_by_two_pairs_has_the_same_times(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS)
    once, again = (elapsed(tmp_path, path, shift) for shift in (1, 0))
    print(once, again)
    for name in ("processor", "mixed", "write", "disk"):
        assert again[name] == pytest.approx(once[name], rel=0.01), name
