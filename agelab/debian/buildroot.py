"""Build C with one Debian suite's own compiler: the same bytes on every host.

The packages are unpacked, not installed, into a build root that the store keeps as a tar. Programs run in it under
bubblewrap: no network, no root needed, nothing of the host, the same paths each time. The compiler for the guest's own
programs and for QEMU's libraries is that of the guest's suite.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agelab.base import atomic, confine, process
from agelab.base.errors import AgelabError, HostError, Notify, is_disk_full
from agelab.base.types import Frozen
from agelab.debian import Archive, Package, PackagesVanished, cached_resolution, unpack
from agelab.store.artefacts import Artefact, Store, artefact_key, damaged

Packages = TypeVar("Packages")
KIND = "buildroot"
ROOT_TAR = "root.tar"

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_MOUNT_POINTS = ("build", "dev", "proc", "tmp")
_EPOCH = "1577836800"
_ERROR = re.compile(r"\b(error|ERROR|undefined reference)\b|\*\*\*")
# Failures of the host, not of what is built: a full disk, too little memory.
_HOST_SHORTAGE = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|virtual memory exhausted"
    r"|signal terminated program|terminated with signal 9\b|\*\*\* \[.*\] (Error 137|Killed)\b"
)


class BuildFailed(AgelabError):
    """A compiler or make failed: the given sources cannot be built."""


class BuildRoot(Frozen):
    """The packages of a build root."""

    suite: str
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Purpose:
    """The product of a build root, and the files of its packages that it does not need."""

    product: str
    """Name of the product for messages: "modules for 6.1.0-1-amd64"."""
    unused: tuple[str, ...]
    """Patterns of paths below /usr to remove."""
    inputs: Mapping[str, Any]
    """Additional inputs of the build root's key: a number to raise whenever the same packages make another root."""


def resolve(
    store: Store,
    suite: str,
    question: Mapping[str, Any],
    choose: Callable[[Archive], Iterable[Package]],
    *,
    refresh: bool,
) -> BuildRoot:
    """Return the packages of a suite that ``choose`` names, from the cache unless ``refresh``."""

    def ask() -> BuildRoot:
        archive = Archive(store, suite)
        archive.update(refresh=refresh)
        return BuildRoot(suite=suite, packages=tuple(choose(archive)))

    return cached_resolution(store, question, BuildRoot, ask, refresh=refresh)


def with_packages(resolve: Callable[[bool], Packages], make: Callable[[Packages], Artefact]) -> Artefact:
    """Return what is made with the packages that ``resolve`` names.

    ``resolve`` is called with False, and with True to refresh when the packages have left the mirror since.
    """
    try:
        return make(resolve(False))
    except PackagesVanished:
        return make(resolve(True))


def key(chosen: BuildRoot, purpose: Purpose) -> str:
    """Return the key of the build root of these packages, which need not be there."""
    return artefact_key(KIND, _inputs(chosen, purpose))


def of_packages(
    chosen: BuildRoot, purpose: Purpose, store: Store, progress: Notify, *, verify: bool = True
) -> Artefact:
    """Return the build root of these packages, built if the store does not have it.

    Without ``verify`` the root is not read: for callers that need only its key. Raises PackagesVanished, and HostError
    when the packages cannot be fetched.
    """

    def build(directory: Path) -> None:
        progress(f"downloading {len(chosen.packages)} packages to build {purpose.product} with")
        debs = Archive(store, chosen.suite).download(chosen.packages)
        progress(f"unpacking the compiler of {purpose.product}")
        tree = directory / "tree"
        for deb in debs:
            unpack(deb, tree)
        finish_root(tree, purpose.unused)
        write_tar(tree, directory / ROOT_TAR)
        remove_path(tree)

    return store.obtain(KIND, _inputs(chosen, purpose), build, verify=verify)


def _inputs(chosen: BuildRoot, purpose: Purpose) -> dict[str, Any]:
    return {
        "packages": [[package.name, package.version, package.sha256] for package in chosen.packages],
        **purpose.inputs,
    }


def finish_root(tree: Path, unused: Sequence[str]) -> None:
    """Turn unpacked packages into a root: merge /bin and /lib into /usr, link awk, add mount points, remove unused."""
    usr = tree / "usr"
    usr.mkdir(exist_ok=True)
    for name in _MERGED:
        top = tree / name
        if top.is_symlink():
            top.unlink()
        elif top.is_dir():
            process.run(["cp", "-a", "--link", "-T", str(top), str(usr / name)])
            remove_path(top)
        if (usr / name).is_dir():
            top.symlink_to(f"usr/{name}")
    awk = usr / "bin" / "awk"
    if awk.with_name("mawk").exists() and not awk.is_symlink():
        awk.symlink_to("mawk")
    for pattern in unused:
        for path in usr.glob(pattern):
            remove_path(path)
    kept = {"usr", *_MERGED}
    for path in tree.iterdir():
        if path.name not in kept:
            remove_path(path)
    for name in _MOUNT_POINTS:
        (tree / name).mkdir()


def remove_path(path: Path) -> None:
    """Remove a file, a link or a whole directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_tar(tree: Path, tar: Path) -> None:
    """Write a tar of a tree: the same bytes whoever unpacked the tree and under whatever umask."""
    same = ["--sort=name", "--format=gnu", f"--mtime=@{_EPOCH}", "--owner=0", "--group=0", "--numeric-owner"]
    modes = "--mode=a-s,u+w,a+rX,go-w"
    process.run(["tar", "-C", str(tree), *same, modes, "-cf", str(tar), "."])


def prove_bubblewrap() -> None:
    """Run a program in bubblewrap as compilers are, and as unpackers are. Raises HostError when that cannot be done."""
    whole = ("--ro-bind", "/", "/")
    shown: dict[str, Path] = {}
    argv = confine.command(["true"], system=whole, read_only=shown, writable=shown, environment={}, directory="/")
    process.run(argv)
    confine.run(["true"])


@dataclass(frozen=True)
class Workshop:
    """An unpacked build root, and the directories that programs in it can use."""

    root: Path
    build: Path
    """Mounted as /build, the working directory of programs."""
    product: str
    """Name of the product for errors: "the drive's module"."""
    read_only: Mapping[str, Path] = field(default_factory=dict)
    """More directories, mounted read-only, by their names in /tmp."""
    writable: Mapping[str, Path] = field(default_factory=dict)
    """More directories, mounted writable, by their names in /tmp."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """The output so far of the program that runs, both streams."""
        return self.build.with_name("log")

    def give(self, name: str, text: str) -> None:
        """Write a file at the top of /build, where what ran before may have left a link of that name."""
        path = self.build / name
        if os.path.lexists(path):
            remove_path(path)
        path.write_text(text, encoding="utf-8")

    def made(self, name: str, below: Path | None = None) -> Path:
        """Return a file that a program made in /build (or ``below``, a directory of ``writable``).

        Raises BuildFailed for anything but a regular file that is really there: what is built may be hostile, and
        leave a link to a file of the host.
        """
        top = below or self.build
        path = top / name
        if path.resolve() != top.resolve() / name or not path.is_file():
            raise BuildFailed(f"{self.product} does not build: it leaves {name!r} as no file, or as a link")
        return path

    def run(self, argv: Sequence[str]) -> str:
        """Run a program in the build root and return its output, both streams.

        Raises HostError when bubblewrap cannot run here or the host is short of something, BuildFailed when the
        program fails.
        """
        log = self.log
        confined = confine.command(
            argv,
            system=("--ro-bind", str(self.root), "/"),
            read_only={f"/tmp/{name}": path for name, path in self.read_only.items()},
            writable={"/build": self.build, **{f"/tmp/{name}": path for name, path in self.writable.items()}},
            environment={"PATH": "/usr/bin:/usr/sbin", "LC_ALL": "C", **self.environment},
            directory="/build",
        )
        try:
            return process.run(confined, log=log).stderr
        except process.ProcessFailed as error:
            confine.raise_unconfined(error, "a build")
            lines = error.stderr.strip().splitlines()
            short = next((line.strip() for line in lines if _HOST_SHORTAGE.search(line)), None)
            if short is None and is_disk_full(self.build):  # strip does not say why it fails
                short = os.strerror(errno.ENOSPC)
            if short:
                raise HostError(
                    f"{self.product} cannot be built on this host as it is: {short[:200]}",
                    hint="free some space or memory; AGELAB_HOME=<directory> moves the store",
                ) from error
            # The lines that name errors, the first first: parallel jobs go on after it.
            named = [line for line in lines if _ERROR.search(line)][:12]
            tail = "\n".join(line[:200] for line in named or lines[-15:])
            raise BuildFailed(f"{self.product} does not build ({argv[0]}, exit {error.returncode}):\n{tail}") from error


@contextmanager
def open_workshop(tar: Path, files: Sequence[Path], directory: Path, what: str) -> Iterator[Workshop]:
    """Unpack the build root of ``tar`` below ``directory`` for the body, with copies of these files in /build."""
    work = directory / "work"
    build = work / "build"
    build.mkdir(parents=True)
    for path in files:
        shutil.copyfile(path, build / path.name)
    try:
        yield Workshop(_unpack(tar, work / "root"), build, what)
    finally:
        remove_path(work)


def unpacked_root(made: Artefact, store: Store) -> Path:
    """Return a build root unpacked in the store's cache, where it stays for later builds."""
    root = store.cache("buildroots") / made.key
    with store.lock(f"buildroots-{made.key}"):
        if not root.exists():
            if wrong := made.damage():
                raise damaged(f"the store's buildroot {made.key[:12]}", made.directory, ", ".join(wrong))
            with atomic.locked_directory(root.with_suffix(atomic.SUFFIX)) as partial:
                _unpack(made / ROOT_TAR, partial)
                os.sync()  # or, after a power cut, an empty compiler would fail every build
                partial.rename(root)
    return root


def _unpack(tar: Path, root: Path) -> Path:
    root.mkdir(exist_ok=True)
    process.run(["tar", "-C", str(root), "-xf", str(tar), "--no-same-owner"])
    return root


COMPILER_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_COMPILER = ("gcc", "libc6-dev")
# Dependencies of libc and of the compiler (sanitizers) that these programs do not use.
_NOT_NEEDED = re.compile(
    r"libc-dev-bin|libcom-err2|libcrypt.*|libgssapi.*|libk5crypto3|libkeyutils1|libkrb5.*|libnsl.*|libssl3.*"
    r"|libtirpc.*|rpcsvc-proto|openssl-provider-legacy"
    r"|lib(asan|atomic|cc1-|gomp|gprofng|hwasan|itm|lsan|quadmath|tsan|ubsan)\d*"
)
# Removed from the unpacked tree; relative to /usr.
_UNUSED = (
    *("share", "games", "local", "lib/*/gconv", "lib/gcc/*/*/plugin", "lib/gcc/*/*/*san*"),
    *("lib/gcc/*/*/lto1", "libexec/gcc/*/*/lto1", "bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*"),
    *("bin/*-dwp", "bin/dwp", "bin/*gold", "bin/*elfedit"),
)


def compiler_purpose(product: str) -> Purpose:
    """Return the purpose of the build root for a product that is named in messages: one root serves all products."""
    return Purpose(product, _UNUSED, {"programs": COMPILER_RECIPE})


def resolve_compiler(store: Store, suite: str, *, refresh: bool = False) -> BuildRoot:
    """Resolve the packages of a suite's compiler, from the cache unless ``refresh``."""

    def choose(archive: Archive) -> list[Package]:
        return [package for package in archive.resolve(_COMPILER) if not _NOT_NEEDED.fullmatch(package.name)]

    return resolve(store, suite, {"buildroot": suite, "programs": _COMPILER}, choose, refresh=refresh)
