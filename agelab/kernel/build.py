"""Build kernels from source, patches and configuration, into the same layout as a distribution's kernels.

The compiler is Debian's of the host's suite, in a build root of its own (agelab.debian.buildroot), with the same paths
and the same date in each build. What is built runs commands there, so it decides what its objects are: they serve no
other kernel. What was compiled before comes from ccache (agelab/kernel/build_inputs.py).
"""

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agelab.base import atomic, fileio
from agelab.base.errors import HostError, Notify, silent
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildFailed, Workshop
from agelab.kernel import build_inputs, deb_files, recipes, source_tree, stored_kernel
from agelab.kernel.build_inputs import BuildInputs, plan_build
from agelab.kernel.stored_kernel import Kernel
from agelab.store.artefacts import Store

_ENVIRONMENT = {
    "HOME": "/tmp",
    "CCACHE_DIR": "/tmp/ccache",
    "CCACHE_MAXSIZE": "2G",
    "KBUILD_BUILD_TIMESTAMP": "Wed Jan 1 00:00:00 UTC 2020",
    "KBUILD_BUILD_USER": "agelab",
    "KBUILD_BUILD_HOST": "agelab",
    "KBUILD_BUILD_VERSION": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
BUILT_MARK = "agelab-built"
"""File that names the kernel whose objects are whole. It lies beside /build, where what is built cannot write it."""
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_-]{0,63}")
_PROGRESS_SECONDS = 20.0


def resolve(kind: str, source: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel of a ``tree:``, ``source:`` or ``recipe:`` spec, built if the store does not have it.

    Raises InputError when the spec is wrong, HostError when this host cannot build, BuildFailed when the source does
    not build.
    """
    spec = f"{kind}:{source}"
    inputs = plan_build(spec, store, progress, refresh=refresh)

    def build(directory: Path) -> None:
        with built_objects(inputs, store, progress) as shop:
            _install(shop, inputs, directory)

    artefact = store.obtain("kernel", inputs.key_inputs, build, readable_by=inputs.readable_by)
    release = fileio.read_text(artefact / stored_kernel.RELEASE_FILE)
    return Kernel(spec, release, inputs.source.version, build_inputs=inputs, artefact=artefact)


def check_configuration(spec: str, store: Store, progress: Notify = silent) -> None:
    """Check a spec's source, patches and configuration without compiling. Raises as ``resolve`` does."""
    inputs = plan_build(spec, store, progress)
    if store.find("kernel", inputs.key) is None:
        progress(f"configuring Linux {inputs.source.version}")
        with _open_workshop(inputs, store) as (shop, mark):
            if not mark.exists():
                _configure(shop, inputs)


@contextmanager
def built_objects(inputs: BuildInputs, store: Store, progress: Notify) -> Iterator[Workshop]:
    """Open a workshop whose /build holds the objects of this kernel.

    Raises InputError for an unusable configuration, BuildFailed.
    """
    with _open_workshop(inputs, store) as (shop, mark):
        if not mark.exists():
            _configure(shop, inputs)
            with _report_progress(shop, inputs, progress):
                shop.run(make_command("vmlinux", "modules"))
            mark.write_text(inputs.key, encoding="utf-8")
        yield shop


@contextmanager
def _open_workshop(inputs: BuildInputs, store: Store) -> Iterator[tuple[Workshop, Path]]:
    """Open a workshop with a kernel's source, and its own objects or none: the mark is there where they are whole."""
    place = inputs.source.cache_dir
    with store.lock(f"kernels-{place.name}"):
        inputs.source.check_out()
        objects = place / "built"
        mark = objects / BUILT_MARK
        if not mark.exists() or fileio.read_text(mark) != inputs.key:
            if objects.exists():
                atomic.remove(objects)
            (objects / "build").mkdir(parents=True)
        shop = Workshop(
            buildroot.unpacked_root(inputs.toolchain, store),
            objects / "build",
            f"Linux {inputs.source.version}",
            read_only={"source": inputs.source.work_tree},
            writable={"ccache": build_inputs.compiler_cache(inputs)},
            environment=_ENVIRONMENT,
        )
        yield shop, mark


def make_command(*targets: str) -> list[str]:
    """Return the command that makes targets of a kernel whose objects are in /build."""
    fixed = ["-C", "/tmp/source", "O=/build", "LOCALVERSION=", "CC=ccache gcc", "HOSTCC=ccache gcc"]
    return ["make", f"-j{os.cpu_count() or 1}", *fixed, *targets]


def _configure(shop: Workshop, inputs: BuildInputs) -> None:
    """Write .config. Raises InputError when it lacks options that are needed."""
    if inputs.base is None:
        shop.give("agelab.config", inputs.config_text)
        shop.run(make_command("KCONFIG_ALLCONFIG=/build/agelab.config", "allnoconfig"))
    else:
        shop.give(".config", inputs.config_text)
        shop.run(make_command("olddefconfig"))
    recipes.check_options(fileio.read_text(shop.made(".config")), inputs.fragments, inputs.source.version)


@contextmanager
def _report_progress(shop: Workshop, inputs: BuildInputs, progress: Notify) -> Iterator[None]:
    """Report from time to time how many files have been compiled."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_PROGRESS_SECONDS):
            lines = fileio.tail(shop.log).splitlines() if shop.log.exists() else []
            done = sum(line.startswith("  CC ") for line in lines)
            progress(f"building Linux {inputs.source.version}: {done} files compiled")

    progress(f"building Linux {inputs.source.version}")
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _install(shop: Workshop, inputs: BuildInputs, directory: Path) -> None:
    """Install a built kernel into ``directory``, with the record of what it was built from."""
    release = fileio.read_text(shop.made("include/config/kernel.release")).strip()
    if not _RELEASE.fullmatch(release):
        raise BuildFailed(f"{shop.product} calls its release {release[:80]!r}: that is no name of a directory")
    shop.run(["x86_64-linux-gnu-strip", "-s", "-o", "/build/vmlinux.stripped", "/build/vmlinux"])
    shutil.move(shop.made("vmlinux.stripped"), directory / "vmlinux")
    if os.path.lexists(shop.build / "installed"):
        buildroot.remove_path(shop.build / "installed")
    shop.run(make_command("INSTALL_MOD_PATH=/build/installed", "INSTALL_MOD_STRIP=1", "DEPMOD=true", "modules_install"))
    (directory / "config").write_text(fileio.read_text(shop.made(".config")), encoding="utf-8")
    place = f"installed/lib/modules/{release}"
    tree = shop.build / place
    if not (tree / "modules.builtin").exists():
        raise HostError(f"Linux {inputs.source.version} installed its modules in a layout that agelab does not know")
    shop.made(f"{place}/modules.builtin")
    deb_files.reject_escapes(tree)
    deb_files.prune_modules(tree, directory)
    buildroot.remove_path(shop.build / "installed")
    (directory / stored_kernel.RELEASE_FILE).write_text(release, encoding="utf-8")
    recorded = source_tree.BuildRecord(
        sources=(inputs.source.origin,), commit=inputs.source.commit, patches=inputs.source.patches
    )
    (directory / source_tree.PROVENANCE_FILE).write_text(recorded.model_dump_json(indent=1) + "\n", encoding="utf-8")
