"""Proofs that a kernel and the root can make, mount and check each filesystem: the plan for the guest, and results."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Literal, get_args

from pydantic import Field, TypeAdapter

from agelab.base.types import Defaults, Frozen, Text
from agelab.kernel import MissingModule, MissingOption, Module, Modules
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
    return ProofPlan(
        modules=tuple(needed), items=tuple(items), unsupported=tuple(unsupported), tools=tuple(tools)
    )


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
