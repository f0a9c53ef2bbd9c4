"""Tests in real guests: how each can end, and faults of a small filesystem that seeds find and find again."""

import re
from pathlib import Path

import pytest

from agelab.cli.options import open_store
from bench import seeds
from tests.vm.cells import agelab, shown

pytestmark = pytest.mark.vm
ENDS = {
    "passes": "dd if=/dev/zero of=f bs=4k count=100 && sync && test $(stat -c %s f) = 409600",
    "fails": "test $SEED -ne 1",
    "hangs": "exec sleep 100000",
    "leaks": "mkdir /tmp/x; mount -t tmpfs none /tmp/x; truncate -s 1M /tmp/img; losetup -f /tmp/img",
    "panics": "echo printed before; echo c >/proc/sysrq-trigger",
    "fills": "dd if=/dev/zero of=f bs=1M; dd if=/dev/zero of=/tmp/f bs=1M; echo full",
    "kills": "kill -9 1; exit 4",
}
REASONS = {
    "fails": "exit status 1",
    "hangs": r"no end within 20 s of guest time; its tasks: sleep \(S, hrtimer_nanosleep\)",
    "leaks": "it leaves a mount: /tmp/x; it leaves a loop device: loop1",
    "panics": "step panics, repetition 1: Kernel panic - not syncing: sysrq triggered crash",
}


def suite(directory: Path, scripts: dict[str, str]) -> Path:
    """Write a suite of shell scripts."""
    directory.mkdir(exist_ok=True)
    for name, script in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    return directory


def test_each_way_to_end_is_told_and_no_test_takes_another_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = suite(tmp_path / "suite", ENDS)
    known = tmp_path / "known.toml"
    known.write_text('[expect]\n"*" = "planted"\n')
    words = ("test", str(place), "--filesystem", "ext4", "--timeout", "20", "--schedule", "0", "--mib", "64")
    done = agelab(*words)
    assert done.returncode == 1, done.stderr
    rows = re.findall(r"^(\w+) +ext4 +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    failed = {name for name, _, count, _, _ in rows if count == "1"}
    assert failed == REASONS.keys(), done.stdout
    for name, why in REASONS.items():
        assert re.search(rf"^{name} on ext4, seed 1: {why}$", done.stdout, re.MULTILINE), done.stdout
    [panicked] = re.findall(r"seed 1: step panics.*\n.*\n +its console and output: (.*)", done.stdout)
    assert (Path(panicked) / "panics-1.output").read_text().startswith("printed before\n")
    monkeypatch.delenv("AGELAB_FRESH")  # the same ends, judged by what is known: no guest need come to them again
    assert agelab(*words, "--expect", str(known)).returncode == 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seeds.planted(tmp_path_factory.mktemp("suite") / "planted", open_store())


def failing(stdout: str) -> dict[str, list[str]]:
    """Return the failing seeds of each test."""
    found: dict[str, list[str]] = {}
    for name, seed in re.findall(r"^([\w-]+) on ext4, seed (\d+): ", stdout, re.MULTILINE):
        found.setdefault(name, []).append(seed)
    return found


@pytest.mark.full
def test_planted_faults_are_found_by_seeds_and_found_again(planted: Path) -> None:
    """Without a shaken schedule none of them shows."""
    words = ("test", str(planted), "--filesystem", "ext4", "--mib", "64", "--timeout", "20")
    assert agelab(*words, "--schedule", "0", "--seeds", "1-3").returncode == 0
    found = agelab(*words, "--seeds", "1-10", "--jobs", "2")
    found_by = failing(found.stdout)
    assert found_by.keys() == {"lost-update", "lock-order", "error-path"}, found.stdout
    for name, of in found_by.items():
        ends = set()
        for _ in range(3):
            again = agelab(*words, "--only", name, "--seeds", of[0], "--fresh")
            assert failing(again.stdout) == {name: of[:1]}
            [cell] = shown(again.stdout.rsplit("agelab show ", 1)[1].split()[0])
            ends.add((cell["inputs_key"], cell["digest"], cell["reason"]))
        assert len(ends) == 1
