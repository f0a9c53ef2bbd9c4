"""Kernels and images that cannot serve a cell."""

from agelab.kernel import MissingModule
from agelab.machine.image import Image
from agelab.runner.plan.cell_spec import MIB, CellSpec

PROOF = "the image's proof"
"""The start of the reason where the image could not prove a filesystem; the proof's own status follows."""


def unsupported(spec: CellSpec, image: Image) -> str | None:
    """Say why this image or its kernel cannot serve the cell, or None where it can."""
    if spec.refused:
        return f"mkfs refuses its options: {spec.refused}"
    try:
        image.kernel.modules.closure(spec.modules)
    except MissingModule as missing:
        return ": ".join(filter(None, (str(missing), spec.filesystem.modules_why)))
    smallest = (spec.variant.minimum_mib or spec.filesystem.minimum_mib) * MIB
    if spec.disk_bytes < smallest:
        return f"{spec.filesystem.name} needs {smallest} bytes of disk, the cell has {spec.disk_bytes}"
    proof = image.proof.get((spec.filesystem.name, spec.defaults))
    if proof is None:
        return f"the image has no proof of {spec.filesystem.name} with the {spec.defaults} defaults"
    if proof.status == "unsupported":
        return proof.reason
    return None if proof.status == "ok" else f"{PROOF} {proof.status}: {proof.reason}"
