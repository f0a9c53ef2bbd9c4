"""The plan disk: what one boot brings into a guest that is ready for any.

Layout: the boot's secret in the first SECRET_BLOCK bytes, then a tar archive. harness/plan_disk.py reads it.
"""

import io
import re
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base.errors import InputError

SECRET_BLOCK = 4096
PLAN_DISK_BYTES = 256 << 20
"""Size of the disk in the guest."""
PROGRAM, DATA = 0o755, 0o644
MODULES = "modules"
_MODULE = re.compile(r"[A-Za-z0-9_+.-]+")
MOST_SHOWN = 200
"""Characters of a name that an error shows."""
ORDER = "order"
"""The file that lists the modules in the order of their insertion."""
PLACES = ("brought", "control", "jobs", "tools")
"""Directories of the files that are not agelab's own."""


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
    InputError for more than the disk holds, and for a name by which a file could get anywhere but its own place.
    """
    for name in modules:
        if not _MODULE.fullmatch(name):
            raise InputError(f"the kernel has a module called {name!r}: no guest can be given it")
    for name in programs:
        if name.split("/")[0] not in PLACES:
            raise _refused(name, f"such files lie below {', '.join(PLACES)}")
    order = "".join(
        f"{name}.ko{' optional' if module.optional else ''}\n" for name, module in modules.items()
    )
    files = {"plan.json": plan, f"{MODULES}/{ORDER}": order.encode()}
    files |= {f"{MODULES}/{name}.ko": module.image for name, module in modules.items()}
    _require_apart((*files, *programs))
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


def _require_apart(names: Sequence[str]) -> None:
    """Raise InputError unless each file has a place of its own: the harness unpacks them wherever their names lead."""
    files, directories = set[str](), set[str]()
    for name in names:
        parts = name.split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts))}
        if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name or not _is_encodable(name):
            raise _refused(name, "its name is no plain relative path")
        if name in files or name in directories or above & files:
            raise _refused(name, "another file has that place")
        files.add(name)
        directories |= above


def _is_encodable(name: str) -> bool:
    try:
        return bool(name.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        return False


def _refused(name: str, why: str) -> InputError:
    return InputError(f"no guest can be given the file {name[:MOST_SHOWN]!r}: {why}", hint="rename it")


def write(path: Path, secret: bytes, packed: bytes) -> None:
    """Write the disk of one boot."""
    with path.open("wb") as disk:
        disk.write(secret.ljust(SECRET_BLOCK, b"\0") + packed)
        disk.truncate(PLAN_DISK_BYTES)
