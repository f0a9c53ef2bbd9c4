"""Local apt repositories."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agelab import process
from agelab.errors import AgelabError
from agelab.store import file_hash


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
    (directory / "Release").write_text(f"SHA256:\n {digest} {len(packages)} Packages\n")
    return f"deb [trusted=yes] copy:{directory} ./"
