"""Read a capsule and check every part of it against the others before any is used."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from agelab.analysis.cells import CellResult
from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.capsule import archive, schema
from agelab.capsule.archive import Member
from agelab.capsule.schema import (
    CapsuleKernel,
    CapsuleManifest,
    CapsuleRequest,
    CarriedArtefacts,
    CellInputs,
)
from agelab.kernel.elf import ModuleInfo
from agelab.machine.image.assemble import Description
from agelab.results.digest import digest, inputs_key
from agelab.results.result import Cell, End, Sample, Status
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import ControlScripts, JobFiles, Profiles, RunManifest
from agelab.store.artefacts import artefact_key

_INFOS = TypeAdapter(tuple[ModuleInfo, ...])
AnyModel = TypeVar("AnyModel", bound=BaseModel)
Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Capsule:
    """A capsule whose parts are consistent."""

    path: Path
    manifest: CapsuleManifest
    members: Mapping[str, Member]
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
        return self.manifest.run


def open_capsule(path: Path) -> Capsule:
    """Open and check a capsule. Raises InputError, in one line, for a file that is no consistent capsule."""
    try:
        with fileio.opened(path) as file:
            return _CapsuleReader(file).capsule(path)
    except InputError as error:
        raise InputError(f"{path} is not a valid capsule: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def quote(text: str, most: int = 60) -> str:
    """Quote untrusted text for a terminal, shortened to ``most`` characters."""
    return repr(text[:most] + ("..." if len(text) > most else ""))


class _CapsuleReader:
    """Reads one capsule."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._members: dict[str, Member] = {}
        self._data = 0

    def capsule(self, path: Path) -> Capsule:
        manifest = self._manifest()
        self._check_members(manifest)
        asked = self._model(schema.PLAN, CapsuleRequest)
        cells = tuple(self._cell(manifest.run, n, cell) for n, cell in enumerate(asked.plan.cells))
        found = Capsule(
            path=path,
            manifest=manifest,
            members=self._members,
            request=asked,
            kernel=self._model(schema.KERNEL, CapsuleKernel),
            description=self._model(schema.IMAGE, Description),
            run_manifest=self._model(run_manifest.MADE_OF, RunManifest),
            profiles=self._model(run_manifest.PROFILES, Profiles),
            scenario=self._text(run_manifest.SCENARIO),
            control=self._optional(run_manifest.CONTROL, ControlScripts),
            jobs=self._optional(run_manifest.JOBS, JobFiles),
            cells=cells,
            inputs=tuple(self._inputs(number) for number, _ in enumerate(cells)),
            artefacts=self._optional(schema.ARTEFACTS, CarriedArtefacts),
            modules=self._modules(),
        )
        _ConsistencyCheck(found, manifest).check()
        return found

    def _manifest(self) -> CapsuleManifest:
        """Read the manifest and locate every member."""
        for member in archive.members(self._file):
            if len(self._members) >= schema.MAX_MEMBERS:
                raise InputError(f"it has more than {schema.MAX_MEMBERS:,} members")
            if member.name in self._members:
                raise InputError(f"{member.name} is in it twice")
            self._members[member.name] = member
        if list(self._members)[:2] != [schema.MANIFEST, schema.SEAL]:
            raise InputError(f"it does not begin with {schema.MANIFEST} and {schema.SEAL}")
        raw = self._bytes(schema.MANIFEST)
        if self._bytes(schema.SEAL) != hashlib.sha256(raw).hexdigest().encode() + b"\n":
            raise InputError(f"{schema.MANIFEST} does not match its seal")
        return _parse(raw, schema.MANIFEST, CapsuleManifest.model_validate_json)

    def _check_members(self, manifest: CapsuleManifest) -> None:
        """Check that the members are those of the manifest, with known names and the recorded content."""
        there = list(self._members)[2:]
        if there != sorted(manifest.members):
            other = set(there) ^ set(manifest.members)
            what = quote(min(other)) + " is in one of them alone" if other else "the order is another"
            raise InputError(f"its members are not those of {schema.MANIFEST}: {what}")
        for name in there:
            if not schema.MEMBER_NAMES.fullmatch(name):
                raise InputError(f"{quote(name)} is not a name of a capsule's member")
        if missing := [name for name in schema.REQUIRED_MEMBERS if name not in self._members]:
            raise InputError(f"it has no {missing[0]}")
        for name, packed in manifest.members.items():
            member = self._members[name]
            if member.size != packed.size or archive.digest(self._file, member) != packed.sha256:
                raise InputError(f"{name} does not match the hash in the manifest")

    def _cell(self, run: str, number: int, cell: Cell) -> CellResult:
        """Read a cell, whose key and digest must follow from its content."""
        place = f"cells/{number}"
        end = self._model(f"{place}/{schema.END}", End)
        rows = self._bytes(f"{place}/{schema.SAMPLES}").splitlines()
        read = Sample.model_validate_json
        samples = tuple(_parse(row, f"{place}/{schema.SAMPLES}", read) for row in rows)
        inputs: dict[str, Any] = {}
        if end.status is Status.INTERRUPTED:
            raise InputError(f"cell {number} has not ended")
        if end.inputs_key:
            name = f"{place}/{schema.INPUTS}"
            inputs = _parse(self._bytes(name), name, schema.JSON_OBJECT.validate_json)
            if inputs_key(inputs) != end.inputs_key:
                raise InputError(f"cell {number}: its inputs_key does not follow from its inputs")
        elif end.status is not Status.UNSUPPORTED:
            raise InputError(f"cell {number} has run, and has no inputs_key")
        kept = end.inputs_key and (end.digest or end.status is Status.OK)
        if end.digest != (digest(end.status, samples, end.maps) if kept else None):
            raise InputError(f"cell {number}: its digest does not follow from its samples")
        for name in self._maps.get(f"{place}/maps", ()):
            which = name.removeprefix(f"{place}/maps/")
            if end.maps.get(which) != archive.digest(self._file, self._members[name]):
                raise InputError(f"{name} is not the map that the cell's end record names")
        return CellResult(run, number, Path(place), cell, end, samples, lambda: inputs)

    def _modules(self) -> tuple[ModuleInfo, ...]:
        """Read the index of the modules, and check that the texts beside it are some."""
        for name in (schema.BUILTIN, schema.CONFIG):
            if name in self._members:
                self._text(name)
        if schema.MODULES not in self._members:
            return ()
        return _parse(self._bytes(schema.MODULES), schema.MODULES, _INFOS.validate_json)

    def _inputs(self, number: int) -> CellInputs:
        name = f"cells/{number}/{schema.INPUTS}"
        return self._optional(name, CellInputs) or CellInputs()

    @cached_property
    def _maps(self) -> dict[str, list[str]]:
        """Names of the maps by directory of their cell."""
        found: dict[str, list[str]] = {}
        for name in self._members:
            if "/maps/" in name:
                found.setdefault("/".join(name.split("/")[:3]), []).append(name)
        return found

    def _model(self, name: str, kind: type[AnyModel]) -> AnyModel:
        return _parse(self._bytes(name), name, kind.model_validate_json)

    def _optional(self, name: str, kind: type[AnyModel]) -> AnyModel | None:
        return self._model(name, kind) if name in self._members else None

    def _text(self, name: str) -> str:
        try:
            return self._bytes(name).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is no text") from error

    def _bytes(self, name: str) -> bytes:
        if name not in self._members:
            raise InputError(f"it has no {name}")
        found = archive.read(self._file, self._members[name], schema.MAX_DATA_BYTES)
        self._data += len(found)
        if self._data > schema.MAX_ALL_DATA_BYTES:
            raise InputError(f"its data is larger than {schema.MAX_ALL_DATA_BYTES} bytes")
        return found


@dataclass(frozen=True)
class _ConsistencyCheck:
    """Checks the parts of a capsule against each other."""

    capsule: Capsule
    manifest: CapsuleManifest

    def check(self) -> None:
        """Raise InputError for the first inconsistency."""
        for problem in (*self._cells(), *self._image(), *self._kernel(), *self._sources(), *self._carried()):
            raise InputError(problem)

    def _hash(self, name: str) -> str | None:
        member = self.manifest.members.get(name)
        return member.sha256 if member else None

    def _cells(self) -> Iterator[str]:
        plan, cells = self.capsule.request.plan, self.capsule.cells
        if plan.run != self.manifest.run:
            yield "its plan is another run's"
        if plan.clock != "virtual" or any(
            not drive.startswith("model:") for cell in plan.cells for drive in cell.drives
        ):
            yield "it is in real time or on a real disk, which cannot be replayed"
        if not cells:
            yield "it has no cell"
        named = {f"cells/{n}/{name}" for n, _ in enumerate(cells) for name in schema.CELL_MEMBERS}
        for name in self.manifest.members:
            if name.startswith("cells/") and "/maps/" not in name and name not in named:
                yield f"{name} is of no cell of its plan"
            if "/maps/" in name and int(name.split("/")[1]) >= len(cells):
                yield f"{name} is of no cell of its plan"
        told = {one.cell.name for one in cells}
        if len(told) != len(cells):
            yield "two of its cells are the same"

    def _image(self) -> Iterator[str]:
        capsule = self.capsule
        described, packages = capsule.description, capsule.run_manifest.guest
        content = key_of(described.files)
        if content != capsule.request.plan.provenance.get("image_content"):
            yield f"{schema.IMAGE} is not of the image that its plan names"
        for inputs in capsule.inputs:
            images = {boot.image for boot in inputs.boots}
            if images and content not in images:
                yield f"{schema.IMAGE} is not of the image in its cells' inputs"
        filesystems = capsule.profiles.filesystems
        for name in capsule.run_manifest.modules:
            if name not in filesystems or not filesystems[name].module_source:
                yield f"{run_manifest.MADE_OF} has modules of {quote(name)}, which has none in {run_manifest.PROFILES}"
        if described.packages != (*packages.root, packages.busybox):
            yield f"{run_manifest.MADE_OF} and {schema.IMAGE} name other packages"

    def _kernel(self) -> Iterator[str]:
        kernel, plan = self.capsule.kernel, self.capsule.request.plan
        key = artefact_key("kernel", kernel.inputs)
        known = self.capsule.description.kernel
        if (key, kernel.release, kernel.version) != (known.key, known.release, known.version):
            yield f"{schema.KERNEL} is not of the image's kernel"
        facts = attrgetter("spec", "release", "version")
        if plan.kernel is None or facts(plan.kernel) != facts(kernel):
            yield f"{schema.KERNEL} is not of the plan's kernel"
        found = self.capsule.run_manifest.kernel
        if found and not kernel.spec.startswith("debian:"):
            yield f"{schema.KERNEL} names a kernel of files, and {run_manifest.MADE_OF} packages"
        if found and (
            [found.release, found.package.version, found.package.sha256]
            != [kernel.release, kernel.version, kernel.inputs.get("sha256")]
            or [[part.name, part.sha256] for part in found.parts] != kernel.inputs.get("parts", [])
        ):
            yield f"{run_manifest.MADE_OF} and {schema.KERNEL} name other packages"

    def _sources(self) -> Iterator[str]:
        sources = self.capsule.run_manifest.sources
        if self.capsule.request.words.get("corpus") and not sources:
            yield f"its command names data, and {run_manifest.MADE_OF} has none"
        logs = {f"logs/{name}": source.log for name, source in sources.items() if source.log}
        there = [name for name in self.manifest.members if name.startswith("logs/")]
        if set(there) != set(logs):
            yield "its logs are not those of its histories"
        for name in there:
            if self._hash(name) != logs.get(name):
                yield f"{name} is not the log that the run was made with"

    def _carried(self) -> Iterator[str]:
        carried = self.capsule.artefacts
        there = {name for name in self.manifest.members if name.startswith("artefacts/")}
        if carried is None:
            if there:
                yield f"it has {min(there)}, and no {schema.ARTEFACTS}"
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
            yield f"{schema.ARTEFACTS} does not have the corpora of its histories"
        yield from self._artefacts(there, due)

    def _artefacts(self, there: set[str], due: Mapping[str, Any]) -> Iterator[str]:
        kernel = {name for name in there if name.startswith("artefacts/kernel/")}
        if there - kernel != set(due):
            yield f"it has other artefacts than {schema.ARTEFACTS} says"
        for name, sha in due.items():
            if sha is None or self._hash(name) != sha:
                yield f"{name} is not what its cells ran with"


def _parse(raw: bytes, name: str, validate: Callable[[bytes], Parsed]) -> Parsed:
    try:
        return validate(raw)
    except ValidationError as error:
        raise InputError(f"{name}: {_first_problem(error)}") from error


def _first_problem(error: ValidationError) -> str:
    """Describe the first validation error in one line; of the file's content it repeats only names."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place: Sequence[int | str] = first["loc"]
    return quote(".".join(map(str, place)) + ": " * bool(place) + first["msg"], 200)
