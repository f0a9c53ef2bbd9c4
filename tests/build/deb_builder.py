"""Build small Debian packages."""

import io
import subprocess
import tarfile
from pathlib import Path

from agelab.debian import Package
from tests.build.kernel_builder import RELEASE


def package(name: str, version: str = "1") -> Package:
    """A package as an archive lists it."""
    return Package(name=name, version=version, filename=f"{name}.deb", size=1, sha256="0" * 64)


def deb(directory: Path, name: str, version: str = "1", **fields: str) -> Path:
    """Build a small package."""
    tree = directory / f"tree-{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / name).write_text(version)
    said = {
        "Package": name,
        "Version": version,
        "Architecture": "amd64",
        "Maintainer": "agelab <agelab@example.org>",
        "Description": name,
        **fields,
    }
    (tree / "DEBIAN" / "control").write_text("".join(f"{key}: {value}\n" for key, value in said.items()))
    path = directory / f"{name}_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, path], check=True, capture_output=True)
    return path


def hostile(path: Path, *members: tuple[str, bytes, str]) -> Path:
    """A .deb whose content is a tar with these members: name, type, what it points to."""
    parts = {}
    for name, tarred in (("control", [("./control", tarfile.REGTYPE, "")]), ("data", members)):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for member, kind, link in tarred:
                entry = tarfile.TarInfo(member)
                entry.type, entry.linkname, entry.devmajor, entry.devminor = kind, link, 1, 3
                said = CONTROL if name == "control" else b"evil"
                entry.size = len(said) if kind == tarfile.REGTYPE else 0
                tar.addfile(entry, io.BytesIO(said))
        parts[f"{name}.tar"] = made.getvalue()
    whole = b"!<arch>\n"
    for name, content in {"debian-binary": b"2.0\n", **parts}.items():
        whole += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        whole += b"\n" * (len(content) % 2)
    path.write_bytes(whole)
    return path


CONTROL = f"""Package: linux-image-{RELEASE}
Version: 6.6-1
Architecture: amd64
Maintainer: nobody <nobody@example.org>
Description: none
""".encode()
