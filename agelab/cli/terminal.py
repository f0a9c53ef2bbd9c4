"""This terminal on a guest's console."""

import os
import selectors
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

PROMPT = b"# "
"""Of the guest's shell: what is typed before it reads is lost."""
WAIT = 0.2
"""Seconds between looks for the guest's socket."""


@contextmanager
def connected(path: Path) -> Iterator[None]:
    """Pass on what is typed to the socket, and what comes from it to the screen, while the body runs."""
    ended: list[bool] = []
    relay = Thread(target=_relay, args=(path, ended))
    relay.start()
    try:
        yield
    finally:
        ended.append(True)
        relay.join()


def _relay(path: Path, ended: list[bool]) -> None:
    typed, before = sys.stdin.fileno(), None
    with socket.socket(socket.AF_UNIX) as guest, selectors.DefaultSelector() as ready:
        while guest.connect_ex(str(path)):
            if ended:
                return
            time.sleep(WAIT)
        ready.register(guest, selectors.EVENT_READ)
        seen = b""
        try:
            while (events := ready.select(WAIT)) or not ended:
                for key, _ in events:
                    if key.fileobj is guest:
                        if not (said := guest.recv(4096)):
                            return
                        os.write(1, said)
                        waiting = PROMPT not in seen
                        seen = (seen + said)[-4096:] if waiting else seen
                        if waiting and PROMPT in seen:
                            ready.register(typed, selectors.EVENT_READ)
                            if os.isatty(typed):
                                before = termios.tcgetattr(typed)
                                tty.setraw(typed)
                    elif keys := os.read(typed, 4096):
                        guest.sendall(keys)
                    else:
                        ready.unregister(typed)
        finally:
            if before is not None:
                with suppress(termios.error):
                    termios.tcsetattr(typed, termios.TCSADRAIN, before)
