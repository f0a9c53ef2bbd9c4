"""Run ``packer build`` on the guest's template, and explain its failures.

Packer is that of Debian 12's package, unpacked into the store: later releases of Debian have none. Nothing of it is in
an image, so no key has it. It needs nothing of the host but libc.
"""

import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agelab.base import atomic, confine, fileio, places, process
from agelab.base.errors import HostError, Notify, full_disk_line
from agelab.base.hashing import canonical_json
from agelab.base.plain_path import temp_parent
from agelab.debian import Archive, buildroot, snapshot, unpack
from agelab.debian.buildroot import BuildRoot
from agelab.evaluate.console import panic_message
from agelab.store.artefacts import Artefact, Store

TEMPLATE = places.PACKER / "guest.pkr.hcl"

GRACE = 30.0
"""Seconds of the host that an interrupted Packer has to end its QEMU."""
TIMEOUT = 900.0
"""Seconds of the host for a whole build: half a minute is usual, Packer waits four minutes for SSH."""

# As in a cell, without what only repeatability needs: the proof is not a measurement.
CMDLINE = "console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests iommu=off net.ifnames=0 no_timer_check"

ALONE = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--")
"""Packer, its guest's network card and QEMU have a loopback interface of their own, and reach nothing else.

By QEMU a guest reaches what its host does: its services for itself alone, and the internet.
"""

_GUEST_ENDED = re.compile(r"Kernel panic|agelab init: cannot|reboot: Power down")
"""Console output of a guest that ends without letting Packer log in."""
LOGIN_TIMEOUT = "Timeout waiting for SSH"
"""Packer's message when it cannot log in to the guest."""


class ProofFailed(HostError):
    """The guest that proves the filesystems did not finish."""


class DoesNotBoot(ProofFailed):
    """The guest's kernel panicked, could not mount its root, or let nobody log in in time."""

    def __init__(self, message: str, hint: str = "", panicked: str | None = None) -> None:
        super().__init__(message, hint)
        self.panicked = panicked
        """The panic message; None when it did not panic."""


def build(work: Path, program: Path, emulator: Path, variables: Mapping[str, str]) -> None:
    """Run the template in ``work`` with that Packer and that QEMU; Packer's cache and the guest's console stay there.

    Neither has a network but the one between them. Raises HostError where bubblewrap cannot run, DoesNotBoot, or
    ProofFailed when Packer itself may be the reason, with the end of Packer's log and of the guest's console.
    """
    console = work / "console.log"

    def guest_ended() -> bool:
        return console.exists() and _GUEST_ENDED.search(fileio.tail(console)) is not None

    if "'" in sys.executable:  # the template quotes it for a shell
        raise HostError(
            f"Packer cannot run {sys.executable}: there is a quote in it",
            hint="install agelab into an environment elsewhere",
        )
    given = {"python": sys.executable, "work": str(work), "cmdline": CMDLINE, **variables}
    values = work / "values.pkrvars.json"
    values.write_bytes(canonical_json(given))
    env = {
        "CHECKPOINT_DISABLE": "1",  # no check for a newer Packer
        "PACKER_CACHE_DIR": str(work / "cache"),
        "PACKER_CONFIG_DIR": str(work),
        "PYTHONPATH": str(places.IMPORTED_FROM),
        "PATH": f"{emulator.parent}:{process.SEARCH_PATH}",  # Packer starts the first qemu-system-x86_64
    }
    argv = [*ALONE, str(program), "build", "-color=false", f"-var-file={values}", str(TEMPLATE)]
    # Packer's plugins talk over sockets, whose paths have at most 107 bytes: too few for a path in the store.
    with atomic.temp_dir(temp_parent()) as sockets:
        env["TMPDIR"] = str(sockets)
        try:
            log = work / "packer.log"
            process.run(
                argv, cwd=work, env=env, log=log, timeout=TIMEOUT, grace=GRACE, give_up=guest_ended, isolated=True
            )
        except process.ProcessFailed as error:
            confine.raise_unconfined(error, "Packer")
            raise _failure(error, work) from error
        except process.TimedOut as error:
            raise DoesNotBoot(f"the proof did not end: {error}", error.hint, panic_message(_console(work))) from error


def _console(work: Path) -> str:
    with suppress(OSError):
        return fileio.tail(work / "console.log")
    return ""


def _failure(error: process.ProcessFailed, work: Path) -> ProofFailed:
    if full := full_disk_line(error.stderr):
        return ProofFailed(f"packer build: {full}")
    log = [line for line in error.stderr.splitlines() if line.strip()]
    how = f"failed (exit {error.returncode})" if error.returncode > 0 else "waits for a guest that has ended"
    console = _console(work)
    lines = [line[:200] for line in console.splitlines() if line.strip()]
    parts = [f"packer build {how}:", *(line[:200] for line in log[-12:])]
    parts += ["the guest's console ends:" if lines else "the guest's console is empty", *lines[-12:]]
    panicked = panic_message(console)
    if panicked or LOGIN_TIMEOUT in error.stderr or error.returncode < 0:
        last = f"its console ends: {lines[-1]}" if lines else "its console is empty"
        first = panicked or f"nobody could log in to the guest; {last}"
        return DoesNotBoot("\n".join([first, *parts]), panicked=panicked)
    return ProofFailed("\n".join(parts))


SUITE = snapshot.SUITE
KIND = PROGRAM = PACKAGE = "packer"


def resolve_package(store: Store, *, refresh: bool = False) -> BuildRoot:
    """Resolve Packer's package, from the cache unless ``refresh``."""
    return buildroot.resolve(
        store, SUITE, {"packer": SUITE}, lambda archive: [archive.package(PACKAGE)], refresh=refresh
    )


def obtain(store: Store, progress: Notify) -> Path:
    """Return Packer's program, unpacked if the store does not have it. Raises HostError when it cannot be fetched."""

    def of(chosen: BuildRoot) -> Artefact:
        [package] = chosen.packages

        def build(directory: Path) -> None:
            progress("downloading Packer")
            [deb] = Archive(store, SUITE).download(chosen.packages)
            unpack(deb, directory / "tree")
            (directory / "tree/usr/bin" / PROGRAM).rename(directory / PROGRAM)
            shutil.rmtree(directory / "tree")

        return store.obtain(KIND, {"sha256": package.sha256}, build)

    return buildroot.with_packages(lambda refresh: resolve_package(store, refresh=refresh), of) / PROGRAM
