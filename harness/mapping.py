"""What the kernel tells of the devices that a disk is made of, as lines.

agelab/evaluate/layout/mapping.py reads them.
"""

import os
import subprocess
from pathlib import Path

BLOCK = Path("/sys/dev/block")


def lines(device: str, members: tuple[str, ...]) -> list[str]:
    """The members, the disk, and each mapped device and array between them."""
    table = [f"member {number} {number_of(f'/dev/{name}')}" for number, name in enumerate(members)]
    ends = {line.split()[-1] for line in table}
    table.append(f"top {number_of(device)}")
    waiting, seen = [number_of(device)], set(ends)
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        table += [*mapped(current), *array(current)]
        waiting += sorted((slave / "dev").read_text().strip() for slave in (BLOCK / current / "slaves").iterdir())
    return table


def number_of(device: str) -> str:
    """The two numbers of a block device."""
    number = os.stat(device).st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def mapped(number: str) -> list[str]:
    """The lines of a mapped device's table."""
    if not (BLOCK / number / "dm").exists():
        return []
    major, minor = number.split(":")
    argv = ["dmsetup", "table", "--major", major, "--minor", minor]
    table = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [f"dm {number} {line}" for line in table.splitlines()]


def array(number: str) -> list[str]:
    """The line of an array of md: its members in their order, each with where its data begin."""
    about = BLOCK / number / "md"
    if not about.exists():
        return []
    places = sorted(about.glob("rd[0-9]*"), key=lambda place: int(place.name[2:]))
    slots = [f"{_word(place / 'offset')}:{_word(place / 'block' / 'dev')}" for place in places]
    words = [_word(about / name) for name in ("level", "chunk_size", "layout")]
    return [" ".join(["md", number, *words, *slots])]


def _word(path: Path) -> str:
    return (path.read_text().split() or ["0"])[0]
