"""Run a daemon in the background, as the parent of whatever it leaves behind.

    python -m agelab.vm.reaper COMMAND...

libvirt takes a guest for running until its process has been reaped. That is the work of process 1, and in
containers and small virtual machines some take seconds to get to it.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""


def detach() -> None:
    """Go on as a process of its own, without a terminal; the caller's ends here."""
    if os.fork():
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)


def run(argv: Sequence[str]) -> int:
    """Run the command to its end, and reap every orphan meanwhile. Returns its exit status, as a shell would."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    daemon = os.posix_spawnp(argv[0], tuple(argv), os.environ)
    while True:
        pid, status = os.wait()
        if pid == daemon:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    detach()
    sys.exit(run(sys.argv[1:]))
