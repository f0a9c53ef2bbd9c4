"""Copies a tree so that it lies scattered over its disk: the far end of what years of use may do to a source.

Files are written in an order that a seed decides, several side by side, piece by piece, each piece synced: they lie in
each other's way. Each is written in one of many directories, and then moved to its own: what a filesystem would keep
together lies apart. Nothing is deleted, so the disk need not be full for it.

    python3 -m harness.scatter SOURCE TARGET --seed 1 --places 64 --at-a-time 8 --piece 262144
"""

import argparse
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

NURSERY = ".scatter"
"""How the directories begin in which files are written; they are removed in the end."""


DONE = object()
"""Stands for the end of a file."""


def scatter(source: Path, target: Path, seed: int, places: int, at_a_time: int, piece: int) -> None:
    """Copy the tree below ``source`` into ``target``."""
    draws = random.Random(seed)
    nurseries = [target / f"{NURSERY}-{number}" for number in range(places)]
    for nursery in nurseries:
        nursery.mkdir()
    directories, files = [Path()], []
    for top, below, names in os.walk(source):
        below.sort()
        here = Path(top).relative_to(source)
        for name in below:
            if (source / here / name).is_symlink():
                names.append(name)
            else:
                directories.append(here / name)
                (target / here / name).mkdir()
        files += [here / name for name in sorted(names)]
    draws.shuffle(files)
    waiting = enumerate(files)
    growing: list[Iterator[None]] = []
    while True:
        while len(growing) < at_a_time and (following := next(waiting, None)):
            number, path = following
            growing.append(_grow(source / path, nurseries[draws.randrange(places)] / str(number), target / path, piece))
        if not growing:
            break
        growing = [growth for growth in growing if next(growth, DONE) is not DONE]
    for nursery in nurseries:
        nursery.rmdir()
    for path in reversed(directories):
        shutil.copystat(source / path, target / path)


def _grow(source: Path, first: Path, final: Path, piece: int) -> Iterator[None]:
    """Write a file piece by piece where it is ``first``, and move it where it belongs.

    It is closed after each piece: filesystems give back then what they had reserved behind it.
    """
    if source.is_symlink():
        final.symlink_to(source.readlink())
        return
    first.touch()
    with source.open("rb") as there:
        while data := there.read(piece):
            with first.open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield
    shutil.copystat(source, first)
    first.rename(final)


def main() -> None:
    parser = argparse.ArgumentParser(description="copy a tree so that it lies scattered over its disk")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    for name in ("seed", "places", "at-a-time", "piece"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    scatter(options.source, options.target, options.seed, options.places, options.at_a_time, options.piece)


if __name__ == "__main__":
    main()
