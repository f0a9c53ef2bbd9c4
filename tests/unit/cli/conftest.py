"""What reads runs, whatever they are."""

from pathlib import Path

import pytest

from tests.build.cli import Cli
from tests.build.run_readers import Readers


@pytest.fixture
def readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Readers:
    """Readers of a store beside the current directory, in which they write."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Readers(tmp_path / "home", cli)
