"""The harness reads kernel messages while a step runs; a socket of records stands in for /dev/kmsg."""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boot import read_only
from harness.kernel import Kernel, Trouble
from harness.step import Place, wait

GONE = (r"EXT4-fs error \(device [^)]*\): ", r"Aborting journal on device ")
ERROR = "EXT4-fs error (device dm-0): ext4_lookup:1855: inode #2: comm sh: iget: bad extra_isize"


@pytest.fixture
def log() -> Iterator[tuple[socket.socket, Kernel]]:
    says, hears = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    hears.setblocking(False)
    with says, hears:
        yield says, Kernel(hears.fileno(), GONE)


def test_words_of_no_trouble_are_passed_over(log: tuple[socket.socket, Kernel]) -> None:
    says, kernel = log
    says.send(b"6,339,5140900,-;EXT4-fs (dm-0): mounted filesystem with ordered data mode.\n")
    says.send(b"4,340,5140901,-;python3 invoked oom-killer: gfp_mask=0x140dca\n SUBSYSTEM=x\n")
    kernel.check()


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (f"2,341,1,-;{ERROR}", f"the filesystem has given up: {ERROR}"),
        ("3,342,1,-;Out of memory: Killed process 305 (cc1 (x)) total-vm:1,", "out of memory: the kernel"),
        ("3,343,1,-;Memory cgroup out of memory: Killed process 7 (a) total-vm:1", "(process 7)"),
    ],
)
def test_trouble_is_told_in_the_kernels_own_words(log: tuple[socket.socket, Kernel], text: str, trouble: str) -> None:
    says, kernel = log
    says.send(text.encode() + b"\n DEVICE=+x\n")
    says.send(b"3,400,2,-;Aborting journal on device dm-0-8.\n")
    with pytest.raises(Trouble) as caught:
        kernel.check()
    assert trouble in str(caught.value)
    kernel.check()  # and once


def test_what_a_program_writes_into_the_kernels_log_is_not_the_kernels_word(log: tuple[socket.socket, Kernel]) -> None:
    says, kernel = log
    says.send(f"12,341,1,-;{ERROR}\n".encode())  # facility 1, level 4
    kernel.check()


def test_a_step_ends_as_soon_as_the_kernel_is_in_trouble(log: tuple[socket.socket, Kernel]) -> None:
    says, kernel = log
    says.send(b"6,1,1,-;nothing\n")
    sleeps = subprocess.Popen(["sleep", "60"])
    try:
        began = time.monotonic()
        says.send(f"2,2,1,-;{ERROR}\n".encode())
        with pytest.raises(Trouble, match="bad extra_isize"):
            wait(sleeps.pid, 60, Place(Path(), Path(), kernel=kernel))
        assert time.monotonic() - began < 30
    finally:
        sleeps.kill()
        sleeps.wait()


def test_a_mount_command_says_whether_it_is_read_only() -> None:
    assert read_only(("mount", "-t", "ext4", "-o", "strictatime,ro,noload", "a", "b"))
    assert not read_only(("mount", "-t", "ext4", "-o", "errors=remount-ro", "/dev/disk/under-test", "/mnt"))
