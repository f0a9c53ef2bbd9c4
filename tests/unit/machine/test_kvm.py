"""A test boot under KVM: what a guest says decides, and its silence ends the wait."""

import time
from pathlib import Path

import pytest

from agelab.machine.vm import host
from agelab.runner.doctor import probes
from agelab.runner.doctor.probes import ProbeStatus
from agelab.store.artefacts import Store

QEMU = "qemu-system-x86_64"


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A QEMU that runs this script, with its console as ``$console``."""
    script, program = tmp_path / "says", tmp_path / QEMU
    program.write_text(
        f'#!/bin/sh\nwhile [ "$1" ]; do case $1 in file:*) console=${{1#file:}};; esac; shift; done\n. {script}\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(host, "SILENT_SECONDS", 1.5)
    return script


def test_a_guest_that_falls_silent_is_not_waited_for(says: Path, tmp_path: Path) -> None:
    says.write_text('echo "Linux version 6.1" > "$console"; echo last words >> "$console"; exec sleep 60\n')
    began = time.monotonic()
    assert host.try_boot(tmp_path / QEMU, tmp_path).detail == (
        "a guest came no further than 'last words', and was silent for 1.5 s"
    )
    assert time.monotonic() - began < 10
    says.write_text("exec sleep 60\n")
    assert host.try_boot(tmp_path / QEMU, tmp_path).detail == "a guest said nothing, and was silent for 1.5 s"


def test_a_guest_that_goes_on_talking_is_listened_to(says: Path, tmp_path: Path) -> None:
    says.write_text(
        'echo "Linux version 6.1" > "$console"\nfor one in 1 2 3 4; do sleep 0.7; echo more >> "$console"; done\n'
        'echo "Unable to mount root fs" >> "$console"\n'
    )
    assert host.try_boot(tmp_path / QEMU, tmp_path) == host.KvmProbe(boots=True, detail="booted Linux 6.1")


def test_a_boot_that_takes_too_long_is_not_called_silent(says: Path, tmp_path: Path) -> None:
    says.write_text(
        'echo "Linux version 6.1" > "$console"\nwhile :; do sleep 0.3; echo more >> "$console"; done\n'
    )
    assert host.try_boot(tmp_path / QEMU, tmp_path, seconds=4).detail == (
        "a guest came no further than 'more', though it had not fallen silent, within 4 s"
    )


def test_what_qemu_says_when_it_stops_by_itself_is_told(says: Path, tmp_path: Path) -> None:
    says.write_text("echo no KVM here >&2; exit 1\n")
    assert host.try_boot(tmp_path / QEMU, tmp_path).detail == "QEMU stops: no KVM here"


def test_a_kvm_of_software_is_known_without_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "try_boot", lambda *_: pytest.fail("a guest was started"))
    for name in ("kvm", "kvm_pvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(host, "SOFTWARE", tmp_path / "kvm_pvm")
    probe = host.probe_kvm(Store(tmp_path / "home"), tmp_path / "kvm", again=True)
    assert (probe.boots, probe.tried) == (False, False)
    assert probe.detail == f"{tmp_path}/kvm is that of kvm_pvm, a KVM of software that runs no stock kernel"
    found = probes.kvm(Store(tmp_path / "home"), tmp_path / "kvm")
    assert (found.status, found.found) == (ProbeStatus.LIMITED, probe.detail) and "VT-x" in found.fix
    assert host.probe_kvm(Store(tmp_path / "home"), tmp_path / "none").detail.startswith("no ")
