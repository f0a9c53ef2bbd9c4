"""Build the guest's own programs: a static program from each source of harness/tools, filesystems and profiler.

They are built with the compiler and libc of the guest root's suite, so they are the same bytes on every host;
being static, they need nothing of the root.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from agelab.base import places
from agelab.base.errors import AgelabError, Notify, silent
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildRoot
from agelab.machine.image import root as roots
from agelab.store.artefacts import Artefact, Store, file_hash

SOURCES = places.HARNESS / "tools"
FILESYSTEMS = places.HARNESS / "filesystems"
"""Programs that make and check filesystems which no package supports, only for guests that need them."""
PROFILER = places.HARNESS / "profiler"
"""The program that samples stacks, only for guests whose times are no result."""

RECIPE = 1
"""Raised whenever the same sources and build root would make other programs."""

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")


def obtain(
    store: Store, progress: Notify = silent, sources: Path = SOURCES, flags: Sequence[str] = _FLAGS
) -> dict[str, Path]:
    """Return the path of each program of ``sources`` by its name, built if the store does not have them.

    Raises HostError when the compiler cannot be downloaded or bubblewrap cannot run here, AgelabError when a source
    does not compile without warnings.
    """
    files = source_files(sources)
    purpose = buildroot.compiler_purpose("the guest's tools")
    suite = roots.definition().suite

    def built_with(packages: BuildRoot) -> Artefact:
        inputs = {
            "sources": {path.name: file_hash(path) for path in files},
            "flags": list(flags),
            "root": buildroot.key(packages, purpose),
            "recipe": RECIPE,
        }

        def build(directory: Path) -> None:
            place = buildroot.of_packages(packages, purpose, store, progress) / buildroot.ROOT_TAR
            progress("building the guest's tools")
            with buildroot.open_workshop(place, files, directory, "a tool of the guest") as shop:
                for program, source in programs(files).items():
                    shop.run(["gcc", *flags, "-o", program, source.name])
                    shutil.move(shop.build / program, directory / program)
                    (directory / program).chmod(0o755)

        return store.obtain("tools", inputs, build, shared=True)

    made = buildroot.with_packages(
        lambda refresh: buildroot.resolve_compiler(store, suite, refresh=refresh), built_with
    )
    return {program: made / program for program in programs(files)}


def obtain_filesystem_tools(names: Sequence[str], store: Store, progress: Notify = silent) -> dict[str, Path]:
    """Return the programs of these names from FILESYSTEMS. Raises as ``obtain`` does."""
    built = obtain(store, progress, FILESYSTEMS) if names else {}
    return {name: built[name] for name in names}


def source_files(sources: Path = SOURCES) -> list[Path]:
    """List the source files, without anything else in the directory."""
    return sorted(path for path in sources.glob("*") if path.suffix in (".c", ".h"))


def programs(files: list[Path]) -> dict[str, Path]:
    """Map each program's name to its source. Raises AgelabError when there is none."""
    sources = {path.stem: path for path in files if path.suffix == ".c"}
    if not sources:
        raise AgelabError("no source of any tool")
    return sources
