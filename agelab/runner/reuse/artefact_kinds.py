"""What an artefact of each kind that machines share must hold: it is read before any of it gets into a store.

Right hashes say that the files are those that somebody has packed, not that they are a kernel or a corpus.
"""

import struct
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from agelab.base.errors import AgelabError
from agelab.data.corpus import artefact as corpora
from agelab.data.history import artefact as histories
from agelab.kernel import Modules, elf
from agelab.kernel.elf import canonical_name
from agelab.kernel.modules import BUILTIN, CONFIG, INDEX
from agelab.machine.image import root as roots
from agelab.machine.image import sealed_image
from agelab.results import checksummed
from agelab.store.artefacts import Artefact
from agelab.store.blobs import WrongEntry


def require_whole(artefact: Artefact) -> None:
    """Raise WrongEntry unless an artefact holds what its kind must, in a form that can be read."""
    kind = artefact.manifest.kind
    if kind not in _KINDS:
        raise WrongEntry(f"a {kind} is never taken from another machine")
    try:
        with checksummed.readable(artefact.directory):
            _KINDS[kind](artefact)
    except (AgelabError, struct.error) as error:
        raise WrongEntry(f"it is no {kind}: {error}") from error


def _names(artefact: Artefact, *names: str) -> None:
    for name in names:
        if name not in artefact.manifest.files:
            raise WrongEntry(f"it has no {name}")


def _kernel(artefact: Artefact) -> None:
    _names(artefact, "vmlinuz", CONFIG, INDEX, BUILTIN)
    modules = Modules.of("", artefact.directory)
    _names(artefact, *(one.path for one in modules.infos))
    for one in modules.infos:
        if one.name != canonical_name(PurePosixPath(one.path).name.partition(".")[0]):
            raise WrongEntry(f"its module {one.path} is named {one.name[:40]!r}")
    for module in modules.closure([one.name for one in modules.infos]):
        module.read()


def _root(artefact: Artefact) -> None:
    _names(artefact, roots.ROOT_FILE)


def _image(artefact: Artefact) -> None:
    sealed_image.describe(artefact)
    _names(artefact, "vmlinuz")


def _drive(artefact: Artefact) -> None:
    [module] = artefact.manifest.files
    elf.read_module(artefact / module, module)
    if PurePosixPath(module).suffix != ".ko":
        raise WrongEntry(f"{module} is no module")


def _tools(artefact: Artefact) -> None:
    sources = map(PurePosixPath, artefact.manifest.inputs["sources"])
    _names(artefact, *(path.stem for path in sources if path.suffix == ".c"))


def _corpus(artefact: Artefact) -> None:
    _names(artefact, corpora.IMAGE_FILE)
    corpus = corpora.load(artefact)
    if artefact.manifest.inputs.get("source") == "history":
        histories.read_report(corpus)


_KINDS: Mapping[str, Callable[[Artefact], None]] = {
    "kernel": _kernel,
    "root": _root,
    "image": _image,
    "drive": _drive,
    "tools": _tools,
    "corpus": _corpus,
}
