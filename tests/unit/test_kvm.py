"""A test boot under KVM: what a guest says decides, and its silence ends the wait."""

import time
from pathlib import Path

import pytest

from agelab.vm import kvm

QEMU = "qemu-system-x86_64"


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A QEMU that runs this script, with its console as ``$console``."""
    script, program = tmp_path / "says", tmp_path / QEMU
    program.write_text(
        f'#!/bin/sh\nwhile [ "$1" ]; do case $1 in file:*) console=${{1#file:}};; esac; shift; done\n. {script}\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(kvm, "SILENT_SECONDS", 1.5)
    return script


def test_a_guest_that_falls_silent_is_not_waited_for(says: Path, tmp_path: Path) -> None:
    says.write_text('echo "Linux version 6.1" > "$console"; echo last words >> "$console"; exec sleep 60\n')
    began = time.monotonic()
    assert kvm.try_boot(tmp_path / QEMU, tmp_path).detail == "a guest hung after 'last words'"
    assert time.monotonic() - began < 10
    says.write_text("exec sleep 60\n")
    assert kvm.try_boot(tmp_path / QEMU, tmp_path).detail == "a guest hung at once"


def test_a_guest_that_goes_on_talking_is_listened_to(says: Path, tmp_path: Path) -> None:
    says.write_text(
        'echo "Linux version 6.1" > "$console"\nfor one in 1 2 3 4; do sleep 0.7; echo more >> "$console"; done\n'
        'echo "Unable to mount root fs" >> "$console"\n'
    )
    assert kvm.try_boot(tmp_path / QEMU, tmp_path) == kvm.KvmProbe(boots=True, detail="booted Linux 6.1")


def test_what_qemu_says_when_it_stops_by_itself_is_told(says: Path, tmp_path: Path) -> None:
    says.write_text("echo no KVM here >&2; exit 1\n")
    assert kvm.try_boot(tmp_path / QEMU, tmp_path).detail == "QEMU stops: no KVM here"
