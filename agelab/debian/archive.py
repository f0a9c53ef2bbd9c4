"""Debian packages through the host's own apt configuration, into a private apt root.

Nothing here changes the host: lists and downloads live below the store's cache. Mirrors, proxies and
credentials are the host's; a mirror's address never leaves the private root.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from agelab import atomic, process
from agelab.debian.packages import SUITES, Package, host_suite
from agelab.errors import HostError, InputError, unknown
from agelab.store import Store, file_hash

ARCHITECTURE = "amd64"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_BACKPORTS = "-backports"

_RELEASE_URI = re.compile(r"'(?P<base>[^']+?)/dists/(?P<suite>[^']+?)/InRelease'")
_PACKAGE_URI = re.compile(r"'[^']+' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# Host hooks and index kinds are of no use in a private root, and some of them are slow. Without apt's cache, which
# images of containers switch off, each question takes as long as reading the lists does.
_CONFIG = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::CNF;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Default-Release "{preferred}";
pkgCacheGen::ForceEssential ",";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::Cache "{root}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::SourceList "{root}/debian.sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::State::extended_states "{root}/extended_states";
"""


class PackagesVanished(HostError):
    """A suite's mirror does not hand out packages that were resolved: it has newer ones, or is out of reach."""

    def __init__(self, message: str, hint: str = "", suite: str = "") -> None:
        super().__init__(message, hint)
        self.suite = suite


class Archive:
    """One suite of the Debian archive (with its updates and security updates), on the host's mirror."""

    def __init__(self, store: Store, suite: str) -> None:
        if suite not in SUITES and suite != host_suite():
            raise unknown("Debian suite", suite, SUITES)
        self.suite = suite
        self._store = store
        self._root = store.cache("apt") / suite
        self._debs = store.cache("debs")

    @property
    def fetched(self) -> bool:
        """Whether its package lists are here."""
        return (self._root / "updated").exists()

    def update(self, *, refresh: bool = True) -> None:
        """Fetch the package lists: always, or without ``refresh`` only where there are none yet."""
        with self._store.lock(f"apt-{self.suite}"):
            if self.fetched and not refresh:
                self._configure()  # the store may have been moved since
                return
            for directory in ("cache/archives/partial", "lists/partial"):
                (self._root / directory).mkdir(parents=True, exist_ok=True)
            (self._root / "status").touch()
            self._configure()
            self._fetch_lists()
            (self._root / "updated").touch()

    def _configure(self) -> None:
        """Write what apt is told, with this store's places in it."""
        # Backports are packages for the suite below them, whose newest they are only when preferred.
        preferred = self.suite if self.suite.endswith(_BACKPORTS) else ""
        config = _CONFIG.format(root=self._root, architecture=ARCHITECTURE, preferred=preferred)
        atomic.write(self._root / "apt.conf", config.encode())

    def resolve(self, names: Sequence[str], *, essential: bool = False) -> tuple[Package, ...]:
        """The packages of those names with all they depend on (and all essential ones), sorted by name."""
        wanted = [*names, *(["?essential"] if essential else [])]
        argv = ["install", "--print-uris", "-qq", "-y", "--no-install-recommends", *wanted]
        return tuple(sorted(self._printed(argv), key=lambda package: package.name))

    def package(self, name: str, version: str = "") -> Package:
        """One package by itself, of that version or the candidate."""
        return self._printed(["download", "--print-uris", "-qq", f"{name}={version}" if version else name])[0]

    def versions(self, prefix: str) -> dict[str, str]:
        """Name to newest version of every package whose name starts with ``prefix``."""
        self.update(refresh=False)
        names = self._apt("apt-cache", ["pkgnames", prefix]).split()
        listed = self._apt("apt-cache", ["madison", *sorted(names)]) if names else ""
        found: dict[str, str] = {}
        for line in listed.splitlines():  # name | version | where, the newest version of a name first
            name, version, _ = (part.strip() for part in line.split("|", 2))
            found.setdefault(name, version)
        return found

    def depends(self, name: str, version: str = "") -> str:
        """What the package of that name, of that version or the candidate, says in its Depends field."""
        self.update(refresh=False)
        wanted = f"{name}={version}" if version else name
        shown = self._apt("apt-cache", ["show", "--no-all-versions", wanted])
        lines = [line.partition(":")[2].strip() for line in shown.splitlines() if line.startswith("Depends:")]
        return lines[0] if lines else ""

    def download(self, packages: Sequence[Package]) -> list[Path]:
        """The files of these packages, each verified; those in the cache are not fetched again.

        Raises Gone when the mirror does not have them (any more).
        """
        with self._store.lock("debs"):
            absent = [package for package in packages if not self._have(package)]
            if absent:
                self._download(absent)
        return [self._debs / package.filename for package in packages]

    def _have(self, package: Package) -> bool:
        file = self._debs / package.filename
        return file.is_file() and file.stat().st_size == package.size and file_hash(file) == package.sha256

    def _download(self, packages: Sequence[Package]) -> None:
        self.update(refresh=False)
        with atomic.temp_dir(self._debs) as there:
            # Names, not addresses: apt checks what it fetches against the signed lists.
            wanted = [f"{package.name}={package.version}" for package in packages]
            try:
                process.run(
                    ["apt-get", "-c", str(self._root / "apt.conf"), "download", "-qq", *wanted], cwd=there
                )
            except process.ProcessFailed as error:
                if lacking := self._lacking(packages):
                    raise PackagesVanished(
                        f"the mirror of Debian {self.suite} has no {', '.join(lacking)} (any more)",
                        hint="ask what it has now with --refresh; Debian keeps old versions in its snapshot archive",
                        suite=self.suite,
                    ) from error
                raise PackagesVanished(
                    f"cannot download {len(packages)} packages of Debian {self.suite}: {_error_text(error.stderr)}",
                    hint="check the network",
                    suite=self.suite,
                ) from error
            for package in packages:
                fetched = there / package.filename
                if not fetched.is_file() or file_hash(fetched) != package.sha256:
                    raise PackagesVanished(
                        f"the mirror's {package.filename} is not the file that was resolved",
                        hint="resolve the packages again with --refresh",
                        suite=self.suite,
                    )
                fetched.rename(self._debs / package.filename)

    def _lacking(self, packages: Sequence[Package]) -> list[str]:
        """Name and version of those of the packages that the lists do not have."""
        listed = self._apt("apt-cache", ["madison", *(package.name for package in packages)])
        there = {tuple(part.strip() for part in line.split("|")[:2]) for line in listed.splitlines()}
        return [f"{one.name} {one.version}" for one in packages if (one.name, one.version) not in there]

    def _printed(self, arguments: Sequence[str]) -> list[Package]:
        self.update(refresh=False)
        found = []
        for line in self._apt("apt-get", arguments).splitlines():
            match = _PACKAGE_URI.match(line)
            if not match:
                raise HostError(f"apt-get says what agelab cannot read: {line[:60]!r}")
            name, version, _ = match["file"].removesuffix(".deb").rsplit("_", 2)
            found.append(
                Package(
                    name=name,
                    version=unquote(version),
                    filename=match["file"],
                    size=int(match["size"]),
                    sha256=match["sha256"],
                )
            )
        return found

    def _apt(self, program: str, arguments: Sequence[str]) -> str:
        try:
            return process.run([program, "-c", str(self._root / "apt.conf"), *arguments]).stdout
        except process.ProcessFailed as error:
            raise HostError(f"Debian {self.suite}: {_error_text(error.stderr)}", hint=error.hint) from error

    def _fetch_lists(self) -> None:
        main, security = mirrors()
        base = self.suite.removesuffix(_BACKPORTS)
        suites = {self.suite: main, base: main}
        if base != "sid":
            suites |= {f"{base}-updates": main, f"{base}-security": security or ""}
        while True:
            text = "\n".join(_sources_entry(uri, suite) for suite, uri in suites.items() if uri)
            (self._root / "debian.sources").write_text(text)
            try:
                process.run(["apt-get", "-c", str(self._root / "apt.conf"), "update", "-qq"])
                return
            except process.ProcessFailed as error:
                # A suite may have no updates yet, or none any more: no reason to do without it.
                gone = [
                    suite
                    for suite in suites
                    if f"/{suite}/" in error.stderr or f" {suite} Release" in error.stderr
                ]
                lacking = "does not have a Release file" in error.stderr
                if lacking and gone and self.suite not in gone:
                    suites = {suite: uri for suite, uri in suites.items() if suite not in gone}
                    continue
                if lacking and self.suite in gone:
                    raise InputError(f"the host's mirror has no Debian suite {self.suite!r}") from error
                raise HostError(
                    f"cannot fetch the package lists of Debian {self.suite}: {_error_text(error.stderr)}",
                    hint="check the network and the host's apt configuration: apt-get update must work",
                ) from error


def mirrors() -> tuple[str, str | None]:
    """The addresses of the host's Debian mirror and of its security mirror (None where it uses none)."""
    codename = host_suite()
    # What an update would fetch: it works on a host whose lists were never fetched, too.
    printed = process.run(["apt-get", "update", "--print-uris"]).stdout
    found = [(match["base"], match["suite"]) for match in _RELEASE_URI.finditer(printed)]
    bases = [base for base, suite in found if suite == codename]
    if not bases:
        raise HostError(
            f"the host's apt sources name no mirror for {codename}",
            hint="agelab builds its guests from the mirror in /etc/apt/sources.list",
        )
    # A third party may call its suite like Debian's; only Debian has updates to it.
    main = next((base for base in bases if (base, f"{codename}-updates") in found), bases[0])
    return main, next((base for base, suite in found if suite == f"{codename}-security"), None)


def _sources_entry(uri: str, suite: str) -> str:
    fields = {"Types": "deb", "URIs": uri, "Suites": suite, "Components": "main", "Signed-By": KEYRING}
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def _error_text(stderr: str) -> str:
    errors = [line.removeprefix("E: ") for line in stderr.splitlines() if line.startswith("E: ")]
    return "; ".join(errors[:3]) or stderr.strip()[-200:] or "apt-get failed"
