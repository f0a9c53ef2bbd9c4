"""The guest's tools, the drive's module and the image, built in earnest: the same bytes whoever builds them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab import kernel
from agelab.base import process
from agelab.cli.options import open_store
from agelab.machine import image
from agelab.machine.drive import module
from agelab.machine.image import root, tools
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


def test_those_of_filesystems_run_without_a_library() -> None:
    names = sorted(path.stem for path in tools.FILESYSTEMS.glob("*.c"))
    for program in tools.obtain_filesystem_tools(names, open_store()).values():
        assert INTERPRETER not in segments(program)


def _image(store: Store) -> dict[str, Path]:
    built = image.build(kernel.resolve(kernel.DEFAULT, store), store, root.served(root.definition(), ()))
    return {name: built.artefact / name for name in built.artefact.manifest.files}


MADE: dict[str, Callable[[Store], dict[str, Path]]] = {
    "tools": tools.obtain,
    "module": lambda store: {"drive": module.obtain(kernel.resolve(kernel.DEFAULT, store), store)},
    "image": _image,
}
"""What is built: name to file."""


@pytest.mark.parametrize("what", ["tools", "module"])
def test_a_second_call_runs_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    found = MADE[what](store)
    monkeypatch.setattr(process, "run", None)
    assert MADE[what](store) == found


@pytest.mark.full
@pytest.mark.parametrize("what", MADE)
def test_the_same_packages_give_the_same_bytes_in_another_home(what: str, tmp_path: Path) -> None:
    first = MADE[what](open_store())
    other = Store(tmp_path / "another" / "home")
    for cache in ("apt", "debs", "resolved"):  # another day's mirror may have newer packages
        shutil.copytree(open_store().home / "cache" / cache, other.home / "cache" / cache)
    second = MADE[what](other)
    told = [
        {name: (file_hash(path), path.relative_to(store.root)) for name, path in found.items()}
        for found, store in ((first, open_store()), (second, other))
    ]
    assert told[0] == told[1]
