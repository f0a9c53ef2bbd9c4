"""The plan disk: what one boot brings into a guest that is ready for any.

Layout: the boot's secret in the first BLOCK bytes, then a tar archive: plan.json, tools, control scripts, kernel
modules. The other end is agelab/runner/execute/plan_disk.py.
"""

import ctypes
import os
import tarfile
from pathlib import Path

PLACE = 1
"""Which memory-backed disk it is."""
BLOCK, SECRET = 4096, 32
MODULES = "modules"
ORDER = "order"
"""The file that lists the modules in the order of their insertion, some of them as optional."""
FINIT_MODULE = 313
"""The number of finit_module(2) on x86-64."""


def take(device: Path, where: Path) -> bytes:
    """Unpack the archive, erase the secret from the disk and return it."""
    with device.open("r+b", buffering=0) as disk:
        secret = disk.read(BLOCK)[:SECRET]
        with tarfile.open(fileobj=disk, mode="r:") as archive:
            archive.extractall(where)
        disk.seek(0)
        disk.write(bytes(BLOCK))
        os.fsync(disk)
    return secret


def insert_modules(where: Path) -> None:
    """Insert the modules that were unpacked, and remove their files. Raises OSError for one that is not optional."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in (where / MODULES / ORDER).read_text().splitlines():
        name, _, optional = line.partition(" ")
        path = where / MODULES / name
        with path.open("rb") as module:
            if libc.syscall(FINIT_MODULE, module.fileno(), b"", 0) and not optional:
                error = ctypes.get_errno()
                raise OSError(error, f"the kernel refuses the module {name}: {os.strerror(error)}")
        path.unlink()
