"""Which of Debian's kernels a version means, and which are near one that there is not.

Debian names a kernel by its release (``6.1.0-50-amd64``, ``6.12.117+deb13-amd64``), which says little of the upstream
version where the middle number is 0; the package's version does (``6.1.176-1``).
"""

import re
from collections.abc import Mapping
from itertools import zip_longest

from agelab.debian import newest

FLAVOUR = "-amd64"
MAX_NEAREST = 3
"""How many to name where there is none."""

_UPSTREAM = re.compile(r"(?P<numbers>\d+(\.\d+)*)([-~]rc(?P<candidate>\d+))?")
_RELEASED = 10**6
"""In place of a candidate's number."""

Releases = Mapping[str, str]
"""Release to package version."""


def is_version(text: str) -> bool:
    """Whether it begins like a version, and not like a name."""
    return text[:1].isascii() and text[:1].isdecimal()


def find_exact(wanted: str, releases: Releases) -> str | None:
    """The release that is ``wanted``, with the flavour or without it."""
    return next((name for name in (wanted, wanted + FLAVOUR) if name in releases), None)


def find_newest(wanted: str, releases: Releases) -> str | None:
    """The release that is ``wanted`` or, of those that it is the beginning of, the newest.

    Where it is the beginning of no release, those of whose package's version it is.
    """
    if found := find_exact(wanted, releases):
        return found
    begins = re.compile(re.escape(wanted) + r"([.+~-]|$)")
    matching = {version: name for name, version in releases.items() if begins.match(name)}
    matching = matching or {version: name for name, version in releases.items() if begins.match(version)}
    return matching[newest(list(matching))] if matching else None


def nearest(wanted: str, releases: Releases) -> list[str]:
    """What to ask for in place of a version that there is not, the numerically nearest first.

    As exact as ``wanted``: versions of two numbers where it has two, releases where it has more.
    """
    asked = numbers(wanted)
    ranked = sorted(releases, key=lambda name: numbers(releases[name]), reverse=True)
    ranked.sort(key=lambda name: min(_distance(asked, numbers(text)) for text in (name, releases[name])))
    length = len(asked)
    names = (name if length > 2 else ".".join(map(str, numbers(name)[:length])) for name in ranked)
    return list(dict.fromkeys(names))[:MAX_NEAREST]


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a release or a version, in their order."""
    return tuple(int(found) for found in re.findall(r"[0-9]+", text.removesuffix(FLAVOUR)))


def sort_key(version: str) -> tuple[int, ...]:
    """What sorts versions by their age: a candidate comes before its release."""
    parts = _UPSTREAM.match(version)
    if not parts:
        return numbers(version)
    released = [int(part) for part in parts["numbers"].split(".")]
    candidate = int(parts["candidate"]) if parts["candidate"] else _RELEASED
    padded = (*released, 0, 0)[: max(3, len(released))]
    return (*padded, candidate, *numbers(version[parts.end() :]))


def _distance(asked: tuple[int, ...], there: tuple[int, ...]) -> tuple[int, ...]:
    """How far apart two versions are: the first number that differs counts, and of ``asked`` only what it says."""
    return tuple(abs(one - other) for one, other in zip_longest(asked, there[: len(asked)], fillvalue=0))
