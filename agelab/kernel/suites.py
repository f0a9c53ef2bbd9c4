"""Debian's suites one after another: what the host's mirror carries, in the order in which it is asked."""

from collections.abc import Iterator

from agelab.debian import SUITES, Archive, cached_resolution, host_suite
from agelab.errors import HostError, InputError
from agelab.notify import Notify, silent
from agelab.store import Store


def archives(store: Store, *, refresh: bool = False, progress: Notify = silent) -> Iterator[Archive]:
    """The host's suite, those whose package lists are here, then the others, whose lists are fetched.

    Lists are fetched when the caller comes to them; ``refresh`` fetches those that are here again. A suite that
    the mirror does not hand out is passed over with one line of ``progress``; the host's own must be there.
    Raises HostError.
    """
    host = host_suite()
    every = [Archive(store, suite) for suite in dict.fromkeys((host, *SUITES))]
    here = [archive for archive in every if archive.suite == host or archive.fetched]
    for archive in (*here, *(archive for archive in every if archive not in here)):
        if refresh or not archive.fetched:
            progress(f"fetching the package lists of Debian {archive.suite}")
            try:
                archive.update()
            except (HostError, InputError) as error:
                if archive.suite == host:
                    raise
                progress(f"doing without Debian {archive.suite}: {str(error).splitlines()[0]}")
                continue
        yield archive


def suite_of_headers(release: str, version: str, store: Store, progress: Notify = silent) -> str | None:
    """The suite that has the headers of exactly that kernel, or None. Raises HostError."""
    name = f"linux-headers-{release}"

    def ask() -> str:
        for archive in archives(store, progress=progress):
            if archive.versions(name).get(name) == version:
                return archive.suite
        raise LookupError(name)  # not remembered: a suite may have them tomorrow

    try:
        return cached_resolution(store, {"headers": release, "version": version}, str, ask)
    except LookupError:
        return None
