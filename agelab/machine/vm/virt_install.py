"""What virt-install prints, remembered while its packages stay as they are: starting it takes half a second.

By itself it asks libvirt what the host can do, and refuses a host that has no QEMU of its own. Here it is told of
agelab's QEMU, by the connection with which its own tests do so (virtinst/uri.py, ``MagicURI``): so it prints the same
for the same words on every host, and needs no daemon.

dpkg writes its status whenever a package changes. Where there is no such status, nothing is remembered.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from agelab.base import atomic, fileio, process
from agelab.base.errors import AgelabError
from agelab.base.hashing import key_of
from agelab.store.artefacts import file_hash

CACHE = "domains"
"""Name of the store's cache in which it is kept."""
PACKAGES = Path("/var/lib/dpkg/status")
HERE = Path(__file__).parent
CAPABILITIES = ("capabilities.xml", "domain-capabilities.xml")
CONNECTION = (
    "__virtinst_test__test:///default,predictable,fakeuri=qemu:///system,"
    f"caps={CAPABILITIES[0]},domcaps={CAPABILITIES[1]}"
)
"""The names of files are those in HERE, where virt-install is started."""


@cache
def printed(command: tuple[str, ...], remembered: Path | None) -> str:
    """Return what a virt-install command prints; kept in the directory ``remembered``, if one is given."""
    file = remembered and _file(command, remembered)
    if file and (text := _read(file)) is not None:
        return text
    text = process.run(command, cwd=HERE, timeout=120).stdout
    if file:
        with suppress(OSError):  # a full disk, another user's store: virt-install is asked again
            atomic.write(file, f"{_checksum(text)}\n{text}".encode())
    return text


def _file(command: Sequence[str], directory: Path) -> Path | None:
    """Return where that command's output is kept while the packages are as now; None where nobody can tell."""
    try:
        status = PACKAGES.stat()
    except OSError:
        return None
    packages = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    hashes = [file_hash(HERE / name) for name in CAPABILITIES]
    return directory / key_of({"command": list(command), "packages": packages, "told": hashes})


def _read(file: Path) -> str | None:
    """Return the text that is kept in a file; None where there is none, or it is damaged."""
    try:
        checksum, _, text = fileio.read_text(file).partition("\n")
    except (OSError, ValueError, AgelabError):
        return None
    return text if checksum == _checksum(text) else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
