"""Unpack the artefacts of a capsule for guests, under names chosen here."""

from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.capsule import archive, schema
from agelab.capsule.read import Capsule
from agelab.data.corpus import Corpus
from agelab.kernel import Kernel
from agelab.kernel.modules import BUILTIN, INDEX, index
from agelab.machine.image import Image
from agelab.machine.image.assemble import DESCRIPTION
from agelab.runner.prepare.prepare import ProvidedParts
from agelab.store.artefacts import Artefact, Manifest


def unpack(capsule: Capsule, directory: Path) -> ProvidedParts | None:
    """Write the artefacts of a capsule into an empty directory; return None if it has none.

    Raises InputError if they are incomplete.
    """
    if capsule.artefacts is None:
        return None
    taken = _Extraction(capsule, directory)
    return ProvidedParts(taken.image(), taken.module(), taken.tools(), taken.corpora(), capsule.run_manifest)


def extract(capsule: Capsule, name: str, target: Path) -> Path:
    """Write the content of a member into a new file."""
    member = _member(capsule, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with fileio.opened(capsule.path) as file, target.open("xb") as written:
        for piece in archive.chunks(file, member):
            written.write(piece)
    return target


def _member(capsule: Capsule, name: str) -> archive.Member:
    if name not in capsule.members:
        raise InputError(f"{capsule.path} has no {name}")
    return capsule.members[name]


class _Extraction:
    """Extracts the artefacts of one capsule."""

    def __init__(self, capsule: Capsule, directory: Path) -> None:
        assert capsule.artefacts is not None
        self._capsule, self._carried = capsule, capsule.artefacts
        self._directory = directory

    def image(self) -> Image:
        """Return the image and its kernel."""
        capsule, place = self._capsule, self._directory / "image"
        files = dict(capsule.description.files)
        for name in files:
            if name not in schema.IMAGE_FILES:
                raise InputError(f"{capsule.path}: an image has no {name!r}")
            extract(capsule, f"artefacts/image/{name}", place / name)
        extract(capsule, schema.IMAGE, place / DESCRIPTION)
        self._modules(place)
        files[DESCRIPTION] = capsule.manifest.members[schema.IMAGE].sha256
        known = capsule.kernel
        of_kernel = Artefact(
            capsule.description.kernel.key, place, Manifest(kind="kernel", inputs=known.inputs, files={})
        )
        kernel = Kernel(known.spec, known.release, known.version, known.suite, artefact=of_kernel)
        key = str(capsule.request.plan.provenance.get("image"))
        artefact = Artefact(key, place, Manifest(kind="image", inputs={}, files=files))
        return Image(kernel, artefact, capsule.description)

    def _modules(self, place: Path) -> None:
        """Extract the kernel's modules under their numbers, and write an index of them."""
        capsule = self._capsule
        extract(capsule, schema.BUILTIN, place / BUILTIN)
        if schema.CONFIG in capsule.members:
            extract(capsule, schema.CONFIG, place / "config")
        ours = []
        for number, info in enumerate(capsule.modules):
            path = f"modules/{number}.ko"
            extract(capsule, f"artefacts/kernel/{number}.ko", place / path)
            ours.append(info.model_copy(update={"path": path}))
        (place / INDEX).write_bytes(index(ours))

    def module(self) -> Path | None:
        """Return the module of the modelled drive, or None."""
        if self._carried.module is None:
            return None
        target = self._directory / "drive" / f"{self._carried.module}.ko"
        return extract(self._capsule, "artefacts/drive/module.ko", target)

    def tools(self) -> dict[str, Path]:
        """Return the guest's own programs by name."""
        place = self._directory / "tools"
        return {
            name: extract(self._capsule, f"artefacts/tools/{number}", place / str(number))
            for number, name in enumerate(self._carried.tools)
        }

    def corpora(self) -> dict[str, Corpus]:
        """Return the corpora by history."""
        found = {}
        for number, one in enumerate(self._carried.corpora):
            name = f"artefacts/corpora/{number}"
            image = extract(self._capsule, name, self._directory / "corpora" / str(number) / "corpus.iso")
            size = self._capsule.members[name].size
            facts = {name: getattr(one, name) for name in schema.CORPUS_FIELDS}
            found[one.history] = Corpus(one.sha256, image, size, **facts)
        return found
