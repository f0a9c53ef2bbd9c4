"""The environment variables that say which cells run again, and which cache machines share."""

import os

FRESH = "AGELAB_FRESH"
"""Has every cell run, as --fresh does for one command."""
CACHE = "AGELAB_CACHE"
"""A directory, or the URL of a server."""
CERTIFICATE, CERTIFICATE_KEY, AUTHORITY = "AGELAB_CACHE_CERT", "AGELAB_CACHE_KEY", "AGELAB_CACHE_CA"
"""Files (PEM): the client's certificate and its key, and the certificate of the authority of the server's."""


def every_cell_runs() -> bool:
    """Return whether AGELAB_FRESH is set."""
    return os.environ.get(FRESH, "") not in ("", "0")


def passed_on() -> dict[str, str]:
    """Return those that are set, for an agelab that a program of ours starts in a clean environment."""
    names = (FRESH, CACHE, CERTIFICATE, CERTIFICATE_KEY, AUTHORITY)
    return {name: os.environ[name] for name in names if name in os.environ}
