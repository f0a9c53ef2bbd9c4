"""The way to a Dask scheduler: its address, its certificates, and whether anybody there answers.

Connections are by mutual TLS, unless the scheduler is on this host's loopback: a task is a program, so whoever can send
one to a worker is its user.
"""

import ipaddress
import os
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agelab.base.errors import HostError, InputError

CERTIFICATE, KEY, AUTHORITY = "AGELAB_CLUSTER_CERT", "AGELAB_CLUSTER_KEY", "AGELAB_CLUSTER_CA"
"""Files (PEM): this host's certificate and its key, and the certificate of the authority of all of them."""
CONNECT_SECONDS = 20
START = "start one: dask scheduler (docs/howto/cluster.md)"


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
            raise InputError(
                f"{name}={value}: there is no such file", hint=f"all three are needed: {', '.join(named)}"
            )
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
            said = talk.recv(1)  # by TLS 1.3 a client hears only now that it is refused
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
    if not said:
        raise HostError(f"--on {address}: no scheduler answers there: the connection was closed", hint=START)


def _tls() -> ssl.SSLContext:
    """Return how a scheduler is verified, as Dask does: by its authority, whatever its name is."""
    security()  # says which file is missing
    named = {name: os.environ[name] for name in (CERTIFICATE, KEY, AUTHORITY)}
    try:
        context = ssl.create_default_context(cafile=named[AUTHORITY])
        context.check_hostname = False
        context.load_cert_chain(named[CERTIFICATE], named[KEY], password="")
    except OSError as error:  # ssl.SSLError is one
        said = ", ".join(f"{name}={value}" for name, value in named.items())
        raise InputError(
            f"the certificates of the cluster cannot be read ({said}): {error.strerror or error}",
            hint="name PEM files: a certificate, its key without a password, the authority's certificate",
        ) from error
    return context
