"""Run ``packer build`` on the guest's template, and say clearly why when it fails."""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

from agelab import atomic, places, process
from agelab.errors import HostError
from agelab.model.console import panic_message
from agelab.store import canonical_json

TEMPLATE = places.PACKER / "guest.pkr.hcl"

GRACE = 30.0
"""Seconds that an interrupted Packer has to end its QEMU."""
TIMEOUT = 900.0
"""Seconds of the host for a whole build: half a minute is usual, Packer waits four minutes for SSH."""

# As in a cell, except for what only repeatability needs: the proof is not a measurement.
CMDLINE = (
    "console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests iommu=off net.ifnames=0 no_timer_check"
)


_GUEST_ENDED = re.compile(r"Kernel panic|agelab init: cannot|reboot: Power down")
"""What a console says last where a guest never comes to let Packer in."""
LOGIN_TIMEOUT = "Timeout waiting for SSH"
"""What Packer says of a guest that it could not log in to."""


class ProofFailed(HostError):
    """The guest in which the filesystems are proved did not come to its end."""


class DoesNotBoot(ProofFailed):
    """And that is its kernel's doing: it panicked, could not reach its root, or was not heard of in time."""

    def __init__(self, message: str, hint: str = "", panicked: str | None = None) -> None:
        super().__init__(message, hint)
        self.panicked = panicked
        """What it said when it panicked; None where it did not."""


def build(work: Path, variables: Mapping[str, str]) -> None:
    """Run the template in ``work``; Packer's cache and the guest's console stay there.

    Raises DoesNotBoot, or NotProved where Packer itself may be the reason, with the end of Packer's log and of the
    guest's console.
    """
    console = work / "console.log"

    def over() -> bool:
        return console.exists() and _GUEST_ENDED.search(console.read_text(errors="replace")) is not None

    if "'" in sys.executable:  # it becomes a word of a shell's in the template
        raise HostError(
            f"Packer cannot run {sys.executable}: there is a quote in it",
            hint="install agelab into an environment elsewhere",
        )
    given = {"python": sys.executable, "work": str(work), "cmdline": CMDLINE, **variables}
    values = work / "values.pkrvars.json"
    values.write_bytes(canonical_json(given))
    env = {
        "CHECKPOINT_DISABLE": "1",  # no question to anybody whether there is a newer Packer
        "PACKER_CACHE_DIR": str(work / "cache"),
        "PACKER_CONFIG_DIR": str(work),
        "PYTHONPATH": str(places.IMPORTED_FROM),
    }
    argv = ["packer", "build", "-color=false", f"-var-file={values}", str(TEMPLATE)]
    # Packer's plugins meet at sockets, whose names may have 107 bytes: too few for a path in the store.
    with atomic.temp_dir(Path(gettempdir())) as sockets:
        env["TMPDIR"] = str(sockets)
        try:
            log = work / "packer.log"
            process.run(
                argv, cwd=work, env=env, log=log, timeout=TIMEOUT, grace=GRACE, give_up=over, isolated=True
            )
        except process.ProcessFailed as error:
            raise _failure(error, work) from error
        except process.TimedOut as error:
            raise DoesNotBoot(
                f"the proof did not end: {error}", error.hint, panic_message(_console(work))
            ) from error


def _console(work: Path) -> str:
    with suppress(OSError):
        return (work / "console.log").read_text(errors="replace")
    return ""


def _failure(error: process.ProcessFailed, work: Path) -> ProofFailed:
    said = [line for line in error.stderr.splitlines() if line.strip()]
    how = f"failed (exit {error.returncode})" if error.returncode > 0 else "waits for a guest that has ended"
    console = _console(work)
    lines = [line[:200] for line in console.splitlines() if line.strip()]
    parts = [f"packer build {how}:", *(line[:200] for line in said[-12:])]
    parts += ["the guest's console ends:" if lines else "the guest's console is empty", *lines[-12:]]
    panicked = panic_message(console)
    if panicked or LOGIN_TIMEOUT in error.stderr or error.returncode < 0:
        last = f"its console ends: {lines[-1]}" if lines else "its console is empty"
        first = panicked or f"the guest was not heard of; {last}"
        return DoesNotBoot("\n".join([first, *parts]), _hint(), panicked)
    return ProofFailed("\n".join(parts), hint=_hint())


def _hint() -> str:
    """What a Packer that has its builders as plugins may lack."""
    shown = process.run(["packer", "version"], env={"CHECKPOINT_DISABLE": "1"}, ok=range(256)).stdout
    match = re.search(r"v(\d+)\.(\d+)", shown)
    if match and (int(match[1]), int(match[2])) >= (1, 7):
        return (
            "this Packer needs its qemu builder installed: packer plugins install github.com/hashicorp/qemu"
        )
    return ""
