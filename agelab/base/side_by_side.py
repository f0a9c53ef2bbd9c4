"""Make things beside the thread that will ask for them: each in a thread of its own."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from agelab.base import process


class SideBySide:
    """A context in which things are made ahead; an error in its body ends the programs that make them.

    What goes wrong there is nobody's yet: whoever asks for the thing makes it, meets the same error, and tells it.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, make: Callable[[], object]) -> None:
        """Begin to make something. Whoever asks for it is kept waiting by its lock (``Store.obtain``)."""
        thread = threading.Thread(target=self._carry_out, args=(make,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry_out(self, make: Callable[[], object]) -> None:
        with suppress(Exception), process.ending_when(self._stop.is_set):
            make()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error:
            self._stop.set()
        for thread in self._threads:
            thread.join()
