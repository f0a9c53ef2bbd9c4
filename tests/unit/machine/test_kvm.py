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


BANNER = 'echo "Linux version 6.1" > "$console"'
TALK = 'sleep 0.3; echo more >> "$console"'


@pytest.mark.parametrize(
    ("script", "seconds", "boots", "detail"),
    [
        (f'{BANNER}; echo last words >> "$console"; exec sleep 60', 60, False, "'last words', and was silent"),
        ("exec sleep 60", 60, False, "said nothing, and was silent"),
        (f'for one in 1 2 3 4 5 6 7; do {TALK}; done; {BANNER}; echo "Unable to mount root fs" >> "$console"', 60, True,
         "booted Linux 6.1"),
        (f"{BANNER}; while :; do {TALK}; done", 2, False, "'more', though it had not fallen silent, within 2 s"),
        ("echo no KVM here >&2; exit 1", 60, False, "QEMU stops: no KVM here"),
    ],
    ids=["falls silent", "says nothing", "goes on talking", "takes too long", "stops by itself"],
)  # fmt: skip
def test_what_a_guest_says_decides_and_its_silence_ends_the_wait(
    says: Path, tmp_path: Path, script: str, seconds: int, boots: bool, detail: str
) -> None:
    says.write_text(f"{script}\n")
    began = time.monotonic()
    probe = host.try_boot(tmp_path / QEMU, tmp_path, seconds=seconds)
    assert probe.boots is boots and detail in probe.detail
    assert time.monotonic() - began < 20


def test_a_kvm_of_software_is_known_without_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "try_boot", lambda *_: pytest.fail("a guest was started"))
    for name in ("kvm", "kvm_pvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(host, "SOFTWARE", tmp_path / "kvm_pvm")
    probe = host.probe_kvm(Store(tmp_path / "home"), tmp_path / "kvm", again=True)
    assert (probe.boots, probe.tried) == (False, False)
    found = probes.kvm(Store(tmp_path / "home"), tmp_path / "kvm")
    assert (found.status, found.found) == (ProbeStatus.LIMITED, probe.detail) and "VT-x" in found.fix
    assert host.probe_kvm(Store(tmp_path / "home"), tmp_path / "none").detail.startswith("no ")
