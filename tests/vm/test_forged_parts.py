"""Parts from a cache that somebody has changed, hashes and all: no cell with them has the key of the true ones.

Real parts, and cells that are planned for real; no guest runs, since a cell's key is known before.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agelab.base import atomic, readers
from agelab.machine.image.assemble import DESCRIPTION
from agelab.runner.execute import runner
from agelab.runner.execute.answers import CellLost
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse.artefacts import CachedArtefacts
from agelab.runner.reuse.cache import DirectoryPlace
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.scenario.seeds import CellName
from agelab.store.artefacts import MANIFEST, Artefact, Store, file_hash
from tests.vm.cells import store_of_parts

pytestmark = pytest.mark.vm
OPTIONS = RunOptions(name="aging-ext4", fresh=True)
REFUSED = "refused"


class MadeHere(Exception):
    """What came from the cache was refused."""


class Machine(Store):
    """A machine that finds everything in its store but parts of one kind, which it makes only if it must."""

    lacks = ""
    used: dict[tuple[str, str], Artefact]

    def obtain(self, kind: str, inputs: Any, build: Any, *rest: Any, **words: Any) -> Artefact:
        def refuse(directory: Path) -> None:
            raise MadeHere

        found = super().obtain(kind, inputs, refuse if kind == self.lacks else build, *rest, **words)
        if words.get("shared"):
            self.used[kind, found.key] = found
        return found

    def all(self, kind: str) -> list[Artefact]:
        """Name no image: one that has proved more would be used, under a key that this cell asks no cache for."""
        return [] if kind == "image" else super().all(kind)


class Taken(CachedArtefacts):
    """A cache that is taken from; packing all other parts for it would take most of the time."""

    def offer(self, artefact: Artefact) -> None:
        pass


@dataclass
class KeyAlone:
    """Another host, which is told a cell's key and loses the cell."""

    keys: list[str] = field(default_factory=list)

    def slots(self, memory: int) -> int:
        return 1

    def stop(self) -> None:
        pass

    def run(self, cell: CellName, key: CellKey, directory: Path, memory: int) -> EndedCell:
        self.keys.append(key.inputs_key)
        raise CellLost("it is not wanted")


def planned(machine: Machine) -> str:
    """Plan the cell, and return its key."""
    machine.used = {}
    asked = KeyAlone()
    try:
        with runner.asked(OPTIONS) as request:
            runner.run_request(request, machine, elsewhere=asked)
    except MadeHere:
        return REFUSED
    [key] = asked.keys
    return key


@pytest.fixture(scope="module")
def true() -> Iterator[tuple[str, dict[tuple[str, str], Artefact]]]:
    """The key of the cell, and the parts that may come from other machines."""
    with atomic.temp_dir(Path("/var/tmp")) as home:
        machine = Machine(store_of_parts(home))
        yield planned(machine), machine.used


def forged(artefact: Artefact, name: str, place: Path) -> Artefact:
    """Copy an artefact, change a byte of one file, and describe it as it is now."""
    shutil.copytree(artefact.directory, place, symlinks=True, copy_function=_linked)
    path = place / name
    content = bytearray(path.read_bytes())
    # Of a module a letter of its author, so that the kernel takes it.
    author = content.find(b"author=")
    content[author + len(b"author=") if author > 0 else len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)
    files = {**artefact.manifest.files, name: file_hash(path)}
    manifest = artefact.manifest.model_copy(update={"files": files})
    (place / MANIFEST).unlink()
    (place / MANIFEST).write_text(manifest.model_dump_json())
    readers.restrict_tree(place, readers.EVERYBODY)
    return Artefact(artefact.key, place, manifest)


def _linked(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def key_with(part: Artefact, directory: Path, made: str = "") -> str:
    """Return the key that a machine finds which takes that part, and nothing else, from a cache.

    It makes what it wants of the kind ``made``.
    """
    cache = directory / "cache"
    cache.mkdir()
    CachedArtefacts(print, DirectoryPlace(cache)).offer(part)
    home = store_of_parts(directory / "home")
    kind = home / "store" / part.manifest.kind
    others = [one for one in kind.iterdir() if one.name != part.key]
    kind.unlink()
    kind.mkdir()
    for one in others:
        (kind / one.name).symlink_to(one.resolve())
    if made:
        (home / "store" / made).unlink()
    machine = Machine(home, shared=Taken(print, DirectoryPlace(cache)))
    machine.lacks = part.manifest.kind
    return planned(machine)


def changed(true: tuple[str, dict[tuple[str, str], Artefact]], kind: str, names: str) -> list[tuple[str, str]]:
    """Return what became of each file of the parts of a kind that fits the pattern, in turn: file and key."""
    found = []
    for artefact in [one for (of, _), one in sorted(true[1].items()) if of == kind]:
        for name in sorted(path for path in artefact.manifest.files if Path(path).match(names)):
            if not (artefact / name).stat().st_size:
                continue
            with atomic.temp_dir(Path("/var/tmp")) as directory:
                directory.chmod(0o755)
                found.append((name, key_with(forged(artefact, name, directory / "forged"), directory)))
    assert found, f"no {kind} has {names}"
    return found


def test_a_part_as_it_was_made_gives_the_key(true: tuple[str, dict[tuple[str, str], Artefact]]) -> None:
    """Or the other tests would show nothing."""
    assert {"kernel", "image", "corpus", "drive", "tools"} <= {kind for kind, _ in true[1]}
    for (kind, _), artefact in true[1].items():
        if kind != "kernel":  # the largest: packing it takes seconds, and its files are those of the image
            with atomic.temp_dir(Path("/var/tmp")) as directory:
                directory.chmod(0o755)
                assert key_with(artefact, directory) == true[0], kind


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("image", "root.squashfs"),
        ("image", "vmlinux"),
        pytest.param("image", "*", marks=pytest.mark.full),
        ("kernel", "modules/kernel/fs/ext4/ext4.ko*"),
        pytest.param("kernel", "modules.json", marks=pytest.mark.full),
        ("corpus", "corpus.iso"),
        ("drive", "*"),
        ("tools", "*"),
    ],
)
def test_no_cell_with_a_changed_part_has_the_key_of_the_true_one(
    true: tuple[str, dict[tuple[str, str], Artefact]], kind: str, names: str
) -> None:
    for name, key in changed(true, kind, names):
        if name == DESCRIPTION:  # nothing of it is booted; a word of its proofs is read, or is not
            assert key in (true[0], REFUSED)
            continue
        assert key != true[0], f"{kind}: {name}"
        if kind == "image":  # whose description speaks of the true files
            assert key == REFUSED


@pytest.mark.full
def test_a_changed_module_that_is_in_the_image_alone_gives_the_image_another_content(
    true: tuple[str, dict[tuple[str, str], Artefact]],
) -> None:
    """The image is made of that kernel, under the key of the true image; no cell with it has the true one's key."""
    [kernel] = [artefact for (kind, _), artefact in true[1].items() if kind == "kernel"]
    [name] = [path for path in kernel.manifest.files if Path(path).name.startswith("nd_pmem.ko")]
    with atomic.temp_dir(Path("/var/tmp")) as directory:
        directory.chmod(0o755)
        assert key_with(forged(kernel, name, directory / "forged"), directory, "image") not in (true[0], REFUSED)
