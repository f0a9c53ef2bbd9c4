"""QEMU of the store: what it runs with, what its libraries call, and which QEMU cannot be saved."""

import platform
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError, HostError
from agelab.cli.options import open_store
from agelab.debian.buildroot import Workshop
from agelab.machine import qemu
from agelab.machine.qemu import Emulator, emulator
from agelab.store.artefacts import Store

SYMBOL = re.compile(r"^([0-9a-f]*) +\w (\w+)(@\S+)?$", re.M)
IDLE = ["-machine", "none", "-nodefaults", "-no-user-config", "-display", "none", "-S"]


@pytest.fixture(scope="module")
def made() -> Emulator:
    return qemu.obtain(open_store())


def symbols(library: Path, *words: str) -> list[tuple[str, str]]:
    listed = process.run(["nm", "--dynamic", *words, str(library)]).stdout
    return [(address, name) for address, name, _ in SYMBOL.findall(listed)]


def test_it_runs_with_its_own_files_alone_wherever_it_lies_and_is_known_as_qemu(made: Emulator, tmp_path: Path) -> None:
    elsewhere = tmp_path / "moved"
    shutil.copytree(made.artefact.directory, elsewhere)
    preload = {"LD_PRELOAD": f"{elsewhere}/clock.so:{elsewhere}/main_loop.so"}
    child = subprocess.Popen([elsewhere / emulator.START, *IDLE, "-accel", "tcg"], env=preload)
    try:
        place = Path("/proc", str(child.pid))
        while (place / "comm").read_text() != "qemu-system-x86\n" or "accel-tcg" not in (
            maps := (place / "maps").read_text()
        ):
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.kill()
        child.wait()
    mapped = {line.split()[-1] for line in maps.splitlines() if line.split()[-1].startswith("/")}
    assert len(mapped) > 30 and {name for name in mapped if not name.startswith(f"{elsewhere}/")} == set()
    assert {f"{elsewhere}/clock.so", f"{elsewhere}/main_loop.so"} < mapped


def test_it_starts_as_packer_starts_it(made: Emulator, tmp_path: Path) -> None:
    """With a display by VNC, whatever the template says, and a network device without firmware."""
    display = tmp_path / "vnc"
    words = ["-machine", "q35,nvdimm=on", "-nodefaults", "-display", "none", "-S", "-netdev", "user,id=n"]
    device = ["-device", "virtio-net-pci,netdev=n,romfile=", "-vnc", f"unix:{display}"]
    with subprocess.Popen([made.program, *words, *device]) as child:
        try:
            while not display.exists():
                assert child.poll() is None
                time.sleep(0.01)
        finally:
            child.kill()


def test_its_libraries_call_nothing_that_the_c_library_has_twice(made: Emulator) -> None:
    """The linker takes the oldest version of a function, whose structures may be others."""
    versions: dict[str, set[str]] = defaultdict(set)
    for address, name in symbols(made.artefact / str(emulator.LIBRARIES / "libc.so.6")):
        versions[name].add(address)
    assert len(versions["pthread_cond_wait"]) == 2
    for library in (made.clock, made.main_loop):
        called = {name for _, name in symbols(library, "--undefined-only")}
        assert "pthread_mutex_lock" in called or library == made.clock
        assert {name for name in called if len(versions[name]) > 1} == set()
        assert called <= versions.keys()


def test_its_guests_can_be_saved_and_its_version_is_that_of_its_package(made: Emulator) -> None:
    assert made.unfit == ""
    packages = {package.name: package for package in qemu.resolve_packages(open_store()).packages}
    assert f"(Debian {packages['qemu-system-x86'].version})" in made.version
    assert {"libc6", "seabios", "qemu-system-data"} < packages.keys()


@pytest.mark.full
def test_another_store_makes_the_same_bytes(made: Emulator, tmp_path: Path) -> None:
    resolutions = {path.stem: path.read_text() for path in open_store().cache("resolved").glob("*.json")}
    other = Store(tmp_path / "home")
    for name, text in resolutions.items():
        (other.cache("resolved") / f"{name}.json").write_text(text)
    assert qemu.obtain(other).identity == made.identity


class Reading:
    """A workshop whose readelf says these calls of each file."""

    def __init__(self, *calls: str) -> None:
        self.calls = calls

    def run(self, argv: Sequence[str]) -> str:
        return "".join(f"0001  0006 R_X86_64_JUMP_SLOT  0000 {name} + 0\n" for name in self.calls)


def test_another_qemu_is_refused() -> None:
    def unfit(version: str, *calls: str) -> str:
        return emulator.unfit(f"QEMU emulator version {version}", cast(Workshop, Reading(*calls)))

    every = (*emulator.CALLED_BY_MODULE, *emulator.CALLED_BY_PROGRAM)
    assert unfit("7.2.22 (Debian 1)", *every) == ""
    assert unfit("10.0.2") == "QEMU emulator version 10.0.2 is not known"
    said = unfit("7.2.1", "cpu_can_run", "icount_process_data")
    assert said.startswith("accel-tcg-x86_64.so does not call icount_handle_deadline, icount_prepare_for_run")


def test_a_library_that_the_packages_lack_is_named_and_so_is_a_place_where_nothing_may_run(tmp_path: Path) -> None:
    usr, outside = tmp_path / "usr", tmp_path / "outside"
    usr.mkdir()
    linker = usr / "ld.so"
    script = "echo ' libthere.so.1 => /x (0x01)'; echo ' libhost.so.2 => not found'"
    linker.write_text(f"#!/bin/sh\ntouch {outside} {usr}/changed; {script}\n")
    linker.chmod(0o755)
    (usr / "libthere.so.1").touch()
    (usr / "libhost.so.2").symlink_to("/lib/x86_64-linux-gnu/libc.so.6")
    with pytest.raises(AgelabError, match=r"lack libraries of qemu: libhost\.so\.2"):
        emulator._libraries(usr, linker, usr, usr / "qemu")
    assert not outside.exists() and not (usr / "changed").exists()  # whoever made it, it was confined
    linker.chmod(0o644)
    with pytest.raises(HostError, match="no program may be run in") as raised:
        emulator._libraries(usr, linker, usr, usr / "qemu")
    assert "AGELAB_HOME=<directory>" in raised.value.hint


def test_where_no_newer_suite_can_be_had_it_is_said_what_several_processors_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise HostError("cannot fetch the package lists of Debian trixie")

    monkeypatch.setattr(emulator, "resolve_packages", unreachable)
    with pytest.raises(HostError, match=r"^several processors .* cannot be had: cannot fetch") as raised:
        qemu.obtain(Store(tmp_path), suite=qemu.SUITE_OF_SEVERAL)
    assert "leave --vcpus out" in raised.value.hint
    with pytest.raises(HostError, match=r"^cannot fetch"):
        qemu.obtain(Store(tmp_path))


def test_a_host_of_another_kind_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(HostError, match="this host is aarch64; agelab runs the QEMU of Debian's amd64"):
        qemu.obtain(Store(tmp_path))
