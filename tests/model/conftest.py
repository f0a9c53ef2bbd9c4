"""The compiled drive, once for all tests."""

from pathlib import Path

import pytest

from tests.model.native import Library, compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The C files of harness/drive that are not the kernel's."""
    where: Path = tmp_path_factory.mktemp("drive") / "drive.so"
    return Library(compiled(where, "-O2", "-shared", "-fPIC"))
