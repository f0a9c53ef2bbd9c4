"""Kernels of kind ``debian:``: named by a version, an exact release or a suite, from the host's mirror.

Debian names a kernel by its release (``6.1.0-50-amd64``, ``6.12.117+deb13-amd64``), which says little of the upstream
version where the middle number is 0; the package's version does (``6.1.176-1``).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from pydantic import Field

from agelab.base.errors import HostError, InputError, Notify, silent, unknown
from agelab.base.types import SUITES, Frozen
from agelab.debian import Archive, Package, archives, cached_resolution, dependencies, first_suite, newest
from agelab.debian.unpacking import unpack_some
from agelab.kernel import oldest
from agelab.kernel.deb_files import RECIPE, unpack
from agelab.kernel.stored_kernel import Kernel
from agelab.store.artefacts import Store

SPLIT_SINCE = (6, 19)
"""From this version of Linux on the image package is a stub. (That of 6.18 depends on a base package, which has only
scripts for an installation.)"""

# Metapackages have two numbers in their names, kernels three.
_PACKAGE = re.compile(r"linux-image-(?P<release>\d+\.\d+\.\d[\w.+~-]*-amd64)")
_FLAVOURS = re.compile(r"-(rt|cloud|dbg|unsigned)(-|$)")


class ResolvedKernel(Frozen):
    """The package that a spec stands for and, where that is a stub, the packages with its content."""

    suite: str
    release: str = Field(pattern=r"^\d[A-Za-z0-9.+~-]*$")
    package: Package
    parts: tuple[Package, ...] = ()

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages with the kernel's content."""
        return self.parts or (self.package,)


def resolve(name: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel of a version, a release or a suite, downloaded and unpacked if the store does not have it.

    ``refresh`` asks the mirror again what the ``name`` stands for. Raises InputError when there is no such kernel,
    HostError when a download fails.
    """
    spec = f"debian:{name}"
    resolved = resolve_packages(name, store, refresh, progress)
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
        debs = Archive(store, resolved.suite).download(resolved.packages)
        unpack(debs, resolved.release, directory)

    artefact = store.obtain("kernel", inputs, build, shared=True)
    return Kernel(spec, resolved.release, package.version, resolved.suite, artefact=artefact)


def release_of(name: str, store: Store, *, progress: Notify = silent) -> str:
    """Return the release that a version or a suite stands for, without downloading it. Raises as ``resolve`` does."""
    return resolve_packages(name, store, False, progress).release


class AvailableKernel(Frozen):
    """One kernel on the mirror."""

    release: str
    version: str
    suite: str = Field(description="the first of Debian's suites that has it")
    headers: bool = Field(description="whether its headers are there, which the modelled drive's module needs")

    @property
    def spec(self) -> str:
        return f"debian:{self.release}"


def available(store: Store, *, refresh: bool = False, progress: Notify = silent) -> list[AvailableKernel]:
    """List every kernel in every suite on the host's mirror, oldest first."""
    kernels: dict[tuple[str, str], AvailableKernel] = {}
    for archive in archives(store, refresh=refresh, progress=progress):
        versions = archive.versions("linux-")
        for release, version in _filter_kernels(versions).items():
            headers = versions.get(f"linux-headers-{release}") == version
            offered = AvailableKernel(release=release, version=version, suite=archive.suite, headers=headers)
            kernels.setdefault((release, version), offered)
    return sorted(kernels.values(), key=lambda kernel: (numbers(kernel.release), kernel.release))


def _filter_kernels(versions: Mapping[str, str]) -> dict[str, str]:
    """Map release to version for the packages that are complete kernels of the plain flavour."""
    named = ((_PACKAGE.fullmatch(name), version) for name, version in versions.items())
    releases = {match["release"]: version for match, version in named if match}
    return {
        release: version
        for release, version in releases.items()
        if not _FLAVOURS.search(release) and _is_complete(release, version, versions)
    }


def _is_complete(release: str, version: str, versions: Mapping[str, str]) -> bool:
    """Return True when all parts of a kernel are on the mirror, which removes them one by one."""
    return numbers(release) < SPLIT_SINCE or all(versions.get(name) == version for name in _part_names(release))


def _part_names(release: str) -> list[str]:
    """Name the packages that from SPLIT_SINCE on have the former content of the image package."""
    return [f"linux-{part}-{release}" for part in ("base", "binary", "modules")]


def resolve_packages(name: str, store: Store, refresh: bool = False, progress: Notify = silent) -> ResolvedKernel:
    """Resolve ``debian:<name>`` to packages. Raises as ``resolve`` does."""
    return cached_resolution(
        store,
        {"kernel": f"debian:{name}"},
        ResolvedKernel,
        lambda: _query_archives(name, store, refresh, progress),
        refresh=refresh,
        of_host={"suite": first_suite()},
    )


def _query_archives(name: str, store: Store, refresh: bool, progress: Notify) -> ResolvedKernel:
    oldest.require(f"kernel 'debian:{name}'", name)
    if is_version(name):
        archive, release = _find_version(name, store, refresh, progress)
    else:
        if name not in SUITES and name != first_suite():
            raise unknown("kernel", f"debian:{name}", [f"debian:{suite}" for suite in (*SUITES, "6.1")])
        archive = Archive(store, name)
        if refresh:
            archive.update()
        release = _find_default(archive)
    package = archive.package(f"linux-image-{release}")
    return ResolvedKernel(
        suite=archive.suite, release=release, package=package, parts=_parts(archive, package, release)
    )


def _find_version(version: str, store: Store, refresh: bool, progress: Notify) -> tuple[Archive, str]:
    """Return suite and release of a version: the first suite with exactly that release, else the newest match.

    A match in the host's suite comes before newer ones elsewhere. All suites are asked, not only those whose lists
    are in this store: a spec means the same in every store.
    """
    seen: dict[str, str] = {}
    matches: dict[str, tuple[Archive, str]] = {}
    for archive in archives(store, refresh=refresh, progress=progress):
        releases = _filter_kernels(archive.versions("linux-"))
        release = find_newest(version, releases)
        if release and (archive.suite == first_suite() or find_exact(version, releases)):
            return archive, release
        if release:
            matches.setdefault(releases[release], (archive, release))
        seen |= releases
    if matches:
        return matches[newest(list(matches))]
    near = ", ".join(f"debian:{name}" for name in nearest(version, seen))
    raise InputError(
        f"no kernel 'debian:{version}' in Debian's suites" + (f"; the nearest are {near}" if near else ""),
        hint="see all of them: agelab list kernels; ask the mirror what it has now: agelab list kernels --refresh",
    )


def _parts(archive: Archive, package: Package, release: str) -> tuple[Package, ...]:
    """Return the packages with the content of ``package`` if that is a stub, else none.

    Raises InputError when the suite lacks some of them.
    """
    if numbers(release) < SPLIT_SINCE:
        return ()
    depended = dependencies(archive.depends(package.name, package.version))
    parts = [part for part in depended if part.name in _part_names(release)]
    versions = archive.versions("linux-") if parts else {}
    missing = [part.name for part in parts if versions.get(part.name) != (part.version or versions.get(part.name, ""))]
    if missing:
        raise InputError(
            f"kernel 'debian:{release}': Debian {archive.suite} has no {', '.join(missing)} (any more)",
            hint="see those that are complete: agelab list kernels",
        )
    return tuple(archive.package(part.name, part.version) for part in parts)


def _find_default(archive: Archive) -> str:
    """Return the release that a suite's ``linux-image-amd64`` depends on."""
    for depended in dependencies(archive.depends("linux-image-amd64")):
        if match := _PACKAGE.fullmatch(depended.name):
            return match["release"]
    raise HostError(f"Debian {archive.suite} has no linux-image-amd64 that names a kernel")


def suite_of_headers(release: str, version: str, store: Store, progress: Notify = silent) -> str:
    """Return the suite that has the headers of exactly that kernel, or "". Raises HostError."""
    name = f"linux-headers-{release}"

    def ask() -> str:
        for archive in archives(store, progress=progress):
            if archive.versions(name).get(name) == version:
                return archive.suite
        raise LookupError(name)  # not cached: a suite may have them tomorrow

    try:
        return cached_resolution(store, {"headers": release, "version": version}, str, ask)
    except LookupError:
        return ""


FLAVOUR = "-amd64"
MAX_NEAREST = 3
"""Nearest kernels that an error names."""

_UPSTREAM = re.compile(r"(?P<numbers>\d+(\.\d+)*)([-~]rc(?P<candidate>\d+))?")
_RELEASED = 10**6
"""Sorts a release after its release candidates."""

Releases = Mapping[str, str]
"""Maps release to package version."""


def is_version(text: str) -> bool:
    """Return True for text that starts with a digit: a version, not a name."""
    return text[:1].isascii() and text[:1].isdecimal()


def find_exact(name: str, releases: Releases) -> str | None:
    """Return the release of this ``name``, with or without the flavour, or None."""
    return next((release for release in (name, name + FLAVOUR) if release in releases), None)


def find_newest(prefix: str, releases: Releases) -> str | None:
    """Return the release ``prefix``, else the newest that starts with it, else by package versions; or None."""
    if exact := find_exact(prefix, releases):
        return exact
    begins = re.compile(re.escape(prefix) + r"([.+~-]|$)")
    matching = {version: name for name, version in releases.items() if begins.match(name)}
    matching = matching or {version: name for name, version in releases.items() if begins.match(version)}
    return matching[newest(list(matching))] if matching else None


def nearest(version: str, releases: Releases) -> list[str]:
    """Suggest versions in place of one that does not exist, the numerically nearest first.

    They are as exact as ``version``: versions of two numbers if it has two, releases if it has more.
    """
    asked = numbers(version)
    ranked = sorted(releases, key=lambda name: numbers(releases[name]), reverse=True)
    ranked.sort(key=lambda name: min(_distance(asked, numbers(text)) for text in (name, releases[name])))
    length = len(asked)
    names = (name if length > 2 else ".".join(map(str, numbers(name)[:length])) for name in ranked)
    return list(dict.fromkeys(names))[:MAX_NEAREST]


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a release or a version, in order; one of more than 18 digits counts as several."""
    return tuple(int(digits) for digits in re.findall(r"[0-9]{1,18}", text.removesuffix(FLAVOUR)))


def sort_key(version: str) -> tuple[int, ...]:
    """Return a key that sorts versions by age: a release candidate comes before its release."""
    parts = _UPSTREAM.match(version)
    if not parts:
        return numbers(version)
    released = [int(part) for part in parts["numbers"].split(".")]
    candidate = int(parts["candidate"]) if parts["candidate"] else _RELEASED
    padded = (*released, 0, 0)[: max(3, len(released))]
    return (*padded, candidate, *numbers(version[parts.end() :]))


def _distance(asked: tuple[int, ...], offered: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distances of the numbers of two versions, as many as ``asked`` has; they compare in order."""
    return tuple(abs(left - right) for left, right in zip_longest(asked, offered[: len(asked)], fillvalue=0))


SYMBOLS_KIND = "symbols"
SYMBOLS_RECIPE = 1
"""Raised whenever the same package would make other files."""
SYMBOLS_INSIDE = "./usr/lib/debug"
VMLINUX = "vmlinux"


def obtain_symbols(kernel: Kernel, modules: Sequence[str], store: Store, progress: Notify) -> Path:
    """Return a directory with ``vmlinux`` and these modules (``ext4.ko``), with symbols and lines of the source.

    Raises HostError where Debian's mirror has none of this kernel (any more).
    """
    package = Archive(store, kernel.suite).package(f"linux-image-{kernel.release}-dbg", kernel.version)
    inputs = {"package": package.name, "sha256": package.sha256, "modules": sorted(modules), "recipe": SYMBOLS_RECIPE}

    def build(directory: Path) -> None:
        progress(f"downloading {package.name}, {package.size / 1e6:.0f} MB")
        [deb] = Archive(store, kernel.suite).download([package])
        progress(f"taking vmlinux and {len(modules)} modules out of it, which takes minutes")
        tree = directory / "tree"
        files = [f"*/{name.replace('_', '[_-]')}.ko*" for name in modules]
        wanted = [f"{SYMBOLS_INSIDE}/*{VMLINUX}-*", *(f"{SYMBOLS_INSIDE}/lib/modules/{name}" for name in files)]
        unpack_some(deb, tree, wanted)
        for path in sorted(tree.rglob("*")):
            if path.is_file() and not path.is_symlink():
                name = VMLINUX if path.name.startswith(VMLINUX) else path.name.partition(".")[0] + ".ko"
                path.rename(directory / name)
        unpacked = sorted(tree.rglob("*"), reverse=True)
        for path in (*unpacked, tree):
            path.unlink() if path.is_symlink() else path.rmdir()

    return store.obtain(SYMBOLS_KIND, inputs, build, shared=True).directory
