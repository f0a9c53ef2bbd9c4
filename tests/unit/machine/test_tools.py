"""How the guest's tools are built, without a compiler or a network; and with both, where there are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError
from agelab.debian import Archive, Package, PackagesVanished, buildroot
from agelab.debian.buildroot import BuildRoot
from agelab.machine.image import tools
from agelab.store.artefacts import Store
from tests.build.deb_builder import package

SUITE = "bookworm"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    made = tmp_path / "sources"
    made.mkdir()
    for name in ("a.c", "b-c.c", "common.h", "notes.md"):
        (made / name).write_text(name)
    return made


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A build root of one package, and a compiler in it that copies its source; what it was called with."""
    called: list[list[str]] = []
    real = process.run

    def run(argv: Sequence[str], **options: Path) -> process.Completed:
        if argv[0] != "bwrap":
            return real(argv)
        command = list(argv[argv.index("gcc") :])
        called.append(command)
        build = options["log"].with_name("build")
        assert (build / "common.h").exists()
        (build / command[command.index("-o") + 1]).write_text((build / command[-1]).read_text())
        return process.Completed(0, "", "")

    monkeypatch.setattr(
        buildroot, "resolve_compiler", lambda *_, refresh: BuildRoot(suite="s", packages=(package("gcc"),))
    )
    monkeypatch.setattr(Archive, "__init__", lambda *_: None)
    monkeypatch.setattr(Archive, "download", lambda *_: [])
    monkeypatch.setattr(buildroot, "finish_root", lambda tree, unused: tree.mkdir())
    monkeypatch.setattr(process, "run", run)
    return called


def test_each_source_is_a_program_of_its_name(store: Store, sources: Path, compiler: list[list[str]]) -> None:
    found = tools.obtain(store, sources=sources)
    assert {name: path.read_text() for name, path in found.items()} == {"a": "a.c", "b-c": "b-c.c"}
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in found.values())
    assert [command[-1] for command in compiler] == ["a.c", "b-c.c"]
    assert all({"-static", "-Werror", "-O2", "-s"} <= set(command) for command in compiler)


def test_what_was_built_is_found_until_a_source_changes(store: Store, sources: Path, compiler: list[list[str]]) -> None:
    first = tools.obtain(store, sources=sources)
    (sources / "notes.md").write_text("no source")
    assert tools.obtain(store, sources=sources) == first and len(compiler) == 2
    (sources / "common.h").write_text("changed")
    assert tools.obtain(store, sources=sources) != first and len(compiler) == 4


def test_other_packages_are_another_build_root(
    store: Store, sources: Path, compiler: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tools.obtain(store, sources=sources)
    newer = BuildRoot(suite="s", packages=(package("gcc", "2"),))
    monkeypatch.setattr(buildroot, "resolve_compiler", lambda *_, refresh: newer)
    assert tools.obtain(store, sources=sources) != first


def test_what_left_the_mirror_is_resolved_again(
    store: Store, sources: Path, compiler: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def packages(_: Store, suite: str, *, refresh: bool) -> BuildRoot:
        asked.append(refresh)
        return BuildRoot(suite="s", packages=(package("gcc", "2" if refresh else "1"),))

    def download(_: Archive, wanted: tuple[Package, ...]) -> list[Path]:
        if wanted[0].version == "1":
            raise PackagesVanished("gone")
        return []

    monkeypatch.setattr(buildroot, "resolve_compiler", packages)
    monkeypatch.setattr(Archive, "download", download)
    assert set(tools.obtain(store, sources=sources)) == {"a", "b-c"}
    assert asked[:2] == [False, True]


def test_a_folder_without_a_source_is_an_error(store: Store, tmp_path: Path, compiler: object) -> None:
    with pytest.raises(AgelabError, match="no source of any tool"):
        tools.obtain(store, sources=tmp_path)


def test_the_packages_are_a_compiler_and_a_libc_of_the_guests_suite(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    names = (
        "gcc-12", "libasan8", "libc-dev-bin", "libc6", "libc6-dev", "libcrypt-dev", "libkrb5-3", "libisl23",
    )  # fmt: skip

    def resolve(_: Archive, wanted: Sequence[str]) -> tuple[Package, ...]:
        asked.append(tuple(wanted))
        return tuple(package(name) for name in names)

    def update(archive: Archive, *, refresh: bool) -> None:
        asked.append((archive.suite, refresh))

    monkeypatch.setattr(Archive, "update", update)
    monkeypatch.setattr(Archive, "resolve", resolve)
    found = buildroot.resolve_compiler(store, SUITE)
    assert [one.name for one in found.packages] == ["gcc-12", "libc6", "libc6-dev", "libisl23"]
    assert asked == [(SUITE, False), ("gcc", "libc6-dev")]
    assert buildroot.resolve_compiler(store, SUITE) == found and len(asked) == 2
    buildroot.resolve_compiler(store, SUITE, refresh=True)
    assert asked[2] == (SUITE, True)


@pytest.mark.parametrize("name", ["extents", "random-read", "spool"])
def test_the_tools_are_there(name: str) -> None:
    assert name in tools.programs(tools.source_files())


def test_a_filesystem_gets_the_programs_that_it_names(
    store: Store, sources: Path, compiler: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "FILESYSTEMS", sources)
    assert tools.obtain_filesystem_tools((), store) == {} and compiler == []
    found = tools.obtain_filesystem_tools(("b-c",), store)
    assert {name: path.read_text() for name, path in found.items()} == {"b-c": "b-c.c"}
