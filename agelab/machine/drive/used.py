"""Make the map of a used solid-state drive: the model's own C files use it on the host, before any guest sees it.

It is kept as an artefact, since all cells of a run seed with a drive of one size begin with the same map. What a guest
has of it is what the module would have made (tests/model/test_ftl.py).
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agelab.base.errors import Notify, silent
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildRoot, Workshop
from agelab.machine.drive import module
from agelab.machine.qemu import emulator
from agelab.store.artefacts import Artefact, Store, file_hash

KIND = "used-drive"
RECIPE = 1
"""Raised whenever the same sources and settings would make another map."""
PROGRAM = Path(__file__).with_name("used.c")
PURE = ("drive", "geometry", "arm", "read_cache", "write_cache", "flash", "ftl", "use")
"""Files of the model that are the same in the kernel and on the host."""
MAP = "map"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static")
_NOT_THE_MODELS = ("name", "kind")
"""Words of a drive's settings that say nothing of its map."""


@dataclass(frozen=True)
class UsedDrive:
    """How a solid-state drive was used before its first boot."""

    words: tuple[str, ...]
    """The settings of its model."""
    seed: int
    trimmed: bool
    """True if all of it was discarded after that."""
    at: int
    """The byte of its first memory-backed disk at which its map lies."""

    @property
    def arguments(self) -> list[str]:
        """The program's, after the file that it writes."""
        return [str(self.seed), str(int(self.trimmed)), *self.words]


def used_drive(settings: str, seed: int, trimmed: bool, at: int) -> UsedDrive:
    """Return how the drive of these settings (of the kernel module) was used."""
    words = [word for word in settings.split() if word.partition("=")[0] not in _NOT_THE_MODELS]
    return UsedDrive(tuple(words), seed, trimmed, at)


def obtain(drive: UsedDrive, store: Store, progress: Notify = silent) -> Path:
    """Return the file with the drive's map, made if the store does not have it. Raises as ``qemu.obtain`` does."""
    files = [PROGRAM, *(path for path in module.source_files() if path.suffix == ".h" or path.stem in PURE)]
    purpose = buildroot.compiler_purpose("the model of a drive")

    def built_with(packages: BuildRoot) -> Artefact:
        inputs: dict[str, Any] = {
            "arguments": drive.arguments,
            "sources": {path.name: file_hash(path) for path in files},
            "flags": list(FLAGS),
            "root": buildroot.key(packages, purpose),
            "recipe": RECIPE,
        }

        def build(directory: Path) -> None:
            root = buildroot.of_packages(packages, purpose, store, progress)
            progress("using a solid-state drive, as it was before the first boot")
            work = directory / "work" / "build"
            work.mkdir(parents=True)
            for path in files:
                shutil.copyfile(path, work / path.name)
            shop = Workshop(buildroot.unpacked_root(root, store), work, "the model of a drive")
            shop.run(["gcc", *FLAGS, "-o", "used", *(path.name for path in files if path.suffix == ".c")])
            shop.run(["./used", MAP, *drive.arguments])
            shutil.move(shop.made(MAP), directory / MAP)
            buildroot.remove_path(directory / "work")

        return store.obtain(KIND, inputs, build)

    made = buildroot.with_packages(
        lambda refresh: buildroot.resolve_compiler(store, emulator.SUITE, refresh=refresh), built_with
    )
    return made / MAP
