"""Where Debian packages come from: the host's mirror, or those of one date, from a directory or a server.

``AGELAB_SNAPSHOT`` (``SNAPSHOT=`` of make) names a date, a directory or an address, and set to nothing means today.
Without it the project's own pin does (pins.toml). Below a directory or an address lie ``debian`` and
``debian-security``, as on a mirror. Of a date the addresses are those that the host's apt is configured to take
snapshots from (``Acquire::Snapshots::URI``, apt.conf(5)).

What a directory has runs on this host: QEMU, compilers, scripts of packages. So each of its packages must be in a list
that Debian has signed (``Archive`` has apt check that), or the user says ``trusted:<directory>``.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from agelab.base import fileio, places, process
from agelab.base.errors import HostError, InputError
from agelab.base.hashing import key_of
from agelab.base.types import Frozen
from agelab.debian.packages import host_suite
from agelab.scenario import toml_files

_RELEASE_URI = re.compile(r"'(?P<base>[^']+?)/dists/(?P<suite>[^']+?)/InRelease'")


def mirrors() -> tuple[str, str | None]:
    """Return the addresses of the host's Debian mirror and of its security mirror (None if it has none)."""
    codename = host_suite()
    # --print-uris also works on a host whose lists were never fetched.
    printed = process.run(["apt-get", "update", "--print-uris"]).stdout
    releases = [(match["base"], match["suite"]) for match in _RELEASE_URI.finditer(printed)]
    bases = [base for base, suite in releases if suite == codename]
    if not bases:
        raise HostError(
            f"the host's apt sources name no mirror for {codename}",
            hint="agelab builds its guests from the mirror in /etc/apt/sources.list",
        )
    # A third party's suite may have the name of Debian's; only Debian has updates for it.
    main = next((base for base in bases if (base, f"{codename}-updates") in releases), bases[0])
    return main, next((base for base, suite in releases if suite == f"{codename}-security"), None)


VARIABLE = "AGELAB_SNAPSHOT"
TRUSTED = "trusted:"
"""What the user says before a directory of packages that are not to be checked."""
DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
MAIN, SECURITY = "debian", "debian-security"
"""Debian's two archives: their directories on a mirror, and in lower case their labels in Release files."""
SUITE = "bookworm"
"""The suite that comes first in a snapshot, whatever the host's is: that of the guest's root (images/guest.toml)."""
INDEXES = ("InRelease", "Release")
SIGNED_LISTS = "signed"
"""Where a directory has lists that Debian has signed: ``<any>/dists/<suite>`` below it."""
_SIGNED = ("InRelease", "Release.gpg")
_SETTING = re.compile(r'Acquire::Snapshots::URI::(\S+) "(.*)";')


class Pins(Frozen):
    """agelab/pins.toml."""

    snapshot: str = ""


@dataclass(frozen=True)
class Snapshot:
    """Where the packages of one date are."""

    name: str
    """What the user calls it."""
    label: str
    """Where it is said, for messages."""
    main: str
    """Address of the archive, as apt takes it."""
    security: str
    content: str = ""
    """A hash of the directory's indexes; empty for a date or a server, whose packages do not change."""
    unsigned: frozenset[str] = frozenset()
    """The suites of a directory that have no signature of their own."""
    signed_lists: tuple[Path, ...] | None = None
    """The suites of a directory's signed lists, for the unsigned ones; None where the user trusts it."""
    suites: frozenset[str] | None = None
    """The suites of a directory; None where only a server can tell."""

    def may_have(self, suite: str) -> bool:
        """Return False for a suite that the directory does not have."""
        return self.suites is None or suite in self.suites

    @property
    def identity(self) -> str:
        """A short name for its packages."""
        return key_of([self.main, self.security, self.content])[:16]


def chosen() -> Snapshot | None:
    """Return the snapshot that the user names; None for the host's mirror. Raises InputError and HostError."""
    name, label, base = _named()
    if not name:
        return None
    if DATE.fullmatch(name):
        return _of_date(name, label)
    if urlsplit(name).scheme in ("http", "https"):
        address = name.rstrip("/")
        return Snapshot(name, label, f"{address}/{MAIN}", f"{address}/{SECURITY}")
    trusted = name.startswith(TRUSTED)
    return _of_directory(base / Path(name.removeprefix(TRUSTED)).expanduser(), label, trusted=trusted)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Take packages from a snapshot of that name in the body."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def _named() -> tuple[str, str, Path]:
    """Return the name of the snapshot, empty for none, where it is said, and where a relative path begins."""
    name = os.environ.get(VARIABLE)
    if name is not None:
        return name, f"{VARIABLE}={name}", Path.cwd()
    name = toml_files.read(places.PINS, Pins).snapshot
    return name, f"{places.PINS}: snapshot = {name!r}", places.PINS.parent


def first_suite() -> str:
    """Return the suite that is asked before others: the host's; of a snapshot one and the same on all hosts."""
    return SUITE if chosen() else host_suite()


def _of_directory(directory: Path, label: str, *, trusted: bool) -> Snapshot:
    indexes = sorted(
        path for archive in (MAIN, SECURITY) for kind in INDEXES for path in directory.glob(f"{archive}/dists/*/{kind}")
    )
    if not indexes:
        raise InputError(
            f"{label}: it is no date like 20261123T000000Z, no address, and no directory with "
            f"{MAIN}/dists/<suite>/Release below it",
            hint="make such a directory on a host that has the packages: agelab mirror make DIR RUN",
        )
    content = hashlib.sha256(b"trusted" if trusted else b"checked")
    for path in indexes:
        content.update(f"{path.relative_to(directory)}\0".encode() + fileio.read_bytes(path))
    main, security = (f"copy:{quote(str(directory / archive))}" for archive in (MAIN, SECURITY))
    suites = {path.parent for path in indexes}
    unsigned = {path for path in suites if not any((path / name).exists() for name in _SIGNED)}
    return Snapshot(
        f"{TRUSTED if trusted else ''}{directory}",
        label,
        main,
        security,
        content=content.hexdigest(),
        unsigned=_names(unsigned),
        signed_lists=None if trusted else tuple(sorted(directory.glob(f"{SIGNED_LISTS}/*/dists/*"))),
        suites=_names(suites),
    )


def _names(paths: Collection[Path]) -> frozenset[str]:
    return frozenset(path.name for path in paths)


@cache
def _of_date(date: str, label: str) -> Snapshot:
    printed = process.run(["apt-config", "dump"]).stdout
    settings = {match[1].lower(): match[2] for line in printed.splitlines() if (match := _SETTING.fullmatch(line))}
    main = dated_address(settings, MAIN, mirrors()[0], date)
    security = dated_address(settings, SECURITY, mirrors()[1] or "", date)
    for address, whose, setting in (
        (main, "Debian", "Origin::Debian"),
        (security, "Debian's security updates", "Label::Debian-Security"),
    ):
        if not address:
            raise HostError(
                f"{label}: the host's apt is configured for no snapshots of {whose}",
                hint=f'say where they are: Acquire::Snapshots::URI::{setting} "https://.../@SNAPSHOTID@/"; in '
                "/etc/apt/apt.conf.d; or name a directory of packages: agelab mirror make",
            )
    return Snapshot(date, label, main, security)


def dated_address(settings: Mapping[str, str], label: str, mirror: str, date: str) -> str:
    """Return the address of an archive at a date, by apt's settings with names in lower case; empty without one.

    apt looks for an override, then for the archive's label and origin, then for the mirror's host.
    """
    named = [f"label::{label}", *(["origin::debian"] if label == MAIN else [])]
    where = urlsplit(mirror)
    for key in (*(f"override::{setting}" for setting in named), *named, f"host::{where.hostname}"):
        if pattern := settings.get(key):
            return pattern.replace("@SNAPSHOTID@", date).replace("@PATH@", where.path.strip("/")).rstrip("/")
    return ""
