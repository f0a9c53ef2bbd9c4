"""Find the Debian kernel that a version stands for, or the nearest ones when there is none.

Debian names a kernel by its release (``6.1.0-50-amd64``, ``6.12.117+deb13-amd64``), which says little of the upstream
version where the middle number is 0; the package's version does (``6.1.176-1``).
"""

import re
from collections.abc import Mapping
from itertools import zip_longest

from agelab.debian import newest

FLAVOUR = "-amd64"
MAX_NEAREST = 3
"""Nearest kernels that an error names."""

_UPSTREAM = re.compile(r"(?P<numbers>\d+(\.\d+)*)([-~]rc(?P<candidate>\d+))?")
_RELEASED = 10**6
"""Sorts a release after its release candidates."""

Releases = Mapping[str, str]
"""Maps release to package version."""


def is_version(text: str) -> bool:
    """Return True for text that starts with a digit: a version, not a name."""
    return text[:1].isascii() and text[:1].isdecimal()


def find_exact(wanted: str, releases: Releases) -> str | None:
    """Return the release ``wanted``, with or without the flavour, or None."""
    return next((name for name in (wanted, wanted + FLAVOUR) if name in releases), None)


def find_newest(wanted: str, releases: Releases) -> str | None:
    """Return the release ``wanted``, else the newest that starts with it, else by package versions; or None."""
    if found := find_exact(wanted, releases):
        return found
    begins = re.compile(re.escape(wanted) + r"([.+~-]|$)")
    matching = {version: name for name, version in releases.items() if begins.match(name)}
    matching = matching or {version: name for name, version in releases.items() if begins.match(version)}
    return matching[newest(list(matching))] if matching else None


def nearest(wanted: str, releases: Releases) -> list[str]:
    """Suggest versions in place of one that does not exist, the numerically nearest first.

    They are as exact as ``wanted``: versions of two numbers if it has two, releases if it has more.
    """
    asked = numbers(wanted)
    ranked = sorted(releases, key=lambda name: numbers(releases[name]), reverse=True)
    ranked.sort(key=lambda name: min(_distance(asked, numbers(text)) for text in (name, releases[name])))
    length = len(asked)
    names = (name if length > 2 else ".".join(map(str, numbers(name)[:length])) for name in ranked)
    return list(dict.fromkeys(names))[:MAX_NEAREST]


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a release or a version, in order; one of more than 18 digits counts as several."""
    return tuple(int(found) for found in re.findall(r"[0-9]{1,18}", text.removesuffix(FLAVOUR)))


def sort_key(version: str) -> tuple[int, ...]:
    """Return a key that sorts versions by age: a release candidate comes before its release."""
    parts = _UPSTREAM.match(version)
    if not parts:
        return numbers(version)
    released = [int(part) for part in parts["numbers"].split(".")]
    candidate = int(parts["candidate"]) if parts["candidate"] else _RELEASED
    padded = (*released, 0, 0)[: max(3, len(released))]
    return (*padded, candidate, *numbers(version[parts.end() :]))


def _distance(asked: tuple[int, ...], found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distances of the numbers of two versions, as many as ``asked`` has; they compare in order."""
    return tuple(abs(one - other) for one, other in zip_longest(asked, found[: len(asked)], fillvalue=0))
