"""The way to a Dask scheduler: its address, its certificates, whether anybody there answers, and what is read of it.

Connections are by mutual TLS, unless the scheduler is on this host's loopback: a task is a program, so whoever can send
one to a worker is its user.

What a cluster sends is data: while it is read, no pickle names a function or a class. Dask unpickles results, errors,
types, what its topics ``warn`` and ``print`` bring, and any part of any message; its settings reach only some of these.
All of them look names up in the same place of Python, which an audit hook sees.
"""

import ipaddress
import logging
import os
import socket
import ssl
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from urllib.parse import urlsplit

from agelab.base.errors import HostError, InputError
from agelab.store.http import tls

CERTIFICATE, KEY, AUTHORITY = "AGELAB_CLUSTER_CERT", "AGELAB_CLUSTER_KEY", "AGELAB_CLUSTER_CA"
"""Files (PEM): this host's certificate and its key, and the certificate of the authority of all of them."""
CONNECT_SECONDS = 20
START = "start one: dask scheduler (docs/howto/cluster.md)"
UNREAD = "it is a Python object, which is not read here: see the logs of scheduler and workers"
"""Stands for an object that is not unpickled; Dask itself takes a text in the place of an error and its traceback."""
_reading = 0
"""Connections that are open."""


def address_of(address: str) -> str:
    """Return Dask's own address. Raises InputError for plain TCP to another host."""
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "dask" or not host or not port or parts.path.strip("/") or parts.username:
        raise InputError(f"--on {address}: it is dask://host:port")
    if any(os.environ.get(name) for name in (CERTIFICATE, KEY, AUTHORITY)):
        return f"tls://{parts.netloc}"
    if not _is_loopback(host):
        raise InputError(
            f"--on {address}: without TLS anybody on the way could run programs on the workers",
            hint=f"set {CERTIFICATE}, {KEY} and {AUTHORITY} (docs/howto/cluster.md)",
        )
    return f"tcp://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def security() -> Any:
    """Return the certificates for mutual TLS; None without any. Raises InputError where one is missing."""
    from distributed.security import Security

    named = {name: os.environ.get(name, "") for name in (CERTIFICATE, KEY, AUTHORITY)}
    if not any(named.values()):
        return None
    for name, value in named.items():
        if not Path(value).is_file():
            raise InputError(f"{name}={value}: there is no such file", hint=f"all three are needed: {', '.join(named)}")
    certificate, key, authority = named.values()
    files = {"tls_ca_file": authority, "tls_client_cert": certificate, "tls_client_key": key}
    return Security(**files, require_encryption=True)


def require_answer(address: str) -> None:
    """Connect to the scheduler at ``dask://host:port``, and wait for its first byte.

    Raises HostError where nobody is there, or says anything in time, or where one does not trust the other's
    certificate; InputError for certificates that cannot be read.
    """
    place = urlsplit(address)
    context = _tls() if address_of(address).startswith("tls:") else None
    try:
        with socket.create_connection((place.hostname or "", place.port or 0), CONNECT_SECONDS) as plain:
            talk = context.wrap_socket(plain) if context else plain
            first_byte = talk.recv(1)  # by TLS 1.3 a client hears only now that it is refused
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or "no TLS is spoken there"
        raise HostError(
            f"--on {address}: its certificate, or ours, is not trusted: {why}",
            hint=f"the authority of all certificates is {AUTHORITY}={os.environ.get(AUTHORITY)}",
        ) from error
    except TimeoutError as error:
        hint = START if context else f"{START}; one that speaks TLS: set {CERTIFICATE}, {KEY} and {AUTHORITY}"
        raise HostError(f"--on {address}: no scheduler answers there in time", hint=hint) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise HostError(f"--on {address}: no scheduler answers there: {why}", hint=START) from error
    if not first_byte:
        raise HostError(f"--on {address}: no scheduler answers there: the connection was closed", hint=START)


def _tls() -> ssl.SSLContext:
    """Return how a scheduler is verified, as Dask does: by its authority, whatever its name is."""
    security()  # says which file is missing
    context = tls(CERTIFICATE, KEY, AUTHORITY, "cluster")
    context.check_hostname = False
    return context


def error_text(error: Exception) -> str:
    """Return what an error says; Dask makes one of the bytes of an error that it could not unpickle."""
    return UNREAD if any(isinstance(argument, bytes) for argument in error.args) else str(error)


@contextmanager
def reading() -> Iterator[None]:
    """Refuse all but plain values in pickles, and let Dask neither print, warn nor log, in this whole process."""
    global _reading
    from distributed import Client
    from distributed.protocol.serialize import families

    _watch_names()
    loaders, topics, silenced = dict(families), Client._default_event_handlers, logging.root.manager.disable
    _reading += 1
    try:
        Client._default_event_handlers = {}
        families.update((name, (dumps, _inert(loads), *more)) for name, (dumps, loads, *more) in loaders.items())
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
def _watch_names() -> None:
    """Add the hook, once: no hook can be taken away."""
    sys.addaudithook(_refuse_names)


def _refuse_names(event: str, words: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _reading:
        raise UnpicklingError("a pickle of a cluster names a function or a class")
