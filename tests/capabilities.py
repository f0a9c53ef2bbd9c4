"""The capabilities that a host may lack: no other reason to skip a test is allowed where CI runs (tests/conftest.py).

Programs are not among them: ``sh agelab/setup.sh test`` installs those of tests/host-packages.txt.
"""

import os
from typing import NoReturn

import pytest

WHY_MISSING = {
    "root": "the tests run as any user; mounts, namespaces and loop devices take root",
    "loop devices": "a container may have no /dev/loop-control",
    "partition nodes": "the /dev of a container does not follow the kernel",
    "cgroup limits": "a container may not set them, or libvirt may not make cgroups there",
    "huge pages": "a container may not switch them",
    "swap": "a container may not add swap space",
    "mount": "a kernel may lack the filesystem, a container the right to mount it",
    "tracing": "a container may forbid ptrace",
    "sampling": "a container may forbid perf_event_open",
    "page cache": "a tmpfs keeps its files in memory",
    "PCI bridge": "a virtual machine or a container may have none",
    "network namespaces": "they take root, and a kernel with links and queues (veth, tbf)",
}


def lacks(capability: str, detail: str = "") -> str:
    """The reason of a skip. Raises KeyError for a capability that is not listed."""
    return f"no {capability}: {detail or WHY_MISSING[capability]}"


def skip(capability: str, detail: str = "") -> NoReturn:
    """Skip the test that is running."""
    pytest.skip(lacks(capability, detail))


def is_allowed(reason: str) -> bool:
    """Return True if a skip names a listed capability."""
    return reason.removeprefix("Skipped: ").startswith(tuple(f"no {capability}: " for capability in WHY_MISSING))


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=lacks("root"))
