"""Source trees of kernels to build, and their patches: git tree objects in repositories in agelab's cache.

Every source (a commit of a git tree, uncommitted files, a source package) becomes one git tree object, whose name is
a hash of all its content: a kernel's key needs nothing else. The work tree is updated from the tree that was built
last to the next one.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from agelab.base import atomic, fileio, git, process
from agelab.base.errors import HostError, InputError, Notify, naming_disk_errors
from agelab.base.git import GitRepository
from agelab.base.hashing import key_of
from agelab.base.types import Frozen
from agelab.debian import Archive, Package, archives, first_suite, newest, unpack, unpack_source
from agelab.debian.unpacking import GIB, MOST_NAMES, SOURCE_BYTES
from agelab.kernel import oldest
from agelab.store.artefacts import Store, file_hash

_MARKERS = ("Makefile", "Kconfig", "kernel", "fs", "arch/x86/Kconfig")
"""Paths in every kernel tree that builds for x86."""
_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
_PACKAGE = re.compile(r"linux-source-(\d+\.\d+)")
# Neither sync nor strong compression: it is a cache. No line-end conversion.
SETTINGS = ("-c", "core.fsync=none", "-c", "core.looseCompression=1", "-c", "core.autocrlf=false")
AS_THEY_ARE = "* !text !eol !ident !filter !working-tree-encoding\n"
"""Attributes (gitattributes(5)) of a repository here, which come before a tree's own, the user's and the host's."""
WORKTREE = "worktree"
"""In place of a ref: the files as they are now, committed or not."""


PROVENANCE_FILE = "provenance.json"
"""Where a build keeps its BuildRecord, beside its kernel."""


class KernelPart(Frozen):
    """One thing that a kernel was made of: a package, a file, a patch."""

    name: str
    version: str = ""
    sha256: str = Field(default="", description="empty where nobody recorded it")


class BuildRecord(Frozen):
    """The parts that a build knows, and nothing else does."""

    sources: tuple[KernelPart, ...] = ()
    commit: str | None = Field(default=None, description="of the tree that it was built from")
    patches: tuple[KernelPart, ...] = Field(default=(), description="in the order in which they were applied")


@dataclass(frozen=True)
class SourceTree:
    """The exact source of a kernel."""

    cache_dir: Path
    """The cache directory of its repository, with git/, source/ and the object directories."""
    tree: str
    """The name of the git tree object, patches applied."""
    version: str
    """The version in the tree's Makefile, such as 6.1.192."""
    origin: KernelPart
    commit: str | None = None
    patches: tuple[KernelPart, ...] = ()

    @property
    def work_tree(self) -> Path:
        """The work tree, once it is checked out."""
        return self.cache_dir / "source"

    def check_out(self) -> None:
        """Make the work tree this tree, writing only files that differ. The caller holds the kernel's lock.

        Raises InputError where the files are not those that the tree's name is the hash of.
        """
        self.work_tree.mkdir(exist_ok=True)
        (self.cache_dir / "git" / "index.lock").unlink(missing_ok=True)  # left by a killed git
        git_output(self.cache_dir, ["read-tree", "--reset", "-u", self.tree], work=self.work_tree)
        # Of a killed git files may be there that are in neither tree.
        git_output(self.cache_dir, ["clean", "-ffdxq"], work=self.work_tree)
        self._require_named()

    def _require_named(self) -> None:
        """Hash all files: git believes the names of a repository's objects, and a kernel's key is made of one."""
        with atomic.temp_dir(self.cache_dir) as directory, naming_disk_errors(self.cache_dir):
            listed = directory / "names"
            git.run(self.cache_dir / "git", ["ls-tree", "-r", "-z", self.tree], stdout=listed)
            hashed = _tree_name(self.work_tree, fileio.read_bytes(listed, fileio.LINES).split(b"\0")[:-1])
        if hashed != self.tree:
            atomic.discard(self.work_tree)
            (self.cache_dir / "git" / "index").unlink(missing_ok=True)
            raise InputError(
                f"{self.origin.name}: its files are not those that git's name for them, {self.tree[:12]}, stands for",
                hint="git fsck names the objects; or copy the files without .git, and name that directory",
            )


def _tree_name(top: Path, listed: Iterable[bytes]) -> str:
    """Return git's name for the tree of these entries (git-ls-tree(1)), hashed from the files below ``top``."""
    entries: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for line in listed:
        attributes, path = line.split(b"\t", 1)
        mode, kind, name = attributes.split()
        parts = path.split(b"/")
        for depth in range(1, len(parts)):
            entries.setdefault(b"/".join(parts[:depth]), [])
        value = _blob_name(top / os.fsdecode(path)) if kind == b"blob" else bytes.fromhex(name.decode())
        entries[b"/".join(parts[:-1])].append((parts[-1], mode + b" " + parts[-1] + b"\0" + value))
    for path in sorted(entries, key=lambda path: (path.count(b"/"), path), reverse=True):
        content = b"".join(entry for _, entry in sorted(entries[path]))
        value = _object_name(b"tree", content)
        if not path:
            return value.hex()
        above, _, name_here = path.rpartition(b"/")
        # Git sorts a directory as if its name ended with a slash.
        entries[above].append((name_here + b"/", b"40000 " + name_here + b"\0" + value))
    raise AssertionError("the top is among the directories")


def _blob_name(path: Path) -> bytes:
    """Return git's name for a file or a link; that of an empty file where there is none."""
    try:
        if path.is_symlink():
            return _object_name(b"blob", os.fsencode(fileio.link_text(path)))
        with fileio.opened(path, SOURCE_BYTES, link=False) as file:
            digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
            while piece := file.read(fileio.MIB):
                digest.update(piece)
            return digest.digest()
    except OSError:
        return _object_name(b"blob", b"")


def _object_name(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0" % (kind, len(content)) + content, usedforsecurity=False).digest()


def from_directory(path: Path, ref: str, store: Store, progress: Notify) -> SourceTree:
    """Read the kernel tree at ``path``: at a git ref, at HEAD (``ref`` empty), or its files as they are (WORKTREE).

    Raises InputError for a directory that is not a kernel tree, an unknown ref, and uncommitted changes without a ref.
    """
    if not path.is_dir():
        raise InputError(f"tree:{path}: there is no such directory")
    repository = git.at(path)
    if repository is None:
        if ref and ref != WORKTREE:
            raise InputError(f"tree:{path}@{ref}: it is not a git tree and has no refs")
        place = _repository(store, {"directory": str(path.absolute())})
        with _import_lock(store, place):
            return _from_files(path, place, f"tree:{path}", progress)
    place = _repository(store, {"objects": str(repository.objects)})
    git.borrow_objects(place / "git", repository.objects)
    if ref == WORKTREE:
        head = query_git(repository, ["rev-parse", "HEAD^{tree}"])
        with _import_lock(store, place):
            return _from_files(path, place, f"tree:{path}@{WORKTREE}", progress, head)
    if not ref:
        require_clean(
            repository,
            f"commit them; or tree:{path}@HEAD for the commit, tree:{path}@{WORKTREE} for the files as they are",
        )
    commit = query_git(
        repository, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref or 'HEAD'}^{{commit}}"]
    )
    if commit is None:
        raise InputError(f"tree:{path}@{ref or 'HEAD'}: no such commit", hint=f"git -C {path} log --oneline")
    described = query_git(repository, ["describe", "--always", "--tags", commit]) or commit
    tree = git_output(place, ["rev-parse", f"{commit}^{{tree}}"])
    _require_size(f"tree:{path}", _blob_sizes(place, tree))
    return _checked_tree(place, tree, KernelPart(name=f"tree:{path}", version=described), commit)


def from_package(version: str, store: Store, progress: Notify, *, refresh: bool = False) -> SourceTree:
    """Read the source of Debian's linux-source package of a ``version``: 6.1, or an exact version such as 6.1.192-2.

    Raises InputError when no suite has it, HostError when it cannot be downloaded.
    """
    archive, package = find_package(version, store, progress, refresh)
    name = package.name
    place = _repository(store, {"package": package.name, "sha256": package.sha256})
    mark = place / "tree"
    with _import_lock(store, place), naming_disk_errors(place):
        if not mark.exists():
            progress(f"unpacking {name} {package.version} (once, half a minute)")
            [deb] = archive.download([package])
            atomic.write(mark, _import_package(deb, place).encode())
    origin = KernelPart(name=package.name, version=package.version, sha256=package.sha256)
    return _checked_tree(place, fileio.read_text(mark), origin)


def find_package(asked_version: str, store: Store, progress: Notify, refresh: bool = False) -> tuple[Archive, Package]:
    """Return the newest package of that version: in the host's suite or else, as kernels are found, in any."""
    oldest.require(f"source:{asked_version}", asked_version)
    seen: dict[str, str] = {}
    by_version: dict[str, tuple[Archive, str]] = {}
    for archive in archives(store, refresh=refresh, progress=progress):
        there = {
            name: version for name, version in archive.versions("linux-source-").items() if _PACKAGE.fullmatch(name)
        }
        named = {
            version: (archive, name)
            for name, version in there.items()
            if asked_version in (name.removeprefix("linux-source-"), version, version.partition("-")[0])
        }
        by_version = {**named, **by_version}
        if named and archive.suite == first_suite():
            break
        seen |= there
    if not by_version:
        near = ", ".join(f"source:{name.removeprefix('linux-source-')}" for name in sorted(seen))
        raise InputError(
            f"source:{asked_version}: no suite of Debian has such a linux-source package", hint=f"there are: {near}"
        )
    version = newest(list(by_version))
    archive, name = by_version[version]
    return archive, archive.package(name, version)


def _import_package(deb: Path, place: Path) -> str:
    """Import the source in a package and return its tree object."""
    with atomic.temp_dir(place) as directory, naming_disk_errors(place):  # while the disk still is full
        unpack(deb, directory / "package")
        [packed] = (directory / "package").rglob("linux-source-*.tar.xz")
        unpack_source(packed, directory / "unpacked")
        return _write_tree(directory / "unpacked", place)


def _repository(store: Store, identity: Mapping[str, str]) -> Path:
    """Return the cache directory of a source's repository, with a git directory in it."""
    place = store.cache("kernels") / key_of(dict(identity))[:16]
    if not (place / "git" / "HEAD").exists():
        place.mkdir(exist_ok=True)
        with naming_disk_errors(place):
            git.init_bare(place / "git")
    attributes = place / "git" / "info" / "attributes"
    if not attributes.exists() or fileio.read_text(attributes) != AS_THEY_ARE:
        with naming_disk_errors(place):
            attributes.parent.mkdir(exist_ok=True)
            atomic.write(attributes, AS_THEY_ARE.encode())
    return place


@contextmanager
def _import_lock(store: Store, place: Path) -> Iterator[None]:
    """Hold the lock for importing files into a repository, and clear a killed git's index lock."""
    with store.lock(f"sources-{place.name}"):
        (place / "files.index.lock").unlink(missing_ok=True)
        yield


def _from_files(path: Path, place: Path, name: str, progress: Notify, head: str | None = None) -> SourceTree:
    if missing := [marker for marker in _MARKERS if not (path / marker).exists()]:
        raise _not_a_kernel_tree(name, missing)
    if inner := git.nested(path):
        raise InputError(f"{name}: {inner.relative_to(path)} is another git repository", hint="move it out of the tree")
    progress(f"reading {path}")
    return _checked_tree(place, _write_tree(path, place, head), KernelPart(name=name))


def _write_tree(path: Path, place: Path, head: str | None = None) -> str:
    """Import a directory and return its tree object: all files or, with a commit's tree, those git does not ignore."""
    index = {"GIT_INDEX_FILE": str(place / "files.index")}
    if head:
        git_output(place, ["read-tree", head], index)
    _require_size(f"tree:{path}", _file_sizes(path, place, index, ignored=not head))
    git_output(place, ["add", "--all", *([] if head else ["--force"]), "."], index, work=path)
    return git_output(place, ["write-tree"], index)


def _file_sizes(path: Path, place: Path, index: Mapping[str, str], *, ignored: bool) -> Iterator[int]:
    """Yield the bytes of each file that git would import, with those that it is told to ignore or without them."""
    words = ["ls-files", "-z", "--cached", "--others", *([] if ignored else ["--exclude-standard"])]
    with atomic.temp_dir(place) as directory, naming_disk_errors(place):  # while the disk still is full
        listed = directory / "names"
        git.run(place / "git", words, work_tree=path, env=index, stdout=listed)
        names = fileio.read_bytes(listed, fileio.LINES).split(b"\0")[:-1]
    for name in names:
        with suppress(FileNotFoundError):  # of the commit, but removed since
            yield (path / os.fsdecode(name)).lstat().st_size


def _blob_sizes(place: Path, tree: str) -> Iterator[int]:
    """Yield the bytes of each file of a tree object; of what is no file, or not there, none."""
    for line in git_output(place, ["ls-tree", "-r", "-l", tree]).splitlines():
        size = line.split(maxsplit=4)[3]
        yield int(size) if size.isdecimal() else 0


def _require_size(name: str, sizes: Iterable[int]) -> None:
    """Raise InputError for files that are more, or larger, than those of any kernel."""
    total = 0
    for number, size in enumerate(sizes, 1):
        total += size
        if total > SOURCE_BYTES or number > MOST_NAMES:
            most = f"{SOURCE_BYTES / GIB:g} GiB" if total > SOURCE_BYTES else f"{MOST_NAMES:,} files"
            raise InputError(
                f"{name} is too large for a kernel's source: it has more than {most}",
                hint="is it the tree that you mean? docs/reliability.md lists the limits",
            )


def _checked_tree(place: Path, tree: str, origin: KernelPart, commit: str | None = None) -> SourceTree:
    """Make the SourceTree of a tree object. Raises InputError when it is not a kernel tree."""
    listed = git_output(place, ["ls-tree", "--name-only", tree, "--", *_MARKERS]).splitlines()
    whole = set(listed) == set(_MARKERS)
    text = git_output(place, ["cat-file", "blob", f"{tree}:Makefile"]) if whole else ""
    version = _makefile_version(text)
    if not version:
        raise _not_a_kernel_tree(origin.name, sorted(set(_MARKERS) - set(listed)) or ["a version in its Makefile"])
    oldest.require(origin.name, version)
    return SourceTree(place, tree, version, origin, commit)


def _makefile_version(text: str) -> str:
    """Return the version that a kernel's Makefile gives; nothing where it gives none."""
    makefile = {match[1]: match[2].strip() for match in _VERSION.finditer(text)}
    if not {"VERSION", "PATCHLEVEL"} <= makefile.keys():
        return ""
    numbers = [makefile["VERSION"], makefile["PATCHLEVEL"], makefile.get("SUBLEVEL", "")]
    return ".".join(number for number in numbers if number) + makefile.get("EXTRAVERSION", "")


def _not_a_kernel_tree(name: str, missing: Sequence[str]) -> InputError:
    return InputError(f"{name} is not a kernel tree: it lacks {', '.join(missing)}")


def require_clean(repository: GitRepository, hint: str) -> None:
    """Raise InputError when tracked files differ from the commit."""
    # Of a submodule git would ask a git of its own, which reads the submodule's configuration.
    words = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]
    changed = query_git(repository, words) or ""
    if lines := changed.splitlines():
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        raise InputError(f"tree:{repository.top} has uncommitted changes: {lines[0].split()[-1]}{more}", hint=hint)


def require_kernel(name: str, repository: GitRepository, commit: str) -> None:
    """Raise InputError for a commit of the user's tree that is no kernel tree, or too old."""
    listed = query_git(repository, ["ls-tree", "--name-only", commit, "--", *_MARKERS]) or ""
    if missing := sorted(set(_MARKERS) - set(listed.splitlines())):
        raise _not_a_kernel_tree(name, missing)
    oldest.require(name, _makefile_version(query_git(repository, ["cat-file", "blob", f"{commit}:Makefile"]) or ""))


def query_git(repository: GitRepository, argv: Sequence[str]) -> str | None:
    """Run git on the user's tree and return its output, or None when it fails."""
    done = repository.query(argv, ok=range(256))
    return done.stdout.strip() if done.returncode == 0 else None


def git_output(place: Path, argv: Sequence[str], env: Mapping[str, str] | None = None, work: Path | None = None) -> str:
    """Run git in a repository of the cache and return its output. Raises HostError when it fails."""
    with naming_disk_errors(place):
        try:
            return git.run(place / "git", [*SETTINGS, *argv], work_tree=work, env=env).stdout.strip()
        except process.ProcessFailed as error:
            raise HostError(f"git cannot read the kernel's source: {error}", hint=error.hint) from error


def apply_patches(source: SourceTree, files: Sequence[Path]) -> SourceTree:
    """Apply patches to a source, in this order.

    Raises InputError for a patch that does not apply, with the places where it fails.
    """
    if not files:
        return source
    named = tuple(KernelPart(name=file.name, sha256=file_hash(file, fileio.TEXT)) for file in files)
    with atomic.temp_dir(source.cache_dir) as directory:
        # An index of its own: another process may be changing the same tree.
        index = {"GIT_INDEX_FILE": f"{directory}/index"}
        git_output(source.cache_dir, ["read-tree", source.tree], index)
        for number, file in enumerate(files):
            _apply_patch(source, file, files[:number], index)
        tree = git_output(source.cache_dir, ["write-tree"], index)
    return replace(source, tree=tree, patches=(*source.patches, *named))


def _apply_patch(source: SourceTree, file: Path, before: Sequence[Path], index: Mapping[str, str]) -> None:
    """Apply one patch to an index. Raises as ``apply_patches`` does."""
    argv = ["apply", "--cached", "--whitespace=nowarn", str(file.absolute())]
    done = git.run(source.cache_dir / "git", [*SETTINGS, *argv], env=index, ok=range(256))
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        errors = [line.removeprefix("error: ").removeprefix("patch failed: ") for line in lines]
        places = "; ".join(errors) or done.stderr.strip()[-300:]
        after = f" (after {', '.join(patch.name for patch in before)})" if before else ""
        raise InputError(f"{file} does not apply to {source.version}{after}: {places}")
