"""A git tree of Linux with three regressions planted in it, for ``agelab bisect`` to find.

    .venv/bin/python -m bench.planted DIRECTORY

Makes a git repository (without a work tree; it borrows the objects of the store's source package, and is of no use
without that store) of 72 commits on Debian's linux-source-6.1. Most add a function to a file of one of seven
filesystems or of fs/ itself. Three are guilty: a new entry in a directory of ext4 costs more processor time, jfs
leaves room behind every sixty-fourth page, reiserfs waits for itself at its 2000th file. Four do not build, one hangs
at boot; what comes after mends them. The same package gives the same commits. Prints each bisect's command;
``tests/vm/test_bisect_tree.py`` runs all three.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agelab.base import git
from agelab.cli.options import open_store
from agelab.kernel import source_tree
from agelab.store.artefacts import Store

PACKAGE = "6.1"
COMMITS = 72
SCENARIO = Path(__file__).with_name("planted.toml")
FILES = (
    *("fs/ext4/namei.c", "fs/xfs/xfs_inode.c", "fs/btrfs/file.c", "fs/jfs/jfs_dmap.c", "fs/reiserfs/stree.c"),
    *("fs/f2fs/namei.c", "fs/nilfs2/inode.c", "fs/ext4/inode.c", "fs/xfs/xfs_aops.c", "fs/btrfs/inode.c"),
    *("fs/jfs/inode.c", "fs/reiserfs/bitmap.c", "fs/f2fs/data.c", "fs/ext4/mballoc.c", "fs/read_write.c"),
)
"""The files that commits change, in turn."""
NO_BUILD = {35: "fs/dcache.c", 36: "fs/dcache.c", 37: "fs/dcache.c", 54: "fs/open.c"}
"""Commits after which that file does not compile; it is mended by the one after the last of them."""
NO_BOOT = 18
"""The commit after which the kernel waits for ever while it boots; the next one mends it."""
AUTHOR = "A. Developer <developer@example.org>"
FIRST = 1_700_000_000
"""When the first commit was made (seconds since 1970); an hour later the next."""


@dataclass(frozen=True)
class Planted:
    """A guilty change, and the question that finds it."""

    name: str
    number: int
    """The number of the commit, from 1."""
    subject: str
    file: str
    before: str
    after: str
    variant: str
    question: tuple[str, ...]
    """Options of agelab bisect beside scenario, variant, tree and ends."""


GUILTY = (
    Planted(
        name="slower",
        number=23,
        subject="ext4: hash the name of a new entry with care",
        file="fs/ext4/namei.c",
        before="""	if (fscrypt_is_nokey_name(dentry))
		return -ENOKEY;
""",
        after="""	for (blocks = 0; blocks < 20000; blocks++)
		barrier();
	if (fscrypt_is_nokey_name(dentry))
		return -ENOKEY;
""",
        variant="ext4",
        question=("--metric", "create:elapsed"),
    ),
    Planted(
        name="scattered",
        number=50,
        subject="jfs: leave room behind every sixty-fourth page",
        file="fs/jfs/jfs_extent.c",
        before="""		hint += (nxlen - 1);
""",
        after="""		hint += (nxlen - 1);
		if ((pno & 63) == 63)
			hint += 16;
""",
        variant="jfs",
        question=("--metric", "aged/map:layout_score"),
    ),
    Planted(
        name="hang",
        number=61,
        subject="reiserfs: count creations under a lock",
        file="fs/reiserfs/namei.c",
        before="""static int new_inode_init(struct inode *inode, struct inode *dir, umode_t mode)
{
""",
        after="""static DEFINE_MUTEX(creations_lock);
static unsigned int creations;

static int new_inode_init(struct inode *inode, struct inode *dir, umode_t mode)
{
	mutex_lock(&creations_lock);
	if (++creations == 2000)
		mutex_lock(&creations_lock);
	mutex_unlock(&creations_lock);
""",
        variant="reiserfs",
        question=("--symptom", "hang"),
    ),
)


def make(directory: Path, store: Store) -> dict[str, str]:
    """Make the repository and return, for each planted change, the commit that made it.

    Raises InputError where the host's suite has no such source package, HostError where git fails.
    """
    came = source_tree.from_package(PACKAGE, store, _say)
    git.init_bare(directory)
    git.borrow_objects(directory, came.cache_dir / "git" / "objects")
    repository = _Repository(directory)
    repository.git("read-tree", came.tree)
    commit = repository.commit(0, f"Linux {came.version}", None)
    repository.git("tag", "base", commit)
    commits: dict[str, str] = {}
    for number in range(1, COMMITS + 1):
        subject = _change(repository, number)
        commit = repository.commit(number, subject, commit)
        commits |= {change.name: commit for change in GUILTY if change.number == number}
    repository.git("tag", "tip", commit)
    repository.git("update-ref", "HEAD", commit)
    return commits


def question(planted: Planted, tree: Path) -> list[str]:
    """Return the arguments of ``agelab bisect``."""
    return [
        *("--scenario", str(SCENARIO), "--variant", planted.variant, *planted.question),
        *("--tree", str(tree), "--good", "base", "--bad", "tip"),
    ]


class _Repository:
    """A git repository in which files are changed without a work tree."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def git(self, *argv: str, stdin: Path | None = None, env: dict[str, str] | None = None) -> str:
        return git.run(self.directory, argv, env=env, stdin=stdin).stdout.strip()

    def read(self, file: str) -> str:
        return git.run(self.directory, ["cat-file", "blob", f":{file}"]).stdout

    def write(self, file: str, text: str) -> None:
        scratch = self.directory / "scratch"
        scratch.write_text(text)
        blob = self.git("hash-object", "-w", "--stdin", stdin=scratch)
        scratch.unlink()
        self.git("update-index", "--cacheinfo", f"100644,{blob},{file}")

    def replace(self, file: str, before: str, after: str) -> None:
        text = self.read(file)
        if text.count(before) != 1:
            raise ValueError(f"{file} has {text.count(before)} places like {before!r}")
        self.write(file, text.replace(before, after))

    def commit(self, number: int, subject: str, parent: str | None) -> str:
        who, _, address = AUTHOR.partition(" <")
        when = f"{FIRST + 3600 * number} +0000"
        env = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", who), ("EMAIL", address.rstrip(">")), ("DATE", when))
        }
        parents = ["-p", parent] if parent else []
        return self.git("commit-tree", self.git("write-tree"), *parents, "-m", subject, env=env)


def _change(repository: _Repository, number: int) -> str:
    """Make that commit's change in the index; its subject."""
    subjects = [*_troubles(repository, number), *_plants(repository, number)]
    if subjects:
        return subjects[-1]
    file = FILES[number % len(FILES)]
    name = f"revision_{number}"
    text = f"\nint {name}(int value);\nint {name}(int value)\n{{\n\treturn value ^ {number};\n}}\n"
    repository.write(file, repository.read(file) + text)
    return f"{Path(file).parent.name}: revision {number}"


def _troubles(repository: _Repository, number: int) -> Iterator[str]:
    """Plant commits that do not build or boot, and the commits that fix them."""
    if number - 1 in NO_BUILD and NO_BUILD.get(number) != (file := NO_BUILD[number - 1]):
        text = repository.read(file)
        repository.write(file, "".join(line for line in text.splitlines(True) if "unfinished" not in line))
        yield f"fs: mend {file}"
    if number in NO_BUILD:
        file = NO_BUILD[number]
        repository.write(file, repository.read(file) + f"int unfinished_{number}(void) {{ return missing; }}\n")
        yield f"fs: begin to change {file}"
    waits = "\twhile (!READ_ONCE(pipe_is_ready))\n\t\tcpu_relax();\n"
    flag = "static int pipe_is_ready;\n\n"
    place, call = (
        "static int __init init_pipe_fs(void)\n{\n",
        "\tint err = register_filesystem(&pipe_fs_type);\n",
    )
    if number == NO_BOOT:
        repository.replace("fs/pipe.c", place, flag + place)
        repository.replace("fs/pipe.c", call, call + "\n" + waits)
        yield "pipe: wait until it is ready"
    if number == NO_BOOT + 1:
        repository.replace("fs/pipe.c", call + "\n" + waits, call)
        repository.replace("fs/pipe.c", flag, "")
        yield "pipe: do not wait"


def _plants(repository: _Repository, number: int) -> Iterator[str]:
    for change in GUILTY:
        if change.number == number:
            repository.replace(change.file, change.before, change.after)
            yield change.subject


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> int:
    directory = Path(sys.argv[1]).absolute()
    commits = make(directory, open_store())
    for change in GUILTY:
        print(f"# {change.name}: {commits[change.name][:12]} {change.subject}")
        print(shlex.join([".venv/bin/agelab", "bisect", *question(change, directory)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
