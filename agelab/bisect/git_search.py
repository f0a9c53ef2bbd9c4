"""Search through the commits of a git tree; git bisect chooses them, in a repository of its own.

That repository has no work tree and borrows the user's objects (alternates): the user's tree is not touched.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agelab.base import atomic, fileio, git
from agelab.base.errors import InputError, did_you_mean
from agelab.base.git import GitRepository
from agelab.bisect.bisect_directory import BisectDirectory, GitTree
from agelab.bisect.measurements import Decision, FoundChange, KernelVerdict
from agelab.kernel import recipes, source_tree

_ENDED = re.compile(r"^# (first bad commit: \[|only skipped commits left to test)", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[(\w+)\]", re.MULTILINE)


def resolve_tree(path: Path, good: str, bad: str, options: str, *, dirty: bool = False) -> tuple[GitTree, int]:
    """Resolve both ends to commits; return the tree and the number of commits that could be the first bad one.

    Raises InputError for a path that is no git tree or no kernel tree, uncommitted changes (unless ``dirty``),
    unknown refs, ends that are equal, swapped or unrelated, and invalid kernel options.
    """
    path = path.expanduser().absolute()
    if not path.is_dir():
        raise InputError(f"--tree {path}: there is no such directory")
    repository = git.at(path)
    if repository is None:
        raise InputError(f"--tree {path}: it is not the top directory of a git tree")
    if not dirty:
        source_tree.require_clean(
            repository, f"--dirty: search the commits, without these changes; git -C {path} stash: put them away"
        )
    commits = {
        name: resolve_commit(repository, end, ref)
        for name, end, ref in (("good", "--good", good), ("bad", "--bad", bad))
    }
    for name, commit in commits.items():
        source_tree.require_kernel(f"--tree {path}: {name}", repository, commit)
    tree = GitTree(path=str(path), options=options, **commits)
    recipes.parse(tree.kernel_spec(tree.bad))
    if tree.good == tree.bad:
        raise InputError(f"good and bad are the same commit: {good}, {bad} = {tree.good[:12]}")
    if not is_ancestor(repository, tree.good, tree.bad):
        if is_ancestor(repository, tree.bad, tree.good):
            raise InputError(
                f"good and bad are swapped: bad ({bad}) comes before good ({good})",
                hint="to find an improvement, swap --good and --bad, and read good as bad",
            )
        raise InputError(
            f"bad ({bad}) does not descend from good ({good}): what is between them is not known",
            hint=f"a good commit that it descends from: git -C {path} merge-base {good} {bad}",
        )
    count = _query(repository, ["rev-list", "--count", f"{tree.good}..{tree.bad}"])
    return tree, int(count)


def commit_subject(tree: GitTree, commit: str) -> str:
    """Return short name and subject of a commit."""
    return _query(tree_repository(tree), ["log", "-1", '--format=%h "%s"', commit])


def commit_details(tree: GitTree, commit: str) -> dict[str, str]:
    """Return author, date and name (after the nearest tag) of a commit."""
    repository = tree_repository(tree)
    date, _, author = _query(repository, ["log", "-1", "--format=%as %an <%ae>", commit]).partition(" ")
    name = _query(repository, ["describe", "--always", "--tags", commit])
    return {"author": author, "date": date, "name": name}


def search(directory: BisectDirectory, tree: GitTree, judge: Callable[[str], Decision]) -> FoundChange:
    """Have git choose kernels to judge until it has found the first bad commit; resumes a search that was stopped.

    Git's repository is made anew from the verdicts: what lies there may be anybody's.
    """
    _start(directory, tree)
    for verdict in directory.rows("verdicts", KernelVerdict):
        _mark(directory, verdict.decision, tree.commit_of(verdict.kernel))
    while not _has_ended(directory):
        _copy_log(directory)
        commit = fileio.read_text(directory.git / "BISECT_HEAD").strip()
        _mark(directory, judge(tree.kernel_spec(commit)), commit)
    _copy_log(directory)
    bad = _git(directory, ["rev-parse", "refs/bisect/bad"])
    possible = _POSSIBLE.findall(fileio.read_text(directory.path / "bisect.log")) or [bad]
    before, after, *between = map(tree.kernel_spec, (_last_good(directory, bad), bad, *possible))
    return FoundChange(before, after, tuple(between))


def _copy_log(directory: BisectDirectory) -> None:
    """Copy the output of git bisect log to where the user looks for it."""
    shutil.copyfile(directory.git / "BISECT_LOG", directory.path / "bisect.log")


def _start(directory: BisectDirectory, tree: GitTree) -> None:
    """Create the repository, borrow the user's objects, and start git bisect in it."""
    repository = tree_repository(tree)
    atomic.discard(directory.git)
    git.init_bare(directory.git)
    git.borrow_objects(directory.git, repository.objects)
    shallow = repository.common_dir / "shallow"
    if shallow.is_file():
        shutil.copyfile(shallow, directory.git / "shallow")
    _git(directory, ["update-ref", "--no-deref", "HEAD", tree.bad])
    _git(directory, ["bisect", "start", "--no-checkout", tree.bad, tree.good])


def _mark(directory: BisectDirectory, decision: Decision, commit: str) -> None:
    """Tell git the verdict on a commit; it exits with 2 where only skipped ones are left."""
    word = {Decision.GOOD: "good", Decision.BAD: "bad"}.get(decision, "skip")
    git.run(directory.git, ["bisect", word, commit], ok=(0, 2))


def _has_ended(directory: BisectDirectory) -> bool:
    return _ENDED.search(fileio.read_text(directory.git / "BISECT_LOG")) is not None


def _last_good(directory: BisectDirectory, bad: str) -> str:
    """Return the good commit nearest to the first bad one: its parent, if that could be judged."""
    words = ["for-each-ref", "--format=%(objectname)", f"--merged={bad}", "refs/bisect/good-*"]
    before = _git(directory, words).split()
    return min(before, key=lambda commit: int(_git(directory, ["rev-list", "--count", f"{commit}..{bad}"])))


def tree_repository(tree: GitTree) -> GitRepository:
    """Return the repository of the tree that is searched. Raises InputError where it is gone."""
    repository = git.at(Path(tree.path))
    if repository is None:
        raise InputError(f"--tree {tree.path}: it is no git tree any more")
    return repository


def resolve_commit(repository: GitRepository, option: str, ref: str) -> str:
    commit = source_tree.query_git(
        repository, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    )
    if commit is None:
        refs = (
            source_tree.query_git(repository, ["for-each-ref", "--format=%(refname:short)", "refs/tags", "refs/heads"])
            or ""
        )
        near = did_you_mean(ref, refs.split())
        path = repository.top
        raise InputError(
            f"{option} {ref}: no such version in {path}" + (f"; {near}" if near else ""),
            hint=f"git -C {path} tag; git -C {path} log --oneline",
        )
    return commit


def is_ancestor(repository: GitRepository, commit: str, descendant: str) -> bool:
    """Return True if ``descendant`` is ``commit`` or descends from it."""
    return source_tree.query_git(repository, ["merge-base", "--is-ancestor", commit, descendant]) is not None


def _query(repository: GitRepository, argv: Sequence[str]) -> str:
    """Query the user's tree with git. Raises HostError where git fails."""
    return repository.query(argv).stdout.strip()


def _git(directory: BisectDirectory, argv: Sequence[str]) -> str:
    return git.run(directory.git, argv).stdout.strip()
