"""Format of a capsule: names of its members and types of its data."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from agelab.base.types import Frozen, Name
from agelab.kernel.stored_kernel import Provenance
from agelab.results.result import RunPlan
from agelab.runner.prepare.run_manifest import CONTROL, JOBS, MADE_OF, PROFILES, SCENARIO

VERSION = 1

MANIFEST = "manifest.json"
SEAL = "seal"
"""The manifest's sha256 in hex."""
PLAN = "plan.json"
KERNEL = "kernel.json"
IMAGE = "image.json"
ARTEFACTS = "artefacts.json"
REQUIRED_MEMBERS = (PLAN, KERNEL, IMAGE, MADE_OF, PROFILES, SCENARIO)
"""Members of every capsule, beside its cells."""
INPUTS, END, SAMPLES = "inputs.json", "end.json", "samples.jsonl"
CELL_MEMBERS = (INPUTS, END, SAMPLES)

IMAGE_FILES = ("initramfs", "root.squashfs", "vmlinux", "vmlinuz")
"""Files of an image, beside its description."""
KERNEL_FILES = ("config", "modules.builtin", "modules.json")
"""Files of a kernel, beside its modules, which are numbered."""
CONFIG, BUILTIN, MODULES = (f"artefacts/kernel/{name}" for name in KERNEL_FILES)

_NUMBER = r"(0|[1-9][0-9]{0,5})"
_NAMES = (
    *(re.escape(name) for name in (*REQUIRED_MEMBERS, CONTROL, JOBS, ARTEFACTS)),
    rf"cells/{_NUMBER}/({'|'.join(map(re.escape, CELL_MEMBERS))})",
    rf"cells/{_NUMBER}/maps/[a-z0-9-]{{1,30}}/(extents|free)",
    r"logs/[a-z0-9][a-z0-9_-]{0,50}",
    rf"artefacts/image/({'|'.join(map(re.escape, IMAGE_FILES))})",
    rf"artefacts/kernel/({'|'.join(map(re.escape, KERNEL_FILES))}|{_NUMBER}\.ko)",
    r"artefacts/drive/module\.ko",
    r"artefacts/(tools|corpora)/" + _NUMBER,
)
MEMBER_NAMES = re.compile("|".join(f"(?:{name})" for name in _NAMES), re.ASCII)
"""Valid names of members (for ``fullmatch``); none is ever used as a path to write to."""

MIB = 1 << 20
MAX_DATA_BYTES = 64 * MIB
"""Maximum size in bytes of a member that is data."""
MAX_ALL_DATA_BYTES = 1024 * MIB
"""Maximum size in bytes of all members that are data, of all cells."""
MAX_MEMBERS = 500_000
MAX_MAPS_BYTES = 8 * MIB
"""Maximum size in bytes of a cell's maps; above it a capsule has only their hashes."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(max_length=4096)] | bool | int | float | None

JSON_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, JsonValue])
"""Any JSON object, not nested too deeply."""


class PackedMember(Frozen):
    """Hash and size of a member's content."""

    sha256: Digest
    size: int = Field(ge=0)


class CapsuleManifest(Frozen):
    """manifest.json: the first member; lists all others."""

    capsule: Literal[1]
    agelab: str = Field(max_length=100, description="version of the agelab that made the run")
    run: str = Field(max_length=255)
    members: dict[str, PackedMember] = Field(max_length=MAX_MEMBERS)


class CapsuleRequest(Frozen):
    """plan.json: the run's plan and the options of its command, without paths of its host."""

    plan: RunPlan
    words: dict[Name, Word]
    more: dict[Name, Word]


class _Part(BaseModel):
    """Part of a cell's inputs, of which most are only hashed and compared."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DriveModule(_Part):
    """The module of the modelled drive."""

    module: Digest


class BootInputs(_Part):
    """What of the inputs of a cell's boot a capsule may carry."""

    image: str | None = None
    tools: dict[str, str] | None = None
    drive_module: DriveModule | None = None


class CellInputs(_Part):
    """inputs.json of a cell."""

    making: BootInputs | None = None
    measuring: BootInputs | None = None

    @property
    def boots(self) -> tuple[BootInputs, ...]:
        return tuple(one for one in (self.making, self.measuring) if one)


class CapsuleKernel(Frozen):
    """kernel.json: the kernel of the run."""

    spec: str = Field(max_length=4096)
    release: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+~-]{0,200}$")
    version: str = Field(max_length=200)
    suite: str = Field(max_length=100)
    inputs: dict[str, JsonValue] = Field(description="inputs whose hash is the kernel's key")
    provenance: Provenance


class CarriedCorpus(Frozen):
    """A corpus packed in the capsule."""

    history: str = Field(
        pattern=r"^([a-z0-9][a-z0-9_-]*)?(@[0-9]+)?$",
        description="history that the corpus belongs to, empty for none; with @2 behind it of corpus seed 2",
    )
    sha256: Digest
    files: int = Field(ge=0)
    content_bytes: int = Field(ge=0)
    description: str = Field(max_length=4096)
    parts: int | None = Field(default=None, ge=0)


CORPUS_FIELDS = tuple(name for name in CarriedCorpus.model_fields if name != "history")
"""The fields that a CarriedCorpus has of a Corpus."""


class CarriedArtefacts(Frozen):
    """artefacts.json: the artefacts packed in the capsule."""

    module: str | None = Field(pattern=r"^[a-z0-9_-]{1,50}$", description="name of the drive's module")
    tools: tuple[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,50}$")], ...]
    corpora: tuple[CarriedCorpus, ...]
