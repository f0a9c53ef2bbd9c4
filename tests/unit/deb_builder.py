"""Build small Debian packages."""

import subprocess
from pathlib import Path


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
