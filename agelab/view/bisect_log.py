"""Follow the log of a bisect on standard error."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from agelab.bisect.bisect_directory import BisectDirectory

POLL_SECONDS = 0.2
"""Seconds between two reads of the log."""


@contextmanager
def follow_log(directory: BisectDirectory) -> Iterator[None]:
    """Show each line that comes into the log, also from the processes that judge steps, on standard error."""
    over = threading.Event()
    place = directory.log.stat().st_size if directory.log.exists() else 0

    def follow() -> None:
        nonlocal place
        last = False
        while not last:
            last = over.wait(POLL_SECONDS)
            if directory.log.exists():
                with directory.log.open("rb") as file:
                    file.seek(place)
                    text = file.read()
                whole = text[: text.rfind(b"\n") + 1]
                place += len(whole)
                click.echo(whole.decode(errors="replace"), err=True, nl=False)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()
