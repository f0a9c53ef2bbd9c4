"""Build the root that guests boot: Debian packages in a squashfs, the same bytes for the same packages.

It is built without being booted and is never written to, so it contains nothing that a boot leaves behind.
"""

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from agelab.base import atomic, fileio, places, process
from agelab.base.errors import AgelabError, HostError, InputError, Notify, full_disk_line
from agelab.base.plain_path import temp_parent
from agelab.base.types import SUITES, AlsoFrom, DebianSuite, Frozen
from agelab.debian import Archive, Package, cached_resolution, local_repository
from agelab.machine.vm import host
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.scenario import Scenario
from agelab.scenario.toml_files import place_of, read, read_named
from agelab.store.artefacts import Artefact, Store, artefact_key
from agelab.store.stored_disk import align

DEFINITION = places.IMAGES / "guest.toml"

RECIPE = 1
"""Raised whenever the same packages would make a different root."""

KIND = "root"
ROOT_FILE = "root.squashfs"
# Newest file time in the root (2020-01-01): a guest's clock starts then, so that no file is from the future.
_EPOCH = {"SOURCE_DATE_EPOCH": "1577836800"}
# The guest needs no apt, and nothing that depends on the host or the time may stay.
_REMOVED = (
    *("etc/apt", "etc/hostname", "etc/resolv.conf", "etc/machine-id", "etc/.pwd.lock", "var/lib/dbus/machine-id"),
    *("var/lib/apt", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/dpkg/triggers/Lock"),
    *("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/dpkg/dpkg.cfg.d/99mmdebstrap"),
)
_NEVER_NEEDED = ("/etc/", "/var/", "/usr/lib/udev/")
"""What of the removed paths is removed from a root with a user's packages too: it differs from build to build."""
# Each program that the loader would not start, and the library that is not there.
_LACKING = (
    "ldd /usr/bin/* /usr/sbin/* 2>&1 | sed -n '/^[^[:space:]].*:$/{s/:$//;h;d};"
    r"s/^[[:space:]]*\([^ ]*\) => not found/\1/;T;G;s/\(.*\)\n\(.*\)/\2 lacks \1/p'"
)
_BROUGHT = ("dmsetup",)
"""Packages of what the guest runs that the usual suite's packages bring along, and those of other suites do not."""
_LEFT = ("/etc/hostid",)
"""What packages of other suites' roots leave that differs from build to build (OpenZFS draws a number for the host)."""
UNPACKED = 6
"""Times the size of its packages that a tree takes at most, with what apt keeps of them."""
_EMPTIED = ("var/cache", "var/log", "tmp", "run")


class RootDefinition(Frozen):
    """images/guest.toml."""

    suite: DebianSuite
    packages: tuple[str, ...]
    also_from: tuple[AlsoFrom, ...] = Field(default=(), description="packages of Debian beside the suite's main ones")
    filesystems: tuple[str, ...] = Field(
        default=(), description="files of scenarios/filesystems that the root of every guest serves"
    )
    exclude: tuple[str, ...] = Field(default=(), description="paths of packages that are not unpacked")
    remove: tuple[str, ...] = Field(default=(), description="paths removed when all packages are set up")


class RootPackages(Frozen):
    """The packages of the guest."""

    root: tuple[Package, ...]
    busybox: Package = Field(description="busybox-static, for the initramfs")


def served(definition: RootDefinition, others: Collection[str]) -> list[Filesystem]:
    """Return the filesystems of a root: those of every guest, and ``others`` by name.

    They are ``others`` alone where one of them asks for another suite, which may not have the packages of the rest.
    """
    filesystems = [_filesystem(name) for name in sorted({*others})]
    if any(filesystem.suite for filesystem in filesystems):
        return filesystems
    return [_filesystem(name) for name in sorted({*definition.filesystems, *others})]


def _filesystem(name: str) -> Filesystem:
    return read_named("filesystems", name, Filesystem, "filesystem")


def own_definition(
    definition: RootDefinition, packages: Sequence[str], filesystems: Sequence[Filesystem], suite: str = ""
) -> RootDefinition:
    """Return the definition of the root for these packages of a scenario and these filesystems.

    It is that of every guest where no package is added, and neither the scenario's ``suite`` nor a filesystem asks for
    a newer one. From any other nothing is removed that packages may need: who knows what they load.
    Raises InputError for an older suite: its programs do not run what the guest runs.
    """
    for asked in filter(None, (suite, *(filesystem.suite for filesystem in filesystems))):
        if SUITES.index(asked) < SUITES.index(definition.suite):
            raise InputError(f"suite {asked!r} is older than {definition.suite}, the oldest for a guest's root")
    added = [filesystem for filesystem in filesystems if filesystem.name not in definition.filesystems]
    suites = {definition.suite, suite, *(filesystem.suite for filesystem in added)} - {""}
    if not (packages or any(filesystem.packages for filesystem in added)) and len(suites) == 1:
        return definition
    kept = tuple(path for path in definition.remove if path.startswith(_NEVER_NEEDED))
    newest = max(suites, key=SUITES.index)
    brought, left = (_BROUGHT, _LEFT) if newest != definition.suite else ((), ())
    all_packages = tuple(dict.fromkeys((*definition.packages, *brought, *packages)))
    also_from = tuple(sorted({*definition.also_from, *(name for filesystem in added for name in filesystem.also_from)}))
    return definition.model_copy(
        update={"packages": all_packages, "remove": (*kept, *left), "suite": newest, "also_from": also_from}
    )


def of_scenario(
    scenario: Scenario, packages: Sequence[str], others: Collection[str] = ()
) -> tuple[RootDefinition, list[Filesystem]]:
    """Return the definition of the root for a scenario with these packages, and the filesystems that it serves.

    They are those of all variants, so that one variant has the image of all; ``others`` are those of the run, by name.
    Those of every guest are among them in its usual suite alone: another one may not have their packages. Where a
    filesystem and not the scenario asks for another suite, the root serves those of the run alone.
    """
    beside = [scenario.beside.filesystem] if scenario.beside else []
    names = [*(variant.filesystem for variant in scenario.variants), *beside, *others]
    usual = definition()
    filesystems = served(usual, names)
    if others and not scenario.suite and any(filesystem.suite for filesystem in filesystems):
        names = [*beside, *others]
        filesystems = served(usual, names)
    own = own_definition(usual, packages, filesystems, scenario.suite)
    if own.suite != usual.suite:
        filesystems = [filesystem for filesystem in filesystems if filesystem.name in names]
    return own, filesystems


def resolve_packages(
    definition: RootDefinition, filesystems: Sequence[Filesystem], store: Store, *, refresh: bool = False
) -> RootPackages:
    """Resolve the packages of the root for these filesystems, from the cache unless ``refresh``.

    Raises InputError for a package that the suite does not have, with the filesystem's file that names it.
    """
    asked = question(definition, filesystems)

    def ask() -> RootPackages:
        archive = Archive(store, definition.suite, definition.also_from)
        if refresh:
            archive.update()
        owners = {
            name: f"{place_of('filesystems', filesystem.name)}: packages: "
            for filesystem in filesystems
            for name in filesystem.packages
        }
        with _naming_file(definition.suite, filesystems):
            archive.require(asked["packages"], owners)
        try:
            root = archive.resolve(asked["packages"], essential=True)
        except HostError as error:
            raise _together(error, definition.suite, filesystems) from error
        return RootPackages(root=root, busybox=archive.package("busybox-static"))

    return cached_resolution(store, asked, RootPackages, ask, refresh=refresh)


def _together(error: HostError, suite: str, filesystems: Sequence[Filesystem]) -> AgelabError:
    """Return what to say where apt finds no way to install packages that are all there."""
    names = [filesystem.name for filesystem in filesystems if filesystem.packages]
    if len(names) < 2:
        return error
    return InputError(
        f"the packages of {', '.join(names)} cannot be in one root of Debian {suite}: {error}",
        hint="some exclude others, as those of zfs and openzfs do: run them apart (FS=, --filesystem)",
    )


@contextmanager
def _naming_file(suite: str, filesystems: Sequence[Filesystem]) -> Iterator[None]:
    """Put before a suite that cannot be reached the filesystem's file that asks for it, if one does."""
    try:
        yield
    except HostError as error:
        for asking in (filesystem.name for filesystem in filesystems if filesystem.suite == suite):
            raise HostError(f"{place_of('filesystems', asking)}: suite: {error}", error.hint) from error
        raise


def question(definition: RootDefinition, filesystems: Sequence[Filesystem]) -> dict[str, Any]:
    """Return the question under which the resolution of the root's packages is cached."""
    names = {*definition.packages, *(name for filesystem in filesystems for name in filesystem.packages)}
    also_from = {"also_from": definition.also_from} if definition.also_from else {}
    return {"guest": definition.suite, "packages": sorted(names), **also_from}


def obtain(definition: RootDefinition, chosen: RootPackages, store: Store, progress: Notify) -> Artefact:
    """Return the root of these packages, built if the store does not have it."""

    def build(directory: Path) -> None:
        progress(f"downloading {len(chosen.root)} packages for the guest")
        debs = Archive(store, definition.suite, definition.also_from).download(chosen.root)
        progress("building the guest's root")
        work = directory / "work"
        _tree(definition, chosen.root, debs, work)
        _pack(work / "root.tar", directory / ROOT_FILE)
        process.run(["rm", "-rf", str(work)])

    return store.obtain(KIND, _inputs(definition, chosen), build, shared=True)


@dataclass(frozen=True)
class RootIdentity:
    """What an image's key has of its root."""

    key: str
    content: str


def is_known(definition: RootDefinition, chosen: RootPackages, store: Store) -> bool:
    """Return whether the content of the root of these packages is known: then it need not be made for an identity."""
    return store.identity(KIND, _inputs(definition, chosen)) is not None


def identity(definition: RootDefinition, chosen: RootPackages, store: Store, progress: Notify) -> RootIdentity:
    """Return the identity of the root of these packages, which is made only where nobody knows its content."""
    inputs = _inputs(definition, chosen)
    known = store.identity(KIND, inputs) or obtain(definition, chosen, store, progress).manifest
    return RootIdentity(artefact_key(KIND, inputs), known.content)


def _inputs(definition: RootDefinition, chosen: RootPackages) -> dict[str, Any]:
    return {
        # Of a suite's main packages alone a root has the key that it had before there were any.
        "definition": definition.model_dump(mode="json", exclude=None if definition.also_from else {"also_from"}),
        "packages": [[package.name, package.version, package.sha256] for package in chosen.root],
        "recipe": RECIPE,
    }


def _tree(definition: RootDefinition, chosen: Sequence[Package], debs: Sequence[Path], work: Path) -> None:
    (work / "tmp").mkdir(parents=True)
    # apt makes one name, of 255 bytes at most, of a repository's whole path: too few for a path in the store.
    with atomic.temp_dir(temp_parent()) as repository:
        argv = [
            *("--variant=essential", "--format=tar", "--skip=cleanup"),
            # /bin, /lib and so on are links from the start, so that no package has to convert them.
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
            "--include=" + ",".join(package.name for package in chosen),
            '--aptopt=APT::Sandbox::User "root"',
            *(f"--dpkgopt=path-exclude={path}" for path in definition.exclude),
            *(f"--customize-hook={hook}" for hook in _hooks(definition, work)),
            *("", str(work / "root.tar"), local_repository(repository, debs)),
        ]
        _mmdebstrap(argv, work, in_memory=_fits_in_memory(chosen))
    installed = set(fileio.read_text(work / "installed").split("\n")) - {""}
    if installed != (asked := {f"{package.name} {package.version}" for package in chosen}):
        raise AgelabError(
            f"the guest's root does not contain the packages asked for; they differ in {sorted(installed ^ asked)}"
        )
    if lacking := fileio.read_text(work / "lacking").splitlines():
        raise AgelabError(
            f"programs of the guest's root lack libraries: {'; '.join(lacking[:5])}",
            hint=f"{DEFINITION.name} removes them: let it remove the programs as well, or keep both",
        )


def _fits_in_memory(packages: Sequence[Package]) -> bool:
    """Return whether a tree of these packages may lie in memory: half of a tmpfs, which has half of the machine's."""
    room = min(host.memory_available(), host.memory("MemTotal") // 2) // 2
    return sum(package.size for package in packages) * UNPACKED < room and not host.memory_is_limited()


def _mmdebstrap(arguments: Sequence[str], work: Path, *, in_memory: bool = False) -> None:
    """Run mmdebstrap with its files in ``work``, and its tree in memory. Raises HostError when it fails.

    On a disk dpkg waits for each package's files to be written, for twice as long as it works.
    """
    try:
        process.run(
            # If killed, mmdebstrap would leave the host's /sys mounted in its tree, and apt running.
            ["mmdebstrap", *arguments],
            env={**_EPOCH, "TMPDIR": str(work / "tmp")},
            log=work / "mmdebstrap.log",
            grace=20,
            isolated=True,
            in_memory=work / "tmp" if in_memory else None,
        )
    except process.ProcessFailed as error:
        lines = [line[:200] for line in error.stderr.strip().splitlines()[-15:]]
        tail = full_disk_line(error.stderr) or "\n".join(lines)
        raise HostError(
            f"mmdebstrap could not build the guest's root (exit {error.returncode}):\n{tail}",
            hint="agelab doctor tries what it needs, and says what is missing",
        ) from error


def prove_mmdebstrap(work: Path) -> None:
    """Have mmdebstrap set up an empty root in ``work``, with its mounts. Raises HostError with its last words."""
    (work / "tmp").mkdir()
    made = 'mkdir -p "$1/dev/pts" "$1/dev/shm" "$1/proc" "$1/sys"'
    hooks = [f"--setup-hook={made}", '--customize-hook=test -e "$1/proc/self"']
    source = "deb [trusted=yes] copy:/nowhere ./"
    words = ["--variant=custom", "--format=null", "--skip=update", *hooks, definition().suite, "-", source]
    _mmdebstrap(words, work)


def _hooks(definition: RootDefinition, work: Path) -> list[str]:
    """Return the shell commands that finish the tree, whose root is ``$1``."""
    installed = shlex.quote(str(work / "installed"))
    query = "dpkg-query --admindir=\"$1/var/lib/dpkg\" --show --showformat='${Package} ${Version}\\n'"
    # File times in the root are clamped, so a .pyc that is checked by its source's time would never be used;
    # a fixed hash seed fixes the order of sets in it.
    compiled = "python3 -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.*"
    lacking = shlex.quote(str(work / "lacking"))
    return [
        f"{query} > {installed}",
        'cd "$1" && rm -rf ' + " ".join([*_REMOVED, *(path.lstrip("/") for path in definition.remove)]),
        'find "$1/usr" -name __pycache__ -prune -exec rm -r {} +',
        'env -i PATH="$PATH" PYTHONHASHSEED=0 chroot "$1" sh -c ' + shlex.quote(compiled),
        f'chroot "$1" sh -c {shlex.quote(_LACKING)} > {lacking}',
        'cd "$1" && find ' + " ".join(_EMPTIED) + " -mindepth 1 -delete",
        'cd "$1" && echo guest > etc/hostname && printf "127.0.0.1 localhost guest\\n" > etc/hosts',
    ]


def _pack(tar: Path, root: Path) -> None:
    # Uncompressed: decompression would count in the guest's clock.
    flags = ["-reproducible", "-noI", "-noD", "-noF", "-noX", "-b", "131072", "-no-progress", "-quiet"]
    # The tar has no entry for the top, which belongs to whoever packs it (sqfstar 4.5 ignores -root-uid): to root.
    process.run(["sqfstar", *flags, str(root)], stdin=tar, env=_EPOCH, isolated=True)
    align(root)


def definition() -> RootDefinition:
    """Read images/guest.toml. Raises InputError that lists every error in the file."""
    return read(DEFINITION, RootDefinition)
