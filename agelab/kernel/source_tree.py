"""Where a kernel is built from: a git tree object, patches applied, in a repository of ours beside its work tree.

Whatever the source is (a git tree at some commit, files that no commit holds, a source package), it becomes one tree
object, whose name is a hash of all its content: a kernel's key needs no more. The work tree is brought from the tree
that was built last to the one that is built next, so that make sees new times on just those files that differ.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agelab import atomic, process
from agelab.debian import Archive, host_suite, newest
from agelab.errors import HostError, InputError
from agelab.kernel.origin import KernelPart
from agelab.notify import Notify
from agelab.store import Store, file_hash, key_of

_MARKERS = ("Makefile", "Kconfig", "kernel", "fs", "arch/x86/Kconfig")
"""What every kernel tree that builds for this processor has."""
_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
_PACKAGE = re.compile(r"linux-source-(\d+\.\d+)")
# Nothing is synced or compressed for long: it is a cache. Files are taken as they are; git packs nothing by itself.
_SETTINGS = ("core.fsync=none", "core.looseCompression=1", "core.autocrlf=false", "gc.auto=0")
# A user's own configuration must not change what git does here.
GIT_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
WORKTREE = "worktree"
"""In place of a ref: the files as they lie there."""


@dataclass(frozen=True)
class SourceTree:
    """What a kernel is built from, exactly."""

    cache_dir: Path
    """A cache directory of this repository's own: git/, source/ and the object directories."""
    tree: str
    """The tree object, patches applied."""
    version: str
    """6.1.192, as the tree's Makefile says."""
    origin: KernelPart
    """Where it origin from."""
    commit: str | None = None
    patches: tuple[KernelPart, ...] = ()
    """In the order in which they were applied."""

    @property
    def work_tree(self) -> Path:
        """The work tree, once it is checked out."""
        return self.cache_dir / "source"

    def check_out(self) -> None:
        """Bring the work tree to this tree; only files that differ are written. Nobody else may do so meanwhile."""
        self.work_tree.mkdir(exist_ok=True)
        (self.cache_dir / "git" / "index.lock").unlink(missing_ok=True)  # of a git that was killed
        _git(self.cache_dir, ["read-tree", "--reset", "-u", self.tree], work=self.work_tree)


def from_directory(path: Path, ref: str, store: Store, progress: Notify) -> SourceTree:
    """The kernel tree at ``path``: of a git ref, of its commit (``ref`` empty), or as it is (AS_IT_IS).

    Raises InputError for what is no kernel tree, an unknown ref, and changes that no commit holds.
    """
    if not path.is_dir():
        raise InputError(f"tree:{path}: there is no such directory")
    objects = find_objects(path)
    if objects is None:
        if ref and ref != WORKTREE:
            raise InputError(f"tree:{path}@{ref}: it is no git tree, it has no refs")
        place = _repository(store, {"directory": str(path.absolute())})
        with _import_lock(store, place):
            return _from_files(path, place, f"tree:{path}", progress)
    place = _repository(store, {"objects": objects})
    borrow_objects(place / "git", objects)
    if ref == WORKTREE:
        head = query_git(path, ["rev-parse", "HEAD^{tree}"])
        with _import_lock(store, place):
            return _from_files(path, place, f"tree:{path}@{WORKTREE}", progress, head)
    if not ref:
        require_clean(
            path,
            f"commit them; or tree:{path}@HEAD for the commit, tree:{path}@{WORKTREE} for the files as they are",
        )
    commit = query_git(
        path, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref or 'HEAD'}^{{commit}}"]
    )
    if commit is None:
        raise InputError(f"tree:{path}@{ref or 'HEAD'}: no such commit", hint=f"git -C {path} log --oneline")
    described = query_git(path, ["describe", "--always", "--tags", commit]) or commit
    tree = _git(place, ["rev-parse", f"{commit}^{{tree}}"])
    return _checked_tree(place, tree, KernelPart(name=f"tree:{path}", version=described), commit)


def from_package(wanted: str, store: Store, progress: Notify, *, refresh: bool = False) -> SourceTree:
    """The source of Debian's kernel package ``wanted``: 6.1, or a version of it, 6.1.192-2.

    Raises InputError for one that the host's suite does not have, HostError when it cannot be fetched.
    """
    archive = Archive(store, host_suite())
    if refresh:
        archive.update()
    there = {
        name: version
        for name, version in archive.versions("linux-source-").items()
        if _PACKAGE.fullmatch(name)
    }
    named = [
        name
        for name, version in there.items()
        if wanted in (name.removeprefix("linux-source-"), version, version.partition("-")[0])
    ]
    if not named:
        have = ", ".join(f"source:{version}" for version in there.values())
        raise InputError(
            f"source:{wanted}: Debian {archive.suite} has no such linux-source package",
            hint=f"there are: {have}",
        )
    name = next(one for one in named if there[one] == newest([there[other] for other in named]))
    package = archive.package(name, there[name])
    place = _repository(store, {"package": package.name, "sha256": package.sha256})
    mark = place / "tree"
    with _import_lock(store, place):
        if not mark.exists():
            progress(f"unpacking {name} {package.version}: once, half a minute")
            [deb] = archive.download([package])
            mark.write_text(_import_package(deb, place))
    origin = KernelPart(name=package.name, version=package.version, sha256=package.sha256)
    return _checked_tree(place, mark.read_text(), origin)


def _import_package(deb: Path, place: Path) -> str:
    """The tree object of the source in a package."""
    process.run(["dpkg-deb", "-x", str(deb), str(place / "package")])
    [packed] = (place / "package").rglob("linux-source-*.tar.xz")
    unpacked = place / "unpacked"
    unpacked.mkdir(exist_ok=True)
    process.run(["tar", "-C", str(unpacked), "--strip-components=1", "-xf", str(packed)])
    tree = _write_tree(unpacked, place)
    process.run(["rm", "-rf", str(unpacked), str(place / "package")])
    return tree


def apply_patches(source: SourceTree, files: Sequence[Path]) -> SourceTree:
    """The source with these patches, in their order.

    Raises InputError for one that does not apply, with the places where it does not.
    """
    if not files:
        return source
    # An index of its own: another process may be patching the same tree.
    with atomic.temp_dir(source.cache_dir) as directory:
        tree = _patch_tree(source, files, {"GIT_INDEX_FILE": f"{directory}/index"})
    named = tuple(KernelPart(name=file.name, sha256=file_hash(file)) for file in files)
    return replace(source, tree=tree, patches=named)


def _patch_tree(source: SourceTree, files: Sequence[Path], index: Mapping[str, str]) -> str:
    """The tree object with these patches. Raises as ``patched`` does."""
    _git(source.cache_dir, ["read-tree", source.tree], index)
    for number, file in enumerate(files):
        argv = ["apply", "--cached", "--whitespace=nowarn", str(file.absolute())]
        done = process.run(
            _command(source.cache_dir, argv),
            env={**GIT_ENVIRONMENT, **index},
            cwd=source.cache_dir,
            ok=range(256),
        )
        if done.returncode:
            said = [
                line.removeprefix("error: ")
                for line in done.stderr.splitlines()
                if line.startswith("error: ")
            ]
            places = (
                "; ".join(line.removeprefix("patch failed: ") for line in said) or done.stderr.strip()[-300:]
            )
            after = f" (after {', '.join(one.name for one in files[:number])})" if number else ""
            raise InputError(f"{file} does not apply to {source.version}{after}: {places}")
    return _git(source.cache_dir, ["write-tree"], index)


def _repository(store: Store, identity: Mapping[str, str]) -> Path:
    """The cache directory of one repository, with a git directory of ours."""
    place = store.cache("kernels") / key_of(dict(identity))[:16]
    if not (place / "git" / "HEAD").exists():
        place.mkdir(exist_ok=True)
        init_bare(place / "git")
    return place


@contextmanager
def _import_lock(store: Store, place: Path) -> Iterator[None]:
    """Nobody else reads files into that repository meanwhile; what one who was killed has left locked is free."""
    with store.lock(f"sources-{place.name}"):
        (place / "files.index.lock").unlink(missing_ok=True)
        yield


def init_bare(directory: Path) -> None:
    """A git directory of ours, without a work tree."""
    process.run(["git", "init", "--quiet", "--bare", str(directory)], env=GIT_ENVIRONMENT)


def borrow_objects(directory: Path, objects: str) -> None:
    """Let a git directory of ours read the user's objects (gitrepository-layout(5): objects/info/alternates)."""
    file = directory / "objects" / "info" / "alternates"
    if not file.exists() or file.read_text() != f"{objects}\n":  # another process may be reading it
        file.write_text(f"{objects}\n")


def _from_files(path: Path, place: Path, name: str, progress: Notify, head: str | None = None) -> SourceTree:
    if lacks := [mark for mark in _MARKERS if not (path / mark).exists()]:
        raise _not_a_kernel_tree(name, lacks)
    progress(f"reading {path}")
    return _checked_tree(place, _write_tree(path, place, head), KernelPart(name=name))


def _write_tree(path: Path, place: Path, head: str | None = None) -> str:
    """The tree object of a directory: all its files, or with a commit's tree those of git's (none of .gitignore's)."""
    index = {"GIT_INDEX_FILE": str(place / "files.index")}
    if head:
        _git(place, ["read-tree", head], index)
    _git(place, ["add", "--all", *([] if head else ["--force"]), "."], index, work=path)
    return _git(place, ["write-tree"], index)


def _checked_tree(place: Path, tree: str, origin: KernelPart, commit: str | None = None) -> SourceTree:
    """Raises InputError for a tree that is no kernel's."""
    listed = _git(place, ["ls-tree", "--name-only", tree, "--", *_MARKERS]).splitlines()
    whole = set(listed) == set(_MARKERS)
    text = _git(place, ["cat-file", "blob", f"{tree}:Makefile"]) if whole else ""
    said = {match[1]: match[2].strip() for match in _VERSION.finditer(text)}
    if not {"VERSION", "PATCHLEVEL"} <= said.keys():
        raise _not_a_kernel_tree(
            origin.name, sorted(set(_MARKERS) - set(listed)) or ["a version in its Makefile"]
        )
    numbers = [said["VERSION"], said["PATCHLEVEL"], said.get("SUBLEVEL", "")]
    version = ".".join(number for number in numbers if number) + said.get("EXTRAVERSION", "")
    return SourceTree(place, tree, version, origin, commit)


def _not_a_kernel_tree(name: str, lacks: Sequence[str]) -> InputError:
    return InputError(f"{name} is no kernel tree: it lacks {', '.join(lacks)}")


def require_clean(path: Path, hint: str) -> None:
    """Refuse files that differ from the commit. Raises InputError."""
    changed = query_git(path, ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]) or ""
    if lines := changed.splitlines():
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        raise InputError(
            f"tree:{path} has changes that no commit holds: {lines[0].split()[-1]}{more}", hint=hint
        )


def find_objects(path: Path) -> str | None:
    """Where the objects of the git tree at ``path`` are; None for what is none, or inside of some other one."""
    inside = query_git(
        path, ["rev-parse", "--path-format=absolute", "--git-path", "objects", "--show-prefix"]
    )
    objects, _, prefix = (inside or "").partition("\n")
    return objects if objects and not prefix.strip() else None


def missing_markers(path: Path, commit: str) -> list[str]:
    """What a commit of the user's tree would need to have to be one of a kernel."""
    listed = query_git(path, ["ls-tree", "--name-only", commit, "--", *_MARKERS]) or ""
    return sorted(set(_MARKERS) - set(listed.splitlines()))


def query_git(path: Path, argv: Sequence[str]) -> str | None:
    """What git says of the user's tree, or None where it says no."""
    done = process.run(["git", "-C", str(path), *argv], ok=range(256))
    if "dubious ownership" in done.stderr:
        raise InputError(f"tree:{path}: git will not read it: it belongs to another user")
    return done.stdout.strip() if done.returncode == 0 else None


def _command(place: Path, argv: Sequence[str], work: Path | None = None) -> list[str]:
    there = [f"--work-tree={work.absolute()}"] if work else []
    said = [word for setting in _SETTINGS for word in ("-c", setting)]
    return ["git", f"--git-dir={place / 'git'}", *there, *said, *argv]


def _git(
    place: Path, argv: Sequence[str], env: Mapping[str, str] | None = None, work: Path | None = None
) -> str:
    """What git says in our repository. Raises HostError when it fails."""
    try:
        found = process.run(
            _command(place, argv, work), env={**GIT_ENVIRONMENT, **(env or {})}, cwd=work or place
        )
    except process.ProcessFailed as error:
        raise HostError(f"git cannot read the kernel's source: {error}", hint=error.hint) from error
    return found.stdout.strip()
