"""Git: every git that agelab starts goes through here.

A repository may be anybody's, and its configuration can name commands (a promisor remote's, a filter's, a file system
monitor's) that git runs while it reads. So git never reads that configuration: it works in a git directory of ours,
which shows the objects, refs and index of the other one and nothing else of it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from agelab.base import atomic, fileio, process
from agelab.base.errors import HostError, InputError
from agelab.base.process import Completed

ENVIRONMENT = {
    # No configuration but that of the git directory, which is ours.
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    # What refs/replace puts in the place of an object has its name and other content.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # Nothing is fetched. The first names a protocol that there is not; the second is for git 2.45 and later.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
_SHOWN = ("packed-refs", "shallow", "info/grafts", "info/exclude")
"""Files of a repository that are data for git; info/attributes and hooks are not among them."""
_QUERY_SECONDS = 600.0
"""Seconds for a short answer: git waits for a pipe in the place of a ref or an object."""
_FORMATS = ("sha1", "sha256")
_HEAD = re.compile(r"(ref: *refs/[^\0\n]+|[0-9a-f]{40}|[0-9a-f]{64})\s*")


@dataclass(frozen=True)
class GitRepository:
    """A repository on the host, which may be anybody's."""

    git_dir: Path
    """Directory with HEAD and index."""
    common_dir: Path
    """Directory with objects and refs: another one in a linked work tree."""
    top: Path
    """Top of its work tree; of a bare repository its git directory."""

    @property
    def objects(self) -> Path:
        return self.common_dir / "objects"

    def query(
        self,
        argv: Sequence[str],
        *,
        ok: Sequence[int] = (0,),
        stdin: Path | None = None,
        stdout: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a git command that only reads. Raises as ``process.run`` does, InputError for an unknown format."""
        with atomic.temp_dir(Path(gettempdir())) as view:
            self._show_in(view)
            work_tree = self.top if self.top != self.git_dir else None
            timeout = None if stdout else _QUERY_SECONDS
            return run(view, argv, work_tree=work_tree, env=env, ok=ok, stdin=stdin, stdout=stdout, timeout=timeout)

    def _show_in(self, view: Path) -> None:
        """Make ``view`` a git directory with what this repository holds, which nobody else can read."""
        view.chmod(0o700)
        for name in ("objects/info", "info"):
            (view / name).mkdir(parents=True)
        (view / "HEAD").write_text(self._head(), encoding="utf-8", errors="surrogateescape")
        (view / "refs").symlink_to(self.common_dir / "refs")
        borrow_objects(view, self.objects)
        shown = [(self.common_dir, name) for name in _SHOWN]
        shown += [(self.git_dir, name) for name in ("index", *self._shared_indexes())]
        for directory, name in shown:
            if (directory / name).is_file():
                (view / name).symlink_to(directory / name)
        (view / "config").write_text(self._configuration(view), encoding="utf-8")

    def _head(self) -> str:
        """Return HEAD, which may be a link to any file of the host. Raises InputError for anything but a head."""
        text = _text(self.git_dir / "HEAD")
        if not _HEAD.fullmatch(text):
            raise InputError(f"{self.git_dir / 'HEAD'} is not a git repository's")
        return text

    def _shared_indexes(self) -> list[str]:
        """List the files that hold most of a split index."""
        return [path.name for path in self.git_dir.glob("sharedindex.*")]

    def _configuration(self, view: Path) -> str:
        """Return the configuration for a view: of the repository's own only what says how to read its data."""
        settings = self._settings(view)
        if (refs := settings.get("extensions.refstorage", "files")) != "files":
            raise InputError(f"{self.top} keeps its refs as {refs[:40]!r}, which agelab does not read")
        if (name := settings.get("extensions.objectformat", "sha1")) not in _FORMATS:
            raise InputError(f"{self.top} names its objects by {name[:40]!r}, which agelab does not read")
        mode = "false" if settings.get("core.filemode") == "false" else "true"
        text = f"[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tfilemode = {mode}\n"
        return text + f"[extensions]\n\tobjectformat = {name}\n"

    def _settings(self, view: Path) -> dict[str, str]:
        """Read the repository's own configuration as data, without what it includes."""
        file = self.common_dir / "config"
        if not file.is_file():
            return {}
        argv = ["config", "--file", str(file), "--no-includes", "--null", "--list"]
        pairs = run(view, argv).stdout.split("\0")
        return {name.lower(): value.lower() for name, _, value in (pair.partition("\n") for pair in pairs)}


def find(path: Path) -> GitRepository | None:
    """Return the repository that a directory belongs to, or None: its own, or the nearest above it."""
    here = path.resolve()
    if not here.is_dir():
        return None
    for top in (here, *here.parents):
        for git_dir in (_linked(top / ".git"), top / ".git", top):
            if git_dir and (common := _common_dir(git_dir)):
                return GitRepository(git_dir, common, top)
    return None


def at(path: Path) -> GitRepository | None:
    """Return the repository whose top is this directory, or None."""
    repository = find(path)
    return repository if repository and repository.top == path.resolve() else None


def nested(tree: Path) -> Path | None:
    """Return a repository below the top of a tree, or None: git would run a git in it, with its configuration."""
    for directory, directories, names in os.walk(tree):
        # Some filesystems do not tell .GIT from .git.
        if directory != str(tree) and any(name.lower() == ".git" for name in (*directories, *names)):
            return Path(directory)
    return None


def _linked(file: Path) -> Path | None:
    """Return the git directory that a ``.git`` file names (gitrepository-layout(5))."""
    if not file.is_file():
        return None
    word, _, named = _text(file).partition(": ")
    return _directory(file.parent, named) if word == "gitdir" and named else None


def _common_dir(git_dir: Path) -> Path | None:
    """Return where a git directory keeps its objects and refs; None if it is no git directory."""
    if not (git_dir / "HEAD").is_file():
        return None
    named = _text(git_dir / "commondir") if (git_dir / "commondir").is_file() else "."
    common = _directory(git_dir, named)
    return common if common and (common / "objects").is_dir() and (common / "refs").is_dir() else None


def _directory(above: Path, named: str) -> Path | None:
    """Return the directory that a file of git names; None where there is none, or none can be called so."""
    try:
        path = (above / named.rstrip("\r\n")).resolve()
        return path if path.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
        return None


def _text(file: Path) -> str:
    try:
        return fileio.read_text(file, fileio.FORM, errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error


def version() -> str:
    """Return what the host's git says of its version."""
    return process.run(["git", "--version"]).stdout.strip()


def init_bare(directory: Path, names: str = "sha1") -> None:
    """Make a bare repository of ours, whose objects have names by sha1 or sha256."""
    process.run(["git", "init", "--quiet", "--bare", f"--object-format={names}", str(directory)], env=ENVIRONMENT)


def borrow_objects(directory: Path, objects: Path) -> None:
    """Let a bare repository read the objects of another (gitrepository-layout(5): objects/info/alternates)."""
    if "\n" in str(objects):
        raise InputError(f"{str(objects)!r}: git cannot read objects in a directory with such a name")
    file = directory / "objects" / "info" / "alternates"
    line = f"{objects}\n"
    if not file.exists() or _text(file) != line:  # another process may be reading it
        file.write_text(line, encoding="utf-8", errors="surrogateescape")


def command(git_dir: Path, argv: Sequence[str], work_tree: Path | None = None) -> list[str]:
    """Return the command line that runs git, with ENVIRONMENT, in a git directory of ours."""
    work = [f"--work-tree={work_tree.absolute()}"] if work_tree else []
    return ["git", f"--git-dir={git_dir}", *work, "-c", "gc.auto=0", *argv]


def run(
    git_dir: Path,
    argv: Sequence[str],
    *,
    work_tree: Path | None = None,
    env: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
    stdin: Path | None = None,
    stdout: Path | None = None,
    timeout: float | None = None,
) -> Completed:
    """Run git in a git directory of ours, and ``work_tree`` if one is given. Raises as ``process.run`` does."""
    if process.which("git") is None:
        raise HostError("git is not installed", hint="apt-get install git")
    return process.run(
        command(git_dir, argv, work_tree),
        env={**ENVIRONMENT, **(env or {})},
        cwd=work_tree or git_dir,
        ok=ok,
        stdin=stdin,
        stdout=stdout,
        timeout=timeout,
    )
