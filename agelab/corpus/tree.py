"""The tree of a stand-in: first what is in it, then, file by file, the bytes.

The sizes of a group are drawn one from each of as many equal slices of its distribution as it has files,
then brought to the group's share exactly. So 40 MB have the shape of 650 MB, which plain draws of a
distribution with a long tail would not give.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.corpus.definition import Definition, Group, Sizes, Text
from agelab.corpus.draw import Draws, content, prose

SUMS = "md5sum.txt"
RESOLUTION = 10**9
_SUM_LINE = len("\n") + 32 + len("  ./")
# Of a syllable: how it begins, its vowel, how it ends (often not at all).
_SOUNDS = "b,c,d,f,g,k,l,m,n,p,r,s,t,v,x,st,gr,ch,pl,tr a,e,i,o,u,ea,io ,,,n,r,s,t,x,ck,nd"
_SYLLABLE = [part.split(",") for part in _SOUNDS.split(" ")]
_PARTS = [
    "common",
    "data",
    "dev",
    "doc",
    "bin",
    "utils",
    "perl",
    "python",
    "gtk",
    "client",
    "server",
    "plugins",
]


@dataclass(frozen=True)
class Planned:
    """One file to write: its path in the tree, its size in bytes and what its content looks like."""

    path: str
    size: int
    text: Text


def plan(what: Definition, size: int, seed: int) -> list[Planned]:
    """The files of a corpus of ``size`` bytes, sorted by path, but for ``md5sum.txt``, which lists them."""
    cap = what.cap.value
    found = [Planned(one.path, min(size * one.share // 100_000, cap), one.text) for one in what.singles]
    shares = sum(group.share for group in what.groups) + sum(one.share for one in what.singles)
    count = _count(what.packages, size * (100_000 - shares) // 100_000)
    paths = _pool(what, count, seed)
    pool = sorted({path.rpartition("/")[0] for path in paths})
    for number, group in enumerate(what.groups):
        goal = size * group.share // 100_000
        draws = Draws(seed, f"group {number}")
        names = _paths(group, _count(group, goal), pool, draws)
        found += _filled(names, group, goal, cap, draws)
    rest = size - sum(file.size for file in found)
    rest -= sum(_SUM_LINE + len(path) for path in (*paths, *(file.path for file in found)))
    found += _filled(paths, what.packages, rest, cap, Draws(seed, "packages"))
    return sorted(found, key=lambda file: file.path.encode())


def write(files: Sequence[Planned], seed: int, root: Path) -> str:
    """Write the files below ``root``, and ``md5sum.txt`` over them. Returns the sha256 of that list.

    The list names every file with the hash of its content, so its own hash stands for the whole tree.
    """
    lines = []
    for file in files:
        data = (prose if file.text == "prose" else content)(seed, file.path, file.size)
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        lines.append(f"{hashlib.md5(data, usedforsecurity=False).hexdigest()}  ./{file.path}\n")
    sums = "".join(lines).encode()
    (root / SUMS).write_bytes(sums)
    return hashlib.sha256(sums).hexdigest()


def sums_size(files: Sequence[Planned]) -> int:
    """The bytes of ``md5sum.txt``."""
    return sum(_SUM_LINE + len(file.path) for file in files)


def _count(sizes: Sizes, goal: int) -> int:
    return max(1, goal * 1000 // sizes.total(1000))


def _filled(paths: Sequence[str], sizes: Sizes, goal: int, cap: int, draws: Draws) -> list[Planned]:
    """The paths with sizes of the distribution, their sum brought to ``goal`` but none above ``cap``."""
    whole = len(paths) * RESOLUTION
    drawn = [sizes.at(slice_ * RESOLUTION + draws.below(RESOLUTION), whole) for slice_ in range(len(paths))]
    draws.shuffle(drawn)
    total = sum(drawn)
    fitted = (min(one * goal // total, cap) for one in drawn)
    return [Planned(path, one, sizes.text) for path, one in zip(paths, fitted, strict=True)]


def _paths(group: Group, count: int, pool: Sequence[str], draws: Draws) -> list[str]:
    """So many different paths for the files of a group."""
    places = group.directories or tuple((directory, 1) for directory in pool)
    weights = [weight for _, weight in places]
    taken: dict[str, None] = {}
    while len(taken) < count:
        taken.setdefault(f"{places[draws.pick(weights)][0]}/{_word(draws)}-{draws.below(100)}{group.suffix}")
    return list(taken)


def _pool(what: Definition, count: int, seed: int) -> list[str]:
    """The paths of so many packages, laid out as in a Debian pool: main/<letter>/<source>/<package>."""
    draws = Draws(seed, "pool")
    letters, per_source = what.packages.letters, what.packages.per_source
    taken: dict[str, None] = {}
    sources: set[str] = set()
    while len(taken) < count:
        source = letters.names[draws.pick(letters.weights)] + _word(draws)
        if source in sources:
            continue
        sources.add(source)
        directory = f"pool/main/{source[:4] if source.startswith('lib') else source[0]}/{source}"
        version = f"{draws.below(10)}.{draws.below(30)}.{draws.below(12)}-{1 + draws.below(9)}"
        parts = _PARTS.copy()
        draws.shuffle(parts)
        for part in ("", *parts)[: 1 + draws.pick(per_source.weights)]:
            machine = "all" if draws.below(4) == 0 else "i386"
            taken[f"{directory}/{source}{'-' if part else ''}{part}_{version}_{machine}.deb"] = None
    return list(taken)[:count]


def _word(draws: Draws) -> str:
    """A pronounceable word of one to three syllables."""
    syllables = 1 + draws.below(3)
    return "".join(part[draws.below(len(part))] for _ in range(syllables) for part in _SYLLABLE)
