"""What many tests begin with: a home for agelab of their own, and the store in it."""

from pathlib import Path

import pytest

from agelab.store.artefacts import Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    return Store(tmp_path / "home")
