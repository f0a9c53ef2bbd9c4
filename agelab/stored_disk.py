"""Stored disks: what a cell left on its disk, kept as an artefact and forked by whoever measures it.

The key is the hash of everything that made the disk. Beside the content lie the samples of its making, so that a
run that starts from it gives out the same result as one that makes it.
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

from agelab import atomic, process
from agelab.errors import InputError, unknown
from agelab.model.base import Defaults, Frozen, Layout
from agelab.model.result import Sample
from agelab.store import MANIFEST, Artefact, Damaged, Manifest, Store, content_hash, file_hash, key_of

KIND = "disk"
RECIPE, SAMPLES = "recipe.json", "samples.jsonl"
CONTENT = "disk-{}"
"""The content of each member of the disk, in their order."""
DISK_ALIGNMENT = 2 << 20
"""Bytes; a memory-backed disk is mapped in pieces of this size (agelab.vm.guest)."""
WHOLE = ("raw", "qcow2", "vdi", "vhdx", "vpc")
"""Formats of images that can be taken in: each is one file."""
SHORT = 12
"""Digits of a key that are shown."""


class DiskRecipe(Frozen):
    """What a disk is and how to have it again."""

    makes: Literal["prepared", "aged"]
    scenario: str | None = Field(description="None for an imported image")
    scale: str | None
    variant: str | None
    filesystem: str
    layout: Layout
    defaults: Defaults
    machine: str | None
    drives: tuple[str, ...]
    kernel: str | None
    run_seed: int | None
    corpus_seed: int | None
    sizes: tuple[int, ...] = Field(description="bytes of each member")
    command: str = Field(description="what made it, to be typed again")


@dataclass(frozen=True)
class StoredDisk:
    """A disk of the store."""

    artefact: Artefact
    recipe: DiskRecipe

    @property
    def key(self) -> str:
        return self.artefact.key

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the key is the hash of."""
        return self.artefact.manifest.inputs

    @property
    def members(self) -> tuple[Path, ...]:
        return tuple(self.artefact / CONTENT.format(number) for number, _ in enumerate(self.recipe.sizes))

    @property
    def occupied(self) -> int:
        """Bytes that it takes on the host."""
        return sum(512 * path.stat().st_blocks for path in self.members)

    def samples(self) -> list[Sample]:
        """What was measured while it was made."""
        lines = (self.artefact / SAMPLES).read_text().splitlines()
        return [Sample.model_validate_json(line) for line in lines]

    def verify(self) -> None:
        """Read all of it. Raises HostError where a file is not what was stored."""
        if wrong := self.artefact.damage():
            raise Damaged(
                f"the stored disk {self.key[:SHORT]} is damaged: {', '.join(wrong)}",
                hint=f"remove it (agelab disk rm {self.key[:SHORT]}) and make it again: {self.recipe.command}",
            )


def key(inputs: Mapping[str, Any]) -> str:
    """The key of the disk that these inputs make."""
    return key_of({"kind": KIND, **inputs})


def keep(
    store: Store,
    inputs: Mapping[str, Any],
    recipe: DiskRecipe,
    members: Sequence[Path],
    samples: Sequence[Sample],
) -> StoredDisk:
    """Store copies of these files as the disk that the inputs make. What is there already stays."""

    def build(directory: Path) -> None:
        for number, path in enumerate(members):
            sparse_copy(path, directory / CONTENT.format(number), holes=True)
        (directory / RECIPE).write_text(recipe.model_dump_json(indent=1) + "\n")
        rows = (json.dumps(sample.model_dump()) + "\n" for sample in samples)
        (directory / SAMPLES).write_text("".join(rows))

    return find(store, store.obtain(KIND, inputs, build, _hash).key)


def _hash(path: Path) -> str:
    """As the manifest has it."""
    return file_hash(path) if path.name in (RECIPE, SAMPLES) else content_hash(path)


def sparse_copy(source: Path, target: Path, *, holes: bool = False) -> None:
    """A copy of a disk that shares with it whatever the host's filesystem can share.

    ``holes``: what is zero takes no space in it; else just what takes none in the source.
    """
    sparse = "always" if holes else "auto"
    process.run(["cp", f"--sparse={sparse}", "--reflink=auto", "--", str(source), str(target)])


def every(store: Store) -> list[StoredDisk]:
    """All stored disks whose manifest and recipe can be read, oldest first."""
    disks = (_opened(artefact) for artefact in _artefacts(store))
    return [disk for disk in disks if disk]


def damaged(store: Store) -> list[Artefact]:
    """The others: they can be removed, and nothing else."""
    return [artefact for artefact in _artefacts(store) if _opened(artefact) is None]


def _artefacts(store: Store) -> list[Artefact]:
    """All of them; of one whose manifest cannot be read it is empty."""
    lost = Manifest(kind=KIND, inputs={}, files={})
    return [*store.all(KIND), *(Artefact(path.name, path, lost) for path in store.unreadable(KIND))]


def find(store: Store, key: str) -> StoredDisk:
    """The disk whose key is this or begins so. Raises InputError where there is none, or more than one."""
    artefact = find_artefact(store, key)
    disk = _opened(artefact)
    if disk is None:
        lost = RECIPE if artefact.manifest.files else MANIFEST
        raise Damaged(
            f"the stored disk {artefact.key[:SHORT]} is damaged: {artefact / lost} cannot be read",
            hint=f"remove it: agelab disk rm {artefact.key[:SHORT]}",
        )
    return disk


def find_artefact(store: Store, key: str) -> Artefact:
    """The artefact of that disk, sound or not. Raises InputError where there is none, or more than one."""
    artefacts = _artefacts(store)
    found = [one for one in artefacts if one.key.startswith(key.removeprefix("sha256:"))] if key else []
    if len(found) > 1:
        raise InputError(
            f"{len(found)} stored disks begin with {key!r}: {', '.join(one.key[:SHORT] for one in found)}"
        )
    if not found and not artefacts:
        raise InputError(
            f"no stored disk {key!r}: there are none yet",
            hint="make one: agelab age aging-ext4, or run with --keep-disk",
        )
    if not found:
        raise unknown("stored disk", key, [one.key[:SHORT] for one in artefacts])
    return found[0]


def _opened(artefact: Artefact) -> StoredDisk | None:
    if not artefact.manifest.files:
        return None
    try:
        return StoredDisk(artefact, DiskRecipe.model_validate_json((artefact / RECIPE).read_bytes()))
    except (OSError, ValueError):
        return None


def export(disk: StoredDisk, target: Path, image_format: Literal["raw", "qcow2"]) -> list[Path]:
    """Write an image of each member that anyone can mount, and beside the first its recipe; what was written.

    Raises InputError where something is there already, HostError where the disk is damaged.
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
            raise InputError(f"{path} is there already", hint="name another file, or remove it")
    disk.verify()
    for member, image in zip(disk.members, images, strict=True):
        if image_format == "raw":
            sparse_copy(member, image)
        else:
            process.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(member), str(image)])
    told = {
        "key": disk.key,
        "recipe": disk.recipe.model_dump(mode="json"),
        "files": disk.artefact.manifest.files,
        "inputs": disk.inputs,
    }
    recipe.write_text(json.dumps(told, indent=1) + "\n")
    return [*images, recipe]


def import_images(
    store: Store, images: Sequence[Path], filesystem: str, layout: Layout, defaults: Defaults, command: str
) -> StoredDisk:
    """Store a user's own images (raw, qcow2, ...), one for each member of the disk.

    Raises InputError for a file that is no image, or not a whole one.
    """
    for image in images:
        if not image.is_file():
            raise InputError(f"{image} is not a file")
    work = store.cache("import")
    with atomic.temp_dir(work) as directory:
        members = [directory / CONTENT.format(number) for number, _ in enumerate(images)]
        for image, member in zip(images, members, strict=True):
            try:
                argv = ["-f", _format(image), "-O", "raw", str(image.absolute()), str(member)]
                process.run(["qemu-img", "convert", *argv])
            except process.ProcessFailed as error:
                raise InputError(f"{image} cannot be read as a disk image: {error.stderr.strip()}") from error
            size = member.stat().st_size
            if not size:
                raise InputError(f"{image} is empty")
            if len(images) > 1 and size % DISK_ALIGNMENT:
                raise InputError(
                    f"{image}: {size} bytes are no multiple of {DISK_ALIGNMENT}; a member of an array cannot grow"
                )
            os.truncate(member, -(-size // DISK_ALIGNMENT) * DISK_ALIGNMENT)
        if len({member.stat().st_size for member in members}) > 1:
            raise InputError("the members of an array must have the same size")
        recipe = DiskRecipe(
            makes="aged",
            scenario=None,
            scale=None,
            variant=None,
            filesystem=filesystem,
            layout=layout,
            defaults=defaults,
            machine=None,
            drives=(),
            kernel=None,
            run_seed=None,
            corpus_seed=None,
            sizes=tuple(member.stat().st_size for member in members),
            command=command,
        )
        inputs = {
            "imported": [content_hash(member) for member in members],
            "filesystem": filesystem,
            "layout": layout,
            "defaults": defaults,
        }
        return keep(store, inputs, recipe, members, [])


def _format(image: Path) -> str:
    """The format of an image that is whole in itself: of another one qemu-img would read whatever file it names.

    Raises InputError, ProcessFailed.
    """
    said = json.loads(process.run(["qemu-img", "info", "--output=json", str(image.absolute())]).stdout)
    own = said.get("format-specific", {}).get("data", {})
    if other := said.get("backing-filename") or own.get("data-file"):
        raise InputError(
            f"{image} is not whole: the rest is in {str(other)[:200]!r}",
            hint="make it whole first: qemu-img convert -O qcow2",
        )
    if said["format"] not in WHOLE:
        raise InputError(f"{image} is of the format {said['format']}; known are {', '.join(WHOLE)}")
    return str(said["format"])


@contextmanager
def in_use(disk: StoredDisk) -> Iterator[None]:
    """Keep the disk from being removed for as long as the body runs."""
    with (disk.artefact / MANIFEST).open() as manifest:
        fcntl.flock(manifest, fcntl.LOCK_SH)
        yield


def remove(artefact: Artefact) -> None:
    """Take it from the store, in one go: what is half removed is no disk any more.

    Raises InputError while it is in use.
    """
    with (artefact / MANIFEST).open() as manifest:
        try:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"the stored disk {artefact.key[:SHORT]} is in use by a run", hint="wait for its end"
            ) from None
        atomic.remove(artefact.directory)
