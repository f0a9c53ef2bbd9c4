"""Build a filesystem's kernel modules from the Debian package with their source (``zfs-dkms``), for a run's kernel.

They are built as the modelled drive's is (agelab/machine/drive/module.py): against the headers of that kernel, with the
compiler of its own suite, confined and without a network. They stay on this host: no cache and no capsule has them.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agelab.base.errors import AgelabError, Notify, silent
from agelab.base.types import Frozen
from agelab.debian import Archive, Package, buildroot, cached_resolution, unpack
from agelab.debian.buildroot import BuildFailed, BuildRoot, Purpose, Workshop
from agelab.kernel import Kernel, NamedKernel
from agelab.machine.drive import module as headers
from agelab.machine.drive.module import NoHeaders
from agelab.scenario.filesystem import Filesystem, ModuleSource
from agelab.store.artefacts import Artefact, Store

KIND = "dkms"
RECIPE = 1
"""Raised whenever the same source and build root would make other modules."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

# Removed from the unpacked tree; relative to /usr. A configure script links programs, too: what that takes stays.
_UNUSED = (
    *("share/doc", "share/man", "share/info", "share/locale", "share/lintian", "games", "local"),
    *("lib/gcc/*/*/lto1", "libexec/gcc/*/*/lto1", "lib/gcc/*/*/plugin", "lib/*/gconv"),
    *("src/*/include/dt-bindings", "src/*/arch/[!x]*", "src/*/arch/xtensa", "src/*/include/config/[A-Z]*"),
    *("bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*", "bin/*-dwp", "bin/dwp", "bin/*gold"),
)
_STRIPPED = ("--strip-debug", "--remove-section=.BTF", "--remove-section=.BTF.base")
"""Debugging information, and types for BPF, which pahole writes in another order in each build."""


class ModulePackages(Frozen):
    """The packages that a filesystem's modules are made of."""

    source: Package
    root: BuildRoot


def with_modules(kernel: Kernel, filesystems: Sequence[Filesystem], store: Store, progress: Notify = silent) -> Kernel:
    """Return a kernel with the modules of those filesystems that name a source of them.

    A filesystem whose modules cannot be built for this kernel is told: the kernel has it no more than before.
    Raises HostError when a download fails or bubblewrap cannot run here.
    """
    for filesystem in filesystems:
        if filesystem.module_source is None:
            continue
        try:
            made = obtain(kernel, filesystem, filesystem.module_source, store, progress)
        except (NoHeaders, BuildFailed) as error:
            progress(f"{filesystem.name}: {error}; {filesystem.modules_why}")
            continue
        kernel = replace(kernel, built_modules=(*kernel.built_modules, *made))
    return kernel


def obtain(
    kernel: Kernel, filesystem: Filesystem, source: ModuleSource, store: Store, progress: Notify = silent
) -> list[Path]:
    """Return the modules of a filesystem for a kernel, built if the store does not have them.

    Raises NoHeaders and BuildFailed, and HostError as ``with_modules`` does.
    """
    product = product_of(filesystem)
    purpose = Purpose(f"{product} for {kernel.release}", _UNUSED, {"modules": ROOT_RECIPE})

    def made_of(packages: ModulePackages) -> Artefact:
        package = packages.source
        inputs = {
            "source": [package.name, package.version, package.sha256],
            "build": [list(source.build), list(source.made)],
            "release": kernel.release,
            "version": kernel.version,
            "root": buildroot.key(packages.root, purpose),
            "recipe": RECIPE,
        }

        def build(directory: Path) -> None:
            tar = buildroot.of_packages(packages.root, purpose, store, progress) / buildroot.ROOT_TAR
            [deb] = Archive(store, filesystem.suite, filesystem.also_from).download([package])
            progress(f"building {product} for {kernel.release} from {package.name} {package.version}")
            with buildroot.open_workshop(tar, [], directory, product) as shop:
                _unpack_source(deb, directory / "package", shop.build)
                _build(shop, source, kernel.release, directory)

        return store.obtain(KIND, inputs, build)

    def chosen(refresh: bool) -> ModulePackages:
        return resolve_packages(kernel, filesystem, source, store, refresh=refresh, progress=progress)

    made = buildroot.with_packages(chosen, made_of)
    return sorted(made.directory.glob("*.ko"))


def resolve_packages(
    kernel: NamedKernel,
    filesystem: Filesystem,
    source: ModuleSource,
    store: Store,
    *,
    refresh: bool = False,
    progress: Notify = silent,
) -> ModulePackages:
    """Resolve what a filesystem's modules are made of, from the cache unless ``refresh``. Raises NoHeaders."""
    product = product_of(filesystem)
    if kernel.build_inputs:
        raise NoHeaders(f"{product} are built for Debian's kernels, and {kernel.spec} was built here")
    root = headers.resolve_packages(
        kernel, store, refresh=refresh, progress=progress, more=source.build_packages, product=product
    )

    def ask() -> Package:
        archive = Archive(store, filesystem.suite, filesystem.also_from)
        if refresh:
            archive.update()
        archive.require([source.package], {source.package: f"{product}: "})
        return archive.package(source.package)

    question = {"dkms": source.package, "suite": filesystem.suite, "also_from": filesystem.also_from}
    return ModulePackages(source=cached_resolution(store, question, Package, ask, refresh=refresh), root=root)


def product_of(filesystem: Filesystem) -> str:
    """Return what is built, in the words of a message."""
    return f"{filesystem.name}'s modules"


def _unpack_source(deb: Path, unpacked: Path, build: Path) -> None:
    """Put the one directory of source that a package has where it is built. Raises AgelabError for other packages."""
    unpack(deb, unpacked)
    trees = list(unpacked.glob("usr/src/*/"))
    if len(trees) != 1:
        raise AgelabError(f"{deb.name} holds no source of kernel modules: its /usr/src has {len(trees)} directories")
    shutil.copytree(trees[0], build, symlinks=True, dirs_exist_ok=True)
    buildroot.remove_path(unpacked)


def _build(shop: Workshop, source: ModuleSource, release: str, directory: Path) -> None:
    """Build the modules and move them, stripped, into ``directory``."""
    place = f"/usr/src/linux-headers-{release}"
    shop.run([word.replace("{headers}", place) for word in source.build])
    for name in source.made:
        shop.made(name)
        shop.run(["x86_64-linux-gnu-strip", *_STRIPPED, f"/build/{name}"])
        path = shop.made(name)
        shutil.move(path, directory / path.name)
