"""Write the Debian packages of runs as an archive of their own, for other hosts and later years."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from agelab.base import atomic
from agelab.base.errors import InputError, Notify
from agelab.base.types import AlsoFrom
from agelab.debian import Archive, Package, dated_archive, first_suite
from agelab.debian.buildroot import BuildRoot
from agelab.debian.dated_archive import PackageList
from agelab.debian.snapshot import SUITE
from agelab.kernel import build_inputs, recipes, source_tree
from agelab.kernel.debian_kernel import ResolvedKernel
from agelab.machine.image import packer
from agelab.machine.image import root as roots
from agelab.machine.image.root import RootPackages
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import run_manifest
from agelab.store.artefacts import Store

_ANSWERS: TypeAdapter[RootPackages | ResolvedKernel | Package | BuildRoot | str] = TypeAdapter(
    RootPackages | ResolvedKernel | Package | BuildRoot | str
)
"""All that questions about packages are answered with; text says of which suite a kernel's headers are."""
Origin = tuple[str, tuple[AlsoFrom, ...]]
"""A suite, and what its packages are from beside its main ones."""


@dataclass(frozen=True)
class WrittenMirror:
    """An archive that was written."""

    path: Path
    suites: dict[str, int]
    """Packages of each suite."""
    content_bytes: int
    unsigned: Sequence[str]
    """Packages that are in no list which Debian has signed: a reader has to trust whoever made the archive."""


def make(directory: Path, runs: Sequence[RunDirectory], store: Store, progress: Notify) -> WrittenMirror:
    """Write every package that these runs were made of into a new directory.

    Raises InputError for a directory that is there, for a run whose packages are not known, and for two runs that need
    a package in two versions; HostError where a package cannot be had any more.
    """
    if directory.exists():
        raise InputError(f"{directory} is there already", hint="name a new directory")
    versions: dict[str, dict[str, Package]] = {}
    origins: dict[Origin, set[str]] = {}
    for run in runs:
        for origin, packages in _packages(run, store, progress).items():
            for package in packages:
                known = versions.setdefault(origin[0], {}).setdefault(package.name, package)
                origins.setdefault(origin, set()).add(package.name)
                if known != package:
                    raise InputError(
                        f"{run.name} has {package.name} {package.version}, another run {known.version}",
                        hint="write an archive for each of the two",
                    )
    files: dict[str, list[Path]] = {}
    lists: dict[str, list[PackageList]] = {}
    for (suite, also_from), names in origins.items():
        progress(f"{len(names)} packages of Debian {suite}")
        archive = Archive(store, suite, also_from)
        there = archive.download([versions[suite][name] for name in sorted(names)])
        files[suite] = sorted({*files.get(suite, []), *there})
        lists.setdefault(suite, []).extend(archive.signed_lists())
    with atomic.temp_dir(directory.absolute().parent) as place:
        unsigned = dated_archive.write(place / "new", files, lists)
        (place / "new").rename(directory)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    counts = {suite: len(paths) for suite, paths in files.items()}
    return WrittenMirror(directory.absolute(), counts, size, unsigned)


def _packages(run: RunDirectory, store: Store, progress: Notify) -> dict[Origin, list[Package]]:
    """Return a run's packages by where they are from, with all that they depend on: apt does without none of it."""
    made = run_manifest.of_run(run)
    of_guest = (made.suite or roots.definition().suite, made.also_from)
    packages: dict[Origin, list[Package]] = {}
    # Packer makes images, and is in no key: any version will do.
    built = [packer.resolve_package(store), _of_built_kernel(run, store, progress, packages)]
    for answer in map(_ANSWERS.validate_python, made.resolutions.values()):
        match answer:
            case RootPackages():
                packages.setdefault(of_guest, []).extend([*answer.root, answer.busybox])
            case ResolvedKernel():
                packages.setdefault((answer.suite, ()), []).extend([answer.package, *answer.parts])
            case Package():
                packages.setdefault(of_guest, []).append(answer)
            case BuildRoot():
                built.append(answer)
    for root in filter(None, built):
        exact = [f"{package.name}={package.version}" for package in root.packages]
        packages.setdefault((root.suite, ()), []).extend(Archive(store, root.suite).resolve(exact))
    return packages


def _of_built_kernel(
    run: RunDirectory, store: Store, progress: Notify, packages: dict[Origin, list[Package]]
) -> BuildRoot | None:
    """Return what a run's kernel was built with, as this store remembers it; None for a kernel that was not built.

    The package with its source, if it is of one, is added to ``found``.
    """
    kernel = run.plan().kernel
    if kernel is None or kernel.spec.partition(":")[0] not in recipes.KINDS:
        return None
    if first_suite() != SUITE:
        progress(
            f"{run.name}: with a snapshot its kernel is built by the compiler of Debian {SUITE}, here by that of "
            f"{first_suite()}: it is another one, with other keys"
        )
    kind, _, version = recipes.parse(kernel.spec).source.partition(":")
    if kind == "source":
        archive, package = source_tree.find_package(version, store, progress)
        if not package.version.startswith(kernel.version):
            progress(f"{run.name}: its kernel was built of {kernel.version}, there is {package.version} now")
        packages.setdefault((archive.suite, ()), []).append(package)
    return build_inputs.resolve_packages(store, SUITE)
