"""Aging to a profile: create and delete files until the remaining ones have its sizes, ages and depths.

This follows Geriatrix (Kadekodi, Nagarajan, Ganger and Gibson, USENIX ATC 2018): fill the filesystem as far as is asked
for, then create and delete files in turn. Sizes and depths are drawn on creation; ages are controlled by
deletion, which takes a file of the age class that exceeds its share most. An age is a share of the history so far.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from agelab.base import catalogue
from agelab.base.errors import InputError, unknown
from agelab.data.corpus.random_content import SeededRandom
from agelab.data.history.operations import HEADER, whole_blocks
from agelab.scenario import toml_files
from agelab.scenario.aging_profile import BoundedClasses, DepthClasses, Profile, is_path

PROFILES = Path(__file__).parent
RECIPE = 1
"""Raise this when a change of this module changes a log."""
INODE_BYTES = 256
"""Bytes assumed for a file beside its blocks: an inode of today's ext4."""
MAX_CREATED = 20_000_000
"""Files that a history makes at most, so that small ones on a large disk are not written for days."""


def load_profile(name: str) -> Profile:
    """Read a profile by name from the file beside this module, or from the file that a path names.

    Raises InputError for an unknown name, and for every error in a file.
    """
    if is_path(name):
        return toml_files.read(Path(name), Profile)
    if name not in (there := catalogue.names("profiles")):
        raise unknown("profile", name, there, "(a file of your own is named by its path: ./mine.toml)")
    return toml_files.read(PROFILES / f"{name}.toml", Profile)


@dataclass
class ProducedFiles:
    """Files that remain after a log, to compare with the request."""

    files: int = 0
    live_bytes: int = 0
    """In whole blocks."""
    written: int = 0
    """Bytes written."""
    sizes: Counter[int] = field(default_factory=Counter)
    """Number of files by class; likewise ages and depths."""
    ages: Counter[int] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)


class _WeightedDraw:
    """Draws an index by weight."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._upto = list(accumulate(weights))

    def __call__(self, draws: SeededRandom) -> int:
        return bisect_left(self._upto, draws.below(self._upto[-1]) + 1)


class _FilesByAge:
    """Live files by age class, youngest first.

    A class holds its files in order of creation; the clock is the number of files created so far, and an age of 1 is
    all of it.
    """

    def __init__(self, classes: BoundedClasses) -> None:
        self._bounds = [upto / classes.upto[-1] for upto in classes.upto]
        self._shares = classes.shares()
        self._files: list[list[int]] = [[] for _ in self._bounds]
        self._heads = [0] * len(self._bounds)
        self._live: set[int] = set()
        self.counts = [0] * len(self._bounds)

    def add(self, file: int) -> None:
        """Add a file, whose number is the clock, and move files that are now too old to the next class."""
        self._files[0].append(file)
        self._live.add(file)
        self.counts[0] += 1
        for index, bound in enumerate(self._bounds[:-1]):
            before = file * (1 - bound)
            files, head = self._files[index], self._heads[index]
            while head < len(files) and files[head] < before:
                if files[head] in self._live:
                    self._files[index + 1].append(files[head])
                    self.counts[index] -= 1
                    self.counts[index + 1] += 1
                head += 1
            self._heads[index] = head
            self._compact(index)

    def remove_one(self, draws: SeededRandom) -> int:
        """Remove and return a file of the class that exceeds its share most."""
        every = len(self._live)
        index = max(
            (index for index, count in enumerate(self.counts) if count),
            key=lambda index: self.counts[index] - self._shares[index] * every,
        )
        files, head = self._files[index], self._heads[index]
        while (file := files[head + draws.below(len(files) - head)]) not in self._live:
            pass
        self._live.remove(file)
        self.counts[index] -= 1
        self._compact(index)
        return file

    def _compact(self, index: int) -> None:
        """Drop a class's removed files once they outnumber the live ones, so that a draw soon finds a live one."""
        files, head = self._files[index], self._heads[index]
        if len(files) > 2 * self.counts[index] + 16:
            self._files[index] = [file for file in files[head:] if file in self._live]
            self._heads[index] = 0


@dataclass(frozen=True)
class ProfileRequest:
    """Amount to write and fill, and the disk; sizes in bytes."""

    disk: int
    fullness: float
    """Share of the disk, in whole blocks."""
    overwrites: float
    """Bytes written, the filling included, as a multiple of the disk's size."""
    points: int
    """Number of points, each after an equal share of the bytes; the last is the log's end."""


def operations(profile: Profile, request: ProfileRequest, seed: int, produced: ProducedFiles) -> Iterator[bytes]:
    """Yield the lines of the log, header included; at the end ``produced`` is filled in.

    Raises InputError if the disk has no room for the profile's largest file.
    """
    room, budget = int(request.disk * request.fullness), int(request.disk * request.overwrites)
    if (largest := profile.sizes.upto[-1] + INODE_BYTES) > room:
        raise InputError(
            f"profile {profile.name} has files of {largest:,} bytes: {room:,} have no room for them",
            hint="take a larger disk, or more of it",
        )
    if budget > MAX_CREATED * profile.mean_size:
        raise InputError(
            f"profile {profile.name} has files of {profile.mean_size:,.1f} bytes on average: "
            f"to write {budget:,} takes more than {MAX_CREATED:,} of them",
            hint="take fewer overwrites, a smaller disk, or larger files",
        )
    yield HEADER + b"\n"
    draws = SeededRandom(seed, f"profile {profile.name}")
    size_class, depth_class = _WeightedDraw(profile.sizes.weights), _WeightedDraw(profile.depths.weights)
    directories = list(_directories(profile.depths, draws))
    for path in (path for level in directories for path in level):
        yield b"mkdir %s\n" % path
    ages = _FilesByAge(profile.ages)
    there: dict[int, tuple[bytes, int, int, int]] = {}
    used = written = number = point = 0
    while written < budget:
        kind, depth = size_class(draws), depth_class(draws)
        low = profile.sizes.upto[kind - 1] if kind else 0
        size = low + 1 + draws.below(upto - low) if (upto := profile.sizes.upto[kind]) else 0
        taken = whole_blocks(size) + INODE_BYTES
        while there and used + taken > room:
            path, gone, *_ = there.pop(ages.remove_one(draws))
            used -= gone
            yield b"unlink %s\n" % path
        number += 1
        level = directories[depth]
        path = b"%s/f%d" % (level[draws.below(len(level))], number)
        yield b"create %s\n" % path
        if size:
            yield b"write %s 0 %d\n" % (path, size)
        there[number] = (path, taken, kind, depth)
        ages.add(number)
        used += taken
        written += size
        while point < request.points and written * request.points >= budget * (point + 1):
            point += 1
            yield b"point %d\n" % point
    produced.files, produced.live_bytes, produced.written = len(there), used, written
    produced.sizes = Counter(kind for *_, kind, _ in there.values())
    produced.depths = Counter(depth for *_, depth in there.values())
    produced.ages = Counter(dict(enumerate(ages.counts)))


def _directories(depths: DepthClasses, draws: SeededRandom) -> Iterator[list[bytes]]:
    """Yield the directories of each depth, each in a random one of the depth above."""
    above = [b""]
    for depth, count in enumerate(depths.directories, start=1):
        level = []
        for number in range(count):
            parent = above[draws.below(len(above))]
            level.append(parent + (b"/" if parent else b"") + b"d%d-%d" % (depth, number))
        yield level
        above = level
