"""Proofs that a kernel and the root can make, mount and check each filesystem: the plan for the guest, and results.

In the same boot the guest proves that the packages of a scenario run: each program is loaded, and those that are known
are run, by a program that stands in the place of the filesystems' and calls it (packer/packages/prove.py). The images
of other scenarios know nothing of it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

from pydantic import Field, TypeAdapter

from agelab.base import fileio, places
from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls
from agelab.base.types import Defaults, Frozen, Text
from agelab.kernel import MissingModule, MissingOption, Module, Modules
from agelab.machine.image.packer import ProofFailed
from agelab.scenario.filesystem import Filesystem, FreeSpaceTool

DEVICE = "/dev/pmem1"
MOUNTPOINT = "/run/proof"
MODULES = "modules"
"""Directory of the modules in the guest, below /run/agelab."""
UUID = "a9e1ab00-0000-4000-8000-000000000001"

SCRATCH = 1 << 30
"""Bytes of the disk on which the filesystems are made."""


class Proof(Frozen):
    """The proof of one filesystem with one set of defaults."""

    filesystem: str
    defaults: Defaults
    status: Literal["ok", "unsupported", "failed"] = Field(
        description="unsupported: the kernel lacks it; failed: the kernel has it, but a command failed"
    )
    reason: Text | None = None


PROOFS = TypeAdapter(tuple[Proof, ...])


class ProofItem(Frozen):
    """The commands with which the guest makes, mounts and checks one filesystem with one set of defaults."""

    filesystem: str
    defaults: Defaults
    modules: tuple[tuple[str, bool], ...] = Field(
        description="modules to insert before, in this order, and whether one is optional"
    )
    mkfs: tuple[str, ...]
    mount: tuple[str, ...]
    mount_read_only: tuple[str, ...]
    umount: tuple[str, ...]
    free_space: tuple[str, ...] = Field(description="empty when no tool lists free space")
    fsck: tuple[str, ...]


class ProofPlan(Frozen):
    """The proofs for the guest to make, and those that need no guest because the kernel lacks the filesystem."""

    modules: tuple[str, ...]
    items: tuple[ProofItem, ...]
    unsupported: tuple[Proof, ...]
    tools: tuple[str, ...] = Field(
        default=(), description="programs that the commands run and that are not in the root"
    )

    def of(self, filesystem: str) -> list[Any]:
        """Return all that is proved of a filesystem, as JSON."""
        every: tuple[ProofItem | Proof, ...] = (*self.items, *self.unsupported)
        return [one.model_dump(mode="json") for one in every if one.filesystem == filesystem]

    def module_files(self, modules: Modules) -> dict[str, bytes]:
        """Return the modules that the guest inserts for each proof: path below /run/agelab to content."""
        return {f"{MODULES}/{module.name}.ko": module.read() for module in modules.closure(self.modules)}

    def for_guest(self) -> bytes:
        """Return the JSON that packer/prove.py reads."""
        return json.dumps({"device": DEVICE, "items": [item.model_dump() for item in self.items]}).encode()


def plan_proof(filesystems: Sequence[Filesystem], modules: Modules) -> ProofPlan:
    """Plan the proofs of these filesystems on a kernel with these modules."""
    items: list[ProofItem] = []
    unsupported: list[Proof] = []
    needed: list[str] = []
    tools: list[str] = []
    for filesystem in filesystems:
        try:
            inserted = modules.closure(filesystem.modules)
            modules.require(filesystem.kernel_config)
        except (MissingModule, MissingOption) as error:
            reason = "; ".join(filter(None, (str(error), filesystem.modules_why)))
            lacking = partial(Proof, filesystem=filesystem.name, status="unsupported", reason=reason)
            unsupported += [lacking(defaults=which) for which in get_args(Defaults)]
            continue
        needed += [name for name in filesystem.modules if name not in needed]
        tools += [name for name in filesystem.tools if name not in tools]
        items += [_item(filesystem, which, inserted) for which in get_args(Defaults)]
    return ProofPlan(modules=tuple(needed), items=tuple(items), unsupported=tuple(unsupported), tools=tuple(tools))


def _item(filesystem: Filesystem, defaults: Defaults, inserted: Sequence[Module]) -> ProofItem:
    tooling, lister = filesystem.tooling(defaults), filesystem.free_space
    return ProofItem(
        filesystem=filesystem.name,
        defaults=defaults,
        modules=tuple((module.name, module.optional) for module in inserted),
        mkfs=_substitute(filesystem.mkfs_command(defaults)),
        mount=_substitute(filesystem.mount_command(defaults)),
        mount_read_only=_substitute(filesystem.mount_command(defaults, read_only=True)),
        umount=_substitute(tooling.umount),
        free_space=_substitute(lister.run if isinstance(lister, FreeSpaceTool) else ()),
        fsck=_substitute(tooling.fsck),
    )


def _substitute(argv: Sequence[str]) -> tuple[str, ...]:
    places = {"{device}": DEVICE, "{mountpoint}": MOUNTPOINT, "{uuid}": UUID}
    filled = list(argv)
    for name, value in places.items():
        filled = [word.replace(name, value) for word in filled]
    return tuple(filled)


PROVER = places.PACKER / "packages" / "prove.py"
PACKAGES_PLAN, FILESYSTEMS = "packages.json", "prove_filesystems.py"
"""Files of the guest, below /run/agelab: what is to be proved, and the filesystems' own prover."""
TOLD = re.compile(r"agelab proof: (?P<why>.+)")
"""Packer's log where a program does not run."""
MOST_REASONS = 10
"""Reasons to give."""


class PackageProof(Frozen):
    """What the guest proves of packages."""

    packages: tuple[str, ...]
    programs: dict[str, tuple[str, ...]]
    """Commands by the program that they prove."""

    def files(self) -> dict[str, bytes]:
        """Return the guest's files: path below /run/agelab to content."""
        return {
            PACKAGES_PLAN: json.dumps(self.model_dump(mode="json")).encode(),
            FILESYSTEMS: fileio.read_bytes(places.PACKER / "prove.py"),
        }


def plan_package_proof(packages: Sequence[str], programs: Mapping[str, Sequence[str]]) -> PackageProof | None:
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
        reasons = [escape_controls(match["why"], kept="") for match in TOLD.finditer(str(error))]
        if load is None or not reasons:
            raise
        lines = "\n".join(dict.fromkeys(reasons[:MOST_REASONS]))
        raise InputError(lines, hint="choose other packages for this scenario") from error
