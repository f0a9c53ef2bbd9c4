"""What virt-install prints, remembered while the host stays as it is: starting it takes half a second.

It prints the same for the same words while its packages, libvirt's and QEMU's are the same, and so is the host, of
which libvirt says what it can do. dpkg writes its status whenever a package changes; a host that starts anew may have
become another one. Where there is no such status, nothing is remembered.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from agelab import atomic, fileio, process
from agelab.errors import AgelabError
from agelab.store import key_of

CACHE = "domains"
"""Name of the store's cache in which it is kept."""
PACKAGES = Path("/var/lib/dpkg/status")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def printed(command: Sequence[str], remembered: Path | None) -> str:
    """Return what a virt-install command prints; kept in the directory ``remembered``, if one is given."""
    return _printed(tuple(command), remembered)


@cache
def _printed(command: tuple[str, ...], remembered: Path | None) -> str:
    file = remembered and _file(command, remembered)
    if file and (text := _read(file)) is not None:
        return text
    text = process.run(command, timeout=120).stdout
    if file:
        with suppress(OSError):  # a full disk, another user's store: virt-install is asked again
            atomic.write(file, f"{_checksum(text)}\n{text}".encode())
    return text


def _file(command: Sequence[str], directory: Path) -> Path | None:
    """Return where that command's output is kept as long as the host is as it is now; None where nobody can tell."""
    try:
        found, boot = PACKAGES.stat(), fileio.read_text(BOOT_ID).strip()
    except OSError:
        return None
    packages = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    return directory / key_of({"command": list(command), "packages": packages, "boot": boot})


def _read(file: Path) -> str | None:
    """Return the text that is kept in a file; None where there is none, or it is damaged."""
    try:
        checksum, _, text = fileio.read_text(file).partition("\n")
    except (OSError, ValueError, AgelabError):
        return None
    return text if checksum == _checksum(text) else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
