"""How the drive's kernel module is built, without a compiler or a network."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError, HostError
from agelab.debian import Archive, Package, PackagesVanished, buildroot
from agelab.debian.buildroot import BuildFailed, BuildRoot
from agelab.kernel import Kernel, debian_kernel
from agelab.machine.drive import module
from agelab.store.artefacts import Artefact, Manifest, Store
from tests.build.deb_builder import package

BOOKWORM = "linux-headers-6.1.0-1-common (= 6.1.1-1), linux-kbuild-6.1 (>= 6.1.1-1), linux-compiler-gcc-12-x86"
TRIXIE = (
    "linux-base (>= 4.12~), linux-headers-6.12.1-common (= 6.12.1-1), linux-image-6.12.1-amd64 (= 6.12.1-1) | "
    "linux-image-6.12.1-amd64-unsigned (= 6.12.1-1), linux-kbuild-6.12.1, gcc-14"
)
SID = "gcc-16-for-host, linux-base (>= 4.12~), linux-base-7.2-amd64 (= 7.2-1), linux-kbuild-7.2"


def kernel(suite: str = "bookworm") -> Kernel:
    nowhere = Artefact("key", Path("/nowhere"), Manifest(kind="kernel", inputs={}, files={}))
    return Kernel("debian:6.1", "6.1.0-1-amd64", "6.1.1-1", suite, artefact=nowhere)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    made = tmp_path / "sources"
    made.mkdir()
    for name in ("Kbuild", "a.c", "a.h", "notes.md", "test_a.py"):
        (made / name).write_text(name)
    return made


@pytest.mark.parametrize(
    "depends, found",
    [
        (BOOKWORM, ["linux-headers-6.1.0-1-common=6.1.1-1", "linux-kbuild-6.1", "linux-compiler-gcc-12-x86"]),
        (TRIXIE, ["linux-headers-6.12.1-common=6.12.1-1", "linux-kbuild-6.12.1", "gcc-14"]),
        (SID, ["gcc-16-for-host", "linux-kbuild-7.2"]),
    ],
    ids=["bookworm", "trixie", "sid"],
)
def test_headers_bring_their_compiler_and_not_the_kernel(depends: str, found: list[str]) -> None:
    assert module.build_dependencies(depends) == found


def test_the_build_root_is_the_headers_of_exactly_that_version(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(archive: Archive, names: list[str]) -> tuple[Package, ...]:
        asked.extend(names)
        return tuple(package(name) for name in ("gcc-12", "cpp-12", "dpkg", "libasan8", "libgcc-12-dev"))

    monkeypatch.setattr(Archive, "update", lambda *_, refresh: None)
    monkeypatch.setattr(Archive, "package", lambda _, name, version: package(name, version))
    monkeypatch.setattr(Archive, "depends", lambda *_: BOOKWORM)
    monkeypatch.setattr(Archive, "resolve", resolve)
    found = module.resolve_packages(kernel(), store)
    names = ["cpp-12", "gcc-12", "libgcc-12-dev", "linux-headers-6.1.0-1-amd64"]
    assert [one.name for one in found.packages] == names
    assert found.packages[-1].version == "6.1.1-1"
    assert "linux-headers-6.1.0-1-common=6.1.1-1" in asked and "make" in asked
    monkeypatch.setattr(Archive, "resolve", None)
    assert module.resolve_packages(kernel(), store) == found


def test_headers_that_left_the_mirror_are_one_clear_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> Package:
        raise HostError("Debian bookworm: Version '6.1.1-1' was not found")

    monkeypatch.setattr(Archive, "update", lambda *_, refresh: None)
    monkeypatch.setattr(Archive, "package", gone)
    with pytest.raises(module.NoHeaders, match=r"no linux-headers-6\.1\.0-1-amd64 of version") as raised:
        module.resolve_packages(kernel(), store)
    assert "agelab kernel fetch debian:6.1 --refresh" in raised.value.hint


def test_headers_for_deb_files_come_from_whichever_suite_has_that_very_kernel(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def versions(archive: Archive, prefix: str) -> dict[str, str]:
        asked.append(archive.suite)
        return {prefix: {"bullseye": "6.1.1-1~deb11u1", "trixie": "6.1.1-1"}.get(archive.suite, "")}

    monkeypatch.setattr(debian_kernel, "first_suite", lambda: "bookworm")
    monkeypatch.setattr(Archive, "update", lambda *_, **__: None)
    monkeypatch.setattr(Archive, "versions", versions)
    monkeypatch.setattr(Archive, "package", lambda _, name, version: package(name, version))
    monkeypatch.setattr(Archive, "depends", lambda *_: BOOKWORM)
    monkeypatch.setattr(Archive, "resolve", lambda *_: (package("gcc-12"),))
    own = replace(kernel(suite=""), spec="deb:/kernel.deb")
    assert module.resolve_packages(own, store).suite == "trixie"
    assert asked[0] == "bookworm" and asked[-1] == "trixie"
    with pytest.raises(module.NoHeaders, match=r"no headers of 6\.1\.0-1-amd64") as raised:
        module.resolve_packages(replace(own, version="9"), store)
    assert "model:none" in raised.value.hint


def test_a_kernel_of_no_suite_has_no_headers(store: Store, sources: Path) -> None:
    with pytest.raises(module.NoHeaders, match="no Debian suite"):
        module.obtain(kernel(suite=""), store, sources=sources)


def test_what_left_the_mirror_before_it_was_fetched_is_resolved_again(
    store: Store, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = BuildRoot(suite="bookworm", packages=(package("gcc-12", "2"),))
    resolved = {False: BuildRoot(suite="bookworm", packages=(package("gcc-12", "1"),)), True: newest}

    def download(_: Archive, wanted: tuple[Package, ...]) -> list[Path]:
        if wanted != newest.packages:
            raise PackagesVanished("gone")
        return []

    monkeypatch.setattr(module, "resolve_packages", lambda *_, refresh=False, **__: resolved[refresh])
    monkeypatch.setattr(module, "_build_with_headers", lambda files, release, tar, directory: made(directory))
    monkeypatch.setattr(Archive, "download", download)
    monkeypatch.setattr(buildroot, "finish_root", lambda tree, unused: tree.mkdir())
    first = module.obtain(kernel(), store, sources=sources)
    assert first.name == "drive.ko"
    [root] = store.all("buildroot")
    assert root.manifest.inputs["packages"] == [["gcc-12", "2", "0" * 64]]
    assert module.obtain(kernel(), store, sources=sources) == first
    (sources / "notes.md").write_text("no source")
    assert module.obtain(kernel(), store, sources=sources) == first
    (sources / "a.h").write_text("changed")
    assert module.obtain(kernel(), store, sources=sources) != first


def made(directory: Path) -> None:
    (directory / "drive.ko").write_text("module")


def test_sources_without_a_kbuild_are_an_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(AgelabError, match="has no Kbuild"):
        module.obtain(kernel(), store, sources=tmp_path)


def says(text: str, status: int = 0, modules: tuple[str, ...] = ("drive.ko",)) -> Callable[..., process.Completed]:
    """A bwrap whose make says this, and makes these modules."""
    real = process.run

    def run(argv: list[str], **options: Path) -> process.Completed:
        if argv[0] != "bwrap":
            return real(argv)
        if status:
            raise process.ProcessFailed(argv, status, text)
        for name in modules:
            (options["log"].with_name("build") / name).write_text("module")
        return process.Completed(0, "", text)

    return run


def build(tmp_path: Path, sources: Path) -> list[str]:
    root = tmp_path / "root"
    root.mkdir()
    buildroot.write_tar(root, tmp_path / "root.tar")
    made = tmp_path / "made"
    made.mkdir()
    module._build_with_headers(sorted(sources.iterdir()), "6.1.0-1-amd64", tmp_path / "root.tar", made)
    return [path.name for path in made.iterdir()]


def test_a_build_leaves_the_module_alone(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", says("  CC [M]  /build/a.o\n"))
    assert build(tmp_path, sources) == ["drive.ko"]


@pytest.mark.parametrize(
    "fake, kind, said",
    [
        (says("a.c:3:1: warning: unused\n"), BuildFailed, r"warnings against 6\.1\.0-1-amd64:\na\.c:3:1"),
        (says("WARNING: modpost: missing MODULE_LICENSE()\n"), BuildFailed, "modpost"),
        (says("a.c:3:1: error: oops\nmake: *** Error 2", 2), BuildFailed, r"does not build .*exit 2.*\na\.c"),
        (says("bwrap: setting up uid map: Permission denied\n", 1), HostError, "bwrap cannot confine"),
        (says("", modules=()), AgelabError, "make 0 modules"),
    ],
    ids=["warning", "modpost", "error", "bwrap", "none"],
)
def test_anything_but_a_clean_build_is_an_error(
    tmp_path: Path,
    sources: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake: Callable[..., process.Completed],
    kind: type[AgelabError],
    said: str,
) -> None:
    monkeypatch.setattr(process, "run", fake)
    with pytest.raises(AgelabError, match=said) as raised:
        build(tmp_path, sources)
    assert type(raised.value) is kind
