"""Build the modelled drive's kernel module, out of tree, against the headers of the kernel that will load it.

Debian's headers name the compiler that the kernel was built with. Both come from the kernel's own suite, into a
build root (agelab.debian.buildroot), so that the same sources give the same module. For a kernel that was built here
the module is built with that kernel's own objects.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agelab.base import places
from agelab.base.errors import AgelabError, HostError, InputError, Notify, silent
from agelab.debian import Archive, Package, buildroot, dependencies
from agelab.debian.buildroot import BuildFailed, BuildRoot, Purpose, Workshop
from agelab.kernel import Kernel, NamedKernel, debian_kernel
from agelab.kernel.build import built_objects, make_command
from agelab.kernel.build_inputs import BuildInputs
from agelab.store.artefacts import Artefact, Store, file_hash

PRODUCT = "the drive's module"
SOURCES = places.HARNESS / "drive"

RECIPE = 1
"""Raised whenever the same sources and build root would make another module."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

# Programs that kbuild runs, besides its own and the compiler, which in Debian 13's backports comes without `as`.
_TOOLS = ("bash", "binutils", "coreutils", "dash", "diffutils", "findutils", "grep", "make", "mawk", "sed")
# Dependencies for linking programs and for setting up packages: neither is done here.
_NOT_NEEDED = re.compile(
    r"base-files|debconf|debianutils|dpkg|init-system-helpers|openssl-provider-legacy|perl-base|tar"
    r"|lib(asan|atomic|cc1-|gomp|gprofng|hwasan|itm|lsan|quadmath|tsan|ubsan)\d*"
)
# Dependencies of a headers package on the kernel's image.
_IMAGE = re.compile(r"linux-(base|image)\b.*")
# Removed from the unpacked tree; relative to /usr.
_UNUSED = (
    *("share", "games", "include", "local"),
    *("lib/gcc/*/*/lto1", "lib/gcc/*/*/lto-wrapper", "libexec/gcc/*/*/lto1", "libexec/gcc/*/*/lto-wrapper"),
    *("lib/gcc/*/*/*.a", "lib/gcc/*/*/*.so", "lib/gcc/*/*/plugin"),
    *("lib/*/gconv", "src/*/include/dt-bindings", "src/*/arch/[!x]*", "src/*/arch/xtensa"),
    # Thousands of empty files that make needs only for the kernel's own objects.
    "src/*/include/config/[A-Z]*",
    *("bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*", "bin/*-dwp", "bin/dwp", "bin/*gold", "bin/*elfedit"),
)
_WARNING = re.compile(r"\bwarning:", re.IGNORECASE)


class NoHeaders(InputError):
    """No suite has the headers of exactly that kernel: it can only use drives that need no module."""


def obtain(kernel: Kernel, store: Store, progress: Notify = silent, sources: Path = SOURCES) -> Path:
    """Return the module of ``sources`` for a kernel, built if the store does not have it.

    Raises NoHeaders for a kernel whose headers Debian does not have, HostError when bubblewrap cannot run here,
    BuildFailed when the sources do not compile without warnings.
    """
    files = source_files(sources)
    made = {"sources": {path.name: file_hash(path) for path in files}, "recipe": RECIPE}
    if kernel.build_inputs:
        return _module_file(_build_beside_kernel(kernel, kernel.build_inputs, files, made, store, progress))
    purpose = Purpose(f"modules for {kernel.release}", _UNUSED, {"recipe": ROOT_RECIPE})

    def chosen(refresh: bool) -> BuildRoot:
        return resolve_packages(kernel, store, refresh=refresh, progress=progress)

    def built_with(packages: BuildRoot) -> Artefact:
        root = buildroot.key(packages, purpose)
        inputs = {**made, "release": kernel.release, "version": kernel.version, "root": root}

        def build(directory: Path) -> None:
            tar = buildroot.of_packages(packages, purpose, store, progress) / buildroot.ROOT_TAR
            progress(f"building the drive's module for {kernel.release}")
            _build_with_headers(files, kernel.release, tar, directory)

        return store.obtain("drive", inputs, build, shared=kernel.kind == "debian")

    return _module_file(buildroot.with_packages(chosen, built_with))


def _build_beside_kernel(
    kernel: Kernel,
    building: BuildInputs,
    files: Sequence[Path],
    made: Mapping[str, object],
    store: Store,
    progress: Notify,
) -> Artefact:
    """Build the module for a kernel that was built here, with that kernel's objects."""

    def build(directory: Path) -> None:
        with built_objects(building, store, progress) as kernel_shop:
            progress(f"building the drive's module for {kernel.release}")
            work = directory / "work"
            work.mkdir()
            for path in files:
                shutil.copyfile(path, work / path.name)
            shop = replace(kernel_shop, product=PRODUCT, writable={**kernel_shop.writable, "module": work})
            output = shop.run(make_command("M=/tmp/module", "modules"))
            _strip_and_move(shop, work, "/tmp/module", kernel.release, output, directory)
            buildroot.remove_path(work)

    return store.obtain("drive", {**made, "kernel": kernel.key}, build)


def _module_file(artefact: Artefact) -> Path:
    return next(artefact.directory.glob("*.ko"))


def source_files(sources: Path = SOURCES) -> list[Path]:
    """List the module's source files, without anything else in the directory. Raises AgelabError without a Kbuild."""
    files = sorted(path for path in sources.glob("*") if path.name == "Kbuild" or path.suffix in (".c", ".h"))
    if not any(path.name == "Kbuild" for path in files):
        raise AgelabError(f"{sources} holds no kernel module: it has no Kbuild")
    return files


def resolve_packages(
    kernel: NamedKernel,
    store: Store,
    *,
    refresh: bool = False,
    progress: Notify = silent,
    more: Sequence[str] = (),
    product: str = PRODUCT,
) -> BuildRoot:
    """Resolve the packages that a kernel's modules are built with, and ``more``, from the cache unless ``refresh``.

    Raises NoHeaders, which says what of that kernel cannot be built: the ``product``.
    """
    suite = _suite_of_headers(kernel, store, progress, product)

    def choose(archive: Archive) -> list[Package]:
        name = f"linux-headers-{kernel.release}"
        try:
            headers = archive.package(name, kernel.version)
        except HostError as error:
            raise NoHeaders(
                f"Debian {suite} has no {name} of version {kernel.version} (any more), which {product} "
                "for that kernel is built with",
                hint="choose a kernel that the mirror has: agelab list kernels --refresh; "
                f"or ask what {kernel.spec} is now: agelab kernel fetch {kernel.spec} --refresh",
            ) from error
        resolved = archive.resolve([*build_dependencies(archive.depends(name, kernel.version)), *_TOOLS, *more])
        kept = {headers, *(package for package in resolved if not _NOT_NEEDED.fullmatch(package.name))}
        return sorted(kept, key=lambda package: package.name)

    question = {
        "buildroot": suite,
        "release": kernel.release,
        "version": kernel.version,
        "tools": (*_TOOLS, *more),
    }
    return buildroot.resolve(store, suite, question, choose, refresh=refresh)


def _suite_of_headers(kernel: NamedKernel, store: Store, progress: Notify, product: str) -> str:
    """Return the suite of a kernel's headers: its own or, for .deb files, the one with headers of that kernel."""
    suite = kernel.suite
    if not suite and kernel.kind == "deb":
        suite = debian_kernel.suite_of_headers(kernel.release, kernel.version, store, progress)
    if not suite:
        raise NoHeaders(
            f"kernel {kernel.spec!r} is in no Debian suite: there are no headers of {kernel.release} to build "
            f"{product} with",
            hint="choose a debian: kernel, or drives that need no module: --disks model:none"
            if product == PRODUCT
            else "choose a debian: kernel",
        )
    return suite


def build_dependencies(depends: str) -> list[str]:
    """List the packages in a headers package's Depends that a build needs, as ``name`` or ``name=version``."""
    return [
        f"{dependency.name}={dependency.version}" if dependency.version else dependency.name
        for dependency in dependencies(depends)
        if not _IMAGE.fullmatch(dependency.name)
    ]


def _build_with_headers(files: Sequence[Path], release: str, tar: Path, directory: Path) -> None:
    """Build the module with a kernel's headers, into ``directory``."""
    with buildroot.open_workshop(tar, files, directory, PRODUCT) as shop:
        output = shop.run(["make", "-C", f"/usr/src/linux-headers-{release}", "M=/build", "modules"])
        _strip_and_move(shop, shop.build, "/build", release, output, directory)


def _strip_and_move(shop: Workshop, work: Path, mounted_at: str, release: str, output: str, directory: Path) -> None:
    """Strip the module that make built in ``work`` and move it into ``directory``.

    ``mounted_at`` is the path of ``work`` in the build root, ``output`` what make printed. Raises BuildFailed for
    warnings.
    """
    warnings = [line for line in output.splitlines() if _WARNING.search(line)]
    if warnings:
        raise BuildFailed(f"{PRODUCT} compiles with warnings against {release}:\n" + "\n".join(warnings[:12]))
    modules = list(work.glob("*.ko"))
    if len(modules) != 1:
        raise AgelabError(f"the sources of {PRODUCT} make {len(modules)} modules; it must be one")
    # Debugging information is ten times the size of the code, and would be read into the guest's memory.
    shop.run(["x86_64-linux-gnu-strip", "--strip-debug", f"{mounted_at}/{modules[0].name}"])
    shutil.move(shop.made(modules[0].name, below=work), directory / modules[0].name)
