"""The corpora of the studies: what was asked for, what came out, and what it takes to make them.

    .venv/bin/python -m bench.corpora [--seed 1] [--kind fedorchuk-2008] [--planned] [--write]

For each kind a table, as docs/corpus.md has it: the figures of its data file beside those of the corpus at 1/16
and at the study's size. Each corpus is made in a store that is removed again, by one process whose time and most
memory (its children's too) the last rows give; ``--planned`` makes none, and leaves out what only making shows.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agelab.base.places import corpus_names
from agelab.data.corpus.artefact import plan_files
from agelab.data.corpus.definition import DirectoryTree, FileSort, StudyCorpus, definition
from agelab.data.corpus.tar import Tarball
from agelab.data.corpus.tree import PlannedFile
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid

QUICK = 16
KINDS = [kind for kind in corpus_names() if isinstance(definition(kind), StudyCorpus)]
DECILES = (100, 500, 900)
"""Thousandths of the files: which sizes are shown."""
MAKE = "import sys; from agelab.cli import main; sys.exit(main())"


def amount(size: int) -> str:
    """Format a size in three digits."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def number(value: int) -> str:
    """Format a number with spaces between thousands."""
    return f"{value:,}".replace(",", " ")


def found(what: StudyCorpus, size: int, seed: int) -> dict[str, tuple[PlannedFile | Tarball, ...]]:
    """Group the planned files by the name at the top."""
    names: dict[str, tuple[PlannedFile | Tarball, ...]] = {}
    for entry in plan_files(what, size, seed):
        assert isinstance(entry, PlannedFile | Tarball)
        top = entry.path.partition("/")[0]
        names[top] = (*names.get(top, ()), entry)
    return names


def members(files: Sequence[PlannedFile | Tarball]) -> Sequence[PlannedFile | Tarball]:
    """Return the files of a tree: those of the archive if it is one."""
    first = files[0]
    return first.members if isinstance(first, Tarball) else files


def of_sort(tree: DirectoryTree, sort: FileSort, files: Sequence[PlannedFile | Tarball]) -> list[int]:
    """Return the sizes of the files of one sort, sorted."""
    endings = tuple(ending for ending, _ in sort.endings)
    single_sort = len(tree.sorts) == 1
    return sorted(file.size for file in files if single_sort or file.path.endswith(endings))


def depths(tree: DirectoryTree, files: Sequence[PlannedFile | Tarball]) -> str:
    """Return the percentage of files at each depth of the tree: below 0, 1, 2 ... directories."""
    counts = Counter(file.path.count("/") - 1 for file in files)
    return " / ".join(f"{100 * counts[depth] / len(files):.1f}" for depth in range(len(tree.nesting.weights)))


def directories(files: Sequence[PlannedFile | Tarball]) -> int:
    """Count the directories of a tree, with its top."""
    return len({file.path.rsplit("/", up)[0] for file in files for up in range(1, file.path.count("/") + 1)})


def shape(what: StudyCorpus, seed: int) -> list[list[str]]:
    """Rows for what a plan knows: asked, at 1/16, at the study's size."""
    both = [found(what, what.bytes // part, seed) for part in (QUICK, 1)]
    rows = []
    for single in what.singles:
        rows.append([f"`{single.path}`, bytes", number(single.bytes)])
        rows[-1] += [number(names[single.path][0].size) for names in both]
    trees = [(tree, tree.path) for tree in what.trees] + [(it.tree, it.path) for it in what.archives]
    for tree, path in trees:
        held = [members(names[path]) for names in both]
        shown = path if path == tree.path else f"{path}: {tree.path}"
        for sort in tree.sorts:
            sizes = [of_sort(tree, sort, files) for files in held]
            sums = [number(sort.files.value) + " / " + number(sort.bytes.value)]
            sums += [number(len(those)) + " / " + number(sum(those)) for those in sizes]
            label = f"`{shown}`" + ("" if len(tree.sorts) == 1 else f" `*{sort.endings[0][0]}`")
            rows.append([f"{label}, files / bytes", *sums])
            asked = [sort.at(share, 1000) for share in DECILES] + [sort.sizes[-1][1]]
            points = [
                [those[len(those) * share // 1000] for share in DECILES] + those[-1:] for those in sizes
            ]
            rows.append([f"{label}, a tenth / half / nine tenths below, largest"])
            rows[-1] += [" / ".join(map(amount, each)) for each in (asked, *points)]
        total = sum(tree.nesting.weights)
        rows.append([f"`{shown}`, files below 0, 1, 2 ... directories, %"])
        rows[-1].append(" / ".join(f"{100 * weight / total:.1f}" for weight in tree.nesting.weights))
        rows[-1] += [depths(tree, files) for files in held]
        rows.append([f"`{shown}`, directories", "", *(number(directories(files)) for files in held)])
    for archive in what.archives:
        unpacked = [names[archive.path][0].size for names in both]
        rows.append(
            [f"`{archive.path}`, bytes of the tar archive", *map(number, (archive.bytes.value, *unpacked))]
        )
        if archive.gzip:
            rows[-1][1] = ""
    return rows


def made(kind: str, size: int, seed: int) -> tuple[int, int, str]:
    """Make one: the bytes of its files and of its image, and what that took."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as home:
        out = Path(home, "out")
        argv = [sys.executable, "-c", MAKE, "corpus", "make", "--json"]
        argv += ["--kind", kind, "--bytes", str(size), "--seed", str(seed)]
        started = time.monotonic()
        to = [(os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT, 0o600)]
        child = os.posix_spawn(sys.executable, argv, {**os.environ, "AGELAB_HOME": home}, file_actions=to)
        _, status, used = os.wait4(child, 0)
        took = time.monotonic() - started
        if status:
            raise SystemExit(f"{' '.join(argv[3:])}: exit {os.waitstatus_to_exitcode(status)}")
        facts = json.loads(out.read_text())
    return facts["content_bytes"], facts["size"], f"{took:.1f} s, {used.ru_maxrss // 1024} MiB"


def open_files(what: StudyCorpus, part: int, seed: int) -> list[PlannedFile]:
    """Return the files that are in no archive."""
    return [file for file in plan_files(what, what.bytes // part, seed) if isinstance(file, PlannedFile)]


def measure(options: argparse.Namespace) -> Answer:
    """Make a table of each kind."""
    studies = [what for kind in options.kind or KINDS if isinstance(what := definition(kind), StudyCorpus)]
    # All of them before anything is planned here: a process begins with the most memory that its parent had.
    results = {
        what.kind: [made(what.kind, what.bytes // part, options.seed) for part in (QUICK, 1)]
        for what in ([] if options.planned else studies)
    }
    lines: list[str] = []
    for what in studies:
        rows = shape(what, options.seed)
        if both := results.get(what.kind):
            asked = " and ".join(number(what.bytes // part) for part in (QUICK, 1))
            for archive in (archive for archive in what.archives if archive.gzip):
                rest = [
                    sum(file.size for file in open_files(what, part, options.seed)) for part in (QUICK, 1)
                ]
                sizes = [files - other for (files, _, _), other in zip(both, rest, strict=True)]
                rows.append([f"`{archive.path}`, bytes", number(archive.bytes.value), *map(number, sizes)])
            rows.append(["all files, bytes", asked, *(number(files) for files, _, _ in both)])
            rows.append(["image, bytes", "", *(number(image) for _, image, _ in both)])
            rows.append(["time and memory to make it", "", *(took for _, _, took in both)])
        head = ["", "asked", f"1/{QUICK}", "the study's size"]
        lines += [f"### `{what.kind}`", "", *grid(head, rows), ""]
    return Answer({"corpora": "\n".join(lines)})


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planned", action="store_true")
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
