"""Guests that begin as copies of one that has booted: what full boots give, and made anew where they do not start."""

import json
from pathlib import Path
from typing import Any

import pytest

from agelab.cli.options import open_store
from agelab.runner.execute import guests
from agelab.store.artefacts import MANIFEST, Artefact, content_hash
from tests.vm.cells import agelab, newest, run, scenario, shown, step, store_of_parts
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm

STEPS = step("copy", 'cp -r "$SOURCE" a && sync') + step("read", "cat a/*/* | wc -c", 'caches = "reboot"')
NEARLY = 0.05
"""Most by which a time may differ, as it may between run seeds: timers fire at other moments (docs/design.md)."""
SHORT = 0.01
"""Seconds that are one tick more or less."""


@pytest.fixture
def store_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' store without its saved guests."""
    monkeypatch.setenv("AGELAB_HOME", str(store_of_parts(tmp_path / "home")))


def saved() -> list[Artefact]:
    return open_store().all(guests.KIND)


def elapsed(cell: dict[str, Any]) -> dict[tuple[str, int], float]:
    samples = cell["samples"]
    return {(one["step"], one["repetition"]): one["value"] for one in samples if one["metric"] == "elapsed"}


@pytest.mark.usefixtures("store_of_its_own")
def test_it_has_the_same_bytes_whenever_it_is_made_and_is_made_anew_where_it_does_not_start(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, mib=8)
    [first] = run(str(path))
    [guest] = saved()
    (guest / guests.STATE).write_bytes(b"no state at all")
    manifest = json.loads((guest / MANIFEST).read_text())
    manifest["files"][guests.STATE] = content_hash(guest / guests.STATE)
    (guest / MANIFEST).write_text(json.dumps(manifest))  # so that only QEMU finds it damaged
    with both_cores_busy():
        done = agelab("run", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("QEMU does not take the saved guest", "agelab makes it again"):
        assert done.stderr.count(said) == 1
    [anew] = shown(newest(path).name)
    assert [(one.key, one.manifest) for one in saved()] == [(guest.key, guest.manifest)]
    for what in ("status", "inputs_key", "digest"):
        assert anew[what] == first[what], what
    assert first["status"] == "ok"


@pytest.mark.full
def test_full_boots_have_other_keys_and_nearly_the_same_times(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, "ext4", "reiserfs")
    copies, booted = run(str(path)), run(str(path), "--boot", "full")
    for one, other in zip(copies, booted, strict=True):
        assert one["inputs_key"] != other["inputs_key"]
        for measured, value in elapsed(one).items():
            assert elapsed(other)[measured] == pytest.approx(value, rel=NEARLY, abs=SHORT), measured
