"""A cache behind HTTP: ``GET``, ``HEAD`` and ``PUT`` of ``/ac/<sha256>`` and ``/cas/<sha256>``.

That is what bazel-remote speaks, with ``--disable_http_ac_validation``; a WebDAV or S3 gateway does as well. No
redirection is followed, and no answer is waited for longer, or read further, than the limits here.
"""

import base64
import http.client
import netrc
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from agelab.base.errors import InputError
from agelab.store.parcel import MAX_BLOB, Kind, PlaceUnreachable

CERTIFICATE, CERTIFICATE_KEY, AUTHORITY = "AGELAB_CACHE_CERT", "AGELAB_CACHE_KEY", "AGELAB_CACHE_CA"
"""Files (PEM): the client's certificate and its key, and the certificate of the authority of the server's."""
SILENCE = 10.0
"""Seconds to wait for the next bytes."""
PATIENCE = 60.0
"""Seconds for a whole request: who sends a byte now and then is not waited for."""
ABSENT = (404, 410)
STORED = (200, 201, 202, 204, 412)
"""Answers to PUT; 412 is that of a gateway which was there first with another writer's."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow none: it may lead to a host that is nobody's cache, with our password."""


class HttpPlace:
    """A server, by its URL."""

    def __init__(self, url: str, *, silence: float = SILENCE, patience: float = PATIENCE) -> None:
        """Raises InputError for a URL without a host, and for certificates or a netrc that cannot be read."""
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise InputError(f"AGELAB_CACHE: {error}") from error
        if not host or parts.query or parts.fragment:
            raise InputError("AGELAB_CACHE: a server is http(s)://[user:password@]host[:port][/path]")
        plain = host if ":" not in host else f"[{host}]"
        place = plain if port is None else f"{plain}:{port}"
        self.name = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
        self._silence, self._patience = silence, patience
        self._headers = _credentials(parts.username, parts.password, host)
        handlers: list[urllib.request.BaseHandler] = [_NoRedirection()]
        if parts.scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=tls(CERTIFICATE, CERTIFICATE_KEY, AUTHORITY, "cache")))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        status, content = self._ask("GET", kind, sha256)
        if status in ABSENT:
            return None
        if status != 200:
            raise self._unreachable(f"it answers GET with {status}")
        return content

    def has(self, kind: Kind, sha256: str) -> bool:
        status, _ = self._ask("HEAD", kind, sha256)
        if status != 200 and status not in ABSENT:
            raise self._unreachable(f"it answers HEAD with {status}")
        return status == 200

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        status, _ = self._ask("PUT", kind, sha256, content)
        if status not in STORED:
            hint = " (bazel-remote: --disable_http_ac_validation)" if status == 400 and kind == "ac" else ""
            raise self._unreachable(f"it answers PUT with {status}{hint}")

    def _ask(self, method: str, kind: Kind, sha256: str, content: bytes | None = None) -> tuple[int, bytes]:
        """Send a request, and return the status and content of the answer."""
        request = urllib.request.Request(f"{self.name}/{kind}/{sha256}", content, method=method)
        for name, value in self._headers.items():
            request.add_unredirected_header(name, value)
        if content is not None:
            request.add_header("Content-Type", "application/octet-stream")
            request.add_header("If-None-Match", "*")

        def exchange() -> tuple[int, bytes]:
            with self._opener.open(request, timeout=self._silence) as answer:
                return answer.status, _read(answer)

        try:
            return _within(self._patience, exchange)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, b""
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, why: object) -> PlaceUnreachable:
        if isinstance(why, TimeoutError):
            return PlaceUnreachable("it does not answer in time")
        if isinstance(why, ssl.SSLCertVerificationError):
            return PlaceUnreachable(f"its certificate is not trusted: {why.verify_message} ({AUTHORITY})")
        return PlaceUnreachable(" ".join(str(getattr(why, "strerror", None) or why or repr(why)).split())[:200])


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Read an answer to its end, which may not be far away."""
    content = answer.read(MAX_BLOB + 1)
    if len(content) > MAX_BLOB:
        raise ValueError(f"it answers with more than {MAX_BLOB >> 20} MiB")
    if answer.length:
        raise ValueError("its answer ends too soon")
    return content


def _within(seconds: float, work: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """Do the work in a thread, and leave it behind where it takes longer. Raises TimeoutError then."""
    done: list[tuple[int, bytes]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


def _credentials(user: str | None, password: str | None, host: str) -> dict[str, str]:
    """Return the header of basic authentication: the URL's name and password, or those of ~/.netrc for the host."""
    if user is not None:
        return _basic(unquote(user), unquote(password or ""))
    try:
        login = netrc.netrc().authenticators(host)
    except FileNotFoundError:
        return {}
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"AGELAB_CACHE: ~/.netrc cannot be read: {error}") from error
    return _basic(login[0], login[2] or "") if login else {}


def _basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def tls(certificate: str, key: str, authority: str, of: str) -> ssl.SSLContext:
    """Return how a server ``of`` something is verified, and who we are, by files that these variables name.

    Raises InputError for files that cannot be read.
    """
    named = {name: os.environ.get(name) or None for name in (certificate, key, authority)}
    try:
        context = ssl.create_default_context(cafile=named[authority])
        if own := named[certificate]:
            context.load_cert_chain(own, named[key], password="")
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(f"{name}={value}" for name, value in named.items() if value)
        raise InputError(
            f"the certificates of the {of} cannot be read ({files}): {error.strerror or error}",
            hint="name PEM files: a certificate, its key without a password, the authority's certificate",
        ) from error
    if named[key] and not named[certificate]:
        raise InputError(f"{key} goes with {certificate}")
    return context
