"""The manifest of a run, kept in its directory: every part that it takes to run it again, elsewhere or later."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from pydantic import Base64Bytes, Field, JsonValue

from agelab.base import process
from agelab.base.errors import InputError
from agelab.base.types import AlsoFrom, Frozen
from agelab.data.corpus import Corpus
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildRoot
from agelab.kernel import Kernel, NamedKernel, debian_kernel
from agelab.kernel.debian_kernel import ResolvedKernel
from agelab.machine import dkms, qemu
from agelab.machine.dkms import ModulePackages
from agelab.machine.drive import module as modules
from agelab.machine.drive.module import NoHeaders
from agelab.machine.image import root as roots
from agelab.results import run_directory
from agelab.results.checksummed import read, write_sealed
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan.cell_spec import NOTHING_BROUGHT, CellSpec
from agelab.runner.prepare import brought_files
from agelab.runner.prepare.input_data import named_data
from agelab.runner.request.request import RunRequest
from agelab.scenario.drive import Drive
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.history import Logged
from agelab.scenario.layout import Layout
from agelab.scenario.machine import Machine
from agelab.store.artefacts import Store, file_hash

MADE_OF = run_directory.MADE_OF
SCENARIO = "scenario.toml"
PROFILES = "profiles.json"
CONTROL = "control.json"
JOBS = "jobs.json"
MOST_KEPT = 32 << 20
"""Bytes of what a scenario brings that are kept with a run; a larger one cannot be packed."""


class CorpusRecord(Frozen):
    """A corpus, or a history's log."""

    sha256: str = Field(description="of the image that the guest reads")
    size: int
    description: str
    own: bool = Field(description="whether it is the user's own data")
    log: str | None = Field(default=None, description="sha256 of the user's operation log, where it is one")


class RunManifest(Frozen):
    """The versions and contents that a run's command stood for when it began."""

    agelab: str = Field(description="its version")
    programs: dict[str, str] = Field(description="of the host: Debian package -> version")
    kernel: ResolvedKernel | None = Field(description="None for a kernel of files, or one that was built")
    guest: roots.RootPackages
    suite: str = Field(description="Debian suite of the guest's packages")
    also_from: tuple[AlsoFrom, ...] = Field(
        default=(), description="where some of them are of Debian, beside its main ones"
    )
    drive: BuildRoot | None = Field(description="what the modelled drive's module was built with")
    qemu: BuildRoot = Field(description="packages of QEMU")
    modules: dict[str, ModulePackages] = Field(
        default={}, description="what the modules of a filesystem were built of, by its name"
    )
    tools: BuildRoot | None = Field(description="what the guest's own programs and QEMU's libraries were built with")
    sources: dict[str, CorpusRecord] = Field(
        description="by history, which of a scenario with a corpus has no name; with @2 behind it of corpus seed 2, "
        "where that is not the run's first"
    )
    resolutions: dict[str, JsonValue] = Field(
        default={}, description="what questions about packages were answered: the key of each to its answer"
    )
    brings: bool = Field(
        default=False, description="whether the scenario brought files of the user's that are not kept"
    )
    scenario_sha256: str | None = Field(default=None, description="of the scenario's text, as it is kept")


class Profiles(Frozen):
    """The data files that the cells follow, as they were read."""

    filesystems: dict[str, Filesystem]
    machines: dict[str, Machine]
    drives: dict[str, Drive]
    layouts: dict[str, Layout] = Field(default={}, description="those of more than one partition as it is")


class ControlScripts(Frozen):
    """A control file and its scripts."""

    name: str = Field(pattern=r"^[^/\x00-\x1f\x7f]{1,255}$", description="of the file")
    text: str
    scripts: dict[str, Base64Bytes]


class JobFiles(Frozen):
    """The job files of a scenario's programs, the aging profiles of its histories, and what it brings."""

    jobs: dict[str, Base64Bytes]


def of_run(run: RunDirectory) -> RunManifest:
    """Return the manifest of a run. Raises InputError for a run that did not record what it was made of."""
    path = run.path / MADE_OF
    made = read(path, RunManifest) if path.exists() else None
    if made is None or not made.resolutions:
        raise InputError(f"{run.name} was made by an older agelab: it did not record its packages", hint="run it again")
    return made


def root_of(request: RunRequest) -> tuple[roots.RootDefinition, list[Filesystem]]:
    """Return the definition of the root that a run's guests boot, and the filesystems that it serves."""
    chosen = request.selection
    return roots.of_scenario(chosen.scenario, request.packages, request.filesystems)


def filesystems_of(request: RunRequest) -> list[Filesystem]:
    """Return the filesystems that the guests of a run make, beside the disk under test too."""
    beside = request.selection.scenario.beside
    names = {*request.filesystems, *([beside.filesystem] if beside else [])}
    return [filesystem for filesystem in root_of(request)[1] if filesystem.name in names]


def module_packages(request: RunRequest, kernel: NamedKernel, store: Store) -> dict[str, ModulePackages]:
    """Return what the modules of a run's filesystems are built of, where they can be built for the kernel."""
    packages = {}
    for filesystem in filesystems_of(request):
        if filesystem.module_source:
            with suppress(NoHeaders):
                packages[filesystem.name] = dkms.resolve_packages(kernel, filesystem, filesystem.module_source, store)
    return packages


def collect(
    request: RunRequest,
    specs: Sequence[CellSpec],
    kernel: Kernel,
    corpora: Sequence[Corpus],
    store: Store,
    answers: Mapping[str, JsonValue],
    *,
    modelled: bool,
) -> RunManifest:
    """Collect what the parts of a run were made of. They have just been made, so that the store remembers it.

    ``answers`` is what package questions have been answered since the preparation began. ``modelled`` says that
    there is a module of a modelled drive.
    """
    definition, filesystems = root_of(request)
    of_debian = kernel.kind == "debian"
    made = RunManifest(
        agelab=version("agelab"),
        programs=host_programs(),
        kernel=debian_kernel.resolve_packages(kernel.spec.partition(":")[2], store) if of_debian else None,
        guest=roots.resolve_packages(definition, filesystems, store),
        suite=definition.suite,
        drive=modules.resolve_packages(kernel, store) if modelled and not kernel.build_inputs else None,
        qemu=qemu.resolve_packages(store),
        also_from=definition.also_from,
        modules=module_packages(request, kernel, store),
        tools=buildroot.resolve_compiler(store, roots.definition().suite),
        sources=named_data(
            specs, [_source(request, spec, corpus) for spec, corpus in zip(specs, corpora, strict=True)]
        ),
    )
    return made.model_copy(update={"resolutions": dict(answers)})


def _source(request: RunRequest, spec: CellSpec, corpus: Corpus) -> CorpusRecord:
    history = spec.history
    return CorpusRecord(
        sha256=corpus.sha256,
        size=corpus.size,
        description=corpus.description,
        own=request.corpus is not None,
        log=file_hash(Path(history.log)) if isinstance(history, Logged) else None,
    )


def profiles(specs: Sequence[CellSpec]) -> Profiles:
    """Return the data files that these cells follow."""
    filesystems = [filesystem for spec in specs for filesystem in (spec.filesystem, spec.companion) if filesystem]
    layouts = [spec.disk.layout for spec in specs]
    drives = [drive.profile for spec in specs for drive in spec.disk.drives if drive.profile]
    return Profiles(
        filesystems={filesystem.name: filesystem for filesystem in filesystems},
        machines={spec.machine.name: spec.machine for spec in specs},
        drives={drive.name: drive for drive in drives},
        layouts={layout.name: layout for layout in layouts if layout.make},
    )


def write(run: RunDirectory, request: RunRequest, specs: Sequence[CellSpec], made: RunManifest) -> None:
    """Write the manifest, the data files and the scenario into a new run's directory."""
    text = request.selection.text.encode()
    (run.path / SCENARIO).write_bytes(text)
    own = brought_files.carried(specs[0].brought if specs else NOTHING_BROUGHT)
    kept = own if sum(map(len, own.values())) <= MOST_KEPT else {}
    about = {"scenario_sha256": hashlib.sha256(text).hexdigest(), "brings": own.keys() != kept.keys()}
    manifest = made.model_copy(update=about)
    write_sealed(run.path / MADE_OF, manifest)
    write_sealed(run.path / PROFILES, profiles(specs))
    if request.control:
        file = request.control
        scripts = ControlScripts.model_construct(name=file.path.name, text=file.text, scripts=dict(file.scripts))
        write_sealed(run.path / CONTROL, scripts)
    if jobs := {**request.selection.workload.jobs, **request.selection.profiles, **kept}:
        write_sealed(run.path / JOBS, JobFiles.model_construct(jobs=jobs))


@cache
def host_programs() -> dict[str, str]:
    """Return the versions of the Debian packages of this host that agelab works with."""
    names = sorted(set(process.host_packages().values()))
    listed = process.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *names], ok=(0, 1)).stdout
    return dict(line.split(" ", 1) for line in listed.splitlines() if not line.endswith(" "))
