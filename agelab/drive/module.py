"""The modelled drive's kernel module, built out of tree against the headers of the kernel that will load it.

Debian's headers name the compiler that the kernel was built with. Both come from the kernel's own suite and are
unpacked, not installed, into a build root; make runs in it under bubblewrap, without network, as any user, and
under the same paths each time, so that the same sources give the same module.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agelab import process
from agelab.debian import Archive, Gone, Package, dependencies, remember
from agelab.errors import AgelabError, HostError, InputError
from agelab.kernel import Kernel
from agelab.model.base import Frozen
from agelab.store import Artefact, Store, file_hash

SOURCES = Path(__file__).resolve().parents[2] / "harness" / "drive"

RECIPE = 1
"""Raised whenever the same sources and build root would make another module."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

FILE = "root.tar"

# What kbuild runs beside the compiler and its own programs.
_TOOLS = ("bash", "coreutils", "dash", "diffutils", "findutils", "grep", "make", "mawk", "sed")
# Dependencies of a compiler that makes programs, and of packages that are set up: here neither happens.
_NOT_NEEDED = re.compile(
    r"base-files|debconf|debianutils|dpkg|init-system-helpers|openssl-provider-legacy|perl-base|tar"
    r"|lib(asan|atomic|cc1-|gomp|gprofng|hwasan|itm|lsan|quadmath|tsan|ubsan)\d*"
)
# Of a kernel's headers: the image that they are of, and what sets it up.
_IMAGE = re.compile(r"linux-(base|image)\b.*")
# Once in the tree, relative to /usr.
_REMOVED = (
    *("share", "games", "include", "local"),
    *("lib/gcc/*/*/lto1", "lib/gcc/*/*/lto-wrapper", "libexec/gcc/*/*/lto1", "libexec/gcc/*/*/lto-wrapper"),
    *("lib/gcc/*/*/*.a", "lib/gcc/*/*/*.so", "lib/gcc/*/*/plugin"),
    *("lib/*/gconv", "src/*/include/dt-bindings", "src/*/arch/[!x]*", "src/*/arch/xtensa"),
    # Thousands of empty files that tell make which of the kernel's own objects are out of date.
    "src/*/include/config/[A-Z]*",
    *("bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*", "bin/*-dwp", "bin/dwp", "bin/*gold", "bin/*elfedit"),
)
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_MOUNTED = ("build", "dev", "proc", "tmp")
_EPOCH = "1577836800"
_WARNING = re.compile(r"\bwarning:", re.IGNORECASE)


class BuildRoot(Frozen):
    """What a module is built in, exactly."""

    suite: str
    packages: tuple[Package, ...]


def _quiet(line: str) -> None:
    """Say nothing."""


def obtain(
    kernel: Kernel, store: Store, progress: Callable[[str], None] = _quiet, sources: Path = SOURCES
) -> Path:
    """The module of ``sources`` for a kernel, built if the store does not have it.

    Raises InputError for a kernel of no Debian suite, HostError when its headers cannot be had or nothing can
    be confined here, AgelabError when the sources do not compile or compile with a warning.
    """
    files = source_files(sources)
    root = _root(kernel, store, progress)
    inputs = {
        "sources": {path.name: file_hash(path) for path in files},
        "release": kernel.release,
        "version": kernel.version,
        "root": root.key,
        "recipe": RECIPE,
    }

    def build(directory: Path) -> None:
        progress(f"building the drive's module for {kernel.release}")
        _build(files, kernel.release, root / FILE, directory)

    made = store.obtain("drive", inputs, build)
    return next(made.directory.glob("*.ko"))


def source_files(sources: Path = SOURCES) -> list[Path]:
    """What the module is made of, and nothing beside it."""
    found = sorted(path for path in sources.glob("*") if path.name == "Kbuild" or path.suffix in (".c", ".h"))
    if not any(path.name == "Kbuild" for path in found):
        raise AgelabError(f"{sources} holds no kernel module: it has no Kbuild")
    return found


def _root(kernel: Kernel, store: Store, progress: Callable[[str], None]) -> Artefact:
    """The build root of a kernel.

    What was resolved for it may have left the mirror before it was fetched; the kernel's own version has not
    then, so the rest is resolved again.
    """
    try:
        return _unpacked(packages(kernel, store), kernel.release, store, progress)
    except Gone:
        return _unpacked(packages(kernel, store, refresh=True), kernel.release, store, progress)


def packages(kernel: Kernel, store: Store, *, refresh: bool = False) -> BuildRoot:
    """The packages that a kernel's modules are built with, as they were resolved first or, on ``refresh``, now."""
    if not kernel.suite:
        raise InputError(
            f"kernel {kernel.spec!r} is of no Debian suite: there are no headers to build the drive's module with",
            hint="choose a debian: kernel, or drives that need no module (model:none)",
        )

    def ask() -> BuildRoot:
        archive = Archive(store, kernel.suite)
        archive.update(refresh=refresh)
        name = f"linux-headers-{kernel.release}"
        try:
            headers = archive.package(name, kernel.version)
        except HostError as error:
            raise HostError(
                f"Debian {kernel.suite} has no {name} of version {kernel.version} (any more), which the drive's "
                "module for that kernel is built with",
                hint="choose a kernel that the mirror has: agelab kernel list --refresh; "
                f"or ask what {kernel.spec} is now: agelab kernel fetch {kernel.spec} --refresh",
            ) from error
        found = archive.resolve([*needed(archive.depends(name, kernel.version)), *_TOOLS])
        kept = {headers, *(package for package in found if not _NOT_NEEDED.fullmatch(package.name))}
        return BuildRoot(suite=kernel.suite, packages=tuple(sorted(kept, key=lambda package: package.name)))

    question = {"buildroot": kernel.suite, "release": kernel.release, "version": kernel.version}
    return remember(store, {**question, "tools": _TOOLS}, BuildRoot, ask, refresh=refresh)


def needed(depends: str) -> list[str]:
    """The names (``name=version`` where it is exact) in a headers package's Depends that a build needs."""
    return [
        f"{found.name}={found.version}" if found.version else found.name
        for found in dependencies(depends)
        if not _IMAGE.fullmatch(found.name)
    ]


def _unpacked(chosen: BuildRoot, release: str, store: Store, progress: Callable[[str], None]) -> Artefact:
    inputs = {
        "packages": [[package.name, package.version, package.sha256] for package in chosen.packages],
        "recipe": ROOT_RECIPE,
    }

    def build(directory: Path) -> None:
        progress(f"downloading {len(chosen.packages)} packages to build modules for {release} with")
        debs = Archive(store, chosen.suite).download(chosen.packages)
        progress(f"unpacking the compiler of {release}")
        tree = directory / "tree"
        for deb in debs:
            process.run(["dpkg-deb", "-x", str(deb), str(tree)])
        tidy(tree)
        _pack(tree, directory / FILE)
        _remove(tree)

    return store.obtain("buildroot", inputs, build)


def tidy(tree: Path) -> None:
    """Make unpacked packages a root that programs run in: one /usr, an awk, places to mount on, nothing unused."""
    usr = tree / "usr"
    usr.mkdir(exist_ok=True)
    for name in _LINKED:
        top = tree / name
        if top.is_symlink():
            top.unlink()
        elif top.is_dir():
            process.run(["cp", "-a", "--link", "-T", str(top), str(usr / name)])
            _remove(top)
        if (usr / name).is_dir():
            top.symlink_to(f"usr/{name}")
    awk = usr / "bin" / "awk"
    if not awk.is_symlink():
        awk.symlink_to("mawk")
    for pattern in _REMOVED:
        for path in usr.glob(pattern):
            _remove(path)
    kept = {"usr", *_LINKED}
    for path in tree.iterdir():
        if path.name not in kept:
            _remove(path)
    for name in _MOUNTED:
        (tree / name).mkdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _pack(tree: Path, tar: Path) -> None:
    # What was unpacked as a user, or under another umask, is the same.
    same = ["--sort=name", "--format=gnu", f"--mtime=@{_EPOCH}", "--owner=0", "--group=0", "--numeric-owner"]
    modes = "--mode=a-s,u+w,a+rX,go-w"
    process.run(["tar", "-C", str(tree), *same, modes, "-cf", str(tar), "."])


def _build(files: Sequence[Path], release: str, tar: Path, directory: Path) -> None:
    """Fill ``directory`` with the one module that these files make."""
    work = directory / "work"
    root, build = work / "root", work / "build"
    for made in (root, build):
        made.mkdir(parents=True)
    process.run(["tar", "-C", str(root), "-xf", str(tar), "--no-same-owner"])
    for path in files:
        shutil.copyfile(path, build / path.name)
    said = _confined(root, build, ["make", "-C", f"/usr/src/linux-headers-{release}", "M=/build", "modules"])
    warnings = [line for line in said.splitlines() if _WARNING.search(line)]
    if warnings:
        raise AgelabError(
            f"the drive's module compiles with warnings against {release}:\n" + "\n".join(warnings[:12])
        )
    modules = list(build.glob("*.ko"))
    if len(modules) != 1:
        raise AgelabError(f"{files[0].parent} makes {len(modules)} modules; it must be one")
    # Debugging information is ten times the code, and all of it is read into a guest's memory.
    _confined(root, build, ["x86_64-linux-gnu-strip", "--strip-debug", f"/build/{modules[0].name}"])
    shutil.move(modules[0], directory / modules[0].name)
    _remove(work)


def _confined(root: Path, build: Path, argv: Sequence[str]) -> str:
    """What a program says that runs in ``root`` and may write to ``build``, there /build, alone."""
    log = build.with_name("log")
    confine = [
        *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", str(root), "/"),
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", str(build), "/build"),
        *("--clearenv", "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "LC_ALL", "C"),
        *("--chdir", "/build"),
    ]
    try:
        return process.run([*confine, *argv], log=log).stderr
    except process.ProcessFailed as error:
        lines = error.stderr.strip().splitlines()
        if lines and lines[-1].startswith("bwrap: ") and "execvp" not in lines[-1]:
            raise HostError(
                f"bwrap cannot confine a build here: {lines[-1]}",
                hint="it needs root, or unprivileged user namespaces",
            ) from error
        tail = "\n".join(line[:200] for line in lines[-15:])
        raise AgelabError(
            f"the drive's module does not build ({argv[0]}, exit {error.returncode}):\n{tail}"
        ) from error
