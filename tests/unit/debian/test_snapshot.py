"""Packages of a date: an archive is written, and the host's own apt takes packages from it and nowhere else."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.base import places, process
from agelab.base.errors import HostError, InputError
from agelab.capsule import mirror
from agelab.debian import Archive, Package, archives, cached_resolution, dated_archive, first_suite, snapshot
from agelab.debian.buildroot import BuildRoot
from agelab.kernel import build_inputs, source_tree
from agelab.kernel.debian_kernel import ResolvedKernel
from agelab.machine.image import packer
from agelab.machine.image import root as roots
from agelab.results.checksummed import read, write
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import RunManifest
from agelab.store.artefacts import Store, file_hash
from tests.build import capsule_builder
from tests.build.cli import Cli
from tests.build.deb_builder import deb
from tests.build.release_signer import Signer, signer

DATE = "20261123T000000Z"


def three_packages(directory: Path) -> list[Path]:
    return [
        deb(directory, "base", Essential="yes"),
        deb(directory, "tool", Depends="library (>= 2)"),
        deb(directory, "library", "2"),
    ]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an archive of three packages, named as the snapshot."""
    directory = tmp_path / "a mirror"
    dated_archive.write(directory, {"bookworm": three_packages(tmp_path)})
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{directory}")
    return directory


def test_packages_come_from_the_directory(there: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    archive = Archive(store, "bookworm")
    found = archive.resolve(["tool"], essential=True)
    assert [(one.name, one.version) for one in found] == [("base", "1"), ("library", "2"), ("tool", "1")]
    [tool] = archive.download([found[2]])
    assert file_hash(tool) == found[2].sha256 == file_hash(tmp_path / "tool_1_amd64.deb")
    assert [one.suite for one in archives(store)] == ["bookworm"]  # others are left out, with a line


def test_a_package_that_the_date_does_not_have_is_an_error_and_not_taken_from_elsewhere(
    there: Path, tmp_path: Path
) -> None:
    archive = Archive(Store(tmp_path / "store"), "bookworm")
    with pytest.raises(InputError, match="Debian bookworm has no package 'bash'"):
        archive.require(["tool", "bash"])
    gone = Package(name="tool", version="2", filename="tool_2_amd64.deb", size=1, sha256="0" * 64)
    with pytest.raises(HostError, match=f"the snapshot trusted:{there} has no tool 2 of Debian bookworm") as failed:
        archive.download([gone])
    assert failed.value.hint == f"nothing else is taken in place of AGELAB_SNAPSHOT=trusted:{there}"
    with pytest.raises(InputError, match=f"the snapshot trusted:{there} has no Debian suite 'trixie'"):
        Archive(Store(tmp_path / "store"), "trixie").update()


def test_the_same_packages_give_the_same_archive_and_lists_of_their_own(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = snapshot.chosen()
    assert one and one.content and one.unsigned == {"bookworm"}
    again = tmp_path / "again"
    dated_archive.write(again, {"bookworm": sorted(tmp_path.glob("*.deb"))})
    assert _bytes(again) == _bytes(there)
    other = tmp_path / "other"
    dated_archive.write(other, {"bookworm": [deb(tmp_path, "tool", "3")]})
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{other}")
    two = snapshot.chosen()
    assert two and two.identity != one.identity
    archive = Archive(Store(tmp_path / "store"), "bookworm")
    assert archive.package("tool").version == "3"


def _bytes(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_each_snapshot_has_answers_of_its_own(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, question = Store(tmp_path / "store"), {"which": "tool"}
    assert cached_resolution(store, question, str, lambda: "of the snapshot") == "of the snapshot"
    monkeypatch.delenv(snapshot.VARIABLE)
    assert cached_resolution(store, question, str, lambda: "of today") == "of today"
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{there}")
    assert cached_resolution(store, question, str, lambda: "asked again") == "of the snapshot"


def test_on_every_host_the_first_suite_of_a_snapshot_is_that_of_the_guest(there: Path) -> None:
    assert first_suite() == roots.definition().suite


@pytest.mark.parametrize("name", ["yesterday", "/nowhere", "20261123"])
def test_what_is_no_snapshot_is_one_clear_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(snapshot.VARIABLE, name)
    with pytest.raises(InputError, match=f"AGELAB_SNAPSHOT={name}: it is no date like"):
        snapshot.chosen()


SETTINGS = {
    "origin::debian": "https://snapshots.test/debian/@SNAPSHOTID@/",
    "label::debian-security": "https://snapshots.test/security/@SNAPSHOTID@/",
    "host::mirror.test": "https://snapshots.test/archive/@PATH@/@SNAPSHOTID@/",
    "override::label::debian": "https://here.test/@SNAPSHOTID@",
}


@pytest.mark.parametrize(
    ("label", "taken", "address"),
    [
        ("debian", ["override::label::debian", "origin::debian"], f"https://here.test/{DATE}"),
        ("debian", ["origin::debian", "host::mirror.test"], f"https://snapshots.test/debian/{DATE}"),
        ("debian", ["host::mirror.test"], f"https://snapshots.test/archive/debian/{DATE}"),
        ("debian-security", ["label::debian-security"], f"https://snapshots.test/security/{DATE}"),
        ("debian-security", ["origin::debian"], ""),
        ("debian", [], ""),
    ],
)
def test_a_date_has_the_address_that_apt_would_take(label: str, taken: list[str], address: str) -> None:
    settings = {name: SETTINGS[name] for name in taken}
    assert snapshot.dated_address(settings, label, "http://mirror.test/debian/", DATE) == address


@pytest.mark.parametrize(
    ("known", "lacking", "setting"),
    [
        ({}, "Debian", "Origin::Debian"),
        ({"debian": "https://snapshots.test/debian"}, "Debian's security updates", "Label::Debian-Security"),
    ],
)
def test_a_date_needs_a_host_that_is_configured_for_snapshots_of_all_that_is_taken(
    known: dict[str, str], lacking: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot._of_date.cache_clear()
    monkeypatch.setenv(snapshot.VARIABLE, "19990101T000000Z")
    monkeypatch.setattr(snapshot, "dated_address", lambda _settings, label, *_: known.get(label, ""))
    with pytest.raises(HostError, match=f"the host's apt is configured for no snapshots of {lacking}$") as failed:
        snapshot.chosen()
    assert f"Acquire::Snapshots::URI::{setting} " in failed.value.hint


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A server with dates that has a date's bookworm alone; the list is of what it was asked for."""
    snapshot._of_date.cache_clear()
    monkeypatch.setenv(snapshot.VARIABLE, DATE)
    monkeypatch.setattr(snapshot, "dated_address", lambda _settings, label, *_: f"http://snapshots.test/{label}")
    asked = []

    def fetch(archive: Archive, arguments: list[str], directory: Path | None = None) -> None:
        asked.append((archive._root / "debian.sources").read_text())
        suites = re.findall("^URIs: (.*)\nSuites: (.*)$", asked[-1], re.M)
        # The words of apt 2.6 where a server answers with 404.
        said = [
            f"E: The repository '{uri} {suite} Release' does not have a Release file."
            for uri, suite in suites
            if suite != "bookworm"
        ]
        if said:
            raise process.ProcessFailed(["apt-get"], 100, "\n".join(said))

    monkeypatch.setattr(Archive, "_fetch", fetch)
    return asked


def test_of_a_date_a_suite_is_not_taken_without_its_updates(service: list[str], tmp_path: Path) -> None:
    archive = Archive(Store(tmp_path / "store"), "bookworm")
    told = f"the snapshot {DATE} has Debian bookworm, but no bookworm-updates, bookworm-security"
    with pytest.raises(InputError, match=told):
        archive.update()
    assert len(service) == 1 and not archive.fetched
    with pytest.raises(InputError, match=f"the snapshot {DATE} has no Debian suite 'trixie'"):
        Archive(Store(tmp_path / "store"), "trixie").update()


def test_the_project_can_pin_its_packages(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = tmp_path / "pins.toml"
    monkeypatch.setattr(places, "PINS", pins)
    pins.write_text('snapshot = "trusted:a mirror"')
    monkeypatch.setenv(snapshot.VARIABLE, "")
    assert snapshot.chosen() is None  # set to nothing: today's
    monkeypatch.delenv(snapshot.VARIABLE)
    one = snapshot.chosen()
    assert one and one.name == f"trusted:{there}"
    pins.write_text('snapshot = "yesterday"')
    with pytest.raises(InputError, match=r"pins.toml: snapshot = 'yesterday': it is no date like"):
        snapshot.chosen()
    monkeypatch.setenv(snapshot.VARIABLE, f"{there}")
    assert snapshot.chosen()
    monkeypatch.delenv(snapshot.VARIABLE)
    pins.write_text('snapshots = "20261123T000000Z"')
    with pytest.raises(InputError, match="snapshots: is not a known key"):
        snapshot.chosen()


@pytest.mark.parametrize(("words", "told"), [([], "unset"), (["SNAPSHOT="], ""), (["SNAPSHOT=/a b"], "/a b")])
def test_make_hands_over_what_it_is_told(words: list[str], told: str, tmp_path: Path) -> None:
    rule = 'probe-snapshot:\n\t@echo "$${AGELAB_SNAPSHOT-unset}"\n'
    lines = f"include Makefile\n.DEFAULT_GOAL := probe-snapshot\n{rule}"
    probe = tmp_path / "probe.mk"
    probe.write_text(lines)
    argv = ["make", "-s", "-C", str(places.PACKAGE.parent), "-f", str(probe), *words]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout == f"{told}\n"


def test_security_updates_are_not_left_out_because_their_server_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(archive: Archive, arguments: list[str], directory: Path | None = None) -> None:
        suites = re.findall("^Suites: (.*)$", (archive._root / "debian.sources").read_text(), re.M)
        said = []
        if "bookworm-updates" in suites:
            said.append("E: The repository 'http://m.test bookworm-updates Release' does not have a Release file.")
        if "bookworm-security" in suites:
            said.append("E: Failed to fetch http://m.test/dists/bookworm-security/InRelease  503  Service Unavailable")
        if said:
            raise process.ProcessFailed(["apt-get"], 100, "\n".join(said))

    monkeypatch.setattr("agelab.debian.archive.mirrors", lambda: ("http://m.test", "http://m.test"))
    monkeypatch.setattr(Archive, "_fetch", fetch)
    with pytest.raises(HostError, match="503"):
        Archive(Store(tmp_path / "store"), "bookworm").update()


@pytest.mark.parametrize("security", ["http://m.test/security", None])
def test_sources_without_security_updates_are_told_when_lists_are_fetched(
    security: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("agelab.debian.archive.mirrors", lambda: ("http://m.test", security))
    monkeypatch.setattr("agelab.debian.archive.host_suite", lambda: "bookworm")
    monkeypatch.setattr(Archive, "_fetch", lambda *_: None)
    store = Store(tmp_path / "store", said.append)
    for suite in ("bookworm", "trixie-backports", "sid"):
        Archive(store, suite).update()
    wanted = ["bookworm", "trixie-backports"] if security is None else []
    assert [re.findall("packages of Debian (\\S+) may be older", line) for line in said] == [[one] for one in wanted]
    assert all(len(line.splitlines()) == 1 and "add the suite bookworm-security" in line for line in said)


def test_of_a_date_a_suite_is_not_passed_over_because_its_server_fails(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(archive: Archive, **_: bool) -> None:
        if archive.suite != "bookworm":
            raise HostError("503 Service Unavailable")

    monkeypatch.setattr(Archive, "update", update)
    with pytest.raises(HostError, match="503"):
        list(archives(Store(tmp_path / "store")))


def test_whether_a_directory_is_signed_is_asked_of_each_suite(there: Path, tmp_path: Path) -> None:
    lists = there / "debian/dists"
    for name, signature in (("trixie", "InRelease"), ("forky", "Release.gpg")):
        shutil.copytree(lists / "bookworm", lists / name)
        (lists / name / signature).write_text("of nobody")
    chosen = snapshot.chosen()
    assert chosen and chosen.unsigned == {"bookworm"}
    store = Store(tmp_path / "store")
    assert Archive(store, "bookworm").package("tool").version == "1"
    for name in ("trixie", "forky"):
        with pytest.raises(HostError, match=f"cannot fetch the package lists of Debian {name}"):
            Archive(store, name).update()


@pytest.fixture(scope="module")
def debian() -> Iterator[Signer]:
    """A key that stands for Debian's."""
    with signer() as one:
        yield one


@pytest.fixture
def signed_mirror(debian: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of two packages, written from one of three and more that has a signature."""
    monkeypatch.setattr("agelab.debian.archive.KEYRING", debian.keyring)
    upstream = tmp_path / "upstream"
    dated_archive.write(upstream, {"bookworm": [*three_packages(tmp_path), deb(tmp_path, "unneeded")]})
    debian.sign(upstream / "debian/dists/bookworm")
    monkeypatch.setenv(snapshot.VARIABLE, str(upstream))
    archive = Archive(Store(tmp_path / "first"), "bookworm")
    debs = archive.download(archive.resolve(["tool"]))
    mirror = tmp_path / "handed on"
    assert dated_archive.write(mirror, {"bookworm": debs}, {"bookworm": archive.signed_lists()}) == []
    monkeypatch.setenv(snapshot.VARIABLE, str(mirror))
    return mirror


def test_an_archive_that_is_handed_on_is_taken_where_debians_keys_vouch_for_all_of_it(
    signed_mirror: Path, tmp_path: Path
) -> None:
    archive = Archive(Store(tmp_path / "store"), "bookworm")
    found = archive.resolve(["tool"])
    assert [one.name for one in found] == ["library", "tool"]
    assert [file_hash(path) for path in archive.download(found)] == [one.sha256 for one in found]
    with pytest.raises(InputError, match="Debian bookworm has no package 'unneeded'"):
        archive.require(["unneeded"])
    # It can be handed on again.
    [lists] = archive.signed_lists()
    assert len(lists.stanzas) == 4 and file_hash(lists.release) == file_hash(
        tmp_path / "upstream/debian/dists/bookworm/InRelease"
    )


def _add(mirror: Path, place: Path, name: str, **said: str) -> None:
    """Write the index of an archive anew, with one more package."""
    index = mirror / "debian/dists/bookworm/main/binary-amd64/Packages"
    before = index.read_text()
    shutil.rmtree(mirror / "debian")
    dated_archive.write(mirror, {"bookworm": [deb(place, name, "9", **said)]})
    index.write_text(before + index.read_text())
    index.with_suffix(".gz").write_bytes(gzip.compress(index.read_bytes()))
    dated_archive._release(index.parents[2], "bookworm")


def _alter(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


FOREIGN = "no list that Debian has signed has these packages of its Debian bookworm: "
UNVOUCHED = "Debian's keys do not vouch for its lists: "


HARMS = (
    "package", "version", "dependency", "nothing signed", "list", "release", "key", "no key", "line for apt",
)  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_what_debians_keys_do_not_vouch_for_is_refused_before_anything_of_it_runs(
    harm: str, debian: Signer, signed_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [release] = signed_mirror.glob("signed/*/dists/bookworm/InRelease")
    packages = release.parent / "main/binary-amd64/Packages"
    told = UNVOUCHED
    if harm == "package":
        _add(signed_mirror, tmp_path, "evil")
        told = f"{FOREIGN}evil"
    elif harm == "version":
        _add(signed_mirror, tmp_path, "tool")
        told = f"{FOREIGN}tool"
    elif harm == "dependency":
        index = signed_mirror / "debian/dists/bookworm/main/binary-amd64/Packages"
        _alter(index, "library (>= 2)", "library (>= 1)")
        index.with_suffix(".gz").write_bytes(gzip.compress(index.read_bytes()))
        dated_archive._release(index.parents[2], "bookworm")
        told = f"{FOREIGN}tool"
    elif harm == "nothing signed":
        shutil.rmtree(signed_mirror / "signed")
        told = f"{FOREIGN}library, tool"
    elif harm in ("no key", "line for apt"):
        release.unlink()
        dated_archive._release(release.parent, "bookworm")
        if harm == "line for apt":
            (release.parent / "main\nTrusted: yes/binary-amd64").mkdir(parents=True)
            told = f"{FOREIGN}library, tool"
    elif harm == "list":
        _alter(packages, "library (>= 2)", "library (>= 1)")
    elif harm == "release":
        _alter(release, "Date: ", "Date:  ")
    else:
        (release.parent / "Release").write_text((tmp_path / "upstream/debian/dists/bookworm/Release").read_text())
        with signer() as somebody:
            somebody.sign(release.parent)
    store = Store(tmp_path / "store")
    for _ in range(2):  # it is not taken for fetched
        archive = Archive(store, "bookworm")
        with pytest.raises(InputError, match=re.escape(told)) as failed:
            archive.resolve(["tool"])
        assert "say trusted:<directory>" in failed.value.hint and not archive.fetched
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{signed_mirror}")
    assert Archive(store, "bookworm").resolve(["tool"])


def test_a_mirror_is_of_runs_that_say_what_they_were_made_of(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = capsule_builder.made_run(store)
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="is there already"):
        mirror.make(tmp_path / "taken", [run], store, print)
    (run.path / "made-of.json").unlink(missing_ok=True)
    with pytest.raises(InputError, match="did not record its packages"):
        mirror.make(tmp_path / "new", [run], store, print)
    assert not (tmp_path / "new").exists()


OF_KERNEL = ("flex", "linux-source-6.1")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose packages come from an archive of all that a run needs, and of one more."""
    debs = [
        *three_packages(tmp_path),
        *(deb(tmp_path, name) for name in ("busybox-static", "packer", "gcc", "linux-image", "unneeded")),
        *(deb(tmp_path, name) for name in (*OF_KERNEL, *build_inputs._PACKAGES) if name not in ("gcc", "flex")),
        deb(tmp_path, "flex", Depends="library"),
    ]
    dated_archive.write(tmp_path / "upstream", {"bookworm": debs})
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{tmp_path / 'upstream'}")
    return Store(tmp_path / "store")


def run_of(store: Store, spec: str) -> RunDirectory:
    """A run that was made of some packages of that archive."""
    run = capsule_builder.made_run(store, spec=spec)
    archive = Archive(store, "bookworm")
    kernel = ResolvedKernel(suite="bookworm", release="6.1", package=archive.package("linux-image"))
    compiler = BuildRoot(suite="bookworm", packages=(archive.package("gcc"),))
    made = RunManifest(
        agelab="0.1.0",
        programs={},
        kernel=kernel if spec.startswith("debian:") else None,
        guest=roots.RootPackages(
            root=archive.resolve(["tool"], essential=True), busybox=archive.package("busybox-static")
        ),
        suite="bookworm",
        drive=compiler if spec.startswith("debian:") else None,
        qemu=compiler,
        tools=compiler,
        sources={},
    )
    _write(run, made)
    return run


def _write(run: RunDirectory, made: RunManifest) -> None:
    """Write what a run is made of, with what its questions about packages were answered."""
    named = {"guest": made.guest, "kernel": made.kernel, "qemu": made.qemu}
    answers = {name: part.model_dump(mode="json") for name, part in named.items() if part}
    told = made.model_copy(update={"resolutions": {**answers, "headers": "bookworm"}})
    write(run.path / run_manifest.MADE_OF, told.model_dump_json())


@pytest.mark.parametrize("signed", [True, False])
def test_a_mirror_of_a_run_is_a_snapshot_with_its_packages(
    signed: bool, upstream: Store, debian: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if signed:
        monkeypatch.setattr("agelab.debian.archive.KEYRING", debian.keyring)
        debian.sign(tmp_path / "upstream/debian/dists/bookworm")
        monkeypatch.setenv(snapshot.VARIABLE, str(tmp_path / "upstream"))
    written = mirror.make(tmp_path / "mirror", [run_of(upstream, "debian:6.1")], upstream, print)
    assert written.suites == {"bookworm": 7} and not (tmp_path / "mirror" / "new").exists()
    assert len(written.unsigned) == (0 if signed else 7)
    before = Archive(upstream, "bookworm").resolve(["tool"], essential=True)
    monkeypatch.setenv(snapshot.VARIABLE, f"{'' if signed else 'trusted:'}{tmp_path / 'mirror'}")
    elsewhere = Store(tmp_path / "elsewhere")
    archive = Archive(elsewhere, "bookworm")
    assert archive.resolve(["tool"], essential=True) == before
    assert [file_hash(path) for path in archive.download(before)] == [one.sha256 for one in before]
    assert packer.resolve_package(elsewhere).packages[0].name == "packer"
    for name in ("unneeded", *OF_KERNEL):
        with pytest.raises(InputError, match=f"Debian bookworm has no package '{name}'"):
            archive.require([name])


def test_who_makes_a_mirror_is_told_what_its_reader_has_to_say(
    upstream: Store, debian: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Of a package that has a newer version in Debian's lists by then, the reader has to trust him."""
    run = run_of(upstream, "debian:6.1")
    mirror.make(tmp_path / "unsigned", [run], upstream, print)  # its packages are in the store
    monkeypatch.setattr("agelab.debian.archive.KEYRING", debian.keyring)
    monkeypatch.setattr("agelab.cli.mirror.find_runs", lambda _: [run])
    monkeypatch.setattr("agelab.cli.mirror.open_store", lambda: upstream)
    packages = [path for path in sorted(tmp_path.glob("*.deb")) if not path.name.startswith("tool_")]
    for version, word, told in (("1", "", False), ("2", "trusted:", True)):
        there, made = tmp_path / f"lists {version}", tmp_path / f"made {version}"
        tool = tmp_path / "tool_1_amd64.deb" if version == "1" else deb(tmp_path, "tool", version)
        dated_archive.write(there, {"bookworm": [*packages, tool]})
        debian.sign(there / "debian/dists/bookworm")
        monkeypatch.setenv(snapshot.VARIABLE, str(there))
        said = cli.out("mirror", "make", made, "latest")
        assert f"use it: AGELAB_SNAPSHOT={word}{made} agelab run" in said
        lacking = "1 of them are in no list of Debian's that this store has (tool_1_amd64.deb): who uses"
        assert (lacking in said) == told


@pytest.mark.parametrize(
    ("spec", "source"), [("tree:/home/somebody/linux", False), ("source:6.1", True), ("recipe:ufs", True)]
)
def test_a_mirror_of_a_kernel_that_was_built_has_what_it_was_built_with(
    spec: str, source: bool, upstream: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    mirror.make(tmp_path / "mirror", [run_of(upstream, spec)], upstream, said.append)
    assert any("its kernel was built of 6.1.1-1, there is 1 now" in line for line in said) == source
    before = build_inputs.resolve_packages(upstream)
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{tmp_path / 'mirror'}")
    elsewhere = Store(tmp_path / "elsewhere")
    assert build_inputs.resolve_packages(elsewhere) == before
    if source:
        source_tree.find_package("6.1", elsewhere, print)


def test_a_mirror_has_no_package_in_two_versions(upstream: Store, tmp_path: Path) -> None:
    run, other = run_of(upstream, "debian:6.1"), run_of(upstream, "debian:6.1")
    made = read(other.path / run_manifest.MADE_OF, RunManifest)
    newer = made.guest.busybox.model_copy(update={"version": "2"})
    guest = made.guest.model_copy(update={"busybox": newer})
    _write(other, made.model_copy(update={"guest": guest}))
    with pytest.raises(InputError, match="has busybox-static 2, another run 1"):
        mirror.make(tmp_path / "mirror", [run, other], upstream, print)
    assert not (tmp_path / "mirror").exists()
