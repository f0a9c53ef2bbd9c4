"""With a snapshot every package is asked for before anything is made."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from agelab.base.errors import AgelabError, InputError
from agelab.base.process import SideBySide
from agelab.debian import buildroot, dated_archive, snapshot
from agelab.kernel import build_inputs
from agelab.machine import qemu
from agelab.machine.disk import parse
from agelab.machine.drive import module as modules
from agelab.machine.image import packer
from agelab.machine.image import root as roots
from agelab.runner.execute import runner
from agelab.runner.prepare.parts import MadeParts, ask_all_packages
from agelab.runner.prepare.prepare import prepare
from agelab.runner.prepare.run_manifest import root_of
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.store.artefacts import Store
from tests.build.deb_builder import deb

RELEASE = "6.1.0-1-amd64"
HEADERS = f"linux-headers-{RELEASE}"
OPTIONS = RunOptions(name="aging-ext4", kernel="6.1")


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Packages of all names that a run asks for, with nothing in them."""
    directory = tmp_path_factory.mktemp("debs")
    named = {
        *roots.question(*root_of(resolve(OPTIONS)))["packages"],
        *buildroot._COMPILER,
        *qemu.question()["packages"],
        *modules._TOOLS,
        *build_inputs._PACKAGES,
        *("busybox-static", packer.PACKAGE, f"linux-image-{RELEASE}", HEADERS, "linux-source-6.1"),
    }
    return [deb(directory, "base", Essential="yes"), *(deb(directory, name) for name in sorted(named))]


@pytest.fixture(autouse=True)
def nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("agelab.kernel.resolve", "agelab.runner.execute.runner.resolve_kernel"):
        monkeypatch.setattr(module, lambda *_, **__: pytest.fail("a kernel is made"))
    monkeypatch.setattr(Store, "obtain", lambda *_, **__: pytest.fail("something is made"))


def prepared(options: RunOptions, debs: Sequence[Path], without: str, place: Path) -> None:
    kept = [path for path in debs if not path.name.startswith(f"{without}_")]
    assert len(kept) == len(debs) - 1
    dated_archive.write(place / "mirror", {"bookworm": kept})
    with pytest.MonkeyPatch.context() as patch, ExitStack() as held:
        patch.setenv(snapshot.VARIABLE, f"trusted:{place / 'mirror'}")
        request, store = resolve(options), Store(place / "store")
        prepare(request, MadeParts(request, store, print), store, Progress(), held)


@pytest.mark.parametrize(
    "absent", ["e2fsprogs", f"linux-image-{RELEASE}", HEADERS, "make", "qemu-system-x86", "gcc", "packer"]
)
def test_what_a_snapshot_lacks_is_told_before_anything_is_made(absent: str, debs: list[Path], tmp_path: Path) -> None:
    told = "no kernel 'debian:6.1' in Debian's suites" if "image" in absent else absent
    with pytest.raises(AgelabError, match=told):
        prepared(OPTIONS, debs, absent, tmp_path)


def test_what_was_answered_once_is_answered_again_without_an_archive(
    debs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a capsule's replay and by other hosts: of each question that is asked anew the same."""
    dated_archive.write(tmp_path / "mirror", {"bookworm": debs})
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{tmp_path / 'mirror'}")
    request, store = resolve(OPTIONS), Store(tmp_path / "store")
    with store.recording() as before:
        ask_all_packages(request, (), store, print)
    assert len(before) >= 5
    monkeypatch.delenv(snapshot.VARIABLE)
    for host in ("bookworm", "trixie"):
        monkeypatch.setattr("agelab.debian.snapshot.host_suite", lambda suite=host: suite)
        monkeypatch.setattr("agelab.debian.resolution._cached", lambda *_: pytest.fail("an archive is asked"))
        fixed = Store(tmp_path / host, resolutions=before)
        with fixed.recording() as after:
            ask_all_packages(request, (), fixed, print)
        assert after == before
    spoiled = Store(tmp_path / "spoiled", resolutions={key: {"of": "somebody"} for key in before})
    with pytest.raises(InputError, match="are not named as agelab does"):
        ask_all_packages(request, (), spoiled, print)


@pytest.mark.parametrize("absent", ["flex", "linux-source-6.1"])
def test_so_is_what_a_kernel_is_built_with(absent: str, debs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(AgelabError, match="source:6.1" if "source" in absent else absent):
        prepared(OPTIONS.changed(kernel="source:6.1"), debs, absent, tmp_path)


def test_a_run_on_drives_that_need_no_module_needs_no_headers(
    debs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SideBySide, "begin", lambda *_: None)
    with pytest.raises(pytest.fail.Exception, match="a kernel is made"):
        prepared(OPTIONS.changed(disks=(parse("model:none"),)), debs, HEADERS, tmp_path)


def test_of_several_kernels_none_is_made_before_all_are_asked_for(
    debs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dated_archive.write(tmp_path / "mirror", {"bookworm": debs})
    monkeypatch.setenv(snapshot.VARIABLE, f"trusted:{tmp_path / 'mirror'}")
    with pytest.raises(AgelabError, match=r"no kernel 'debian:6\.12' in Debian's suites"):
        runner.run_kernels(OPTIONS, ["6.1", "6.12"], Store(tmp_path / "store"))
