"""QEMU in the store: its program, libraries and firmware as Debian's packages have them, and what starts it.

``launcher.c`` starts it with the dynamic linker of its own suite, so that it runs on any amd64 Linux. For the virtual
clock two libraries are loaded into it (LD_PRELOAD): ``clock.c`` for every guest, ``main_loop.c`` for one that is saved.
The latter replaces functions of one QEMU. They lie in a module, and QEMU must call them through the symbol table: calls
within an executable, or bound when it was linked, cannot be replaced. ``schedule.c``, which shakes a guest's schedule,
is an artefact by itself, and only such guests have it in their keys. ``stop.c`` stops a guest for a debugger, which
changes nothing for the guest.

All of it is compiled with the compiler of QEMU's suite (agelab.debian.buildroot), and nothing of the host is in it. It
is not taken from a cache that machines share: the host runs it.
"""

import platform
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import X_OK, access
from pathlib import Path
from typing import Any

from agelab.base import confine, fileio
from agelab.base.errors import AgelabError, HostError, Notify, silent
from agelab.debian import Archive, buildroot, remembered, snapshot, unpack
from agelab.debian.buildroot import BuildRoot, Workshop
from agelab.store.artefacts import Artefact, Store, file_hash

SUITE = snapshot.SUITE
"""The suite of the QEMU that is known (agelab.machine.qemu.emulator.KNOWN), and of the machine of guests."""
SUITE_OF_SEVERAL = "trixie"
"""The suite of the QEMU whose virtual clock can have several processors: before 8.1 they do not come up."""
_PACKAGES = ("qemu-system-x86",)
"""With them apt names the firmware, and every library down to libc."""


def resolve_packages(store: Store, suite: str = SUITE, *, refresh: bool = False) -> BuildRoot:
    """Resolve the packages of a suite's QEMU, from the cache unless ``refresh``."""
    return buildroot.resolve(store, suite, question(suite), lambda archive: archive.resolve(_PACKAGES), refresh=refresh)


def question(suite: str = SUITE) -> dict[str, Any]:
    """Return the question under which the resolution of these packages is cached."""
    return {"emulator": suite, "packages": _PACKAGES}


KIND, SCHEDULE_KIND = "qemu", "schedule"
RECIPE = 1
"""Raised whenever the same packages and sources would make another artefact."""
LAUNCHER, CLOCK, MAIN_LOOP, SCHEDULE, TURNS, STOP = (
    Path(__file__).with_name(f"{name}.c") for name in ("launcher", "clock", "main_loop", "schedule", "turns", "stop")
)
START, VERSION, UNFIT = "qemu-system-x86_64", "version", "unfit"
"""Files of the artefact: what is started, and what is known of it."""
ROOT = Path("root/usr")
"""What is of Debian's packages, with the paths that it has there."""
LINKER, PROGRAM = ROOT / "bin/qemu-system-x86_64", ROOT / "lib/qemu/qemu-system-x86_64"
BUNDLE = LINKER.parent / "qemu-bundle/usr"
"""Where a QEMU that was not built to be moved looks for its firmware first."""
LIBRARIES = ROOT / "lib/x86_64-linux-gnu"
MODULE = Path("qemu/accel-tcg-x86_64.so")
FIRMWARE = ("seabios/bios-256k.bin", "qemu/kvmvapic.bin", "qemu/pvh.bin", "qemu/linuxboot_dma.bin")
"""What a guest loads: the BIOS and the option ROMs of direct kernel boot."""
KEYMAP = "qemu/keymaps/en-us"
"""Packer gives its guest a VNC display, whatever it is told; QEMU has none without it."""
KNOWN = re.compile(r"^QEMU emulator version 7\.2\.\d")
KNOWN_OF_SEVERAL = re.compile(r"^QEMU emulator version 10\.0\.\d")
CALLED_BY_MODULE = ("icount_prepare_for_run", "icount_process_data", "icount_handle_deadline", "cpu_can_run")
CALLED_BY_PROGRAM = ("ppoll", "pthread_cond_wait")
_CALL = re.compile(r"R_X86_64_(?:JUMP_SLOT|GLOB_DAT)\s+[0-9a-f]+\s+(\w+)")
"""A call through the symbol table, as readelf lists it."""
_LIBRARY = re.compile(r"^\s*([^\s/]+) => ", re.MULTILINE)
"""A library that a program needs, as the dynamic linker lists it, found or not."""
_COMMON_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")
_PROGRAM_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-static", "-s", *_COMMON_FLAGS)
_LIBRARY_FLAGS = ("-shared", "-fPIC", "-nostdlib", *_COMMON_FLAGS)


@dataclass(frozen=True)
class Emulator:
    """A QEMU of the store."""

    artefact: Artefact

    @property
    def program(self) -> Path:
        """What libvirt and others start."""
        return self.artefact / START

    @property
    def clock(self) -> Path:
        """The library that hides the host's clock from QEMU."""
        return self.artefact / "clock.so"

    @property
    def main_loop(self) -> Path:
        """The library that keeps QEMU's main loop out while the guest's processor runs."""
        return self.artefact / "main_loop.so"

    @property
    def version(self) -> str:
        """QEMU's version line, with that of the package."""
        return fileio.read_text(self.artefact / VERSION)

    @property
    def unfit(self) -> str:
        """The reason why this QEMU's guests cannot be saved; nothing where they can."""
        return fileio.read_text(self.artefact / UNFIT)

    @property
    def identity(self) -> dict[str, str]:
        """What a cell's inputs have of it: its version, and a hash over all of its files."""
        return {"version": self.version, "files": self.artefact.manifest.content}


def sources() -> dict[str, str]:
    """Map the name of each source to its hash."""
    return {source.name: file_hash(source) for source in (LAUNCHER, CLOCK, MAIN_LOOP)}


def find(store: Store) -> Emulator | None:
    """Return the store's QEMU that a run takes: of the packages that it remembers, with a snapshot of that; or None.

    Where it remembers none of today it is the newest.
    """
    artefacts = [
        artefact
        for artefact in store.all(KIND)
        if artefact.manifest.inputs.get("sources") == sources() and "suite" not in artefact.manifest.inputs
    ]
    chosen = remembered(store, question(), BuildRoot)
    if chosen or snapshot.chosen():
        identities = _identities(chosen) if chosen else None
        artefacts = [artefact for artefact in artefacts if artefact.manifest.inputs.get("packages") == identities]
    return Emulator(artefacts[-1]) if artefacts else None


def _identities(chosen: BuildRoot) -> list[list[str]]:
    return [[package.name, package.version, package.sha256] for package in chosen.packages]


def obtain(store: Store, progress: Notify = silent, suite: str = SUITE) -> Emulator:
    """Return the QEMU of a suite, unpacked and compiled if the store does not have it.

    Raises HostError when it cannot run here, or its packages cannot be fetched.
    """
    require_processor()

    def of(chosen: BuildRoot) -> Artefact:
        return buildroot.with_packages(
            lambda refresh: buildroot.resolve_compiler(store, SUITE, refresh=refresh),
            lambda compiler: _of_packages(chosen, compiler, store, progress),
        )

    try:
        made = buildroot.with_packages(lambda refresh: resolve_packages(store, suite, refresh=refresh), of)
    except AgelabError as error:
        if suite != SUITE_OF_SEVERAL:
            raise
        raise HostError(
            f"several processors in the virtual clock take the QEMU of Debian {suite}, which cannot be had: {error}",
            hint="make that suite reachable (AGELAB_SNAPSHOT, apt's sources), or leave --vcpus out",
        ) from error
    return Emulator(made)


def schedule_library(store: Store, emulator: Emulator, progress: Notify = silent) -> Path:
    """Return the library that shakes a guest's schedule, compiled if the store does not have it.

    Raises HostError for a QEMU that is not known, and as ``obtain``.
    """
    return _library(SCHEDULE, "the schedule cannot be shaken", store, emulator, progress)


def turns_library(store: Store, emulator: Emulator, progress: Notify = silent) -> Path:
    """Return the library by which several processors take turns. Raises as ``schedule_library``."""
    return _library(TURNS, "its clock has one processor", store, emulator, progress, KNOWN_OF_SEVERAL)


def stop_library(store: Store, emulator: Emulator, progress: Notify = silent) -> Path:
    """Return the library that stops a guest for a debugger. Raises as ``schedule_library``."""
    return _library(STOP, "no guest can be stopped", store, emulator, progress)


def _library(
    source: Path, otherwise: str, store: Store, emulator: Emulator, progress: Notify, known: re.Pattern[str] = KNOWN
) -> Path:
    """Return the library of a source, compiled if the store does not have it."""
    if not known.match(emulator.version):
        raise HostError(f"{emulator.version} is not known: {otherwise}")
    name = f"{source.stem}.so"
    purpose = buildroot.compiler_purpose("QEMU's libraries")

    def of(compiler: BuildRoot) -> Artefact:
        inputs = {
            "sources": {source.name: file_hash(source)},
            "flags": list(_LIBRARY_FLAGS),
            "root": buildroot.key(compiler, purpose),
            "recipe": RECIPE,
        }

        def build(directory: Path) -> None:
            place = buildroot.of_packages(compiler, purpose, store, progress) / buildroot.ROOT_TAR
            with buildroot.open_workshop(place, [source], directory, "a library of QEMU") as shop:
                shop.run(["gcc", *_LIBRARY_FLAGS, "-o", name, source.name])
                shutil.copyfile(shop.made(name), directory / name)

        return store.obtain(SCHEDULE_KIND, inputs, build)

    compiled = buildroot.with_packages(lambda refresh: buildroot.resolve_compiler(store, SUITE, refresh=refresh), of)
    return compiled / name


def require_processor() -> None:
    """Raise HostError on a host whose processor is of another kind than QEMU's program."""
    if (kind := platform.machine()) != "x86_64":
        raise HostError(
            f"this host is {kind}; agelab runs the QEMU of Debian's amd64 packages, so that all hosts have one",
            hint="use an amd64 host (docs/faq.md)",
        )


def _of_packages(chosen: BuildRoot, compiler: BuildRoot, store: Store, progress: Notify) -> Artefact:
    purpose = buildroot.compiler_purpose("QEMU's libraries")
    inputs: dict[str, Any] = {
        "packages": _identities(chosen),
        "sources": sources(),
        "files": [*FIRMWARE, KEYMAP],
        "flags": [list(_PROGRAM_FLAGS), list(_LIBRARY_FLAGS)],
        "root": buildroot.key(compiler, purpose),
        "recipe": RECIPE,
        **({"suite": chosen.suite} if chosen.suite != SUITE else {}),
    }

    def build(directory: Path) -> None:
        progress(f"downloading {len(chosen.packages)} packages of QEMU")
        tree = directory / "tree"
        for deb in Archive(store, chosen.suite).download(chosen.packages):
            unpack(deb, tree)
        buildroot.finish_root(tree, ())
        _take(tree / "usr", directory)
        buildroot.remove_path(tree)
        compilers = buildroot.of_packages(compiler, purpose, store, progress) / buildroot.ROOT_TAR
        files = (LAUNCHER, CLOCK, MAIN_LOOP)
        with buildroot.open_workshop(compilers, files, directory, "a library of QEMU") as shop:
            _compile(shop, directory)
            version = _output_of([str(directory / START), "--version"], directory).splitlines()[0]
            seen = replace(shop, read_only={"qemu": directory / ROOT})
            (directory / UNFIT).write_text(unfit(version, seen), encoding="utf-8")
        (directory / VERSION).write_text(version, encoding="utf-8")

    return store.obtain(KIND, inputs, build)


def _take(usr: Path, directory: Path) -> None:
    """Copy what a guest needs of the unpacked packages: QEMU, its module, every library of the two, and firmware."""
    libraries = usr / "lib/x86_64-linux-gnu"
    programs, share = {PROGRAM: usr / "bin/qemu-system-x86_64"}, BUNDLE
    if (libraries / MODULE).exists():  # of Debian 12, and that QEMU looks for its firmware below /usr
        programs[LIBRARIES / MODULE], share = libraries / MODULE, ROOT
    taken = {
        **programs,
        LINKER: libraries / "ld-linux-x86-64.so.2",
        **{share / "share" / name: usr / "share" / name for name in (*FIRMWARE, KEYMAP)},
    }
    for program in programs.values():
        for name in _libraries(usr, taken[LINKER], libraries, program):
            taken[LIBRARIES / name] = libraries / name
    for target, source in taken.items():
        (directory / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.resolve(), directory / target)
    for program in (LINKER, PROGRAM):
        (directory / program).chmod(0o755)


def _libraries(usr: Path, linker: Path, libraries: Path, program: Path) -> Sequence[str]:
    """Return the names of a program's libraries, all below ``usr``. Raises AgelabError for one that is not there."""
    argv = [str(linker), "--inhibit-cache", "--library-path", str(libraries), "--list", str(program)]
    names = _LIBRARY.findall(_output_of(argv, usr))
    own = {path.name for path in libraries.iterdir() if path.resolve().parent == libraries.resolve()}
    if foreign := [name for name in names if name not in own]:
        raise AgelabError(f"the packages of QEMU lack libraries of {program.name}: {', '.join(foreign)}")
    return names


def _output_of(argv: Sequence[str], directory: Path) -> str:
    """Return what a program of this directory prints, confined to it. Raises HostError where it may not be run."""
    if not access(argv[0], X_OK):
        raise HostError(
            f"no program may be run in {Path(argv[0]).parent} (mount option noexec)",
            hint="QEMU is run in the store: move it with AGELAB_HOME=<directory>",
        )
    return confine.run(argv, read=[directory]).stdout


def _compile(shop: Workshop, directory: Path) -> None:
    for source, name, flags in (
        (LAUNCHER, START, _PROGRAM_FLAGS),
        (CLOCK, "clock.so", _LIBRARY_FLAGS),
        (MAIN_LOOP, "main_loop.so", _LIBRARY_FLAGS),
    ):
        shop.run(["gcc", *flags, "-o", name, source.name])
        shutil.copyfile(shop.made(name), directory / name)
    (directory / START).chmod(0o755)


def unfit(version: str, shop: Workshop) -> str:
    """Return why guests of a QEMU cannot be saved; nothing where they can. Its files are in /tmp/qemu."""
    if not KNOWN.match(version):
        return f"{version} is not known"
    for path, names in ((LIBRARIES / MODULE, CALLED_BY_MODULE), (PROGRAM, CALLED_BY_PROGRAM)):
        listed = shop.run(["readelf", "--wide", "--relocs", f"/tmp/qemu/{path.relative_to(ROOT)}"])
        if absent := sorted(set(names) - set(_CALL.findall(listed))):
            return f"{path.name} does not call {', '.join(absent)} through its symbol table"
    return ""
