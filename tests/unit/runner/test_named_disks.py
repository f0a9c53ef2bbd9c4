"""Every way to name a disk to agelab comes to one guard: what holds data is refused, and is not written to."""

import json
from pathlib import Path
from typing import Any

import pytest

import agelab
from agelab import kernel as kernels
from agelab.base.errors import InputError
from agelab.bisect.kernel_runs import KernelRuns
from agelab.cli import main
from agelab.runner.prepare import parts
from agelab.runner.request.options import RunOptions
from agelab.store.artefacts import Store
from tests.build import simulated_bisect
from tests.build.cli import Cli
from tests.build.simulated_bisect import planted

SEEN = "holds data: 'backup/notes' at byte 512, where an empty disk has zeros"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(parts, "ask_packages", goes_on)
    return tmp_path / "home"


def goes_on(*_: object) -> None:
    """Stand for all that follows the claim."""
    pytest.fail("the disk was taken")


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A sparse file of 2 GiB that is no empty disk, though libblkid sees nothing on it."""
    path = tmp_path / "backup.img"
    with path.open("wb") as file:
        file.truncate(2 << 30)
        file.seek(512)
        file.write(b"backup/notes")
    return path


def state(path: Path) -> tuple[int, int, bytes]:
    found = path.stat()
    with path.open("rb") as file:
        return found.st_mtime_ns, found.st_blocks, file.read(1 << 20)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "aging-ext4"],
        ["run", "aging", "--filesystem", "ext4,xfs", "--seeds", "auto"],
        ["run", "aging-ext4", "--fresh", "--vcpus", "2"],
        ["run", "aging-ext4", "--scale", "paper"],
        ["calibrate", "aging-ext4"],
    ],
    ids=" ".join,
)
def test_a_verb_writes_to_no_file_that_holds_data(home: Path, backup: Path, words: list[str], cli: Cli) -> None:
    before = state(backup)
    said = cli.err(*words, "--disks", f"file:{backup}")
    assert SEEN in said and "nothing was written. To lose all of it, run again with --erase disk-" in said
    assert state(backup) == before
    assert not list(home.glob("runs/*"))


@pytest.mark.parametrize(
    "words",
    [
        ["age", "aging-ext4"],
        ["run", "aging-ext4", "--kernel", "6.1", "--kernel", "6.12"],
        ["run", "aging-ext4", "--on", "dask://127.0.0.1:9"],
    ],
    ids=" ".join,
)
def test_a_verb_that_takes_no_real_disk_writes_to_none(home: Path, backup: Path, words: list[str]) -> None:
    before = state(backup)
    assert main([*words, "--disks", f"file:{backup}"]) in (2, 3)
    assert state(backup) == before


def test_a_control_file_writes_to_no_file_that_holds_data(home: Path, backup: Path, tmp_path: Path, cli: Cli) -> None:
    before = state(backup)
    control = tmp_path / "mine" / "control.ctl"
    control.parent.mkdir()
    control.write_text("xfs write 1\n")
    for name in ("filesystem-xfs.sh", "test-write-perform.sh"):
        (control.parent / name).write_text("#!/bin/sh\ntrue\n")
    assert SEEN in cli.err("run", "--control", control, "--disks", f"file:{backup}")
    assert state(backup) == before and not list(control.parent.glob("*.log"))


def test_the_library_writes_to_no_file_that_holds_data(home: Path, backup: Path) -> None:
    before = state(backup)
    with pytest.raises(InputError, match=SEEN):
        agelab.run(RunOptions(name="aging-ext4", disks=f"file:{backup}"))  # type: ignore[arg-type]
    assert state(backup) == before


def test_a_bisect_writes_to_no_file_that_holds_data(home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(backup)
    words: dict[str, Any] = {"disks": f"file:{backup}", "jobs": 1}
    directory = simulated_bisect.asked(Store(home), planted(3), name="aging-ext4", words=words)
    monkeypatch.setattr(kernels, "resolve", lambda *_, **__: None)
    with pytest.raises(InputError, match=SEEN):
        KernelRuns(directory, Store(home)).run("debian:6.1", [1])
    assert state(backup) == before
    assert json.loads((directory.path / "question.json").read_text())["words"]["disks"].startswith("file:")
