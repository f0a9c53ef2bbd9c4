"""The example of CONTRIBUTING.md, carried out in a copy of the scenarios."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import phases
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario import selection, toml_files
from tests.build.cell_builder import CORPUS

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "CONTRIBUTING.md").read_text()


def block(language: str) -> str:
    """The page's one block of that language."""
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a copy of the scenarios, to which the page's files are added."""
    shutil.copytree(PROJECT / "scenarios", tmp_path / "scenarios")
    monkeypatch.setattr(toml_files, "SCENARIOS", tmp_path / "scenarios")
    subprocess.run(["sh", "-ec", block("sh")], cwd=tmp_path, check=True)
    (tmp_path / "mine.toml").write_text(block("toml"))
    return tmp_path


def cell(directory: Path, **said: Any) -> CellSpec:
    """Return the cell that ``agelab run mine.toml`` would run."""
    wanted = resolve(RunOptions(name=str(directory / "mine.toml"), **said))
    [turn] = cell_requests(wanted, 1, (), None)
    return turn.spec


def test_a_filesystem_a_drive_and_a_step_are_one_file_each(copied: Path) -> None:
    found = cell(copied)
    assert found.filesystem.name == "my-ext4" and "my-ext4" in {one.name for one in selection.filesystems()}
    [drive] = found.disk.drives
    assert drive.profile == selection.drive("my-drive")
    plan = guest_plan(found, CORPUS, phases(found.scenario, CORPUS)[0])
    assert plan["disks"][0]["mkfs"][0] == "mke2fs"
    assert [step["name"] for step in plan["steps"]] == ["copy", "count"]
    assert [tuple(one) for one in plan["steps"][1]["records"]] == [("content_bytes", "B")]
    other = selection.drive("wd-wd2500jb")
    assert drive.profile == other.model_copy(update={"name": "my-drive"})
    assert cell(copied, disks="model:wd-wd2500jb").disk.drives[0].profile == other


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("scenarios/filesystems/my-ext4.toml", "minimum_mib", "minimum_gib", "minimum_gib: is not a known"),
        ("scenarios/drives/my-drive.toml", "rpm = {", "rpn = {", "medium.rpm: is missing"),
        ("mine.toml", '["content_bytes"]', '["bytes_in_it"]', "bytes_in_it"),
        ("mine.toml", '"model:my-drive"', '"model:my-drives"', "did you mean my-drive"),
        ("mine.toml", '["my-ext4"]', '["my-ext"]', "did you mean my-ext4"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_place(file: str, before: str, after: str, said: str, copied: Path) -> None:
    text = (copied / file).read_text()
    assert before in text
    (copied / file).write_text(text.replace(before, after))
    with pytest.raises(InputError, match=re.escape(said)):
        cell(copied)
