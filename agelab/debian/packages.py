"""Debian packages, suites and versions, and local repositories of packages."""

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from agelab.base import confine, fileio, process
from agelab.base.errors import AgelabError, HostError
from agelab.base.types import Frozen
from agelab.store.artefacts import file_hash

# Of alternatives (a | b) only the first is read: apt prefers it too.
_DEPENDENCY = re.compile(r"(?P<name>[\w.+-]+)(?::\w+)?(?: \(= (?P<version>[^)]+)\))?")
_SHOW_SECONDS = 60.0


class Package(Frozen):
    """One version of a binary package: its file and the file's hash."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9+.-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~:-]*$")
    filename: str = Field(
        pattern=r"^[a-z0-9][A-Za-z0-9.+~%_-]*\.deb$",
        description="the .deb's base name, without the mirror it came from",
    )
    size: int = Field(ge=0, description="bytes")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Dependency(Frozen):
    """One entry of a Depends field."""

    name: str
    version: str = Field(default="", description="empty unless an exact version is required")


def dependencies(depends: str) -> list[Dependency]:
    """Parse a Depends field; of alternatives only the first is listed."""
    matches = (_DEPENDENCY.match(entry.strip()) for entry in depends.split(","))
    return [Dependency(name=match["name"], version=match["version"] or "") for match in matches if match]


def host_suite() -> str:
    """Return the codename of the host's Debian release. Raises HostError when it has none."""
    with suppress(OSError):
        for line in fileio.read_text(Path("/etc/os-release")).splitlines():
            if line.startswith("VERSION_CODENAME="):
                return line.partition("=")[2].strip().strip('"')
    raise HostError("/etc/os-release names no VERSION_CODENAME", hint="agelab builds its guests on a Debian host")


def newest(versions: Sequence[str]) -> str:
    """Return the highest of some Debian version strings."""
    from debian.debian_support import NativeVersion

    return max(versions, key=NativeVersion)


def control_fields(deb: Path, fields: str) -> str:
    """Return what dpkg-deb shows of a package's control data, confined. Raises as ``confine.run`` does."""
    file = deb.resolve()
    argv = ["dpkg-deb", "--show", "--showformat", fields, str(file)]
    return confine.run(argv, read=[file], timeout=_SHOW_SECONDS).stdout


def local_repository(directory: Path, debs: Sequence[Path]) -> str:
    """Make ``directory`` an unsigned apt repository of these files. Returns its line for sources.list.

    A root built from it holds exactly the packages that were resolved and verified, whatever the
    mirror has by now. The format is a flat repository (sources.list(5), repository format).
    """
    directory.mkdir(parents=True, exist_ok=True)
    entries = []
    for deb in sorted(debs):
        try:
            (directory / deb.name).symlink_to(deb)
        except OSError as error:
            raise AgelabError(f"{directory} is not empty") from error
        control = process.run(["dpkg-deb", "--field", str(deb)]).stdout.rstrip("\n")
        facts = {"Filename": f"./{deb.name}", "Size": deb.stat().st_size, "SHA256": file_hash(deb)}
        entries.append(control + "".join(f"\n{name}: {value}" for name, value in facts.items()) + "\n")
    packages = "\n".join(entries).encode()
    (directory / "Packages").write_bytes(packages)
    digest = hashlib.sha256(packages).hexdigest()
    (directory / "Release").write_text(f"SHA256:\n {digest} {len(packages)} Packages\n", encoding="utf-8")
    return f"deb [trusted=yes] copy:{directory} ./"
