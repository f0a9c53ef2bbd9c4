"""Git on repositories that somebody has made to do harm: their configuration makes plain git run commands."""

import os
import pty
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agelab.base.errors import AgelabError, HostError, InputError
from agelab.bisect import git_search
from agelab.data.history import engines
from agelab.kernel import source_tree
from agelab.scenario.history import Repository
from agelab.store.artefacts import Store
from tests.build import simulated_bisect as simulated
from tests.capabilities import needs_root

MIB = 1 << 20
PACKAGE = Path(__file__).parents[3] / "agelab"


def git(path: Path, *words: str, env: dict[str, str] | None = None) -> str:
    argv = ["git", "-C", str(path), "-c", "safe.directory=*", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env or simulated.ENV)
    return done.stdout.strip()


@dataclass(frozen=True)
class Attack:
    """What a repository says, and a git command that then runs ``{evil}``."""

    config: str
    trigger: Sequence[str]
    spoil: Callable[[Path], None] = lambda path: None


def lose_a_blob(path: Path) -> None:
    blob = git(path, "rev-parse", "v6.0:Makefile")
    (path / ".git/objects" / blob[:2] / blob[2:]).unlink()


def touch_all(path: Path) -> None:
    """Files to be compared by their content; one commit has it that they go through filter and driver ``evil``."""
    (path / ".git/info").mkdir(exist_ok=True)
    (path / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    for file in (path / "Makefile", path / "Kconfig"):
        os.utime(file, (1, 1))


def sign(path: Path) -> None:
    text = git(path, "cat-file", "commit", "main") + "\n"
    signed = text.replace("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n", 1)
    (path / "signed").write_text(signed)
    commit = git(path, "hash-object", "-t", "commit", "-w", "signed")
    (path / "signed").unlink()
    git(path, "update-ref", "refs/heads/main", commit)


def add_submodule(path: Path) -> None:
    inner = path / "fs/inner"
    simulated.history(inner, 1)
    evil = git(path, "config", "agelab.evil")
    git(inner, "config", "core.fsmonitor", evil)
    git(inner, "config", "filter.evil.clean", evil)
    touch_all(inner)
    git(path, "-c", "advice.addEmbeddedRepo=false", "add", "fs/inner")
    git(path, "commit", "-qm", "inner")
    git(path, "tag", "-f", "v6.3")


def write_hooks(path: Path) -> None:
    evil = git(path, "config", "agelab.evil")
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc", "pre-commit"):
        (path / ".git/hooks").mkdir(exist_ok=True)
        (path / ".git/hooks" / name).write_text(f"#!/bin/sh\nexec {evil}\n")
        (path / ".git/hooks" / name).chmod(0o755)


def include(path: Path) -> None:
    evil = git(path, "config", "agelab.evil")
    (path.parent / "more").write_text(f"[core]\n\tfsmonitor = {evil}\n")


PROMISOR = """[core]
	repositoryformatversion = 1
[extensions]
	partialClone = evil
[remote "evil"]
	promisor = true
"""
FETCH = ("cat-file", "-p", "v6.0:Makefile")
STATUS = ("status", "--porcelain")
ATTACKS = {
    "the command of a remote that has a missing file": Attack(
        PROMISOR + "\turl = {path}\n\tuploadpack = {evil}\n", FETCH, lose_a_blob
    ),
    "an address that is a command": Attack(
        PROMISOR + "\turl = ext::{evil}\n[protocol]\n\tallow = always\n", FETCH, lose_a_blob
    ),
    "ssh": Attack(PROMISOR + "\turl = ssh://host/path\n[core]\n\tsshCommand = {evil}\n", FETCH, lose_a_blob),
    "a proxy": Attack(PROMISOR + "\turl = git://host/path\n[core]\n\tgitProxy = {evil}\n", FETCH, lose_a_blob),
    "a monitor of files": Attack("[core]\n\tfsmonitor = {evil}\n", STATUS),
    "a filter": Attack('[filter "evil"]\n\tclean = {evil}\n', STATUS, touch_all),
    "a filter's process": Attack('[filter "evil"]\n\tprocess = {evil}\n\trequired\n', STATUS, touch_all),
    "a diff": Attack("[diff]\n\texternal = {evil}\n", ("diff", "v6.0")),
    "a converter": Attack('[diff "evil"]\n\ttextconv = {evil}\n', ("diff", "v6.0"), touch_all),
    "a pager": Attack("[core]\n\tpager = {evil}\n", ("-p", "log")),
    "a signature": Attack("[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {evil}\n", ("log", "-1", "main"), sign),
    "hooks": Attack("", ("update-ref", "refs/heads/new", "main"), write_hooks),
    "hooks elsewhere": Attack(
        "[core]\n\thooksPath = .git/hooks\n", ("update-ref", "refs/heads/new", "main"), write_hooks
    ),
    "a submodule": Attack("", STATUS, add_submodule),
    "an included file": Attack("[include]\n\tpath = {path}/../more\n", STATUS, include),
    "a credential helper": Attack("[credential]\n\thelper = {evil}\n", ("credential", "fill"), lambda path: None),
}


def log_of(path: Path, work: Path, revision: str = "main") -> None:
    asked = Repository(name="one", engine="git", repository=str(path), revision=revision, points=1)
    engines.write_log(engines.log_source(asked, 100 * MIB, 1), work / "log")


def read_history(path: Path, work: Path) -> None:
    log_of(path, work)


def read_commit(path: Path, work: Path) -> None:
    found = source_tree.from_directory(path, "v6.0", Store(work), lambda line: None)
    found.check_out()


def read_clean_tree(path: Path, work: Path) -> None:
    source_tree.from_directory(path, "", Store(work), lambda line: None)


def read_files(path: Path, work: Path) -> None:
    source_tree.from_directory(path, "worktree", Store(work), lambda line: None)
    source_tree.from_directory(path, "worktree", Store(work), lambda line: None)


def read_bisect(path: Path, work: Path) -> None:
    tree, _ = git_search.resolve_tree(path, "v6.0", "main", "")
    git_search.commit_subject(tree, tree.bad)
    git_search.commit_details(tree, tree.bad)


def search_bisect(path: Path, work: Path) -> None:
    directory = simulated.asked_of_tree(Store(work), path, simulated.planted(2, 3), "v6.0", "v6.3")
    simulated.carry_out(directory)


READERS = (read_history, read_commit, read_clean_tree, read_files, read_bisect)
EVERY = (*READERS, search_bisect)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A program that leaves a mark beside it."""
    path = tmp_path / "evil"
    path.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/mark\n')
    path.chmod(0o755)
    return path


def made(path: Path, attack: Attack, evil: Path) -> Path:
    simulated.history(path, 4)
    git(path, "config", "agelab.evil", str(evil))
    attack.spoil(path)
    with (path / ".git/config").open("a") as file:
        file.write(attack.config.format(evil=evil, path=path))
    (path.parent / "mark").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("name", ATTACKS)
def test_a_repository_makes_git_run_nothing(name: str, tmp_path: Path, evil: Path) -> None:
    path = made(tmp_path / "linux", ATTACKS[name], evil)
    ran = set()
    for reader in READERS:
        with suppress(AgelabError):
            reader(path, tmp_path)
        if (tmp_path / "mark").exists():
            ran.add(reader.__name__)
            (tmp_path / "mark").unlink()
    assert ran == set()
    terminal, side = pty.openpty()  # a pager wants one
    subprocess.run(
        ["git", "-C", str(path), *ATTACKS[name].trigger],
        input=b"protocol=https\nhost=h\n\n", env=simulated.ENV,
        stdout=side if name == "a pager" else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False, timeout=60,
    )  # fmt: skip
    os.close(side)
    os.close(terminal)
    assert (tmp_path / "mark").exists(), "plain git does not run it: this tests nothing"


def test_a_sound_repository_is_read_by_each(tmp_path: Path, evil: Path) -> None:
    path = made(tmp_path / "linux", Attack("", ()), evil)
    for reader in EVERY:
        reader(path, tmp_path)


def test_the_environment_makes_git_run_nothing(tmp_path: Path, evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "linux", Attack("", ()), evil)
    said = {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": str(evil),
        "GIT_EXTERNAL_DIFF": str(evil), "GIT_SSH_COMMAND": str(evil), "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_EXEC_PATH": str(tmp_path), "HOME": str(tmp_path),
    }  # fmt: skip
    (tmp_path / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    for reader in READERS:
        reader(path, tmp_path)
    assert not (tmp_path / "mark").exists()


@needs_root
def test_a_repository_of_another_user_is_read_and_not_obeyed(tmp_path: Path, evil: Path) -> None:
    path = made(tmp_path / "linux", ATTACKS["a monitor of files"], evil)
    for one in (path, *path.rglob("*")):
        os.chown(one, 65534, 65534, follow_symlinks=False)
    for reader in EVERY:
        reader(path, tmp_path)
    assert not (tmp_path / "mark").exists()


def test_a_partial_clone_is_named_and_nothing_is_fetched_for_it(tmp_path: Path, evil: Path) -> None:
    path = made(tmp_path / "linux", ATTACKS["the command of a remote that has a missing file"], evil)
    with pytest.raises(InputError, match="lacks the content of 1 of 5 files") as raised:
        log_of(path, tmp_path)
    assert "clone it whole" in raised.value.hint


@pytest.mark.parametrize("name", [".git", ".GIT"])
def test_a_repository_within_a_tree_is_refused(tmp_path: Path, evil: Path, name: str) -> None:
    path = made(tmp_path / "linux", ATTACKS["a submodule"], evil)
    (path / "fs/inner/.git").rename(path / "fs/inner" / name)
    with pytest.raises(InputError, match="fs/inner is another git repository"):
        read_files(path, tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[extensions]\n\trefStorage = reftable\n", "keeps its refs as 'reftable'"),
        ("[extensions]\n\tobjectFormat = md5\n", "names its objects by 'md5'"),
        ("[core\n", "git cannot read it"),
    ],
)
def test_a_format_that_is_not_known_is_said(config: str, said: str, tmp_path: Path, evil: Path) -> None:
    path = made(tmp_path / "linux", Attack(config, ()), evil)
    with pytest.raises(InputError, match=said):
        log_of(path, tmp_path)


def test_a_pipe_in_the_place_of_a_ref_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated.history(tmp_path / "linux", 2)
    os.mkfifo(tmp_path / "linux/.git/refs/heads/pipe")
    monkeypatch.setattr("agelab.base.git._QUERY_SECONDS", 2.0)
    with pytest.raises(HostError, match="git did not finish within 2 s"):
        log_of(tmp_path / "linux", tmp_path, "pipe")


def test_what_is_not_a_file_is_no_repository(tmp_path: Path) -> None:
    simulated.history(tmp_path / "linux", 2)
    (tmp_path / "linux/.git/HEAD").unlink()
    os.mkfifo(tmp_path / "linux/.git/HEAD")
    with pytest.raises(InputError, match="it is no git repository"):
        log_of(tmp_path / "linux", tmp_path)
    (tmp_path / "linux/.git/HEAD").unlink()
    (tmp_path / "secret").write_text("root:secret:1")
    (tmp_path / "linux/.git/HEAD").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match=r"\.git/HEAD is not a git repository's"):
        log_of(tmp_path / "linux", tmp_path)
    (tmp_path / "link").mkdir()
    (tmp_path / "link/.git").write_text("gitdir: /dev/zero\n")
    with pytest.raises(InputError, match="it is no git repository"):
        log_of(tmp_path / "link", tmp_path)


def test_bare_linked_and_borrowing_repositories_of_either_format_are_read(tmp_path: Path) -> None:
    simulated.history(tmp_path / "linux", 3)
    git(tmp_path / "linux", "worktree", "add", "-q", str(tmp_path / "linked"), "v6.1")
    git(tmp_path, "clone", "-q", "--bare", "linux", "bare")
    git(tmp_path, "clone", "-q", "--shared", "linux", "shared")
    git(tmp_path / "bare", "pack-refs", "--all")
    git(tmp_path / "linux", "update-index", "--split-index")
    read_clean_tree(tmp_path / "linux", tmp_path)
    (tmp_path / "linux/kernel/below").mkdir()
    for name in ("linux", "linked", "bare", "shared", "linux/kernel/below"):
        log_of(tmp_path / name, tmp_path, "HEAD")
    with pytest.raises(InputError, match="it is no git repository"):
        log_of(tmp_path / "linux/kernel/absent", tmp_path)
    subprocess.run(
        [b"git", b"-C", os.fsencode(tmp_path / "linux"), b"checkout", b"-qb", b"\xe4"],
        env=simulated.ENV, check=True,
    )  # fmt: skip
    log_of(tmp_path / "linux", tmp_path, "HEAD")
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "--object-format=sha256", "other")
    (other / "file").write_text("text")
    git(other, "add", "file")
    git(other, "commit", "-qm", "one")
    log_of(other, tmp_path, "HEAD")
    assert b"write file 0 4" in (tmp_path / "log").read_bytes()


def test_no_other_module_starts_git() -> None:
    starts = re.compile(r"""[\[(]\s*["']git["'],""")
    assert [path.name for path in PACKAGE.rglob("*.py") if starts.search(path.read_text())] == ["git.py"]
