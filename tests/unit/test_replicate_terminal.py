"""``agelab replicate`` on a terminal: what it says beside the figures."""

from pathlib import Path

import pytest

from agelab.cli import main
from agelab.results.rundir import RunDirectory
from tests.unit.published_runs import make, printed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["replicate", *words]) == 0
    return capsys.readouterr().out


def test_a_run_that_is_going_on_is_called_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDirectory(home / "runs" / make(home, "tum-2005", printed("tum-2005")))
    (run.cell(3) / "end.json").unlink()
    missing = "interrupted: it has no end record"
    assert f"   left out: jfs, single, seed 1: {missing}\n" in said(capsys, "latest")
    with run.held():
        shown = said(capsys, "latest")
    assert "   left out: jfs, single, seed 1: the run is still going on\n" in shown
    assert "could not be tested: jfs, single: the run is still going on\n" in shown
    assert missing not in shown
