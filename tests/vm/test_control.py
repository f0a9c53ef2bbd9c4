"""Control files of users, in real guests."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.locales import LATIN_1, compile_latin_1
from tests.vm.cells import PROGRAM, agelab

pytestmark = [pytest.mark.vm, pytest.mark.full]

WORDS = ("run", "--control", "control.ctl", "--disks", "model:none", "--scale", "quick")
MAKE = "mke2fs -q -F -t ext4 $DEVICE"
DEADLINE = 30
"""Guest seconds: 600, the default, of a shell that spins are ten minutes of a quiet host, too."""


def directory(place: Path, lines: str, scripts: dict[str, str]) -> Path:
    """A control file with its scripts and data."""
    (place / "data").mkdir(parents=True)
    (place / "data" / "grün").write_bytes(bytes(200_000))
    (place / "control.ctl").write_text(lines, encoding="utf-8")
    for name, text in {"filesystem-ext4.sh": MAKE, **scripts}.items():
        (place / name).write_text(text + "\n", encoding="utf-8")
    return place


def cells(place: Path, environment: dict[str, str], code: int = 0) -> list[dict[str, Any]]:
    """Run the control file of that directory; the cells of its result."""
    words = [PROGRAM, *WORDS]
    done = subprocess.run(words, cwd=place, env={**os.environ, **environment}, capture_output=True, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    name = done.stdout.decode().rsplit("agelab show ", 1)[1].split()[0]
    found: list[dict[str, Any]] = json.loads(agelab("show", name, "--json").stdout)["cells"]
    return found


def test_a_control_run_has_the_same_key_and_digest_under_any_locale(tmp_path: Path) -> None:
    locale = {**compile_latin_1(tmp_path), "LC_ALL": LATIN_1, "PYTHONUTF8": "0"}
    scripts = {
        "test-write-prepare.sh": "echo → > größe",
        "test-write-perform.sh": '[ "$(cat größe)" = → ] && cp -r /export/experiment/data . && [ -f data/grün ]',
    }
    found = []
    for number, environment in enumerate((locale, {"LC_ALL": "C.UTF-8"})):
        place = directory(tmp_path / str(number), "# grün → ☃\next4 write 1\n", scripts)
        [cell] = cells(place, environment)
        assert (place / "journal.log").read_text().endswith("ext4 write 1 end ok\n")
        found.append((cell["inputs_key"], cell["digest"]))
    assert found[0] == found[1]


def test_a_script_that_spins_ends_at_the_files_deadline_and_the_next_test_runs(tmp_path: Path) -> None:
    scripts = {"test-spin-perform.sh": "while :; do :; done", "test-list-perform.sh": "ls"}
    place = directory(tmp_path / "own", f"deadline {DEADLINE}\next4 spin 1\next4 list 1\n", scripts)
    spun, listed = cells(place, {}, code=1)
    assert (spun["status"], listed["status"]) == ("hung", "ok")
    assert f"no end within {DEADLINE} s of guest time; its tasks: " in spun["reason"]
    ends = [line for line in (place / "journal.log").read_text().splitlines() if " end " in line]
    assert [line.split(":")[0] for line in ends] == ["ext4 spin 1 end hung", "ext4 list 1 end ok"]
