"""Homes and control files of strange names, in real guests."""

import json
import os
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from agelab.cli.options import open_store
from tests.vm import chaos
from tests.vm.cells import PROGRAM

pytestmark = pytest.mark.vm
STRANGE = "Zoë-жд_日本.데이터+a@b=c~d"
ORDERS = "x\",size=1M -gdb tcp::1 & <b> '%s' ; ${y}\n\x1b[31m.ctl"
"""A control file of that name once opened a debugger's port in QEMU."""
SCRIPTS = {
    "filesystem-ext4.sh": "mke2fs -q -F -t ext4 $DEVICE",
    "test-write-prepare.sh": "echo here > before",
    "test-write-perform.sh": "cat before && cp -r /export/experiment/data data",
}


def run(home: Path, *words: str) -> dict[str, Any]:
    """``agelab run`` in a home; its one cell."""
    environment = {**os.environ, "AGELAB_HOME": str(home)}
    done = subprocess.run([PROGRAM, "run", *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    shown = subprocess.run(
        [PROGRAM, "show", "latest", "--json"], env=environment, capture_output=True, text=True, check=True
    )
    [cell] = json.loads(shown.stdout)["cells"]
    return dict(cell)


def test_a_control_file_and_a_home_may_have_strange_names_and_none_reaches_qemus_options(tmp_path: Path) -> None:
    cells = []
    for number, (place, name) in enumerate(((STRANGE, ORDERS), ("plain", "control.ctl"))):
        store = chaos.home(tmp_path / place)
        own = tmp_path / f"{number}{name.removesuffix('.ctl')}"  # the user's directory is called so, too
        (own / "data").mkdir(parents=True)
        (own / "data" / "file").write_bytes(bytes(200_000))
        for script, text in SCRIPTS.items():
            (own / script).write_text(text + "\n")
        (own / name).write_text("ext4 write 1\n")
        cells.append(run(store.home, "--control", str(own / name), "--disks", "model:none", "--scale", "quick"))
        assert (own / "journal.log").read_text().endswith("ext4 write 1 end ok\n")
        assert (own / "results.log").read_text().startswith("write ext4 ")
        [made] = [path for path in store.runs.iterdir() if path.is_dir()]
        domains = [unescape(path.read_text(encoding="utf-8")) for path in made.rglob("*domain-*.xml")]
        assert domains and not any('value="-gdb"' in text for text in domains)
        assert all(str(store.home) in text for text in domains)
    strange, plain = cells
    # The key has what made the disk beside, as it was typed: it names the control file.
    assert strange["digest"] == plain["digest"]


@pytest.mark.full
def test_everything_is_made_in_a_home_of_a_strange_name(tmp_path: Path) -> None:
    """Packages, root, image, tools, the drive's module, corpus and guests; downloads are those of the tests' store."""
    home = tmp_path / ("x" * 200) / STRANGE
    (home / "cache").mkdir(parents=True)
    (open_store().home / "cache" / "debs").mkdir(parents=True, exist_ok=True)
    (home / "cache" / "debs").symlink_to(open_store().home / "cache" / "debs")
    path = chaos.cheap(tmp_path)
    words = (str(path), "--filesystem", "ext4", "--disks", "model:seagate-st380021a")
    strange, plain = run(home, *words), run(chaos.home(tmp_path / "plain").home, *words)
    assert (strange["digest"], strange["inputs_key"]) == (plain["digest"], plain["inputs_key"])
    made = {path.name for path in (home / "store").iterdir()}
    assert made >= {"kernel", "root", "image", "drive", "corpus", "buildroot"}
