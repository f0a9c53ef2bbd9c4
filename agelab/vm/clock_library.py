"""LD_PRELOAD library for QEMU in the virtual clock; agelab/vm/clock.c explains it."""

from pathlib import Path

from agelab import process
from agelab.store import Store, file_hash

SOURCE = Path(__file__).with_name("clock.c")
FILE_NAME = "clock.so"


def obtain(store: Store) -> Path:
    """Return the compiled library, built once for each version of its source and of the compiler.

    Raises HostError when there is no compiler.
    """
    compiler = process.run(["gcc", "-dumpfullversion", "-dumpmachine"]).stdout.split()

    def build(directory: Path) -> None:
        target = str(directory / FILE_NAME)
        flags = ["-shared", "-fPIC", "-O2", "-nostdlib", "-Wall", "-Wextra", "-Werror"]
        process.run(["gcc", *flags, "-o", target, str(SOURCE)])

    return store.obtain("clock", {"source": file_hash(SOURCE), "compiler": compiler}, build) / FILE_NAME
