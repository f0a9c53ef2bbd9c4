"""A program that stands for QEMU, and a library that is loaded into it."""

from pathlib import Path

from agelab.base import process

FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def compiled(directory: Path, program: str, library: Path) -> Path:
    """Compile the program as ``qemu``, and the library's source as it is named. Returns the directory."""
    (directory / "qemu.c").write_text(program)
    process.run(["gcc", *FLAGS, "-rdynamic", "-o", str(directory / "qemu"), str(directory / "qemu.c")])
    shared = ("-shared", "-fPIC", "-nostdlib", "-o", str(directory / f"{library.stem}.so"))
    process.run(["gcc", *FLAGS, *shared, str(library)])
    return directory
