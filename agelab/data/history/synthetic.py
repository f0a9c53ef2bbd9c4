"""Versions of a seeded source tree, for use without a real repository.

The tree is the kernel sources of corpus ``piszcz-2006``, at a size that fits the disk. It grows over time: a version
changes a few files, adds some and removes fewer.
"""

from collections.abc import Iterator, Sequence

from agelab.data.corpus.artefact import plan_files
from agelab.data.corpus.definition import definition
from agelab.data.corpus.random_content import SeededRandom
from agelab.data.corpus.tar import Tarball
from agelab.data.corpus.tree import PlannedFile
from agelab.data.history.operations import whole_blocks
from agelab.data.history.tree import FileChange, Version

RECIPE = 1
"""Raise this when a change of this module changes a log."""
CORPUS = "piszcz-2006"
SAMPLE_BYTES = 4_000_000
"""Bytes of a small sample tree; its ratio of blocks to bytes holds for any size."""
FIRST_VERSION_SHARE = 0.5
"""Least size of the first version as a share of the final size. Estimated, like all figures below."""
FILES_TOUCHED_WEIGHTS = (45, 20, 10, 6, 4, 3, 2, 2, 2, 2, 1, 1, 1, 1)
"""Weights of versions that touch 1, 2, 3 ... files: nearly half touch one."""
ADDED_PER_1000, REMOVED_PER_1000 = 80, 30
"""Numbers of added and removed files per 1000 touched; the others change. At its full size the tree gets no new ones.
"""
MAX_RESIZE_PER_1000 = 100
"""A changed file grows or shrinks by at most so many thousandths."""


def versions(full: int, budget: int, seed: int) -> Iterator[Version]:
    """Yield the versions of a tree of finally ``full`` bytes, in whole blocks, until ``budget`` bytes are written."""
    small = [member.size for member in _plan_tree(SAMPLE_BYTES, seed)]
    # With little to write the tree cannot grow much, so it starts larger.
    grown = full - (ADDED_PER_1000 - REMOVED_PER_1000) * (budget - full) // 1000
    first = max(grown, int(FIRST_VERSION_SHARE * full)) * sum(small) // sum(map(whole_blocks, small))
    written = 0
    for version in endless_versions(first, full, seed):
        yield version
        written += sum(change.size or 0 for change in version)
        if written >= budget:
            return


def endless_versions(first: int, full: int, seed: int) -> Iterator[Version]:
    """Yield versions without end of a tree that has ``first`` bytes in the beginning, and grows to ``full`` bytes."""
    draws = SeededRandom(seed, "versions")
    sizes = {member.path.encode(): member.size for member in _plan_tree(first, seed)}
    paths = list(sizes)
    live = sum(map(whole_blocks, sizes.values()))
    yield tuple(FileChange(path, size) for path, size in sizes.items())
    number = 0
    while True:
        touched: dict[bytes, int | None] = {}
        for _ in range(1 + draws.pick(FILES_TOUCHED_WEIGHTS)):
            # Recently added or changed files are more likely to change again.
            at = max(draws.below(len(paths)), draws.below(len(paths)))
            path, what = paths[at], draws.below(1000)
            if path in touched:
                continue
            if what < ADDED_PER_1000 and live < full:
                number += 1
                name = path.rpartition(b"/")[0] + b"/%s%d.c" % (draws.name().encode(), number)
                sizes[name] = touched[name] = 1 + sizes[path] + draws.below(1000)
                paths.append(name)
                live += whole_blocks(sizes[name])
            elif what < ADDED_PER_1000 + REMOVED_PER_1000 and len(paths) > 1:
                touched[path] = None
                live -= whole_blocks(sizes.pop(path))
                paths[at] = paths[-1]
                paths.pop()
            else:
                size = sizes[path]
                by = size * (draws.below(2 * MAX_RESIZE_PER_1000 + 1) - MAX_RESIZE_PER_1000) // 1000
                sizes[path] = touched[path] = max(1, size + by)
                live += whole_blocks(sizes[path]) - whole_blocks(size)
                paths[at], paths[-1] = paths[-1], path
        yield tuple(FileChange(path, size) for path, size in touched.items())


def _plan_tree(size: int, seed: int) -> Sequence[PlannedFile]:
    """Return the source files of an archive of so many bytes, headers included."""
    [archive] = plan_files(definition(CORPUS), max(1_000_000, size), seed)
    assert isinstance(archive, Tarball)
    return archive.members
