"""A capsule is a parcel (agelab.store.parcel) in one file: its members, and the checks before any of them is used.

Every part is checked against the others.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from agelab.analysis.cells import CellResult
from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.gathered import gathered
from agelab.base.hashing import key_of
from agelab.base.sanitize import escape_json
from agelab.base.types import Frozen, Name
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.stored_kernel import Provenance
from agelab.machine.image.assemble import Description
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import Cell, End, RunPlan, Sample, Status
from agelab.runner.prepare.run_manifest import (
    CONTROL,
    JOBS,
    MADE_OF,
    PROFILES,
    SCENARIO,
    ControlScripts,
    JobFiles,
    Profiles,
    RunManifest,
)
from agelab.store.artefacts import artefact_key
from agelab.store.parcel import OneFile, PackedFile, Parcel, Refused, Sha256, quote, validated

_INFOS = TypeAdapter(tuple[ModuleInfo, ...])
AnyModel = TypeVar("AnyModel", bound=BaseModel)

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
MAX_MAPS_BYTES = 8 * MIB
"""Maximum size in bytes of a cell's maps; above it a capsule has only their hashes."""

Word = Annotated[str, Field(max_length=4096)] | bool | int | float | None

JSON_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, JsonValue])
"""Any JSON object, not nested too deeply."""


class CapsuleManifest(Frozen):
    """The manifest of a capsule's parcel, whose files are the run's and all that it was made of."""

    capsule: Literal[2]
    agelab: str = Field(max_length=100, description="version of the agelab that made the run")
    run: str = Field(max_length=255)


class CapsuleRequest(Frozen):
    """plan.json: the run's plan and the options of its command, without paths of its host."""

    plan: RunPlan
    options: dict[Name, Word]


class _Part(BaseModel):
    """Part of a cell's inputs, of which most are only hashed and compared."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DriveModule(_Part):
    """The module of the modelled drive."""

    module: Sha256


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
        return tuple(boot for boot in (self.making, self.measuring) if boot)


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
    sha256: Sha256
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


@dataclass(frozen=True)
class Capsule:
    """A capsule whose parts are consistent."""

    path: Path
    parcel: Parcel[CapsuleManifest]
    request: CapsuleRequest
    kernel: CapsuleKernel
    description: Description
    """Description of the image."""
    run_manifest: RunManifest
    profiles: Profiles
    scenario: str
    """Text of the scenario file."""
    control: ControlScripts | None
    jobs: JobFiles | None
    """The job files of the scenario's programs."""
    cells: tuple[CellResult, ...]
    inputs: tuple[CellInputs, ...]
    """What the cells' inputs say of their boots."""
    artefacts: CarriedArtefacts | None
    """Artefacts packed in the capsule, or None."""
    modules: tuple[ModuleInfo, ...]
    """Of the kernel, where it is packed."""

    @property
    def run(self) -> str:
        return self.parcel.manifest.run

    @property
    def members(self) -> Mapping[str, PackedFile]:
        return self.parcel.files


def open_capsule(path: Path) -> Capsule:
    """Open and check a capsule. Raises InputError, in one line, for a file that is no consistent capsule."""
    try:
        with fileio.opened(path) as file:
            return _CapsuleReader(OneFile(file)).capsule(path)
    except InputError as error:
        raise InputError(f"{path} is not a valid capsule: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


class _CapsuleReader:
    """Reads one capsule."""

    def __init__(self, file: OneFile) -> None:
        self._file = file
        self._members: Mapping[str, PackedFile] = {}
        self._data = 0

    def capsule(self, path: Path) -> Capsule:
        parcel = self._file.parcel(Parcel[CapsuleManifest])
        self._members = parcel.files
        for name in self._members:
            if not MEMBER_NAMES.fullmatch(name):
                raise Refused(f"{quote(name)} is not a name of a capsule's member")
        if missing := [name for name in REQUIRED_MEMBERS if name not in self._members]:
            raise Refused(f"it has no {missing[0]}")
        self._file.require_intact(parcel)
        asked = self._model(PLAN, CapsuleRequest)
        cells = tuple(self._cell(parcel.manifest.run, n, cell) for n, cell in enumerate(asked.plan.cells))
        capsule = Capsule(
            path=path,
            parcel=parcel,
            request=asked,
            kernel=self._model(KERNEL, CapsuleKernel),
            description=self._model(IMAGE, Description),
            run_manifest=self._model(MADE_OF, RunManifest),
            profiles=self._model(PROFILES, Profiles),
            scenario=self._text(SCENARIO),
            control=self._optional(CONTROL, ControlScripts),
            jobs=self._optional(JOBS, JobFiles),
            cells=cells,
            inputs=tuple(self._inputs(number) for number, _ in enumerate(cells)),
            artefacts=self._optional(ARTEFACTS, CarriedArtefacts),
            modules=self._modules(),
        )
        _ConsistencyCheck(capsule).check()
        return capsule

    def _cell(self, run: str, number: int, cell: Cell) -> CellResult:
        """Read a cell, whose key and digest must follow from its content."""
        place = f"cells/{number}"
        end = self._model(f"{place}/{END}", End)
        rows = self._bytes(f"{place}/{SAMPLES}").splitlines()
        read = Sample.model_validate_json
        samples = tuple(validated(row, f"{place}/{SAMPLES}", read) for row in rows)
        inputs: dict[str, Any] = {}
        if end.status is Status.INTERRUPTED:
            raise Refused(f"cell {number} has not ended")
        if end.inputs_key:
            name = f"{place}/{INPUTS}"
            inputs = validated(self._bytes(name), name, JSON_OBJECT.validate_json)
            if inputs_key(inputs) != end.inputs_key:
                raise Refused(f"cell {number}: its inputs_key does not follow from its inputs")
        elif end.status is not Status.UNSUPPORTED:
            raise Refused(f"cell {number} has run, and has no inputs_key")
        kept = end.inputs_key and (end.digest or end.status is Status.OK)
        if end.digest != (digest(end.status, samples, end.maps) if kept else None):
            raise Refused(f"cell {number}: its digest does not follow from its samples")
        for name in self._maps.get(f"{place}/maps", ()):
            which = name.removeprefix(f"{place}/maps/")
            if end.maps.get(which) != self._members[name].sha256:
                raise Refused(f"{name} is not the map that the cell's end record names")
        shown = dict(escape_json(inputs))  # as a run's are, with which they are compared
        return CellResult(run, number, Path(place), cell, end, samples, lambda: shown)

    def _modules(self) -> tuple[ModuleInfo, ...]:
        """Read the index of the modules, and check that the texts beside it are some."""
        for name in (BUILTIN, CONFIG):
            if name in self._members:
                self._text(name)
        if MODULES not in self._members:
            return ()
        return validated(self._bytes(MODULES), MODULES, _INFOS.validate_json)

    def _inputs(self, number: int) -> CellInputs:
        name = f"cells/{number}/{INPUTS}"
        return self._optional(name, CellInputs) or CellInputs()

    @cached_property
    def _maps(self) -> dict[str, list[str]]:
        """Names of the maps by directory of their cell."""
        return gathered(("/".join(name.split("/")[:3]), name) for name in self._members if "/maps/" in name)

    def _model(self, name: str, kind: type[AnyModel]) -> AnyModel:
        return validated(self._bytes(name), name, kind.model_validate_json)

    def _optional(self, name: str, kind: type[AnyModel]) -> AnyModel | None:
        return self._model(name, kind) if name in self._members else None

    def _text(self, name: str) -> str:
        try:
            return self._bytes(name).decode()
        except UnicodeDecodeError as error:
            raise Refused(f"{name} is no text") from error

    def _bytes(self, name: str) -> bytes:
        if name not in self._members:
            raise Refused(f"it has no {name}")
        content = self._file.content(name, MAX_DATA_BYTES)
        self._data += len(content)
        if self._data > MAX_ALL_DATA_BYTES:
            raise Refused(f"its data is larger than {MAX_ALL_DATA_BYTES} bytes")
        return content


@dataclass(frozen=True)
class _ConsistencyCheck:
    """Checks the parts of a capsule against each other."""

    capsule: Capsule

    def check(self) -> None:
        """Raise InputError for the first inconsistency."""
        checks = (
            self._cells, self._image, self._kernel, self._packages, self._sources, self._carried,
        )  # fmt: skip
        for problem in (problem for check in checks for problem in check()):
            raise Refused(problem)

    def _hash(self, name: str) -> str | None:
        member = self.capsule.members.get(name)
        return member.sha256 if member else None

    def _cells(self) -> Iterator[str]:
        plan, cells = self.capsule.request.plan, self.capsule.cells
        if plan.run != self.capsule.run:
            yield "its plan is another run's"
        if plan.clock != "virtual" or any(
            not drive.startswith("model:") for cell in plan.cells for drive in cell.drives
        ):
            yield "it is in real time or on a real disk, which cannot be replayed"
        if not cells:
            yield "it has no cell"
        named = {f"cells/{n}/{name}" for n, _ in enumerate(cells) for name in CELL_MEMBERS}
        for name in self.capsule.members:
            if name.startswith("cells/") and "/maps/" not in name and name not in named:
                yield f"{name} is of no cell of its plan"
            if "/maps/" in name and int(name.split("/")[1]) >= len(cells):
                yield f"{name} is of no cell of its plan"
        names = {ran.cell.name for ran in cells}
        if len(names) != len(cells):
            yield "two of its cells are the same"

    def _image(self) -> Iterator[str]:
        capsule = self.capsule
        described, packages = capsule.description, capsule.run_manifest.guest
        content = key_of(described.files)
        if content != capsule.request.plan.provenance.get("image_content"):
            yield f"{IMAGE} is not of the image that its plan names"
        for inputs in capsule.inputs:
            images = {boot.image for boot in inputs.boots}
            if images and content not in images:
                yield f"{IMAGE} is not of the image in its cells' inputs"
        filesystems = capsule.profiles.filesystems
        for name in capsule.run_manifest.modules:
            if name not in filesystems or not filesystems[name].module_source:
                yield f"{MADE_OF} has modules of {quote(name)}, which has none in {PROFILES}"
        if described.packages != (*packages.root, packages.busybox):
            yield f"{MADE_OF} and {IMAGE} name other packages"

    def _kernel(self) -> Iterator[str]:
        kernel, plan = self.capsule.kernel, self.capsule.request.plan
        key = artefact_key("kernel", kernel.inputs)
        known = self.capsule.description.kernel
        if (key, kernel.release, kernel.version) != (known.key, known.release, known.version):
            yield f"{KERNEL} is not of the image's kernel"
        facts = attrgetter("spec", "release", "version")
        if plan.kernel is None or facts(plan.kernel) != facts(kernel):
            yield f"{KERNEL} is not of the plan's kernel"
        resolved = self.capsule.run_manifest.kernel
        if resolved and not kernel.spec.startswith("debian:"):
            yield f"{KERNEL} names a kernel of files, and {MADE_OF} packages"
        if resolved and (
            [resolved.release, resolved.package.version, resolved.package.sha256]
            != [kernel.release, kernel.version, kernel.inputs.get("sha256")]
            or [[part.name, part.sha256] for part in resolved.parts] != kernel.inputs.get("parts", [])
        ):
            yield f"{MADE_OF} and {KERNEL} name other packages"

    def _packages(self) -> Iterator[str]:
        """What is shown of the packages is what a replay takes."""
        made = self.capsule.run_manifest
        modules = [part for module in made.modules.values() for part in (module.source, module.root)]
        named = [made.guest, made.kernel, made.drive, made.qemu, made.tools, *modules]
        answers = list(made.resolutions.values())
        if any(part and part.model_dump(mode="json") not in answers for part in named):
            yield f"{MADE_OF} names packages that are not those of its resolutions"

    def _sources(self) -> Iterator[str]:
        sources = self.capsule.run_manifest.sources
        if self.capsule.request.options.get("corpus") and not sources:
            yield f"its command names data, and {MADE_OF} has none"
        logs = {f"logs/{name}": source.log for name, source in sources.items() if source.log}
        there = [name for name in self.capsule.members if name.startswith("logs/")]
        if set(there) != set(logs):
            yield "its logs are not those of its histories"
        for name in there:
            if self._hash(name) != logs.get(name):
                yield f"{name} is not the log that the run was made with"

    def _carried(self) -> Iterator[str]:
        carried = self.capsule.artefacts
        there = {name for name in self.capsule.members if name.startswith("artefacts/")}
        if carried is None:
            if there:
                yield f"it has {min(there)}, and no {ARTEFACTS}"
            return
        files = self.capsule.description.files
        due: dict[str, Any] = {f"artefacts/image/{name}": sha for name, sha in files.items()}
        boots = [boot for inputs in self.capsule.inputs for boot in inputs.boots]
        programs = {name: sha for boot in boots for name, sha in (boot.tools or {}).items()}
        due |= {f"artefacts/tools/{n}": programs.get(name) for n, name in enumerate(carried.tools)}
        modules = [boot.drive_module.module for boot in boots if boot.drive_module]
        if carried.module:
            due["artefacts/drive/module.ko"] = next(iter(modules), None)
        sources = self.capsule.run_manifest.sources
        for number, corpus in enumerate(carried.corpora):
            source = sources.get(corpus.history)
            same = source is not None and source.sha256 == corpus.sha256
            due[f"artefacts/corpora/{number}"] = corpus.sha256 if same else None
        if set(sources) != {corpus.history for corpus in carried.corpora}:
            yield f"{ARTEFACTS} does not have the corpora of its histories"
        yield from self._artefacts(there, due)

    def _artefacts(self, there: set[str], due: Mapping[str, Any]) -> Iterator[str]:
        kernel = {name for name in there if name.startswith("artefacts/kernel/")}
        if there - kernel != set(due):
            yield f"it has other artefacts than {ARTEFACTS} says"
        for name, sha in due.items():
            if sha is None or self._hash(name) != sha:
                yield f"{name} is not what its cells ran with"
