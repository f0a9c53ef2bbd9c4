"""The plan disk: what one boot brings into a guest that is ready for any.

Layout: the boot's secret in the first SECRET_BLOCK bytes, then a tar archive. harness/plan_disk.py reads it.
"""

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agelab.errors import InputError

SECRET_BLOCK = 4096
PLAN_DISK_BYTES = 256 << 20
"""Size of the disk in the guest."""
PROGRAM, DATA = 0o755, 0o644
MODULES = "modules"
ORDER = "order"
"""The file that lists the modules in the order of their insertion."""


@dataclass(frozen=True)
class ModuleFile:
    """A kernel module as a guest gets it."""

    image: bytes
    """ELF."""
    optional: bool = False
    """True if the guest can do without."""


def archive(plan: bytes, programs: Mapping[str, bytes], modules: Mapping[str, ModuleFile]) -> bytes:
    """Return the tar archive of a boot; equal content gives equal bytes.

    ``programs`` maps paths below the harness's directory to content; ``modules`` are inserted in their order. Raises
    InputError for more than the disk holds.
    """
    order = "".join(
        f"{name}.ko{' optional' if module.optional else ''}\n" for name, module in modules.items()
    )
    files = {"plan.json": plan, f"{MODULES}/{ORDER}": order.encode()}
    files |= {f"{MODULES}/{name}.ko": module.image for name, module in modules.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=tarfile.GNU_FORMAT) as tar:
        for mode, members in ((DATA, files), (PROGRAM, programs)):
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), mode
                tar.addfile(entry, io.BytesIO(data))
    data = packed.getvalue()
    if len(data) > PLAN_DISK_BYTES - SECRET_BLOCK:
        raise InputError(
            f"the programs and modules for a guest take {len(data)} bytes: there is room for {PLAN_DISK_BYTES}",
            hint="bring fewer or smaller files into the guest",
        )
    return data


def write(path: Path, secret: bytes, packed: bytes) -> None:
    """Write the disk of one boot."""
    with path.open("wb") as disk:
        disk.write(secret.ljust(SECRET_BLOCK, b"\0") + packed)
        disk.truncate(PLAN_DISK_BYTES)
