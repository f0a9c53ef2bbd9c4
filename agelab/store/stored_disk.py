"""Stored disks: the disk that a cell prepared or aged, kept as an artefact that later runs copy and measure.

The key is the hash of everything that made the disk. The samples measured while it was made are stored with it, so
that a run that starts from the disk reports the same result as a run that makes it.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agelab.base import atomic, fileio, process, readers
from agelab.base.errors import InputError, unknown
from agelab.base.types import Defaults, Frozen, Name
from agelab.results.result import Sample
from agelab.store.artefacts import (
    MANIFEST,
    Artefact,
    DamagedArtefact,
    Manifest,
    Store,
    artefact_key,
    content_hash,
    file_hash,
)

KIND = "disk"
RECIPE, SAMPLES = "recipe.json", "samples.jsonl"
MEMBER_FILE = "disk-{}"
"""File name of each member of the disk, by its number."""
DISK_ALIGNMENT = 2 << 20
"""Bytes; QEMU maps a memory-backed disk in pages of up to this size, and would enlarge a file that is not a multiple of
it."""
SLOT_BYTES = (16 << 30, 64 << 30)
"""Sizes of the slots in which guests find disks. A disk's file is as long as its slot, and where nothing was written
a hole."""
SHORT_KEY = 12
"""Digits of a key in messages and tables."""


class DiskRecipe(Frozen):
    """recipe.json: what a disk is and how to make it again."""

    makes: Literal["prepared", "aged"]
    scenario: str | None = Field(default=None, description="None for an imported image")
    scale: str | None = None
    variant: str | None = None
    filesystem: str
    layout: Name
    defaults: Defaults
    machine: str | None = None
    drives: tuple[str, ...] = ()
    kernel: str | None = None
    run_seed: int | None = None
    corpus_seed: int | None = None
    sizes: tuple[int, ...] = Field(description="bytes of each member")
    command: str = Field(description="what made it, to be typed again")


@dataclass(frozen=True)
class StoredDisk:
    """A disk in the store."""

    artefact: Artefact
    recipe: DiskRecipe

    @property
    def key(self) -> str:
        return self.artefact.key

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs that make the key."""
        return self.artefact.manifest.inputs

    @property
    def is_repeatable(self) -> bool:
        """False where it was made in the wall clock: its key does not say what is on it."""
        plan = self.inputs.get("plan")
        return not (isinstance(plan, dict) and plan.get("booted_at", 0) is None)

    @property
    def members(self) -> tuple[Path, ...]:
        return tuple(self.artefact / MEMBER_FILE.format(number) for number, _ in enumerate(self.recipe.sizes))

    @property
    def occupied_bytes(self) -> int:
        return sum(512 * path.stat().st_blocks for path in self.members)

    def require_slots(self) -> None:
        """Raise InputError for a disk of an earlier agelab, whose files are no longer than the disk."""
        for path, size in zip(self.members, self.recipe.sizes, strict=True):
            if path.stat().st_size < slot_bytes(size):
                raise InputError(
                    f"the stored disk {self.key[:SHORT_KEY]} is of an earlier agelab",
                    hint="export it and import that (agelab disk export, agelab disk import), or make it again: "
                    + self.recipe.command,
                )

    def samples(self) -> list[Sample]:
        """Read the samples measured while the disk was made."""
        lines = fileio.read_text(self.artefact / SAMPLES, fileio.LINES).splitlines()
        return [Sample.model_validate_json(line) for line in lines]

    def verify(self) -> None:
        """Read the whole disk. Raises DamagedArtefact when a file has changed."""
        if wrong := self.artefact.damage():
            raise DamagedArtefact(
                f"the stored disk {self.key[:SHORT_KEY]} is damaged: {', '.join(wrong)}",
                hint=f"remove it (agelab disk rm {self.key[:SHORT_KEY]}) and make it again: {self.recipe.command}",
            )


def key(inputs: Mapping[str, Any]) -> str:
    """Return the key of the disk that these inputs make."""
    return artefact_key(KIND, inputs)


def save(
    store: Store,
    inputs: Mapping[str, Any],
    recipe: DiskRecipe,
    members: Sequence[Path],
    samples: Sequence[Sample],
    *,
    readable_by: int = readers.EVERYBODY,
) -> StoredDisk:
    """Store copies of these files as the disk that the inputs make, unless the store has it already."""

    def build(directory: Path) -> None:
        for number, path in enumerate(members):
            member = directory / MEMBER_FILE.format(number)
            sparse_copy(path, member, holes=True)
            os.truncate(member, slot_bytes(recipe.sizes[number]))
        (directory / RECIPE).write_text(recipe.model_dump_json(indent=1) + "\n", encoding="utf-8")
        rows = (json.dumps(sample.model_dump()) + "\n" for sample in samples)
        (directory / SAMPLES).write_text("".join(rows), encoding="utf-8")

    made = store.obtain(KIND, inputs, build, _hash, claim=False, readable_by=readable_by)
    return find(store, made.key)


def _hash(path: Path) -> str:
    return file_hash(path) if path.name in (RECIPE, SAMPLES) else content_hash(path)


def slot_bytes(size: int) -> int:
    """Return the length of the file of a disk of so many bytes."""
    return next((slot for slot in SLOT_BYTES if size <= slot), size)


def align(image: Path) -> None:
    """Enlarge a disk image to a multiple of DISK_ALIGNMENT."""
    os.truncate(image, -(-image.stat().st_size // DISK_ALIGNMENT) * DISK_ALIGNMENT)


def make_hole(path: Path, size: int) -> None:
    """Put a file of so many bytes, a hole from end to end, in the place of what is there."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def sparse_copy(source: Path, target: Path, *, holes: bool = False) -> None:
    """Copy a disk image, sharing blocks with the source where the host's filesystem can.

    With ``holes`` every zero block becomes a hole, otherwise only the source's holes do.
    """
    sparse = "always" if holes else "auto"
    process.run(["cp", f"--sparse={sparse}", "--reflink=auto", "--", str(source), str(target)])


def list_disks(store: Store) -> list[StoredDisk]:
    """List the stored disks whose manifest and recipe can be read, oldest first."""
    disks = (_load(artefact) for artefact in _artefacts(store))
    return [disk for disk in disks if disk]


def list_damaged(store: Store) -> list[Artefact]:
    """List the stored disks whose manifest or recipe cannot be read: they can only be removed."""
    return [artefact for artefact in _artefacts(store) if _load(artefact) is None]


def _artefacts(store: Store) -> list[Artefact]:
    """List the artefacts of all stored disks, with an empty manifest where it cannot be read."""
    empty = Manifest(kind=KIND, inputs={}, files={})
    return [*store.all(KIND), *(Artefact(path.name, path, empty) for path in store.unreadable(KIND))]


def find(store: Store, key: str) -> StoredDisk:
    """Return the disk whose key is or begins with ``key``.

    Raises InputError when there is none or more than one, DamagedArtefact when it cannot be read.
    """
    artefact = find_artefact(store, key)
    disk = _load(artefact)
    if disk is None:
        unreadable = RECIPE if artefact.manifest.files else MANIFEST
        raise DamagedArtefact(
            f"the stored disk {artefact.key[:SHORT_KEY]} is damaged: {artefact / unreadable} cannot be read",
            hint=f"remove it: agelab disk rm {artefact.key[:SHORT_KEY]}",
        )
    return disk


def find_artefact(store: Store, key: str) -> Artefact:
    """Return the artefact of a disk, damaged or not. Raises InputError when there is none or more than one."""
    artefacts = _artefacts(store)
    begins = key.removeprefix("sha256:")
    matching = [artefact for artefact in artefacts if artefact.key.startswith(begins)] if begins else []
    if len(matching) > 1:
        keys = ", ".join(artefact.key[:SHORT_KEY] for artefact in matching)
        raise InputError(f"{len(matching)} stored disks begin with {key!r}: {keys}")
    if not matching and not artefacts:
        raise InputError(
            f"no stored disk {key!r}: there are none yet",
            hint="make one: agelab age aging-ext4, or run with --keep-disk",
        )
    if not matching:
        raise unknown("stored disk", key, [artefact.key[:SHORT_KEY] for artefact in artefacts])
    return matching[0]


def _load(artefact: Artefact) -> StoredDisk | None:
    if not artefact.manifest.files:
        return None
    try:
        return StoredDisk(artefact, DiskRecipe.model_validate_json(fileio.read_bytes(artefact / RECIPE)))
    except (OSError, ValueError):
        return None


def export(disk: StoredDisk, target: Path, image_format: Literal["raw", "qcow2"]) -> list[Path]:
    """Write a mountable image of each member, and the recipe beside the first. Returns the paths written.

    Raises InputError when a target exists already, DamagedArtefact when the disk is damaged.
    """
    several = len(disk.members) > 1
    images = [
        target.with_name(f"{target.stem}-{number}{target.suffix}") if several else target
        for number, _ in enumerate(disk.members)
    ]
    recipe = target.with_name(target.name + ".recipe.json")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{target.parent} is not a directory")
    for path in (*images, recipe):
        if os.path.lexists(path):
            raise InputError(f"{path} exists already", hint="name another file, or remove it")
    disk.verify()
    for path in (*images, recipe):
        readers.new_file(path, disk.artefact.readable_by)
    sizes = disk.recipe.sizes
    for member, image, size in zip(disk.members, images, sizes, strict=True):
        if image_format == "raw":
            sparse_copy(member, image)
            os.truncate(image, size)
        else:
            only = f"driver=raw,size={size},file.driver=file,file.filename={member}"
            process.run(["qemu-img", "convert", "--image-opts", "-O", "qcow2", only, str(image)])
    description = {
        "key": disk.key,
        "recipe": disk.recipe.model_dump(mode="json"),
        "files": disk.artefact.manifest.files
        | {path.name: content_hash(path, size) for path, size in zip(disk.members, sizes, strict=True)},
        "inputs": disk.inputs,
    }
    recipe.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return [*images, recipe]


@contextmanager
def in_use(disk: StoredDisk) -> Iterator[None]:
    """Protect the disk from ``remove`` for as long as the body runs."""
    with (disk.artefact / MANIFEST).open(encoding="utf-8") as manifest:
        fcntl.flock(manifest, fcntl.LOCK_SH)
        yield


def remove(artefact: Artefact) -> None:
    """Remove a disk from the store atomically. Raises InputError while it is in use."""
    with (artefact / MANIFEST).open(encoding="utf-8") as manifest:
        if not atomic.try_lock(manifest):
            raise InputError(f"the stored disk {artefact.key[:SHORT_KEY]} is in use by a run", hint="wait for its end")
        atomic.remove(artefact.directory)
