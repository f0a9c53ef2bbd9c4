"""A host of a test's own: processes, mounts, /run and libvirt's places, so that its libvirtd can be killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY = "ready"
_SCRIPT = f"""
set -e
for place in /run /var/lib/libvirt /var/log/libvirt; do mount -t tmpfs none "$place"; done
mkdir -p /run/lock /var/lib/libvirt/qemu /var/log/libvirt/qemu
echo {READY}
sleep infinity &
exec {sys.executable} -c 'import os
while os.wait(): pass'  # as process 1 should: a dead QEMU must not stay a process
"""


@contextmanager
def host() -> Iterator[tuple[str, ...]]:
    """Yield the words before a command line that runs it there. All that runs there ends with the body."""
    world = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    with subprocess.Popen([*world, "sh", "-c", _SCRIPT], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline().strip() == READY
            [inside] = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
            yield ("nsenter", "--target", inside, "--mount", "--pid", "--")
        finally:
            child.kill()
