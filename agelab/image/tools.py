"""Build the guest's own programs: a static program from each source of harness/tools, filesystems and profiler.

They are built with the compiler and libc of the guest root's suite, so they are the same bytes on every host;
being static, they need nothing of the root.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agelab import buildroot, places
from agelab.buildroot import BuildRoot, Purpose
from agelab.debian import Archive, cached_resolution
from agelab.errors import AgelabError
from agelab.image import root as roots
from agelab.notify import Notify, silent
from agelab.store import Artefact, Store, file_hash

SOURCES = places.HARNESS / "tools"
FILESYSTEMS = places.HARNESS / "filesystems"
"""Programs that make and check filesystems which no package supports, only for guests that need them."""
PROFILER = places.HARNESS / "profiler"
"""The program that samples stacks, only for guests whose times are no result."""

RECIPE = 1
"""Raised whenever the same sources and build root would make other programs."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")
_PACKAGES = ("gcc", "libc6-dev")
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


def obtain(store: Store, progress: Notify = silent, sources: Path = SOURCES) -> dict[str, Path]:
    """Return the path of each program of ``sources`` by its name, built if the store does not have them.

    Raises HostError when the compiler cannot be downloaded or bubblewrap cannot run here, AgelabError when a source
    does not compile without warnings.
    """
    files = source_files(sources)
    purpose = Purpose("the guest's tools", _UNUSED, {"programs": ROOT_RECIPE})

    def built_with(packages: BuildRoot) -> Artefact:
        inputs = {
            "sources": {path.name: file_hash(path) for path in files},
            "flags": list(_FLAGS),
            "root": buildroot.key(packages, purpose),
            "recipe": RECIPE,
        }

        def build(directory: Path) -> None:
            place = buildroot.of_packages(packages, purpose, store, progress) / buildroot.ROOT_TAR
            progress("building the guest's tools")
            with buildroot.open_workshop(place, files, directory, "a tool of the guest") as shop:
                for program, source in programs(files).items():
                    shop.run(["gcc", *_FLAGS, "-o", program, source.name])
                    shutil.move(shop.build / program, directory / program)
                    (directory / program).chmod(0o755)

        return store.obtain("tools", inputs, build, shared=True)

    made = buildroot.with_packages(lambda refresh: resolve_packages(store, refresh=refresh), built_with)
    return {program: made / program for program in programs(files)}


def obtain_filesystem_tools(names: Sequence[str], store: Store, progress: Notify = silent) -> dict[str, Path]:
    """Return the programs of these names from FILESYSTEMS. Raises as ``obtain`` does."""
    found = obtain(store, progress, FILESYSTEMS) if names else {}
    return {name: found[name] for name in names}


def source_files(sources: Path = SOURCES) -> list[Path]:
    """List the source files, without anything else in the directory."""
    return sorted(path for path in sources.glob("*") if path.suffix in (".c", ".h"))


def programs(files: list[Path]) -> dict[str, Path]:
    """Map each program's name to its source. Raises AgelabError when there is none."""
    found = {path.stem: path for path in files if path.suffix == ".c"}
    if not found:
        raise AgelabError("no source of any tool")
    return found


def resolve_packages(store: Store, *, refresh: bool = False) -> BuildRoot:
    """Resolve the packages that programs for the guest are built with, from the cache unless ``refresh``."""
    suite = roots.definition().suite

    def ask() -> BuildRoot:
        archive = Archive(store, suite)
        archive.update(refresh=refresh)
        found = archive.resolve(_PACKAGES)
        return BuildRoot(
            suite=suite,
            packages=tuple(package for package in found if not _NOT_NEEDED.fullmatch(package.name)),
        )

    return cached_resolution(store, question(suite), BuildRoot, ask, refresh=refresh)


def question(suite: str) -> dict[str, Any]:
    """Return the question under which the resolution of these packages is cached."""
    return {"buildroot": suite, "programs": _PACKAGES}
