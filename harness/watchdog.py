"""The hardware watchdog, on the guest's own clock: it ends a guest whose kernel runs nothing any more.

A step that merely hangs is found by its deadline (harness.step); this is for when not even that can run.
Interface: the kernel's Documentation/watchdog/watchdog-api.rst.
"""

import fcntl
import os
import struct
import threading

DEVICE = "/dev/watchdog"
WDIOC_SETTIMEOUT = 0xC0045706
TIMEOUT = 60
"""Seconds of guest time without a sign of life after which the watchdog powers the guest off."""
INTERVAL = 20


def start() -> bool:
    """Arm the watchdog and keep feeding it from a thread. False where there is none."""
    try:
        descriptor = os.open(DEVICE, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    fcntl.ioctl(descriptor, WDIOC_SETTIMEOUT, struct.pack("i", TIMEOUT))
    threading.Thread(target=_feed, args=(descriptor,), daemon=True).start()
    return True


def _feed(descriptor: int) -> None:
    pause = threading.Event()
    while True:
        os.write(descriptor, b"\0")
        pause.wait(INTERVAL)
