"""The proof that the packages of a scenario run in its guest: each program is loaded, and those that are known are run.

It is made in the boot in which the filesystems are proved, by a program that stands in the place of theirs and calls it
(packer/packages/prove.py): the images of other scenarios know nothing of it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from agelab.base import fileio, places
from agelab.base.errors import InputError
from agelab.base.types import Frozen, escape_controls
from agelab.machine.image.packer import ProofFailed

PROVER = places.PACKER / "packages" / "prove.py"
PLAN, FILESYSTEMS = "packages.json", "prove_filesystems.py"
"""Files of the guest, below /run/agelab: what is to be proved, and the filesystems' own prover."""
TOLD = re.compile(r"agelab proof: (?P<why>.+)")
"""Packer's log where a program does not run."""
MOST = 10
"""Reasons to give."""


class PackageProof(Frozen):
    """What the guest proves of packages."""

    packages: tuple[str, ...]
    programs: dict[str, tuple[str, ...]]
    """Commands by the program that they prove."""

    def files(self) -> dict[str, bytes]:
        """Return the guest's files: path below /run/agelab to content."""
        return {
            PLAN: json.dumps(self.model_dump(mode="json")).encode(),
            FILESYSTEMS: fileio.read_bytes(places.PACKER / "prove.py"),
        }


def plan(packages: Sequence[str], programs: Mapping[str, Sequence[str]]) -> PackageProof | None:
    """Return what is to be proved of these packages, or None where there are none."""
    if not packages:
        return None
    commands = {name: tuple(argv) for name, argv in sorted(programs.items())}
    return PackageProof(packages=tuple(packages), programs=commands)


@contextmanager
def told_by_packer(load: PackageProof | None) -> Iterator[None]:
    """Turn a proof that failed for a program of these packages into its reason."""
    try:
        yield
    except ProofFailed as error:
        found = [escape_controls(match["why"], kept="") for match in TOLD.finditer(str(error))]
        if load is None or not found:
            raise
        lines = "\n".join(dict.fromkeys(found[:MOST]))
        raise InputError(lines, hint="choose other packages for this scenario") from error
