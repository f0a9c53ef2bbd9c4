"""Kernels that guests boot: a spec becomes an unpacked bundle in the store, never installed on the host."""

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agelab import process
from agelab.debian import SUITES, Archive, Package, dependencies, host_suite, newest, remember
from agelab.errors import HostError, InputError, unknown
from agelab.kernel import modinfo, vmlinux
from agelab.kernel.modules import BUILTIN, INDEX, Modules, index, soft, walk
from agelab.model.base import Frozen
from agelab.store import Artefact, Store

DEFAULT = "debian:6.1"
"""The newest Debian 6.1: reiserfs and jfs are still in it."""

RECIPE = 1
"""Raised whenever the same package would be unpacked differently."""

KINDS = ("debian", "deb", "tree", "image")

# Metapackages have two numbers in their names, kernels three.
_PACKAGE = re.compile(r"linux-image-(?P<release>\d+\.\d+\.\d[\w.+~-]*-amd64)")
_FLAVOURS = re.compile(r"-(rt|cloud|dbg|unsigned)(-|$)")
_DRIVERS = (
    *(
        "acpi",
        "ata",
        "block",
        "cdrom",
        "char",
        "dax",
        "md",
        "nvdimm",
        "nvme",
        "pci",
        "vfio",
        "virtio",
        "watchdog",
    ),
    *(
        "net/ethernet/intel/e1000",
        "net/virtio_net",
        "scsi/scsi_",
        "scsi/sd_mod",
        "scsi/sr_mod",
        "scsi/sg",
        "scsi/virtio",
    ),
)
KEPT = (
    *(f"kernel/{top}/" for top in ("arch", "block", "crypto", "fs", "lib", "mm")),
    *(f"kernel/drivers/{name}" for name in _DRIVERS),
)
"""What a guest here could need of the 390 MB of a distribution's modules (and whatever those depend on)."""


class Resolved(Frozen):
    """What a spec stands for: one package, exactly, and those that its content is in where it is a stub."""

    suite: str
    release: str
    package: Package
    parts: tuple[Package, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel in the store, ready to boot."""

    spec: str
    release: str
    version: str
    artefact: Artefact
    suite: str = ""
    """Debian's suite that it is of, where its headers are; empty where it is of none."""

    @property
    def key(self) -> str:
        return self.artefact.key

    @property
    def directory(self) -> Path:
        return self.artefact.directory

    @property
    def vmlinuz(self) -> Path:
        """The kernel as the distribution ships it."""
        return self.directory / "vmlinuz"

    @property
    def boot(self) -> Path:
        """What QEMU is given: the ELF image where it could be unpacked, which saves the guest doing it."""
        unpacked = self.directory / "vmlinux"
        return unpacked if unpacked.exists() else self.vmlinuz

    @cached_property
    def modules(self) -> Modules:
        """Its modules: ``kernel.modules.closure(names)``."""
        return Modules.of(self.release, self.directory)


def resolve(spec: str, store: Store, *, refresh: bool = False) -> Kernel:
    """The kernel of a spec, fetched and unpacked if the store does not have it.

    ``refresh`` asks the mirror again what the spec stands for. Raises InputError for a spec that nothing
    answers to, HostError when a download fails.
    """
    kind, _, wanted = spec.partition(":")
    if kind != "debian" or not wanted:
        raise _not_a_spec(spec, kind)
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


def _not_a_spec(spec: str, kind: str) -> InputError:
    if kind in KINDS[1:] and ":" in spec:
        return InputError(
            f"kernel {spec!r}: {kind}: kernels are not supported yet", hint=f"for example: {DEFAULT}"
        )
    if spec[:1].isdigit():
        return unknown("kernel", spec, [f"debian:{spec}", DEFAULT])
    return unknown("kernel", spec, [DEFAULT, *(f"debian:{suite}" for suite in SUITES)])


def unpack(debs: Sequence[Path], release: str, directory: Path) -> None:
    """Fill ``directory`` with what a guest needs of a kernel's packages.

    ``vmlinuz``, ``vmlinux`` where it can be had, ``config``, ``modules/`` and the index of the modules.
    """
    whole = directory / "unpacked"
    for deb in debs:
        process.run(["dpkg-deb", "-x", str(deb), str(whole)])
    trees = [whole / top / "modules" / release for top in ("lib", "usr/lib")]
    tree = next((tree for tree in trees if tree.is_dir()), whole)
    for name in ("vmlinuz", "config"):
        places = (whole / "boot" / f"{name}-{release}", tree / name)
        there = next((place for place in places if place.is_file()), None)
        if there is None or tree == whole:
            raise HostError(
                f"{', '.join(deb.name for deb in debs)}: no kernel in a layout that is known here",
                hint=f"for example: {DEFAULT}",
            )
        there.rename(directory / name)
    if vmlinux.bootable((directory / "config").read_text()):
        image = vmlinux.unpack((directory / "vmlinuz").read_bytes())
        if image:
            (directory / "vmlinux").write_bytes(image)
    _keep(tree, directory)
    shutil.rmtree(whole)


def _keep(tree: Path, directory: Path) -> None:
    paths = sorted(path for path in tree.rglob("*.ko*") if path.is_file())
    infos = [modinfo.read(path, f"modules/{path.relative_to(tree)}") for path in paths]
    named = {info.name: info for info in infos}
    aliased: dict[str, list[str]] = {}
    for info in infos:
        for alias in info.aliases:
            aliased.setdefault(alias, []).append(info.name)
    chosen = [info.name for info in infos if info.path.removeprefix("modules/").startswith(KEPT)]
    kept = walk(chosen, named.get, lambda name: soft(name, named, aliased))
    for info in kept:
        target = directory / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        (tree / Path(info.path).relative_to("modules")).rename(target)
    (directory / BUILTIN).parent.mkdir(exist_ok=True)
    (tree / "modules.builtin").rename(directory / BUILTIN)
    (directory / INDEX).write_bytes(index(sorted(kept, key=lambda info: info.name)))
