"""What is made from a user's files is for nobody who may not read all of them."""

import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agelab.base import readers
from agelab.capsule import pack
from agelab.data.corpus import CorpusSpec, corpus_from_user, make
from agelab.data.history import artefact, engines
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario.history import Logged, Repository
from agelab.store import disk_import, stored_disk
from agelab.store.artefacts import Store
from tests.build.capsule_builder import made_run
from tests.build.disk_builder import filesystem, recipe
from tests.capabilities import needs_root

LOG = b"agelab-operations 1\nmkdir a\npoint 1\n"
MB = 1_000_000


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may enter, as pytest's own are not."""
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def store(place: Path) -> Store:
    return Store(place / "home")


def rights(root: Path) -> set[int]:
    """The rights of others to a tree and to everything in it."""
    return {stat.S_IMODE(path.lstat().st_mode) & 0o007 for path in (root, *root.rglob("*"))}


def tree(place: Path) -> Path:
    made = place / "mine"
    (made / "deep").mkdir(parents=True)
    (made / "open").write_text("for everybody")
    (made / "deep/secret").write_text("for me")
    return made


def closed_file(made: Path) -> None:
    (made / "deep/secret").chmod(0o600)


def closed_directory(made: Path) -> None:
    (made / "deep").chmod(0o700)


def closed_root(made: Path) -> None:
    made.chmod(0o711)


def closed_above(made: Path) -> None:
    made.parent.chmod(0o700)


CLOSED = (closed_file, closed_directory, closed_root, closed_above)


@pytest.mark.parametrize("close", CLOSED)
def test_a_corpus_is_for_those_who_may_read_all_of_it(place: Path, store: Store, close: Callable[[Path], None]) -> None:
    made = tree(place)
    before = corpus_from_user(made, store)
    assert 0 not in rights(before.image.parent)
    content = before.image.read_bytes()
    close(made)
    other = Store(place / "other")
    after = corpus_from_user(made, other)
    assert rights(after.image.parent) == {0}
    assert (after.key, after.sha256, after.image.read_bytes()) == (before.key, before.sha256, content)
    assert corpus_from_user(made, store) == before, "no mode is part of a key"
    assert rights(before.image.parent) == {0}, "what lay there already is no longer for everybody"
    assert after.image.parent in [one.directory for one in other.all("corpus")]


def test_a_corpus_that_is_being_made_can_be_entered_by_nobody_else(place: Path, store: Store) -> None:
    made = tree(place)
    closed_file(made)
    found = []

    def build(directory: Path) -> None:
        found.append(rights(directory))
        (directory / "a").write_text("a")

    store.obtain("corpus", {}, build, readable_by=readers.of_tree(made))
    assert found == [{0}]


@pytest.mark.parametrize("form", ["image", "archive"])
def test_a_file_of_data_is_as_closed_as_a_directory(place: Path, store: Store, form: str) -> None:
    mine = place / "mine"
    if form == "image":
        mine.write_bytes(make(CorpusSpec(bytes=MB, seed=1), store).image.read_bytes())
    else:
        with tarfile.open(mine, "w") as file:
            file.add(tree(place / "t"), arcname=".")
    mine.chmod(0o600)
    assert rights(corpus_from_user(mine, store).image.parent) == {0}
    assert 0 not in rights(make(CorpusSpec(bytes=MB, seed=2), store).image.parent), "made here, of nobody's files"


def test_the_group_may_read_what_it_could_read_before(place: Path) -> None:
    file = place / "file"
    file.touch()
    for mode, mask in ((0o644, 0o777), (0o640, 0o770), (0o600, 0o700), (0o604, 0o707)):
        file.chmod(mode)
        assert readers.of_files(file) == mask
    link = place / "link"
    link.symlink_to(file)
    file.chmod(0o600)
    assert readers.of_files(link) == readers.of_tree(link) == 0o700


@pytest.mark.parametrize("closed", [False, True])
def test_a_history_is_for_those_who_may_read_its_log_or_repository(place: Path, store: Store, closed: bool) -> None:
    log = place / "log"
    log.write_bytes(LOG)
    log.chmod(0o600 if closed else 0o644)
    wanted = Logged(name="log", engine="log", log=str(log))
    made = artefact.obtain_history(wanted, 64 << 20, 1, store)
    assert (rights(made.image.parent) == {0}) is closed
    repository = place / "repository"
    repository.mkdir()
    subprocess.run(
        "git init -q . && echo a > a && git add a && git -c user.name=a -c user.email=a commit -q -m a && "
        "git worktree add -q ../linked",
        shell=True,
        cwd=repository,
        check=True,
    )
    (repository / ".git/objects").chmod(0o700 if closed else 0o755)
    for path in (repository, place / "linked"):  # a linked work tree has its objects in the first one
        of_git = Repository(name="git", engine="git", repository=str(path), revision="HEAD", points=1)
        engines.write_log(engines.log_source(of_git, 64 << 20, 1), place / f"written-{path.name}")
        assert (rights(place / f"written-{path.name}") == {0}) is closed, path


@pytest.mark.parametrize("closed", [False, True])
def test_a_disk_is_as_closed_as_its_image_and_so_is_its_export(place: Path, store: Store, closed: bool) -> None:
    mine = filesystem(place / "image")
    mine.chmod(0o600 if closed else 0o644)
    disk = disk_import.import_images(store, [mine], "ext4", "single", "period", "import")
    assert (rights(disk.artefact.directory) == {0}) is closed
    for form in ("raw", "qcow2"):
        for path in stored_disk.export(disk, place / f"out.{form}", form):
            assert (rights(path) == {0}) is closed, path
    again = stored_disk.save(store, {"x": 1}, recipe(), [mine], [], readable_by=disk.artefact.readable_by)
    assert (rights(again.artefact.directory) == {0}) is closed


@pytest.mark.parametrize("closed", [False, True])
def test_a_capsule_is_as_closed_as_its_run(place: Path, store: Store, closed: bool) -> None:
    run = made_run(store)
    readers.restrict(run.path, 0o700 if closed else 0o777)
    made = pack.pack(run, store, place / "made.capsule", carry=True)
    assert (rights(made.path) == {0}) is closed
    for corpus in store.all("corpus"):
        readers.restrict_tree(corpus.directory, 0o700)
    assert rights(pack.pack(run, store, place / "closed.capsule", carry=True).path) == {0}


def test_a_scenario_or_a_script_that_is_closed_closes_its_run(place: Path, store: Store) -> None:
    ours = resolve(RunOptions(directory=str(place), name="aging"))
    assert ours.readable_by == readers.EVERYBODY
    control = place / "control"
    control.write_text("ext4 one 1\n")
    for name in ("filesystem-ext4.sh", "test-one-perform.sh"):
        (place / name).write_text("true\n")
    asked = RunOptions(directory=str(place), control=str(control))
    assert resolve(asked).readable_by == readers.EVERYBODY
    (place / "test-one-perform.sh").chmod(0o600)
    assert resolve(asked).readable_by == 0o700


@needs_root
def test_what_another_user_keeps_closed_is_refused_in_a_line(place: Path, store: Store) -> None:
    made = tree(place)
    closed_file(made)
    key = corpus_from_user(made, store).key
    script = f"""
from pathlib import Path
from agelab.base.errors import HostError
from agelab.store.artefacts import Store
try:
    Store(Path({str(store.home)!r})).find("corpus", {key!r})
except HostError as error:
    print(error)
"""
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "belongs to another user, who keeps it closed" in done.stdout, done.stderr
