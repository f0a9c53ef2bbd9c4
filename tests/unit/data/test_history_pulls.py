"""A history of pulls: the same repository from the same inputs, its commits shared out among the parts."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agelab.base.errors import InputError
from agelab.data.history import artefact, engines, pulls
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario.history import History
from agelab.store.artefacts import Store
from tests.build import repositories
from tests.build.corpus_images import unpacked

DISK = 150_000_000


def wanted(number: int, points: int = 2, **more: Any) -> History:
    raw = {name: {"value": value, "origin": "estimated"} for name, value in (("pulls", number), ("fullness", 0.01))}
    adapter: TypeAdapter[History] = TypeAdapter(History)
    return adapter.validate_python({"engine": "pulls", "name": "pulls", "points": points, **raw, **more})


def git(directory: Path, *words: str) -> str:
    argv = ["git", "-c", "user.name=one", "-c", "user.email=one@example.org", "-C", str(directory), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def repository(path: Path, versions: int) -> Path:
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for number in range(versions):
        (path / "file").write_text(f"{number}\n" * 100)
        git(path, "add", "file")
        git(path, "commit", "-q", "-m", str(number))
    return path


def test_one_seed_gives_one_image_and_another_seed_another(tmp_path: Path) -> None:
    one, again = (artefact.obtain_history(wanted(5), DISK, 1, Store(tmp_path / name)) for name in ("a", "b"))
    other = artefact.obtain_history(wanted(5), DISK, 2, Store(tmp_path / "a"))
    assert one.sha256 == again.sha256 != other.sha256
    assert one.parts == 2


def test_each_pull_brings_the_next_version_and_the_parts_have_as_many(tmp_path: Path) -> None:
    kept = artefact.obtain_history(wanted(6), DISK, 1, Store(tmp_path / "home"))
    image = unpacked(kept, tmp_path / "image")
    first, second = ((image / name).read_text().split() for name in ("1", "2"))
    assert (len(first), len(second)) == (4, 3)
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    for number, commit in enumerate([*first, *second], start=1):
        git(work, "pull", "-q", "--ff-only", str(image / pulls.REPOSITORY), commit)
        assert git(work, "rev-list", "--count", "HEAD").strip() == str(number)
    assert git(work, "status", "--porcelain") == ""
    assert artefact.read_report(kept).versions == 7


def test_a_repository_of_the_users_is_pulled_along_first_parents(tmp_path: Path) -> None:
    own = repository(tmp_path / "own", 5)
    asked = wanted(3, repository=str(own))
    kept = artefact.obtain_history(asked, DISK, 1, Store(tmp_path / "home"))
    image = unpacked(kept, tmp_path / "image")
    pulled = (image / "1").read_text().split() + (image / "2").read_text().split()
    assert pulled == git(own, "rev-list", "--reverse", "HEAD").split()[:4]
    assert git(image / pulls.REPOSITORY, "cat-file", "-p", f"{pulled[-1]}:file").startswith("3\n")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (wanted(5, repository="/"), "no git repository"),
        (wanted(5, repository="own", revision="gone"), "git cannot read it"),
        (wanted(9, repository="own"), r"has 5 versions up to HEAD: too few for 9 pulls"),
        (wanted(3, repository="shallow"), "git cannot read it"),  # the guest's git would miss what comes before
    ],
)
def test_a_repository_that_cannot_be_pulled_from_is_told(
    asked: History, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = repository(tmp_path / "own", 5)
    git(tmp_path, "clone", "-q", "--depth", "4", f"file://{own}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        artefact.obtain_history(asked, DISK, 1, Store(tmp_path / "home"))


@pytest.mark.parametrize("forged", repositories.FORGERIES)
def test_a_repository_whose_objects_have_names_of_others_is_not_pulled_from(
    tmp_path: Path, forged: Callable[[Path], None]
) -> None:
    """Git does not look: the image would have the key of the true one, and stand for it."""
    own = repositories.repository(tmp_path / "own")
    forged(own)
    with pytest.raises(InputError, match="git cannot read it"):
        artefact.obtain_history(wanted(2, repository=str(own)), DISK, 1, Store(tmp_path / "home"))


def test_a_graft_puts_nothing_into_an_image(tmp_path: Path) -> None:
    """The commits to pull make the key: objects of another one could be in it, and in nobody else's."""
    own, said = repository(tmp_path / "own", 5), []
    more = git(own, "commit-tree", "-m", "another", f"{git(own, 'write-tree').strip()}").strip()
    commits = git(own, "rev-list", "HEAD").split()
    for number in range(2):
        asked = wanted(3, repository=str(own))
        said.append(artefact.obtain_history(asked, DISK, 1, Store(tmp_path / str(number))).sha256)
        (own / ".git/info/grafts").write_text(f"{commits[2]} {commits[3]} {more}\n")
    assert said[0] == said[1]


def test_a_disk_too_small_for_a_tree_and_a_log_of_pulls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few for a source tree"):
        artefact.obtain_history(wanted(5), 50_000_000, 1, Store(tmp_path))
    with pytest.raises(InputError, match="has no log"):
        engines.log_source(wanted(5), DISK, 1)


def test_the_pulls_are_divided_as_sizes_are_but_each_point_has_one() -> None:
    history = wanted(100, points=4)
    assert history.engine == "pulls"
    assert [history.at_shrink(by).pulls.value for by in (1, 10, 100)] == [100, 10, 4]


def test_corpus_names_the_repository_of_a_scenario_that_pulls() -> None:
    request = resolve(RunOptions(name="git-aging-ext4", corpus="/some/where"))
    [history] = request.selection.scenario.histories
    assert history.engine == "pulls" and history.repository == "/some/where"
    assert request.corpus is None
    with pytest.raises(InputError, match="has histories, no corpus"):
        resolve(RunOptions(name="aging-curve", corpus="/some/where"))
    with pytest.raises(InputError, match="is the same for every corpus seed"):
        resolve(RunOptions(name="git-aging", corpus="/some/where", corpora=(1, 2)))
