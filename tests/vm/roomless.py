"""A host of its own for a run: its mounts, its processes and its libvirt, with little room for runs.

A filesystem that is mounted now is not seen by a libvirt that was started before: so it gets another.
"""

import os
import subprocess
import sys
from pathlib import Path

from agelab.cli.options import open_store

_SCRIPT = """
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/libvirt/qemu
mkdir "$AGELAB_HOME/store" "$AGELAB_HOME/cache" "$AGELAB_HOME/runs"
mount --bind "$REAL/store" "$AGELAB_HOME/store"
mount --bind "$REAL/cache" "$AGELAB_HOME/cache"
mount -t tmpfs -o "size=$ROOM" tmpfs "$AGELAB_HOME/runs"
agelab() { "$PROGRAM" "$@"; }
"""


def privately(home: Path, room: str, script: str, **words: Path) -> subprocess.CompletedProcess[str]:
    """A shell script with ``agelab`` in it, in a store in ``home`` that has so much ``room`` for runs.

    Whatever it has started has ended when it has. ``words`` are variables of the script.
    """
    home.mkdir()
    program = Path(sys.executable).with_name("agelab")
    told = {"AGELAB_HOME": home, "REAL": open_store().home, "ROOM": room, "PROGRAM": program, **words}
    (home / "script").write_text(_SCRIPT + script)
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-eu", str(home / "script")],
        env={**os.environ, **{name: str(value) for name, value in told.items()}},
        capture_output=True,
        text=True,
        timeout=900,
    )  # fmt: skip
