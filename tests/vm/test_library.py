"""The library runs what the command line runs."""

from pathlib import Path

import pytest

import agelab
from agelab.cli.options import open_store
from agelab.results.result import Cell, End
from agelab.runner.progress import Progress
from tests.vm.cells import SMALL, run

pytestmark = [pytest.mark.vm, pytest.mark.full]


class Followed(Progress):
    """Notes the steps that end and the cells that end."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.ends: list[End] = []

    def end_step(self, number: int, step: str) -> None:
        self.steps.append(step)

    def end_cell(self, cell: Cell, number: int, end: End) -> None:
        self.ends.append(end)


def test_the_library_gives_the_key_and_the_digest_of_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    followed, before = Followed(), Path.cwd()
    options = agelab.RunOptions(name=SMALL.name, directory=str(SMALL.parent), filesystem="ext4")
    done = agelab.run(options, home=open_store().home, progress=followed)
    assert capfd.readouterr() == ("", "") and Path.cwd() == before
    [end] = followed.ends
    assert "copy 4" in followed.steps and followed.steps[-1] == "read 1"
    [cell] = run(str(SMALL), "--filesystem", "ext4")
    assert (end.status, end.inputs_key, end.digest) == ("ok", cell["inputs_key"], cell["digest"])
    frame = agelab.load(done)
    assert set(frame["run"]) == {done.name} and set(frame["step"]) >= {"copy", "delete", "read"}
