"""The compiled helpers that guests run: harness/tools and harness/filesystems, each source a static program.

They are made with the compiler and libc of the guest root's own suite, so they are the same bytes on every host;
being static, they run beside whatever is in the root.
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
"""Programs that make and check filesystems for which no package has any: in guests that need them alone."""

RECIPE = 1
"""Raised whenever the same sources and build root would make other programs."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")
_PACKAGES = ("gcc", "libc6-dev")
# Dependencies of a libc that serves more than these, and of a compiler that checks what it makes.
_NOT_NEEDED = re.compile(
    r"libc-dev-bin|libcom-err2|libcrypt.*|libgssapi.*|libk5crypto3|libkeyutils1|libkrb5.*|libnsl.*|libssl3.*"
    r"|libtirpc.*|rpcsvc-proto|openssl-provider-legacy"
    r"|lib(asan|atomic|cc1-|gomp|gprofng|hwasan|itm|lsan|quadmath|tsan|ubsan)\d*"
)
# Once in the tree, relative to /usr.
_UNUSED = (
    *("share", "games", "local", "lib/*/gconv", "lib/gcc/*/*/plugin", "lib/gcc/*/*/*san*"),
    *("lib/gcc/*/*/lto1", "libexec/gcc/*/*/lto1", "bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*"),
    *("bin/*-dwp", "bin/dwp", "bin/*gold", "bin/*elfedit"),
)


def obtain(store: Store, progress: Notify = silent, sources: Path = SOURCES) -> dict[str, Path]:
    """Each program of ``sources`` by its name, built if the store does not have them.

    Raises HostError when the compiler cannot be had or nothing can be confined here, AgelabError when a source
    does not compile or compiles with a warning.
    """
    files = source_files(sources)
    purpose = Purpose("the guest's tools", _UNUSED, {"programs": ROOT_RECIPE})

    def root(verify: bool) -> Artefact:
        return buildroot.obtain(
            lambda refresh: resolve_packages(store, refresh=refresh), purpose, store, progress, verify=verify
        )

    inputs = {
        "sources": {path.name: file_hash(path) for path in files},
        "flags": list(_FLAGS),
        "root": root(verify=False).key,
        "recipe": RECIPE,
    }

    def build(directory: Path) -> None:
        place = root(verify=True) / buildroot.ROOT_TAR
        progress("building the guest's tools")
        with buildroot.open_workshop(place, files, directory, "a tool of the guest") as shop:
            for program, source in programs(files).items():
                shop.run(["gcc", *_FLAGS, "-o", program, source.name])
                shutil.move(shop.build / program, directory / program)
                (directory / program).chmod(0o755)

    made = store.obtain("tools", inputs, build)
    return {program: made / program for program in programs(files)}


def obtain_filesystem_tools(names: Sequence[str], store: Store, progress: Notify = silent) -> dict[str, Path]:
    """The programs of these names that make and check a filesystem; raises what ``obtain`` does."""
    found = obtain(store, progress, FILESYSTEMS) if names else {}
    return {name: found[name] for name in names}


def source_files(sources: Path = SOURCES) -> list[Path]:
    """What the programs are made of, and nothing beside it."""
    return sorted(path for path in sources.glob("*") if path.suffix in (".c", ".h"))


def programs(files: list[Path]) -> dict[str, Path]:
    """Each program's name and its one source. Raises AgelabError when there is none."""
    found = {path.stem: path for path in files if path.suffix == ".c"}
    if not found:
        raise AgelabError("there is no source of any tool")
    return found


def resolve_packages(store: Store, *, refresh: bool = False) -> BuildRoot:
    """The packages that programs for the guest are built with, as resolved first or, on ``refresh``, now."""
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
    """What the store remembers these packages as the answer to."""
    return {"buildroot": suite, "programs": _PACKAGES}
