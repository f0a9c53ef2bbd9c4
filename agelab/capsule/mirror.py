"""Write the Debian packages of runs as an archive of their own, for other hosts and later years."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab import atomic
from agelab.debian import Archive, Package, dated_archive
from agelab.errors import InputError
from agelab.image import packer_package
from agelab.image import root as roots
from agelab.notify import Notify
from agelab.results.checksummed import read
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import RunManifest
from agelab.store import Store


@dataclass(frozen=True)
class WrittenMirror:
    """An archive that was written."""

    path: Path
    suites: dict[str, int]
    """Packages of each suite."""
    content_bytes: int


def make(directory: Path, runs: Sequence[RunDirectory], store: Store, progress: Notify) -> WrittenMirror:
    """Write every package that these runs were made of into a new directory.

    Raises InputError for a directory that is there, for a run whose packages are not known, and for two runs that need
    a package in two versions; HostError where a package cannot be had any more.
    """
    if directory.exists():
        raise InputError(f"{directory} is there already", hint="name a new directory")
    wanted: dict[str, dict[str, Package]] = {}
    for run in runs:
        for suite, packages in _packages(run, store).items():
            for package in packages:
                known = wanted.setdefault(suite, {}).setdefault(package.name, package)
                if known != package:
                    raise InputError(
                        f"{run.name} has {package.name} {package.version}, another run {known.version}",
                        hint="write an archive for each of the two",
                    )
    files: dict[str, list[Path]] = {}
    for suite, found in wanted.items():
        progress(f"{len(found)} packages of Debian {suite}")
        files[suite] = Archive(store, suite).download(list(found.values()))
    with atomic.temp_dir(directory.absolute().parent) as place:
        dated_archive.write(place / "new", files)
        (place / "new").rename(directory)
    size = sum(path.stat().st_size for found in files.values() for path in found)
    return WrittenMirror(directory.absolute(), {suite: len(found) for suite, found in files.items()}, size)


def _packages(run: RunDirectory, store: Store) -> dict[str, list[Package]]:
    """Return the packages of a run by suite, with all that they depend on: apt does without none of it."""
    path = run.path / run_manifest.MADE_OF
    if not path.exists():
        raise InputError(f"{run.name} was made by an older agelab, which did not record its packages")
    made = read(path, RunManifest)
    suite = made.suite or roots.definition().suite
    found = {suite: [*made.guest.root, made.guest.busybox]}
    if made.kernel:
        found.setdefault(made.kernel.suite, []).extend([made.kernel.package, *made.kernel.parts])
    # Packer makes images, and is in no key: any version will do.
    for built in (made.qemu, made.drive, made.tools, packer_package.resolve_package(store)):
        if built:
            exact = [f"{package.name}={package.version}" for package in built.packages]
            found.setdefault(built.suite, []).extend(Archive(store, built.suite).resolve(exact))
    return found
