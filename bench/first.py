"""README's first command as a newcomer types it: in a fresh clone, with an empty store.

    .venv/bin/python -m bench.first [words of make ...]

Clones the last commit into a temporary directory, with AGELAB_HOME in it, and runs COMMAND there (the words go behind
it: JOBS=2). Prints when each line of it came, host seconds after the start, and processor
seconds in the end. Debian's packages of the host (agelab/host-packages.txt) are as they are: on a bare host the command
installs them, too. Exit code 1 beyond one of LIMITS, or when the cell's digest is not that of the docs.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = ("make", "scenario", "NAME=aging-reiserfs")
LIMITS = {"cell 1/1": 60.0, "the digest of the docs: yes": 150.0}
"""What is to be printed, and within how many host seconds."""


def carry_out(words: list[str], place: Path) -> dict[str, float]:
    """Run the command in a clone at ``place``, print its lines as they come, and return when each of LIMITS came."""
    subprocess.run(["git", "clone", "--quiet", str(Path(__file__).parents[1]), str(place)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AGELAB_", "MAKE"))}
    came: dict[str, float] = {}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=place,
        env=environment | {"AGELAB_HOME": str(place / ".agelab")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        assert child.stdout
        for line in child.stdout:
            now = time.monotonic() - began
            print(f"{now:6.1f}  {line}", end="", flush=True)
            for told in LIMITS:
                if told in line:
                    came.setdefault(told, now)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = used.ru_utime - before.ru_utime, used.ru_stime - before.ru_stime
    took = time.monotonic() - began
    print(f"\n{took:.0f} s; of a processor, without the cell's guests: {user:.0f} s and {system:.0f} s")
    return came


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.first", description="README's first command on an empty store.")
    parser.add_argument("words", nargs="*", help="more words of make: JOBS=2")
    place = Path(tempfile.mkdtemp(prefix="agelab-first-"))
    try:
        came = carry_out(parser.parse_args().words, place / "agelab")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    late = [
        f"{told!r} {f'after {came[told]:.0f} s' if told in came else 'never came'}: at most {limit:.0f} s are wanted"
        for told, limit in LIMITS.items()
        if came.get(told, limit + 1) > limit
    ]
    print("\n".join(late) or "within its limits")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
