"""What is made ahead: an error of it is nobody's, and one of the body ends its programs."""

import threading
import time
from functools import partial
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.process import SideBySide
from agelab.store.artefacts import Store

SECONDS = 20.0


def test_whoever_asks_for_what_is_being_made_waits_for_it(tmp_path: Path) -> None:
    store, begun, go_on, made = Store(tmp_path), threading.Event(), threading.Event(), []

    def build(directory: Path) -> None:
        begun.set()
        assert go_on.wait(SECONDS)
        made.append((directory / "file").write_text("made"))

    obtain = partial(store.obtain, "tools", {"n": 1}, build)
    with SideBySide() as beside:
        beside.begin(obtain)
        assert begun.wait(SECONDS)
        threading.Timer(0.1, go_on.set).start()
        assert (obtain() / "file").read_text() == "made"
    assert len(made) == 1


def test_an_error_is_left_to_whoever_asks() -> None:
    def fails() -> None:
        raise ValueError("no such thing")

    with SideBySide() as beside:
        beside.begin(fails)


def test_an_error_of_the_body_ends_the_programs_and_is_not_waited_for(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), SideBySide() as beside:
        beside.begin(lambda: process.run(["sh", "-c", f'touch "{begun}"; exec sleep 60']))
        while not begun.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert time.monotonic() - started < SECONDS
    assert process.run(["true"]).returncode == 0  # of this thread nothing is ended
