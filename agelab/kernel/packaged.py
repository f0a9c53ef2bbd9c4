"""The ``debian:`` kind of kernel: of a version, of an exact release, or of a suite, from the host's mirror."""

import re
from collections.abc import Iterable
from pathlib import Path

from agelab.debian import SUITES, Archive, Package, dependencies, host_suite, newest, remember
from agelab.errors import HostError, unknown
from agelab.kernel.bundle import Kernel, Progress, quiet, unpack
from agelab.model.base import Frozen
from agelab.store import Store

RECIPE = 1
"""Raised whenever the same package would be unpacked differently."""

# Metapackages have two numbers in their names, kernels three.
_PACKAGE = re.compile(r"linux-image-(?P<release>\d+\.\d+\.\d[\w.+~-]*-amd64)")
_FLAVOURS = re.compile(r"-(rt|cloud|dbg|unsigned)(-|$)")


class Resolved(Frozen):
    """What a spec stands for: one package, exactly, and those that its content is in where it is a stub."""

    suite: str
    release: str
    package: Package
    parts: tuple[Package, ...] = ()


def resolve(wanted: str, store: Store, *, refresh: bool = False, progress: Progress = quiet) -> Kernel:
    """The kernel of a version, a release or a suite, fetched and unpacked if the store does not have it.

    ``refresh`` asks the mirror again what ``wanted`` stands for. Raises InputError for what nothing answers
    to, HostError when a download fails.
    """
    spec = f"debian:{wanted}"
    question = {"kernel": spec, "suite": host_suite()}
    resolved = remember(store, question, Resolved, lambda: _ask(wanted, store, refresh), refresh=refresh)
    package = resolved.package
    inputs: dict[str, object] = {
        "package": package.name,
        "version": package.version,
        "sha256": package.sha256,
        "recipe": RECIPE,
    }
    if resolved.parts:
        inputs["parts"] = [[part.name, part.sha256] for part in resolved.parts]

    def build(directory: Path) -> None:
        progress(f"downloading and unpacking the kernel {resolved.release}")
        debs = Archive(store, resolved.suite).download(resolved.parts or [package])
        unpack(debs, resolved.release, directory)

    artefact = store.obtain("kernel", inputs, build)
    return Kernel(spec, resolved.release, package.version, artefact, resolved.suite)


def available(store: Store, *, refresh: bool = False) -> dict[str, str]:
    """Release to package version of every kernel in the host's suites."""
    archive = Archive(store, host_suite())
    if refresh:
        archive.update()
    return _releases(archive)


def _releases(archive: Archive) -> dict[str, str]:
    named = (
        (_PACKAGE.fullmatch(name), version) for name, version in archive.versions("linux-image-").items()
    )
    found = {match["release"]: version for match, version in named if match}
    return {release: version for release, version in found.items() if not _FLAVOURS.search(release)}


def _ask(wanted: str, store: Store, refresh: bool) -> Resolved:
    if wanted[0].isdigit():
        archive, release = _of_version(wanted, store, refresh)
    else:
        if wanted not in SUITES and wanted != host_suite():
            raise unknown("kernel", f"debian:{wanted}", _specs(available(store)))
        archive = Archive(store, wanted)
        if refresh:
            archive.update()
        release = _of_suite(archive)
    package = archive.package(f"linux-image-{release}")
    return Resolved(
        suite=archive.suite, release=release, package=package, parts=_parts(archive, package, release)
    )


def _of_version(wanted: str, store: Store, refresh: bool) -> tuple[Archive, str]:
    """Suite and release of a version: the host's suite has it, or one that was asked for by its name before."""
    seen: dict[str, str] = {}
    host = host_suite()
    for suite in dict.fromkeys((host, *SUITES)):
        archive = Archive(store, suite)
        if suite != host and not archive.fetched:
            continue
        if refresh:
            archive.update()
        releases = _releases(archive)
        if release := _newest_of(wanted, releases):
            return archive, release
        seen |= releases
    error = unknown("kernel", f"debian:{wanted}", _specs(seen))
    error.hint = "a kernel of another Debian suite is named by it: debian:bullseye, debian:trixie, debian:sid"
    raise error


def _specs(releases: Iterable[str]) -> list[str]:
    short = {".".join(name.split(".")[:2]) for name in releases}
    return [f"debian:{name}" for name in (*releases, *sorted(short), *SUITES)]


def _parts(archive: Archive, package: Package, release: str) -> tuple[Package, ...]:
    """The packages that hold what ``package`` held before Linux 7; none where it still does."""
    names = {f"linux-{part}-{release}" for part in ("base", "binary", "modules")}
    depended = dependencies(archive.depends(package.name, package.version))
    return tuple(archive.package(one.name, one.version) for one in depended if one.name in names)


def _newest_of(wanted: str, releases: dict[str, str]) -> str | None:
    """The release that is ``wanted`` or, of those that it is the beginning of, the newest."""
    if wanted in releases:
        return wanted
    matching = {
        version: name for name, version in releases.items() if re.match(re.escape(wanted) + r"[.+~-]", name)
    }
    return matching[newest(list(matching))] if matching else None


def _of_suite(archive: Archive) -> str:
    """The release that a suite's ``linux-image-amd64`` depends on."""
    for depended in dependencies(archive.depends("linux-image-amd64")):
        if match := _PACKAGE.fullmatch(depended.name):
            return match["release"]
    raise HostError(f"Debian {archive.suite} has no linux-image-amd64 that names a kernel")
