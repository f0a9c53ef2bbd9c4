"""What a cluster sends is data: while it is read, no pickle names a function or a class.

Dask unpickles results, errors, types, what its topics ``warn`` and ``print`` bring, and any part of any message; its
settings reach only some of these. All of them look names up in the same place of Python, which an audit hook sees.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pickle import UnpicklingError
from typing import Any

_reading = 0
"""Connections that are open."""


UNREAD = "it is a Python object, which is not read here: see the logs of scheduler and workers"
"""Stands for an object that is not unpickled; Dask itself takes a text in the place of an error and its traceback."""


def told(error: Exception) -> str:
    """Return what an error says; Dask makes one of the bytes of an error that it could not unpickle."""
    return UNREAD if any(isinstance(one, bytes) for one in error.args) else str(error)


@contextmanager
def reading() -> Iterator[None]:
    """Refuse all but plain values in pickles, and let Dask neither print, warn nor log, in this whole process."""
    global _reading
    from distributed import Client
    from distributed.protocol.serialize import families

    _watch()
    loaders, topics, silenced = dict(families), Client._default_event_handlers, logging.root.manager.disable
    _reading += 1
    try:
        Client._default_event_handlers = {}
        families.update(
            (name, (dumps, _inert(loads), *more)) for name, (dumps, loads, *more) in loaders.items()
        )
        logging.disable(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(silenced)
        families.update(loaders)
        Client._default_event_handlers = topics
        _reading -= 1


def _inert(loads: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that gives UNREAD for what cannot be read, where Dask would break off the connection."""

    def read(*words: Any) -> Any:
        try:
            return loads(*words)
        except Exception:
            return UNREAD

    return read


@cache
def _watch() -> None:
    """Add the hook, once: no hook can be taken away."""
    sys.addaudithook(_refuse_names)


def _refuse_names(event: str, words: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _reading:
        raise UnpicklingError("a pickle of a cluster names a function or a class")
