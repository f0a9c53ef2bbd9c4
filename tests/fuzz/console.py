"""Consoles: what is looked for in them is found, or not, in time that grows with their length alone."""

import re
import time
from collections.abc import Iterator

from agelab.evaluate import console

LONG = 1 << 15
"""Bytes that an input is repeated to: a pattern that goes back and forth shows only in a long one."""
SECONDS = 1.0
"""Processor time that one pattern may take for so much."""
PATTERNS = {name: found for name, found in vars(console).items() if isinstance(found, re.Pattern)}

PANIC = b"""[    4.211] sysrq: Trigger a crash
[    4.212] BUG: kernel NULL pointer dereference, address: 0000000000000010
[    4.213] Oops: 0002 [#1] PREEMPT SMP NOPTI
[    4.214] RIP: 0010:reiserfs_write_full_page+0x1c/0x40 [reiserfs]
[    4.215] Kernel panic - not syncing: sysrq triggered crash
"""
TRACEBACK = b"""Traceback (most recent call last):
  File "/harness/main.py", line 60, in run
    raise CellFailed
harness.main.CellFailed: alas
[    9.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100
"""
TROUBLE = b"""[   61.1] INFO: task cp:211 blocked for more than 120 seconds.
[   62.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [cp:211]
[   63.1] Out of memory: Killed process 123 (tar) total-vm:1234kB, anon-rss:1kB
[   64.1] EXT4-fs (pmem2): Remounting filesystem read-only
[   65.1] XFS (pmem2): Filesystem has been shut down due to log error (0x2).
agelab init: cannot mount the root
"""


def one(data: bytes) -> None:
    """Look for trouble in it as it is, and for each pattern in a long one of its kind."""
    console.panic_message(data.decode(errors="replace"))
    text = (data * (LONG // max(len(data), 1) + 1))[:LONG].decode(errors="replace")
    for name, pattern in PATTERNS.items():
        started = time.process_time()
        for _ in pattern.finditer(text):
            pass
        assert time.process_time() - started < SECONDS, f"{name} goes back and forth"


def seeds() -> Iterator[bytes]:
    """Kernels in trouble."""
    yield from (PANIC, TRACEBACK, TROUBLE, PANIC + TRACEBACK + TROUBLE)
