"""The guest's tools, built in earnest: static, and the same bytes whoever builds them."""

import shutil
from pathlib import Path

import pytest

from agelab.base import process
from agelab.cli.options import open_store
from agelab.machine.image import tools
from agelab.store.artefacts import Store, file_hash

pytestmark = pytest.mark.vm


INTERPRETER = 3
"""PT_INTERP of elf(5): the dynamic linker's path."""


def segments(program: Path) -> set[int]:
    """The types of a 64-bit ELF file's segments."""
    data = program.read_bytes()
    first, size, count = (int.from_bytes(data[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    return {int.from_bytes(data[at : at + 4], "little") for at in range(first, first + size * count, size)}


def test_the_tools_run_without_a_library(tmp_path: Path) -> None:
    assert INTERPRETER in segments(Path("/bin/sh"))
    found = tools.obtain(open_store())
    assert set(found) == {path.stem for path in tools.SOURCES.glob("*.c")}
    for program in found.values():
        assert INTERPRETER not in segments(program)
    (tmp_path / "file").write_text("text")
    listed = process.run([str(found["extents"]), str(tmp_path)]).stdout
    assert listed.startswith("agelab-extents 1 ") and " 4 " in listed


def test_a_second_call_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tools.obtain(open_store())
    monkeypatch.setattr(process, "run", None)
    assert tools.obtain(open_store()) == found


def test_those_of_filesystems_run_without_a_library() -> None:
    names = sorted(path.stem for path in tools.FILESYSTEMS.glob("*.c"))
    for program in tools.obtain_filesystem_tools(names, open_store()).values():
        assert INTERPRETER not in segments(program)


@pytest.mark.full
def test_the_same_packages_give_the_same_bytes_in_another_home(tmp_path: Path) -> None:
    first = tools.obtain(open_store())
    other = Store(tmp_path / "another" / "home")
    for cache in ("apt", "debs", "resolved"):
        shutil.copytree(open_store().home / "cache" / cache, other.home / "cache" / cache)
    second = tools.obtain(other)
    assert {name: file_hash(path) for name, path in second.items()} == {
        name: file_hash(path) for name, path in first.items()
    }
    assert all(path.parent.name == first[name].parent.name for name, path in second.items())
