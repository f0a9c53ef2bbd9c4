"""Plan the stand-in for a study's data: trees of many files, single files, tar archives of trees."""

from collections.abc import Sequence

from agelab.data.corpus.definition import DirectoryTree, FileSort, StudyCorpus
from agelab.data.corpus.random_content import SeededRandom
from agelab.data.corpus.tar import Tarball
from agelab.data.corpus.tree import PlannedFile, TreeFile, with_sizes


def plan(what: StudyCorpus, size: int, seed: int) -> list[TreeFile]:
    """Plan the files of a corpus of ``size`` bytes, sorted by path."""
    full = what.bytes
    files: list[TreeFile] = [
        PlannedFile(single.path, single.bytes * size // full, single.text) for single in what.singles
    ]
    for tree in what.trees:
        files += _tree(tree, size, full, seed)
    for archive in what.archives:
        members = tuple(_tree(archive.tree, size, full, seed))
        files.append(Tarball(archive.path, members, archive.gzip, what.date.value))
    return sorted(files, key=lambda file: file.path.encode())


def _tree(tree: DirectoryTree, size: int, full: int, seed: int) -> list[PlannedFile]:
    draws = SeededRandom(seed, f"tree {tree.path}")
    counts = [_count(sort, size, full) for sort in tree.sorts]
    taken = {tree.path}
    places = _directories(tree, sum(counts), taken, draws)
    if len(counts) > 1:
        draws.shuffle(places)  # so that the sorts are mixed in each directory
    planned: list[PlannedFile] = []
    for sort, count in zip(tree.sorts, counts, strict=True):
        endings = [ending for ending, weight in sort.endings for _ in range(weight)]
        paths = [
            _unused_path(place, endings[draws.below(len(endings))], taken, draws)
            for place in places[len(planned) : len(planned) + count]
        ]
        planned += with_sizes(paths, sort, sort.bytes.value * size // full, draws)
    return planned


def _count(sort: FileSort, size: int, full: int) -> int:
    files = sort.files.value
    return max(1, (files * size + full // 2) // full) if sort.smaller == "number" else files


def _directories(tree: DirectoryTree, count: int, taken: set[str], draws: SeededRandom) -> list[str]:
    """Draw the directories of ``count`` files; each directory gets at least one while they last."""
    level = [tree.path]
    places: list[str] = []
    for depth, files in enumerate(_split_by_weight(count, tree.nesting.weights)):
        if len(places) == count:
            break
        if depth:
            number = max(1, files // tree.nesting.each)
            level = [_unused_path(level[draws.below(len(level))], "", taken, draws) for _ in range(number)]
        places += level[:files]
        places += (level[draws.below(len(level))] for _ in range(files - len(level)))
    return places


def _split_by_weight(count: int, weights: Sequence[int]) -> list[int]:
    """Split ``count`` into integers in proportion to the weights."""
    ends = [count * sum(weights[: last + 1]) // sum(weights) for last in range(len(weights))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _unused_path(place: str, ending: str, taken: set[str], draws: SeededRandom) -> str:
    """Draw a path in a directory that no file or directory has yet."""
    while True:
        path = f"{place}/{draws.name()}{ending}"
        if path not in taken:
            taken.add(path)
            return path
