"""A kernel that is too old for a guest is refused where its version becomes known, in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.bisect import git_search
from agelab.debian import archive
from agelab.kernel import oldest
from agelab.kernel import spec as specs
from agelab.store.artefacts import Store
from tests.build.kernel_builder import RELEASE, image, linux, package
from tests.build.source_tree import MAKEFILE, files, git

PAGE = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text()


def old_tree(directory: Path, version: tuple[int, int, int]) -> Path:
    tree = files(directory / "linux")
    words = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version, strict=True)
    (tree / "Makefile").write_text("".join(f"{word} = {number}\n" for word, number in words))
    return tree


def tree(directory: Path) -> str:
    return f"tree:{old_tree(directory, (2, 6, 29))}"


def recipe(directory: Path) -> str:
    old_tree(directory, (2, 6, 29))
    named = directory / "old.toml"
    named.write_text(f'name = "old"\nsummary = "an old one"\nsource = "tree:{directory}/linux"\n')
    return f"recipe:{named}"


def deb(directory: Path) -> str:
    return f"deb:{package(directory, 'linux-image-5.2.21-own', linux(release='5.2.21-own'))}"


def bzimage(directory: Path) -> str:
    path = image(directory)
    path.write_bytes(path.read_bytes().replace(RELEASE.encode(), b"4.9.0-own"))
    return f"image:{path}"


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        (tree, "2.6.29"), (recipe, "2.6.29"), (deb, "5.2.21-own"), (bzimage, "4.9.0-own"),
        (lambda directory: "debian:4.19", "4.19"), (lambda directory: "source:4.19", "4.19"),
    ],
    ids=["tree", "recipe", "deb", "image", "debian", "source"],
)  # fmt: skip
def test_an_older_one_of_every_kind_is_refused_before_anything_is_fetched_or_built(
    kind: Callable[[Path], str], version: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive.Archive, "versions", lambda *words: pytest.fail("a mirror was asked"))
    with pytest.raises(InputError) as refused:
        specs.resolve(kind(tmp_path), store)
    assert f"is Linux {version}, and a guest needs Linux 5.3 or newer" in str(refused.value)
    assert refused.value.hint == oldest.HINT
    assert not list(store.all("kernel"))


def test_a_bisect_in_a_tree_refuses_an_end_that_is_too_old(tmp_path: Path) -> None:
    path = old_tree(tmp_path, (5, 2, 0))
    git(path, "init", "-q")
    for name, text in (("v5.2", ""), ("v6.1", MAKEFILE)):
        (path / "Makefile").write_text(text or (path / "Makefile").read_text())
        git(path, "add", "-A")
        git(path, "commit", "-qm", name)
        git(path, "tag", name)
    with pytest.raises(InputError, match=r"good is Linux 5\.2\.0, and a guest needs Linux 5\.3 or newer"):
        git_search.resolve_tree(path, "v5.2", "v6.1", "")


@pytest.mark.parametrize("version", ["5.3", "5.3.0-rc1", "5.10.0-46-amd64", "10.0", "6", "sid"])
def test_a_newer_one_and_what_names_no_version_pass(version: str) -> None:
    oldest.require("kernel", version)


def test_the_page_names_the_oldest_and_what_decides_it() -> None:
    number = ".".join(map(str, oldest.OLDEST))
    assert f"### The oldest: Linux {number}" in PAGE
    assert "pidfd_open" in oldest.HINT and f"(Linux {number})" in PAGE
