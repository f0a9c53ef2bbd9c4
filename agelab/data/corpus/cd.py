"""Plan the stand-in for a CD: a pool of packages, groups of other files, and single files."""

from collections.abc import Sequence

from agelab.data.corpus.definition import Cd, FileGroup, Sizes
from agelab.data.corpus.random_content import SeededRandom
from agelab.data.corpus.tree import PlannedFile, md5_list_size, with_sizes

_PACKAGE_PARTS = [
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


def plan(what: Cd, size: int, seed: int) -> list[PlannedFile]:
    """Plan the files of a corpus of ``size`` bytes, sorted by path, without ``md5sum.txt``, which lists them."""
    cap = what.cap.value
    files = [PlannedFile(single.path, min(size * single.share // 100_000, cap), single.text) for single in what.singles]
    shares = sum(group.share for group in what.groups) + sum(single.share for single in what.singles)
    count = _count(what.packages, size * (100_000 - shares) // 100_000)
    paths = _package_paths(what, count, seed)
    pool = sorted({path.rpartition("/")[0] for path in paths})
    for number, group in enumerate(what.groups):
        goal = size * group.share // 100_000
        draws = SeededRandom(seed, f"group {number}")
        names = _paths(group, _count(group, goal), pool, draws)
        files += with_sizes(names, group, goal, draws, cap)
    rest = size - sum(file.size for file in files)
    rest -= md5_list_size([*paths, *(file.path for file in files)])
    files += with_sizes(paths, what.packages, rest, SeededRandom(seed, "packages"), cap)
    return sorted(files, key=lambda file: file.path.encode())


def _count(sizes: Sizes, goal: int) -> int:
    return max(1, goal * 1000 // sizes.total(1000))


def _paths(group: FileGroup, count: int, pool: Sequence[str], draws: SeededRandom) -> list[str]:
    """Draw ``count`` different paths for the files of a group."""
    places = group.directories or tuple((directory, 1) for directory in pool)
    weights = [weight for _, weight in places]
    taken: dict[str, None] = {}
    while len(taken) < count:
        taken.setdefault(f"{places[draws.pick(weights)][0]}/{draws.word()}-{draws.below(100)}{group.suffix}")
    return list(taken)


def _package_paths(what: Cd, count: int, seed: int) -> list[str]:
    """Draw the paths of ``count`` packages, laid out as in a Debian pool: main/<letter>/<source>/<package>."""
    draws = SeededRandom(seed, "pool")
    letters, per_source = what.packages.letters, what.packages.per_source
    taken: dict[str, None] = {}
    sources: set[str] = set()
    while len(taken) < count:
        source = letters.names[draws.pick(letters.weights)] + draws.word()
        if source in sources:
            continue
        sources.add(source)
        directory = f"pool/main/{source[:4] if source.startswith('lib') else source[0]}/{source}"
        version = f"{draws.below(10)}.{draws.below(30)}.{draws.below(12)}-{1 + draws.below(9)}"
        parts = _PACKAGE_PARTS.copy()
        draws.shuffle(parts)
        for part in ("", *parts)[: 1 + draws.pick(per_source.weights)]:
            machine = "all" if draws.below(4) == 0 else "i386"
            taken[f"{directory}/{source}{'-' if part else ''}{part}_{version}_{machine}.deb"] = None
    return list(taken)[:count]
