"""Resolve and download Debian packages with the host's apt, in a private apt root.

Nothing here changes the host: lists and downloads are below the store's cache. Mirrors, proxies and
credentials are the host's; a mirror's address never leaves the private root. With a snapshot
(agelab.debian.snapshot) its packages are the only ones.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote

from agelab.base import atomic, process
from agelab.base.errors import (
    HostError,
    InputError,
    Notify,
    did_you_mean,
    is_disk_full,
    naming_disk_errors,
    silent,
    unknown,
)
from agelab.base.sanitize import escape_controls
from agelab.base.types import SUITES, AlsoFrom
from agelab.debian import snapshot
from agelab.debian.dated_archive import ARCHITECTURE, PackageList, fields
from agelab.debian.packages import Package, host_suite
from agelab.debian.snapshot import SIGNED_LISTS, TRUSTED, Snapshot, chosen, first_suite, mirrors
from agelab.store.artefacts import Store, file_hash

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_BACKPORTS = "-backports"
_SIGNED_SOURCES = "signed.sources"
_NAME = re.compile(r"[a-z][a-z-]*", re.ASCII)
"""Of a suite or a component. What else a directory may have there would be read by apt as a line of its sources."""
_TARGET = "$(RELEASE)|$(COMPONENT)|$(FILENAME)"

WITHOUT_SECURITY = "apt's sources have no security updates"
_NO_RELEASE = "Release' does not have a Release file"
"""How apt says, behind a suite's name, that the server answered and does not have it."""
_PACKAGE_URI = re.compile(r"'[^']+' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# Hooks and index kinds of the host are cleared: they are useless in a private root, and some are slow. apt's cache is
# switched on (container images switch it off): without it each query reads all lists.
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
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
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
    """The mirror does not serve packages that were resolved: it has newer ones or cannot be reached."""

    def __init__(self, message: str, hint: str = "", suite: str = "", also_from: Sequence[AlsoFrom] = ()) -> None:
        super().__init__(message, hint)
        self.suite = suite
        self.also_from = also_from


class Archive:
    """One suite of the Debian archive (with its updates and security updates), on the host's mirror or a snapshot.

    ``also_from`` adds packages to those of its component main: of contrib, or those of experimental that it has not.
    """

    def __init__(self, store: Store, suite: str, also_from: Sequence[AlsoFrom] = ()) -> None:
        if suite not in SUITES and suite != host_suite():
            raise unknown("Debian suite", suite, SUITES)
        self.suite = suite
        self.also_from = also_from
        self._name = "+".join((suite, *also_from))
        self._store = store
        self._snapshot = snapshot.chosen()
        lists = store.cache("apt")
        self._root = (lists / f"snapshot-{self._snapshot.identity}" if self._snapshot else lists) / self._name
        self._debs = store.cache("debs")

    @property
    def fetched(self) -> bool:
        """True when the package lists have been fetched."""
        return (self._root / "updated").exists()

    def update(self, *, refresh: bool = True) -> None:
        """Fetch the package lists; without ``refresh`` only if there are none yet."""
        with naming_disk_errors(self._store.home), self._store.lock(f"apt-{self._name}"):
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
        """Write apt.conf with the paths of this store."""
        # apt takes packages from backports only when that suite is preferred.
        preferred = self.suite if self.suite.endswith(_BACKPORTS) else ""
        config = _CONFIG.format(root=self._root, architecture=ARCHITECTURE, preferred=preferred)
        atomic.write(self._root / "apt.conf", config.encode())

    def resolve(self, names: Sequence[str], *, essential: bool = False) -> tuple[Package, ...]:
        """Return these packages with all their dependencies (and all essential packages), sorted by name."""
        words = [*names, *(["?essential"] if essential else [])]
        argv = ["install", "--print-uris", "-qq", "-y", "--no-install-recommends", *words]
        return tuple(sorted(self._package_uris(argv), key=lambda package: package.name))

    def require(self, names: Sequence[str], owners: Mapping[str, str] = MappingProxyType({})) -> None:
        """Raise InputError that lists every name that is no package of the suite, with the nearest ones.

        ``owners`` says of a name what asks for it: that begins its line.
        """
        self.update(refresh=False)
        there = frozenset(self._apt("apt-cache", ["pkgnames"]).split())
        wrong = [name for name in names if name not in there]
        if wrong:
            lines = []
            for name in wrong:
                line = f"{owners.get(name, '')}Debian {self.suite} has no package {name!r}"
                near = did_you_mean(name, _alike(name, there))
                lines.append(f"{line}; {near}" if near else line)
            where = " and ".join(("main section", *self.also_from)) + (" alone" if not self.also_from else "")
            raise InputError("\n".join(lines), hint=f"agelab takes packages of Debian's {where}")

    def package(self, name: str, version: str = "") -> Package:
        """Return one package without its dependencies, in that version or the candidate."""
        return self._package_uris(["download", "--print-uris", "-qq", f"{name}={version}" if version else name])[0]

    def versions(self, prefix: str) -> dict[str, str]:
        """Map the name of every package that starts with ``prefix`` to its newest version."""
        self.update(refresh=False)
        names = self._apt("apt-cache", ["pkgnames", prefix]).split()
        listed = self._apt("apt-cache", ["madison", *sorted(names)]) if names else ""
        newest_versions: dict[str, str] = {}
        for line in listed.splitlines():  # name | version | source, the newest version of a name first
            name, version, _ = (part.strip() for part in line.split("|", 2))
            newest_versions.setdefault(name, version)
        return newest_versions

    def depends(self, name: str, version: str = "") -> str:
        """Return the Depends field of a package, in that version or the candidate."""
        self.update(refresh=False)
        exact_name = f"{name}={version}" if version else name
        shown = self._apt("apt-cache", ["show", "--no-all-versions", exact_name])
        lines = [line.partition(":")[2].strip() for line in shown.splitlines() if line.startswith("Depends:")]
        return lines[0] if lines else ""

    def download(self, packages: Sequence[Package]) -> list[Path]:
        """Return the verified files of these packages, fetching those that are not in the cache.

        Raises PackagesVanished when the mirror does not have them (any more).
        """
        with naming_disk_errors(self._store.home), self._store.lock("debs"):
            absent = [package for package in packages if not self._is_cached(package)]
            if absent:
                self._download(absent)
        return [self._debs / package.filename for package in packages]

    def _is_cached(self, package: Package) -> bool:
        file = self._debs / package.filename
        return file.is_file() and file.stat().st_size == package.size and file_hash(file) == package.sha256

    def _download(self, packages: Sequence[Package]) -> None:
        self.update(refresh=False)
        with atomic.temp_dir(self._debs) as there:
            # Names, not addresses: apt checks what it fetches against the signed lists.
            names = [f"{package.name}={package.version}" for package in packages]
            try:
                self._fetch(["download", "-qq", *names], there)
            except process.ProcessFailed as error:
                why = f"cannot download {len(packages)} packages of Debian {self.suite}: {_error_text(error.stderr)}"
                hint = self._nothing_else or "check the network"
                if unlisted := self._unlisted(packages):
                    why = f"the mirror of Debian {self.suite} has no {', '.join(unlisted)} (any more)"
                    if self._snapshot:
                        why = f"the snapshot {self._snapshot.name} has no {', '.join(unlisted)} of Debian {self.suite}"
                    else:
                        hint = "resolve again with --refresh; Debian keeps old versions in its snapshot archive"
                raise PackagesVanished(why, hint, self.suite, self.also_from) from error
            for package in packages:
                fetched = there / package.filename
                if not fetched.is_file() or file_hash(fetched) != package.sha256:
                    raise PackagesVanished(
                        f"the mirror's {package.filename} is not the file that was resolved",
                        hint=self._nothing_else or "resolve the packages again with --refresh",
                        suite=self.suite,
                        also_from=self.also_from,
                    )
                fetched.rename(self._debs / package.filename)

    def _unlisted(self, packages: Sequence[Package]) -> list[str]:
        """List name and version of the packages that are not in the package lists."""
        listed = self._apt("apt-cache", ["madison", *(package.name for package in packages)])
        there = {tuple(part.strip() for part in line.split("|")[:2]) for line in listed.splitlines()}
        return [
            f"{package.name} {package.version}" for package in packages if (package.name, package.version) not in there
        ]

    def _package_uris(self, arguments: Sequence[str]) -> list[Package]:
        self.update(refresh=False)
        packages = []
        for line in self._apt("apt-get", arguments).splitlines():
            match = _PACKAGE_URI.match(line)
            if not match:
                raise HostError(f"apt-get printed a line that agelab cannot parse: {line[:60]!r}")
            name, version, _ = match["file"].removesuffix(".deb").rsplit("_", 2)
            packages.append(
                Package(
                    name=name,
                    version=unquote(version),
                    filename=match["file"],
                    size=int(match["size"]),
                    sha256=match["sha256"],
                )
            )
        return packages

    def _fetch(self, arguments: Sequence[str], directory: Path | None = None) -> None:
        """Run apt-get, which would wait without end for a file that it had no room for. Raises as ``process.run``."""
        argv = ["apt-get", "-c", str(self._root / "apt.conf"), *arguments]
        process.run(argv, cwd=directory, give_up=lambda: is_disk_full(self._root))

    def _apt(self, program: str, arguments: Sequence[str]) -> str:
        with naming_disk_errors(self._store.home):
            try:
                return process.run([program, "-c", str(self._root / "apt.conf"), *arguments]).stdout
            except process.ProcessFailed as error:
                raise HostError(f"Debian {self.suite}: {_error_text(error.stderr)}", error.hint) from error

    @property
    def _nothing_else(self) -> str:
        """What to say where a snapshot lacks something: no other place is asked."""
        return f"nothing else is taken in place of {self._snapshot.label}" if self._snapshot else ""

    def _fetch_lists(self) -> None:
        dated = self._snapshot
        main, security = (dated.main, dated.security) if dated else mirrors()
        base = self.suite.removesuffix(_BACKPORTS)
        suites = {self.suite: main, base: main}
        if "experimental" in self.also_from:  # apt takes of it what no other suite has
            suites["experimental"] = main
        if base != "sid":
            suites |= {f"{base}-updates": main, f"{base}-security": security or ""}
            if not security:
                self._store.warn(
                    f"{WITHOUT_SECURITY}: packages of Debian {self.suite} may be older than others take, with other "
                    f"keys; {to_have_security(self._store)}"
                )
        where = f"the snapshot {dated.name}" if dated else "the host's mirror"
        no_suite = InputError(f"{where} has no Debian suite {self.suite!r}")
        if dated:
            suites = {suite: uri for suite, uri in suites.items() if dated.may_have(suite)}
            if self.suite not in suites:
                raise no_suite
        components = "main contrib" if "contrib" in self.also_from else "main"
        while True:
            text = "\n".join(
                _sources_entry(uri, suite, components, dated, trusted=bool(dated and suite in dated.unsigned))
                for suite, uri in suites.items()
                if uri
            )
            (self._root / "debian.sources").write_text(text, encoding="utf-8")
            try:
                self._fetch(["update", "-qq"])
                break
            except process.ProcessFailed as error:
                missing = [suite for suite in suites if f" {suite} {_NO_RELEASE}" in error.stderr]
                if self.suite in missing:
                    raise no_suite from error
                if missing and dated:
                    raise InputError(
                        f"{where} has Debian {self.suite}, but no {', '.join(missing)}",
                        hint="nothing is taken without them: choose another snapshot (docs/capsules.md)",
                    ) from error
                if missing:  # a suite may have no updates yet, or no longer: it is used without them
                    suites = {suite: uri for suite, uri in suites.items() if suite not in missing}
                    continue
                raise HostError(
                    f"cannot fetch the package lists of Debian {self.suite}: {_error_text(error.stderr)}",
                    hint=self._nothing_else
                    or "check the network and the host's apt configuration: apt-get update must work",
                ) from error
        if dated and dated.unsigned and dated.signed_lists is not None:
            self._require_signed(dated, dated.signed_lists)

    def _require_signed(self, dated: Snapshot, suites: Sequence[Path]) -> None:
        """Raise InputError for a package of unsigned suites that no list of these ``suites`` has.

        It is apt that fetches those lists, and checks them by Debian's keys.
        """
        hint = (
            "what is in it runs on this host, often as root: if you trust whoever made it, say "
            f"{TRUSTED}<directory> (docs/capsules.md)"
        )
        entries = []
        for suite in suites:
            components = [path.parent.name for path in suite.glob(f"*/binary-{ARCHITECTURE}")]
            if all(_NAME.fullmatch(name) for name in (suite.name, *components)):
                top = f"copy:{quote(str(suite.parent.parent))}"
                entries.append(_sources_entry(top, suite.name, " ".join(sorted(components)), dated))
        (self._root / _SIGNED_SOURCES).write_text("\n".join(entries), encoding="utf-8")
        (self._root / SIGNED_LISTS / "partial").mkdir(parents=True, exist_ok=True)
        try:
            self._fetch(["update", "-qq", *self._apart])
        except process.ProcessFailed as error:
            message = f"{dated.label}: Debian's keys do not vouch for its lists: {_error_text(error.stderr)}"
            raise InputError(message, hint) from error
        signed = frozenset(stanza for package_list in self._signed() for stanza in package_list.stanzas)
        for package_list in self._lists():
            others = [stanza for stanza in package_list.stanzas if stanza not in signed]
            if others and package_list.suite in dated.unsigned:
                names = (fields(stanza).get("Package", "one without a name") for stanza in others[:3])
                more = f", ... ({len(others)} in all)" if len(others) > 3 else ""
                raise InputError(
                    f"{dated.label}: no list that Debian has signed has these packages of its Debian "
                    f"{package_list.suite}: {', '.join(escape_controls(name) for name in names)}{more}",
                    hint,
                )

    def signed_lists(self) -> list[PackageList]:
        """Return the fetched lists of packages that Debian has signed."""
        self.update(refresh=False)
        return self._signed()

    def _signed(self) -> list[PackageList]:
        unsigned = self._snapshot.unsigned if self._snapshot else ()
        signed = [package_list for package_list in self._lists() if package_list.suite not in unsigned]
        return signed + (self._lists(self._apart) if (self._root / _SIGNED_SOURCES).exists() else [])

    @property
    def _apart(self) -> list[str]:
        """apt's options for the signed lists of a directory: packages that only they have are not there."""
        return [
            *("-o", f"Dir::Etc::SourceList={self._root / _SIGNED_SOURCES}"),
            *("-o", f"Dir::State::Lists={self._root / SIGNED_LISTS}", "-o", "Dir::Cache::pkgcache="),
        ]

    def _lists(self, options: Sequence[str] = ()) -> list[PackageList]:
        """Return the fetched lists of packages."""
        printed = self._apt("apt-get", [*options, "indextargets", "--format", _TARGET, "Created-By: Packages"])
        targets = (line.split("|", 2) for line in printed.splitlines())
        return [PackageList(suite, component, ARCHITECTURE, Path(file)) for suite, component, file in targets]


def to_have_security(store: Store) -> str:
    """Return what to do where apt's sources have no security updates."""
    return (
        f"add the suite {host_suite()}-security to apt's sources, and remove apt and resolved in {store.home}/cache: "
        "they remember what was found without"
    )


def _alike(name: str, there: Collection[str]) -> list[str]:
    """Return the names that begin alike: comparing with all of a suite's would take seconds."""
    return sorted(
        candidate for candidate in there if candidate[:1] == name[:1] and abs(len(candidate) - len(name)) <= 4
    )


def _sources_entry(uri: str, suite: str, components: str, dated: Snapshot | None, *, trusted: bool = False) -> str:
    entry = {"Types": "deb", "URIs": uri, "Suites": suite, "Components": components, "Signed-By": KEYRING}
    if dated:
        entry["Check-Valid-Until"] = "no"  # its Release files are old
    if trusted:
        entry["Trusted"] = "yes"
        del entry["Signed-By"]
    return "".join(f"{name}: {value}\n" for name, value in entry.items())


def _error_text(stderr: str) -> str:
    """Return the first of apt's errors: those that follow say the same of other files."""
    errors = [" ".join(line.split()[1:]) for line in stderr.splitlines() if line.startswith("E: ")]
    return errors[0] if errors else stderr.strip()[-200:] or "apt-get failed"


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
