"""Assemble the sealed image: the last step of ``packer build``.

usage: python -m agelab.machine.image.assemble WORK, WORK holds ``assembly.json`` (see Assembly) and ``proof.json``.
"""

import sys
from pathlib import Path

from pydantic import Field

from agelab.base import atomic, fileio
from agelab.base.errors import AgelabError
from agelab.base.types import Frozen
from agelab.debian import Package
from agelab.machine.image.proof import PROOFS, Proof
from agelab.store.artefacts import file_hash

DESCRIPTION = "image.json"
ROOT = "root.squashfs"
INITRAMFS = "initramfs"


class ImageKernel(Frozen):
    """The kernel of an image, without its spec: two specs may stand for one kernel."""

    release: str
    version: str = Field(description="of the package")
    key: str = Field(description="of the artefact in the store")


class Description(Frozen):
    """image.json. Nothing in it depends on the host or the time."""

    schema_version: int = 1
    kernel: ImageKernel
    root: str = Field(description="sha256 of the root")
    template: str = Field(description="hash of the Packer template, its provisioning and the init program")
    packages: tuple[Package, ...]
    files: dict[str, str] = Field(default={}, description="file of the image -> sha256")
    proof: tuple[Proof, ...] = ()


class Assembly(Frozen):
    """assembly.json: the parts of the image, and where they are now."""

    target: Path
    files: dict[str, Path] = Field(description="name in the image -> the file to link or copy")
    description: Description
    unsupported: tuple[Proof, ...] = Field(description="the proofs that needed no guest")


def assemble(work: Path) -> None:
    """Assemble the image from ``work/assembly.json`` and the guest's ``work/proof.json``.

    Raises AgelabError when the root has changed since the guest booted it.
    """
    assembly = Assembly.model_validate_json(fileio.read_bytes(work / "assembly.json"))
    proofs = PROOFS.validate_json(fileio.read_bytes(work / "proof.json")) + assembly.unsupported
    for name, source in assembly.files.items():
        atomic.link_or_copy(source, assembly.target / name)
    hashes = {name: file_hash(assembly.target / name) for name in sorted(assembly.files)}
    if hashes[ROOT] != assembly.description.root:
        raise AgelabError("the root has changed since the guest booted it")
    ordered = tuple(sorted(proofs, key=lambda proof: (proof.filesystem, proof.defaults)))
    description = assembly.description.model_copy(update={"files": hashes, "proof": ordered})
    (assembly.target / DESCRIPTION).write_text(description.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        assemble(Path(sys.argv[1]))
    except (AgelabError, OSError, ValueError, IndexError) as error:
        sys.exit(f"cannot assemble the image: {error}")
