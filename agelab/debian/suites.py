"""All of Debian's suites that the host's mirror, or the snapshot, has."""

from collections.abc import Iterator

from agelab.base.errors import HostError, InputError, Notify, silent
from agelab.base.types import SUITES
from agelab.debian.archive import Archive
from agelab.debian.snapshot import chosen, first_suite
from agelab.store.artefacts import Store


def archives(store: Store, *, refresh: bool = False, progress: Notify = silent) -> Iterator[Archive]:
    """Yield the host's suite, then suites whose package lists are cached, then the others.

    Missing lists are fetched when the caller reaches them, with ``refresh`` all lists. A suite that the mirror does
    not have is skipped with a line of ``progress``. Raises HostError when the first suite cannot be fetched, and of a
    snapshot any: what a suite has must not depend on a server's bad moment.
    """
    first = first_suite()
    every = [Archive(store, suite) for suite in dict.fromkeys((first, *SUITES))]
    cached = [archive for archive in every if archive.suite == first or archive.fetched]
    for archive in (*cached, *(archive for archive in every if archive not in cached)):
        if refresh or not archive.fetched:
            progress(f"fetching the package lists of Debian {archive.suite}")
            try:
                archive.update()
            except (HostError, InputError) as error:
                if archive.suite == first or (isinstance(error, HostError) and chosen()):
                    raise
                progress(f"doing without Debian {archive.suite}: {str(error).splitlines()[0]}")
                continue
        yield archive
