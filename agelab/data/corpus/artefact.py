"""Corpora in the store: each is one ISO 9660 image with a description."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agelab.base import fileio, readers
from agelab.base.errors import HostError
from agelab.base.hashing import key_of
from agelab.base.types import CorpusKind, Frozen, Label, is_empty
from agelab.data.corpus import cd, iso, study_data, tar, tree
from agelab.data.corpus.definition import CD, Cd, StudyCorpus, definition
from agelab.store.artefacts import Artefact, Store, damaged
from agelab.store.stored_disk import align

KIND = "corpus"
IMAGE_FILE = "corpus.iso"
DESCRIPTION_FILE = "about.json"
RECIPE = 2
"""Raised when a change of this code changes a corpus's bytes: it is part of every key."""

MB = 1_000_000


class CorpusSpec(Frozen):
    """A seeded corpus to make: kind, total bytes of its files, and corpus seed."""

    kind: CorpusKind = CD
    bytes: int = Field(ge=MB, le=5000 * MB, description="sum of the sizes of all files")
    seed: int = Field(ge=0, lt=2**63)
    files: dict[str, int] = Field(
        default={}, exclude_if=is_empty, description="files of a tree at the study's size, in place of the kind's"
    )


class CorpusDescription(Frozen):
    """about.json, which is written beside an image."""

    files: int
    content_bytes: int
    description: str
    tree: str | None = Field(default=None, description="sha256 of md5sum.txt, which lists every file's hash")
    top: tuple[str, ...] | None = Field(
        default=None, description="names at the top of a user's corpus, directories with a slash; null: unknown"
    )
    lost: tuple[Label, ...] | None = Field(default=None, description="what the image lacks of a user's archive")
    parts: int | None = Field(
        default=None, description="number of a history's files, 1 to n (agelab/data/history/artefact.py)"
    )


@dataclass(frozen=True)
class Corpus:
    """A corpus in the store: ``image`` is an ISO 9660 file of ``size`` bytes with hash ``sha256``.

    ``files`` counts the regular files in it, ``content_bytes`` is the sum of their sizes; ``key`` is the
    hash of its inputs; ``top`` lists the names at the top of a user's corpus, None if unknown;
    ``parts`` counts the files of a history; ``lost`` says what the image lacks of a user's archive.
    """

    key: str
    image: Path
    size: int
    sha256: str
    files: int
    content_bytes: int
    description: str
    top: tuple[str, ...] | None = None
    parts: int | None = None
    lost: tuple[str, ...] = ()


def plan_files(what: Cd | StudyCorpus, size: int, seed: int) -> Sequence[tree.TreeFile]:
    """Plan the files of a stand-in of ``size`` bytes, sorted by path."""
    return cd.plan(what, size, seed) if isinstance(what, Cd) else study_data.plan(what, size, seed)


def make(spec: CorpusSpec, store: Store) -> Corpus:
    """Return a seeded corpus, made if the store does not have it (about a second for 40 MB, a minute for 4.6 GB).

    Raises InputError for a tree that the kind has not, HostError when xorriso is missing or the disk too full, before
    anything is written.
    """
    what = definition(spec.kind).with_files(spec.files)
    inputs = {"definition": key_of(what.model_dump()), "maker": iso.MAKER, **spec.model_dump()}
    if isinstance(what, StudyCorpus) and any(archive.gzip for archive in what.archives):
        inputs["compressor"] = tar.compressor_identity()

    def build(directory: Path) -> CorpusDescription:
        files = plan_files(what, spec.bytes, spec.seed)
        listed = isinstance(what, Cd)
        content = sum(file.size for file in files)
        content += tree.md5_list_size([file.path for file in files]) if listed else 0
        # Tree and image exist at the same time; the image adds block ends and directories.
        require_space(2 * content + (len(files) + 1000) * 2 * iso.BLOCK, directory, "making the corpus")
        made = directory / "tree"
        written = tree.write(files, spec.seed, made, listed=listed)
        iso.make(made, directory / IMAGE_FILE, volume=what.volume, date=what.date.value)
        shutil.rmtree(made)
        described = f"{what.title}; seed {spec.seed}"
        return CorpusDescription(
            files=written.files, content_bytes=written.bytes, description=described, tree=written.sums
        )

    return obtain(store, inputs, build, shared=True)


def list_corpora(store: Store) -> list[Corpus]:
    """List all corpora in the store, oldest first."""
    return [load(artefact) for artefact in store.all(KIND)]


def load(artefact: Artefact) -> Corpus:
    """Load a corpus from its artefact. Raises HostError when it is damaged."""
    try:
        about = CorpusDescription.model_validate_json(fileio.read_bytes(artefact / DESCRIPTION_FILE))
        size = (artefact / IMAGE_FILE).stat().st_size
    except (OSError, ValidationError) as error:
        raise damaged(f"the corpus in {artefact.directory}", artefact.directory) from error
    sha256 = artefact.manifest.files[IMAGE_FILE]
    facts = about.model_dump(exclude={"tree"}, exclude_none=True)
    return Corpus(artefact.key, artefact / IMAGE_FILE, size, sha256, **facts)


def obtain(
    store: Store,
    inputs: Mapping[str, Any],
    build: Callable[[Path], CorpusDescription],
    readable_by: int = readers.EVERYBODY,
    *,
    shared: bool = False,
) -> Corpus:
    """Return the corpus of these inputs, calling ``build`` to write its image if the store does not have it.

    ``shared`` says that it may come from other machines, and go to them.
    """

    def fill(directory: Path) -> None:
        about, image = build(directory), directory / IMAGE_FILE
        (directory / DESCRIPTION_FILE).write_text(
            about.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8"
        )
        align(image)

    return load(store.obtain(KIND, {"recipe": RECIPE, **inputs}, fill, readable_by=readable_by, shared=shared))


def require_space(space: int, directory: Path, what: str) -> None:
    """Raise HostError when the disk that holds ``directory`` has fewer free bytes than ``space``."""
    free = shutil.disk_usage(directory).free
    if free < space:
        raise HostError(
            f"{what} needs {-(-space // MB)} MB below {directory.parent}, which has {free // MB} MB free",
            hint="free some space, or move the store with AGELAB_HOME=<directory>",
        )
