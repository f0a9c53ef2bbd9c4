"""Kernel specs and the archive behind them, without a network."""

import itertools
import subprocess
from pathlib import Path

import pytest

from agelab import debian
from agelab.base import process
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.debian import Archive, Package, archive
from agelab.kernel import deb_files, debian_kernel
from agelab.kernel import spec as specs
from agelab.store.artefacts import Store, file_hash

RELEASES = {
    "linux-image-6.1.0-9-amd64": "6.1.27-1",
    "linux-image-6.1.0-50-amd64": "6.1.176-1",
    "linux-image-6.1.0-56-amd64": "6.1.192-2",
    "linux-image-6.1.0-56-rt-amd64": "6.1.192-3",
    "linux-image-6.1.0-56-cloud-amd64": "6.1.192-3",
    "linux-image-6.1.0-56-amd64-dbg": "6.1.192-3",
    "linux-image-6.12-amd64": "6.12.117-1",
    "linux-image-6.12.117+deb12-amd64": "6.12.117-1~deb12u1",
    "linux-image-amd64": "6.1.192-2",
}
BULLSEYE = {
    "linux-image-5.10.0-45-amd64": "5.10.259-1",
    "linux-image-5.10.0-46-amd64": "5.10.262-1",
    "linux-headers-5.10.0-46-amd64": "5.10.262-1",
    "linux-image-6.1.0-0.deb11.52-amd64": "6.1.180-1~deb11u1",
}
BACKPORTS = {
    "linux-image-7.2.12+deb13-amd64": "7.2.12-1~bpo13+1",
    "linux-base-7.2.12+deb13-amd64": "7.2.12-1~bpo13+1",
    "linux-binary-7.2.12+deb13-amd64": "7.2.12-1~bpo13+1",
    "linux-modules-7.2.12+deb13-amd64": "7.2.12-1~bpo13+1",
    "linux-image-6.18.5+deb13-amd64": "6.18.5-1~bpo13+1",
    "linux-image-7.1.3+deb13-amd64": "7.1.3-1~bpo13+1",
    "linux-image-6.16.3+deb13-amd64": "6.16.3-1",
    "linux-image-7.0.4+deb13-amd64": "7.0.4-1~bpo13+1",
    "linux-binary-7.0.4+deb13-amd64": "7.0.4-1~bpo13+1",
}
SID = {
    "linux-image-7.2.13+deb14-amd64": "7.2.13-1",
    "linux-base-7.2.13+deb14-amd64": "7.2.13-1",
    "linux-binary-7.2.13+deb14-amd64": "7.2.13-1",
    "linux-modules-7.2.13+deb14-amd64": "7.2.13-1",
}
SUITES = {
    "bullseye": BULLSEYE, "bookworm": RELEASES, "bookworm-backports": RELEASES, "trixie": {},
    "trixie-backports": BACKPORTS, "sid": SID,
}  # fmt: skip
DEPENDS = {
    "bookworm": "linux-image-6.1.0-56-amd64 (= 6.1.192-2)",
    "sid": "linux-base-7.2.13+deb14-amd64 (= 7.2.13-1), linux-image-7.2.13+deb14-amd64 (= 7.2.13-1)",
    "linux-image-6.18.5+deb13-amd64": "kmod, linux-base-6.18.5+deb13-amd64 (= 6.18.5-1~bpo13+1)",
    "linux-image-6.1.0-56-amd64": "kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool",
    "linux-image-7.2.13+deb14-amd64": "dracut | linux-initramfs-tool, linux-base-7.2.13+deb14-amd64 (= 7.2.13-1), "
    "linux-binary-7.2.13+deb14-amd64 (= 7.2.13-1), linux-modules-7.2.13+deb14-amd64 (= 7.2.13-1)",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose mirror has what SUITES says, and no forky; nothing is downloaded."""

    def releases(archive: Archive) -> dict[str, str]:
        return SUITES[archive.suite]

    def update(archive: Archive, *, refresh: bool = True) -> None:
        if archive.suite not in SUITES:
            raise InputError("the host's mirror has no Debian suite 'forky'")
        lists = Store(tmp_path / "home").cache("apt") / archive.suite
        lists.mkdir(exist_ok=True)
        (lists / "updated").touch()

    def package(archive: Archive, name: str, version: str = "") -> Package:
        there = releases(archive)[name]
        return Package(name=name, version=there, filename=f"{name}.deb", size=1, sha256="0" * 64)

    def depends(archive: Archive, name: str, version: str = "") -> str:
        return DEPENDS[archive.suite] if name == "linux-image-amd64" else DEPENDS.get(name, "")

    def unpack(debs: list[Path], release: str, directory: Path) -> None:
        (directory / "vmlinuz").write_text(release)
        (directory / "debs").write_text(" ".join(deb.name for deb in debs))

    monkeypatch.setattr(archive, "host_suite", lambda: "bookworm")
    monkeypatch.setattr(debian_kernel, "first_suite", lambda: "bookworm")
    monkeypatch.setattr(Archive, "update", update)
    monkeypatch.setattr(Archive, "versions", lambda archive, _: releases(archive))
    monkeypatch.setattr(Archive, "package", package)
    monkeypatch.setattr(Archive, "depends", depends)
    monkeypatch.setattr(Archive, "download", lambda _, packages: [Path(one.filename) for one in packages])
    monkeypatch.setattr(debian_kernel, "unpack", unpack)
    return Store(tmp_path / "home")


@pytest.mark.parametrize(
    "spec, release",
    [
        ("debian:6.1", "6.1.0-56-amd64"),
        ("debian:6", "6.12.117+deb12-amd64"),
        ("debian:6.12", "6.12.117+deb12-amd64"),
        ("debian:6.1.0-9-amd64", "6.1.0-9-amd64"),
        ("debian:6.1.0-50", "6.1.0-50-amd64"),
        ("debian:6.1.0-50-amd64", "6.1.0-50-amd64"),
        ("debian:6.1.176", "6.1.0-50-amd64"),
        ("debian:6.1.176-1", "6.1.0-50-amd64"),
        ("debian:bookworm", "6.1.0-56-amd64"),
    ],
)
def test_a_spec_is_one_kernel(store: Store, spec: str, release: str) -> None:
    found = specs.resolve(spec, store)
    assert (found.spec, found.release, found.version) == (spec, release, RELEASES[f"linux-image-{release}"])
    assert found.boot_image == found.vmlinuz
    assert found.suite == "bookworm"
    assert (found.directory / "debs").read_text() == f"linux-image-{release}.deb"


def test_a_kernel_in_parts_is_made_of_all_of_them(store: Store) -> None:
    found = specs.resolve("debian:sid", store)
    assert (found.suite, found.release, found.version) == ("sid", "7.2.13+deb14-amd64", "7.2.13-1")
    assert (found.directory / "debs").read_text().split() == [f"{name}.deb" for name in list(SID)[1:]]
    older = specs.resolve("debian:6.18.5", store)  # of before there were parts
    assert (older.directory / "debs").read_text() == "linux-image-6.18.5+deb13-amd64.deb"


def test_a_kernel_of_which_parts_are_gone_is_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [one.release for one in debian_kernel.available(store)]
    assert "7.2.12+deb13-amd64" in offered
    assert not {"7.0.4+deb13-amd64", "7.1.3+deb13-amd64"} & {*offered}  # of the one some are gone, of the other all
    with pytest.raises(InputError, match=r"no kernel 'debian:7\.0'"):
        specs.resolve("debian:7.0", store)
    gone = {name: version for name, version in SID.items() if "modules" not in name and "binary" not in name}
    monkeypatch.setitem(SUITES, "sid", {**gone, "linux-image-7.2.13+deb14-amd64": "7.2.13-1"})
    monkeypatch.setattr(debian_kernel, "_is_complete", lambda *_: True)
    with pytest.raises(InputError, match=r"sid has no linux-binary-7\.2\.13\+deb14-amd64, linux-modules"):
        specs.resolve("debian:sid", store)


@pytest.mark.parametrize(
    "spec, suite, release",
    [
        ("debian:5.10", "bullseye", "5.10.0-46-amd64"),
        ("debian:5.10.0-45", "bullseye", "5.10.0-45-amd64"),
        ("debian:7.2", "sid", "7.2.13+deb14-amd64"),
        ("debian:7.2.12", "trixie-backports", "7.2.12+deb13-amd64"),
        ("debian:6.16.3+deb13-amd64", "trixie-backports", "6.16.3+deb13-amd64"),
    ],
)
def test_a_version_is_found_in_every_suite_of_the_mirror(store: Store, spec: str, suite: str, release: str) -> None:
    said: list[str] = []
    found = specs.resolve(spec, store, progress=said.append)
    assert (found.suite, found.release) == (suite, release)
    assert said[:2] == [f"fetching the package lists of Debian {name}" for name in ("bookworm", "bullseye")]
    said.clear()
    assert specs.resolve(spec, store, progress=said.append) == found
    assert said == []


def test_lists_that_are_here_come_first_and_mean_the_same(store: Store) -> None:
    for suite in ("bookworm", "trixie-backports"):
        Archive(store, suite).update()
    said: list[str] = []
    exact = specs.resolve("debian:7.2.12+deb13", store, progress=said.append)
    assert exact.suite == "trixie-backports"
    assert [line for line in said if "lists" in line] == []
    assert specs.resolve("debian:7.2", store, progress=said.append).suite == "sid"
    assert "doing without Debian forky: the host's mirror has no Debian suite 'forky'" in said


def test_specs_of_one_kernel_share_it_and_a_bare_version_is_debians(store: Store) -> None:
    found = specs.resolve("6.1.0-50", store)
    assert found.spec == "debian:6.1.0-50"
    assert found == specs.resolve("debian:6.1.0-50", store)
    assert found.key == specs.resolve("debian:6.1.176", store).key
    assert specs.canonical("source:6.1") == "source:6.1"


def test_what_the_mirror_has_is_listed_once(store: Store) -> None:
    found = debian_kernel.available(store)
    assert [one.spec for one in found][:3] == [
        "debian:5.10.0-45-amd64",
        "debian:5.10.0-46-amd64",
        "debian:6.1.0-0.deb11.52-amd64",
    ]
    assert [(one.suite, one.headers) for one in found[:2]] == [("bullseye", False), ("bullseye", True)]
    assert [one.suite for one in found if one.release == "6.1.0-56-amd64"] == ["bookworm"]
    assert not [one for one in found if "rt" in one.release or "cloud" in one.release]


@pytest.mark.parametrize(
    "wanted, near",
    [
        ("6.1.0-57", ["6.1.0-56-amd64", "6.1.0-50-amd64", "6.1.0-9-amd64"]),
        ("6.1.0-57-amd64", ["6.1.0-56-amd64", "6.1.0-50-amd64", "6.1.0-9-amd64"]),
        ("6.1.180-9", ["6.1.0-50-amd64", "6.1.0-56-amd64", "6.1.0-9-amd64"]),
        ("6.13", ["6.12", "6.16", "6.1"]),
        ("9", ["7", "6"]),
        ("6.12.120", ["6.12.117+deb12-amd64", "6.16.3+deb13-amd64", "6.1.0-50-amd64"]),
    ],
)
def test_the_nearest_are_so_by_number(wanted: str, near: list[str]) -> None:
    releases = {
        "6.1.0-9-amd64": "6.1.27-1",
        "6.1.0-50-amd64": "6.1.176-1",
        "6.1.0-56-amd64": "6.1.192-2",
        "6.12.117+deb12-amd64": "6.12.117-1~deb12u1",
        "6.16.3+deb13-amd64": "6.16.3-1~bpo13+1",
        "7.2.13+deb14-amd64": "7.2.13-1",
    }
    assert debian_kernel.nearest(wanted, releases) == near


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """A store beside the real mirror's archive."""
    return Store(tmp_path / "home")


def tree(directory: Path, *paths: str) -> Path:
    for path in paths:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(path if path.endswith("vmlinuz") else "")
    return directory


@pytest.mark.parametrize(
    "packages",
    [
        [("boot/vmlinuz-7", "boot/config-7", "lib/modules/7/modules.builtin")],
        [("usr/lib/modules/7/vmlinuz",), ("usr/lib/modules/7/config", "usr/lib/modules/7/modules.builtin")],
    ],
    ids=["one", "parts"],
)
def test_a_kernel_is_unpacked_from_either_layout(tmp_path: Path, packages: list[tuple[str, ...]]) -> None:
    debs = [
        deb(tree(tmp_path / str(number), *(f"linux/{path}" for path in paths)), "linux")
        for number, paths in enumerate(packages)
    ]
    made = tmp_path / "made"
    made.mkdir()
    deb_files.unpack(debs, "7", made)
    assert {path.name for path in made.iterdir()} == {"vmlinuz", "config", "modules", "modules.json"}


def test_packages_without_a_kernel_are_one_clear_error(tmp_path: Path) -> None:
    stub = deb(tree(tmp_path, "linux/usr/share/doc/linux/copyright"), "linux")
    with pytest.raises(HostError, match=r"linux_1_all\.deb: no kernel in a layout that agelab knows"):
        deb_files.unpack([stub], "7", tmp_path)


@pytest.mark.parametrize(
    "text, found",
    [("", []), ("a", [("a", "")]), ("a:any (= 1.2-3~x) | b, c++ (>= 2)", [("a", "1.2-3~x"), ("c++", "")])],
)
def test_a_depends_field_is_the_first_of_its_alternatives(text: str, found: list[tuple[str, str]]) -> None:
    assert [(one.name, one.version) for one in debian.dependencies(text)] == found


def test_the_newest_stays_the_same_until_it_is_refreshed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = specs.resolve("debian:6.1", store)
    monkeypatch.setitem(RELEASES, "linux-image-6.1.0-60-amd64", "6.1.200-1")
    monkeypatch.setattr(Archive, "update", lambda *_: None)
    assert specs.resolve("debian:6.1", store).key == before.key
    assert specs.resolve("debian:6.1", store, refresh=True).release == "6.1.0-60-amd64"


@pytest.mark.parametrize(
    "spec, said",
    [
        ("debian:6.1.0-57-amd64", "the nearest are debian:6.1.0-56-amd64, debian:6.1.0-50-amd64"),
        ("debian:bokworm", "debian:bookworm"),
        ("debian:7.9", r"no kernel 'debian:7.9' in Debian's suites; the nearest are debian:7.2, "),
        ("debian:", "debian:6.1"),
        ("debain:6.1", "debian:6.1"),
        ("6.1.0-57", "the nearest are debian:6.1.0-56-amd64"),
        ("", "debian:6.1"),
        ("tree:/nowhere/linux", "there is no such directory"),
        ("recipe:uffs", "did you mean ufs"),
        ("debian:../../etc", "debian:"),
    ],
)
def test_a_wrong_spec_names_the_nearest(store: Store, spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        specs.resolve(spec, store)
    with pytest.raises(InputError, match="did you mean trixie"):
        Archive(store, "trixi")


def test_versions_are_ordered_as_dpkg_orders_them() -> None:
    debian_kernel = [
        "6.1.9-1", "6.1.192-2", "6.1.192-2~bpo1", "6.1.27-1", "6.12~rc3-1", "1:6.1-1", "6.12.117-1~deb12u1",
    ]  # fmt: skip
    for one, other in itertools.permutations(debian_kernel, 2):
        higher = process.run(["dpkg", "--compare-versions", one, "gt", other], ok=(0, 1)).returncode == 0
        assert debian.newest([one, other]) == (one if higher else other)


def test_a_failed_update_is_one_line_for_the_host(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str], **_: object) -> process.Completed:
        said = "W: noise\nE: Could not  resolve 'mirror'\nE: Could not resolve 'security'\nE: Some files failed\n"
        raise process.ProcessFailed(argv, 100, said, "apt-get update")

    monkeypatch.setattr(archive, "mirrors", lambda: ("http://mirror.test/debian", None))
    monkeypatch.setattr(process, "run", run)
    with pytest.raises(HostError, match=r"cannot fetch the package lists of Debian bookworm") as raised:
        Archive(empty, "bookworm").update()
    assert "network" in raised.value.hint
    assert not (empty.cache("apt") / "bookworm" / "updated").exists()


def test_a_suite_without_updates_is_used_without_them(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def run(argv: list[str], **_: object) -> process.Completed:
        tried.append((empty.cache("apt") / "trixie" / "debian.sources").read_text())
        if "trixie-updates" in tried[-1]:
            said = "E: The repository 'http://mirror.test/debian trixie-updates Release' does not have a Release file."
            raise process.ProcessFailed(argv, 100, said, "apt-get update")
        return process.Completed(0, "", "")

    monkeypatch.setattr(archive, "mirrors", lambda: ("http://mirror.test/debian", "http://mirror.test/security"))
    monkeypatch.setattr(process, "run", run)
    Archive(empty, "trixie").update()
    assert len(tried) == 2
    assert "Suites: trixie\n" in tried[1] and "Suites: trixie-security\n" in tried[1]


def test_backports_stand_on_their_suite(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "mirrors", lambda: ("http://mirror.test/debian", None))
    monkeypatch.setattr(process, "run", lambda argv, **_: process.Completed(0, "", ""))
    Archive(empty, "trixie-backports").update()
    root = empty.cache("apt") / "trixie-backports"
    suites = [line for line in (root / "debian.sources").read_text().splitlines() if "Suites" in line]
    assert suites == ["Suites: trixie-backports", "Suites: trixie", "Suites: trixie-updates"]
    assert 'APT::Default-Release "trixie-backports";' in (root / "apt.conf").read_text()


def deb(directory: Path, name: str) -> Path:
    control = directory / name / "DEBIAN"
    control.mkdir(parents=True)
    text = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: test\n"
    (control / "control").write_text(text)
    target = directory / f"{name}_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", control.parent, target], check=True, stdout=subprocess.DEVNULL)
    return target


def test_a_local_repository_names_each_file_and_its_hash(tmp_path: Path) -> None:
    debs = [deb(tmp_path, "two"), deb(tmp_path, "one")]
    line = debian.local_repository(tmp_path / "repository", debs)
    assert line == f"deb [trusted=yes] copy:{tmp_path}/repository ./"
    stanzas = (tmp_path / "repository" / "Packages").read_text().split("\n\n")
    assert [stanza.split("\n")[0] for stanza in stanzas] == ["Package: one", "Package: two"]
    assert f"SHA256: {file_hash(debs[1])}" in stanzas[0]
    with pytest.raises(AgelabError, match="not empty"):
        debian.local_repository(tmp_path / "repository", debs)


def test_a_store_that_was_moved_tells_apt_its_new_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "mirrors", lambda: ("http://mirror.test/debian", None))
    monkeypatch.setattr(process, "run", lambda argv, **_: process.Completed(0, "", ""))
    Archive(Store(tmp_path / "old"), "trixie").update()
    (tmp_path / "old").rename(tmp_path / "new")
    moved = Store(tmp_path / "new")
    Archive(moved, "trixie").resolve(["strace"])
    told = (moved.cache("apt") / "trixie" / "apt.conf").read_text()
    assert f'Dir::State::Lists "{tmp_path}/new/' in told and f"{tmp_path}/old" not in told
