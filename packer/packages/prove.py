"""Prove, in the guest, that the packages of a scenario can be used; then the filesystems, as every image does.

usage: prove.py PLAN PROOF, as packer/prove.py, which is beside it in the guest as prove_filesystems.py; what is proved
of packages stands in packages.json. Standard-library Python; it is run by Packer, never in a cell.
"""

import json
import subprocess  # noqa: TID251 - the guest has no agelab
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path("/run/agelab")
TIMEOUT = 120
ELF = b"\x7fELF"
PLACES = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/games/")


def said(argv: Sequence[str]) -> tuple[int, str]:
    """Run a command; its exit status and what it said."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT
        )
    except FileNotFoundError:
        return 127, f"{argv[0]} is not in the image"
    except subprocess.TimeoutExpired:
        return 124, f"not done after {TIMEOUT} s"
    return done.returncode, done.stdout.decode(errors="replace").strip()


def unloadable(package: str) -> Iterator[str]:
    """What each program of a package lacks, of those that the loader loads."""
    status, listed = said(["dpkg-query", "--listfiles", package])
    if status:
        yield f"package {package}: {listed}"
        return
    for path in map(Path, listed.splitlines()):
        if str(path).startswith(PLACES) and path.is_file() and path.open("rb").read(4) == ELF:
            libraries = said(["ldd", str(path)])[1]
            for line in libraries.splitlines():
                if "not found" in line:
                    yield f"package {package}: {path} lacks {line.strip()}"


def main() -> None:
    todo = json.loads((HERE / "packages.json").read_text())
    wrong = [why for package in todo["packages"] for why in unloadable(package)]
    for name, argv in todo["programs"].items():
        status, output = said(argv)
        last = " / ".join(output.splitlines()[-3:])[-300:]
        print(f"{name}: {last}", flush=True)
        if status:
            wrong.append(f"program {name}: {' '.join(argv)}: exit {status}: {last}")
    for why in wrong:
        print(f"agelab proof: {why}", flush=True)
    if wrong:
        sys.exit(1)
    import prove_filesystems

    prove_filesystems.main(Path(sys.argv[1]), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
