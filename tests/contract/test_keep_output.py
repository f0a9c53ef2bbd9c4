"""The guest's program that keeps outputs, on the host: what it writes is where the host reads."""

import subprocess
import sys
from pathlib import Path

from agelab.base.places import HARNESS
from agelab.evaluate.step_output import PLACE_BYTES
from agelab.runner.plan.passes import KEEPER


def test_an_output_lies_at_its_place_cut_at_what_is_kept(tmp_path: Path) -> None:
    """Its paths are those of a directory that stands for the guest's."""
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness/__init__.py").touch()
    (tmp_path / "harness/machine.py").write_text("def disks(): return ['root', 'plan', 'output']\n")
    text = (HARNESS / "output" / KEEPER).read_text()
    (tmp_path / "keep").write_text(text.replace("/run/agelab", str(tmp_path)).replace("/dev/", f"{tmp_path}/"))
    disk = tmp_path / "output"
    with disk.open("wb") as file:
        file.truncate(3 * PLACE_BYTES)
    for place, printed in ((1, b"one\n"), (0, b"x" * (PLACE_BYTES + 7)), (2, b"")):
        (tmp_path / "printed").write_bytes(printed)
        subprocess.run(
            [sys.executable, "-SB", str(tmp_path / "keep"), str(tmp_path / "printed"), "2", str(place)], check=True
        )
        assert not (tmp_path / "printed").exists()
    found = disk.read_bytes()
    assert found[:PLACE_BYTES] == b"x" * PLACE_BYTES and found[2 * PLACE_BYTES :] == bytes(PLACE_BYTES)
    assert found[PLACE_BYTES : 2 * PLACE_BYTES].rstrip(b"\0") == b"one\n"
