"""LD_PRELOAD libraries for QEMU in the virtual clock: clock.c for every guest, main_loop.c for those that are saved.

main_loop.c replaces functions of one QEMU. They lie in a module, and QEMU must call them through the symbol table:
calls within an executable, or bound when it was linked, cannot be replaced.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from agelab import fileio, process
from agelab.store import Store, file_hash
from agelab.vm import host
from agelab.vm.guest import EMULATOR

CLOCK, MAIN_LOOP = (Path(__file__).with_name(name) for name in ("clock.c", "main_loop.c"))
KNOWN_QEMU = re.compile(r"^QEMU emulator version 7\.2\.\d")
MODULE = Path("/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so")
CALLED_BY_MODULE = (
    "icount_prepare_for_run",
    "icount_process_data",
    "icount_handle_deadline",
    "cpu_can_run",
)
CALLED_BY_EMULATOR = ("ppoll", "pthread_cond_wait")
CALL = re.compile(r"R_X86_64_(?:JUMP_SLOT|GLOB_DAT)\s+[0-9a-f]+\s+(\w+)")
"""A call through the symbol table, as readelf lists it."""
UNFIT_FILE = "unfit"


@dataclass(frozen=True)
class ClockLibraries:
    """The compiled libraries for this host's QEMU."""

    clock: Path
    """Hides the host's clock from QEMU."""
    main_loop: Path
    """Keeps QEMU's main loop out while the guest's processor runs."""
    unfit: str
    """The reason why this QEMU's guests cannot be saved; nothing where they can."""


def obtain(store: Store) -> ClockLibraries:
    """Return the compiled libraries, built once for each version of their sources, of the compiler and of QEMU.

    Raises HostError when there is no compiler.
    """
    compiler = process.run(["gcc", "-dumpfullversion", "-dumpmachine"]).stdout.split()

    def build(directory: Path) -> None:
        for source in (CLOCK, MAIN_LOOP):
            flags = ["-shared", "-fPIC", "-O2", "-nostdlib", "-Wall", "-Wextra", "-Werror"]
            process.run(["gcc", *flags, "-o", str(directory / f"{source.stem}.so"), str(source)])
        (directory / UNFIT_FILE).write_text(unfit(), encoding="utf-8")

    qemu = [[str(path), *_identity(path)] for path in (Path(EMULATOR), MODULE)]
    made = store.obtain("clock", {"sources": sources(), "compiler": compiler, "qemu": qemu}, build)
    clock, main_loop = (made / f"{source.stem}.so" for source in (CLOCK, MAIN_LOOP))
    return ClockLibraries(clock, main_loop, fileio.read_text(made / UNFIT_FILE))


def sources() -> dict[str, str]:
    """Map the name of each library's source to its hash."""
    return {source.name: file_hash(source) for source in (CLOCK, MAIN_LOOP)}


def unfit() -> str:
    """Return why guests of this host's QEMU cannot be saved; nothing where they can."""
    if not KNOWN_QEMU.match(host.qemu_version()):
        return f"{host.qemu_version()} is not known"
    if not MODULE.exists():
        return f"{MODULE} is missing"
    for path, names in ((MODULE, CALLED_BY_MODULE), (Path(EMULATOR), CALLED_BY_EMULATOR)):
        listed = process.run(["readelf", "--wide", "--relocs", str(path)]).stdout
        if absent := sorted(set(names) - set(CALL.findall(listed))):
            return f"{path} does not call {', '.join(absent)} through its symbol table"
    return ""


def _identity(path: Path) -> list[int]:
    """Return what changes when a package's file does: size and time; nothing for a file that is not there."""
    if not path.exists():
        return []
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
