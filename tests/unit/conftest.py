"""What many tests begin with: a home for agelab of their own, and the store in it."""

from pathlib import Path

import pytest
from rich.console import Console

from agelab.results.run_directory import RunDirectory
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build.cli import Cli


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    return Store(tmp_path / "home")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


@pytest.fixture
def run(home: Path) -> RunDirectory:
    """A run of one cell, in the store that is asked, whose cell has a sample and has not ended."""
    run = run_builder.begin(home, [run_builder.cell()], label="aging-ext4")
    run_builder.end(run, 0, [run_builder.sample()], status=None, inputs={"seeds": {"run": 1}})
    return run


@pytest.fixture
def cache_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cells are looked up, and no cache of this user is used."""
    monkeypatch.delenv("AGELAB_FRESH")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a terminal of 80 characters."""
    console = Console(width=80, color_system=None, highlight=False, markup=False)
    for module in ("summary", "terminal"):
        monkeypatch.setattr(f"agelab.present.view.{module}.open_console", lambda: console)
