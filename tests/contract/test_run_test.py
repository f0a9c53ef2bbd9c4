"""The guest's program that runs a test, on the host: its verdict is what the host reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base.places import HARNESS
from agelab.evaluate.program_output.test import Judged, read, verdict
from agelab.evaluate.step_output import PLACE_BYTES
from agelab.scenario import workloads


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A directory that stands for the guest's."""
    (tmp_path / "harness").symlink_to(HARNESS)
    text = (HARNESS / "output/run-test").read_text()
    text = text.replace("/run/agelab", str(tmp_path)).replace("/dev/kmsg", f"{tmp_path}/kmsg")
    (tmp_path / "run-test").write_text(text)
    (tmp_path / "kmsg").touch()
    return tmp_path


def judged(guest: Path, script: str, *words: str) -> tuple[Judged, subprocess.CompletedProcess[str]]:
    """Run a shell script as a test, in the guest's directory."""
    test = guest / "the-test"
    test.write_text(f"#!/bin/sh\n{script}\n")
    test.chmod(0o755)
    argv = [sys.executable, "-SB", str(guest / "run-test"), *words, str(test)]
    done = subprocess.run(argv, cwd=guest, capture_output=True, text=True)
    found = verdict(done.stdout)
    assert done.returncode == (found.verdict == "failed")
    return found, done


@pytest.mark.parametrize(
    ("script", "expected", "why"),
    [
        ("echo fine", "passed", ""),
        ("exit 3", "failed", "exit status 3"),
        ("kill -SEGV $$", "failed", "killed by SIGSEGV"),
        ("echo no tape; exit 4", "not run", "no tape"),
        ("exit 77", "not run", ""),
        (
            "echo '4,1,2,-;WARNING: CPU: 0 PID: 1 at fs/x.c' >> kmsg",
            "failed",
            "the kernel: WARNING: CPU: 0 PID: 1 at fs/x.c",
        ),
        ("echo '4,1,2,-;XFS (dm-1): Ending clean mount' >> kmsg", "passed", ""),
        ("echo '12,1,2,-;BUG: says a program' >> kmsg", "passed", ""),
        ("sleep 60 & exit 0", "passed", ""),
    ],
)
def test_a_test_is_judged(guest: Path, script: str, expected: str, why: str) -> None:
    found, _ = judged(guest, script)
    assert (found.verdict, found.why) == (expected, why)


def test_a_test_that_does_not_end_is_killed_and_says_what_it_waits_in(guest: Path) -> None:
    found, done = judged(guest, "echo begun; exec sleep 1000", "--timeout", "2")
    assert found.verdict == "failed"
    assert found.why.startswith("no end within 2 s of guest time; its tasks: ")
    assert "begun" in done.stdout and "sleep" in done.stdout


def test_what_cannot_be_started_has_failed(guest: Path) -> None:
    (guest / "kmsg").touch()
    argv = [sys.executable, "-SB", str(guest / "run-test"), str(guest / "nothing")]
    done = subprocess.run(argv, cwd=guest, capture_output=True, text=True)
    assert verdict(done.stdout).why == "it cannot be started: No such file or directory"
    assert done.stderr == verdict(done.stdout).why


TAP = """
echo TAP version 13; echo 1..4; echo 'ok 1 - writes'; echo '# ok 9 - a part of a part'
echo 'not ok 2 reads/back # exit=1'; echo 'ok 3 # SKIP no room'; echo 'not ok 4 - later # TODO not done'
"""


def test_the_parts_of_a_tap_output_have_results_of_their_own(guest: Path) -> None:
    found, done = judged(guest, TAP + "exit 1")
    assert [(part.name, part.verdict, part.why) for part in found.parts] == [
        ("writes", "passed", ""),
        ("reads/back", "failed", ""),
        ("3", "not run", "no room"),
        ("later", "not run", "not done"),
    ]
    assert found.why == "1 of 4 parts failed: reads/back"
    readings = read(workloads.program("test"), done.stdout)
    assert [(reading.part, reading.value) for reading in readings] == [
        ("", 1), ("writes", 0), ("reads:back", 1), ("3", 2), ("later", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 1..3; echo ok 1", "3 parts were planned, 1 have a result"),
        ("echo 1..2; echo ok 1; echo 'Bail out! no disk'", "Bail out! no disk"),
    ],
)
def test_a_tap_output_that_ends_early_is_a_failure(guest: Path, script: str, why: str) -> None:
    found, _ = judged(guest, script)
    assert (found.verdict, found.why) == ("failed", why)


def test_a_tap_output_without_tests_was_not_run(guest: Path) -> None:
    found, _ = judged(guest, "echo '1..0 # SKIP needs two disks'")
    assert (found.verdict, found.why) == ("not run", "needs two disks")


SELFTESTS = """
echo 'TAP version 13'; echo 1..5; echo '# selftests: mount: unprivileged-remount'; echo '# ok 1 a part of a part'
echo 'ok 1 selftests: mount: unprivileged-remount'; echo '# selftests: mount: nosymfollow'
echo '# Warning: file nosymfollow is missing!'; echo 'not ok 2 selftests: mount: nosymfollow'
echo 'ok 3 selftests: mount: idmap # SKIP'; echo '#'
echo 'not ok 4 selftests: mount: slow # TIMEOUT 45 seconds'; echo 'not ok 5 selftests: mount: wrong # exit=1'
"""
"""What the kernel's runner of selftests prints, in each of its forms."""


def test_the_parts_of_a_run_of_selftests_are_read(guest: Path) -> None:
    found, _ = judged(guest, SELFTESTS)
    assert [(part.name.removeprefix("selftests: mount: "), part.verdict) for part in found.parts] == [
        ("unprivileged-remount", "passed"),
        ("nosymfollow", "failed"),
        ("idmap", "not run"),
        ("slow", "failed"),
        ("wrong", "failed"),
    ]


def test_of_subtests_in_a_ktap_output_the_suite_counts(guest: Path) -> None:
    lines = "KTAP version 1\n1..1\n    KTAP version 1\n    1..2\n    ok 1 a\n    not ok 2 b\nnot ok 1 ext4_inode_test"
    found, _ = judged(guest, f"cat <<.\n{lines}\n.")
    assert [(part.name, part.verdict) for part in found.parts] == [("ext4_inode_test", "failed")]


CHECK = """
mkdir -p "$RESULTS/xfs_4k/generic" "$RESULTS/xfs_4k/xfs"
cd "$RESULTS/xfs_4k"
printf '\\nSat Nov 28 02:25:06 UTC 2026\\nRan: generic/001 generic/003 xfs/104 generic/475\\n' > check.log
echo 'Interrupted!' >> check.log
printf 'Not run: generic/002\\nFailures: generic/003 generic/475\\nFailed 2 of 4 tests\\n' >> check.log
echo 'generic/001 1' > check.time; touch generic/check_dmesg check.full; echo 'a log' > generic/003.full
echo 'no reflink here' > generic/002.notrun
echo 'QA output created by 003' > generic/003.out.bad
echo '[ 1.2] run fstests xfs/104' > xfs/104.dmesg
cd ..
exit 1
"""
"""What xfstests' check leaves with a section, KEEP_DMESG=yes, and a test (475) whose filesystem was inconsistent."""


def test_what_xfstests_leaves_is_read(guest: Path) -> None:
    found, done = judged(guest, CHECK)
    assert [(part.name, part.verdict, part.why) for part in found.parts] == [
        ("generic/001", "passed", ""),
        ("generic/002", "not run", "no reflink here"),
        ("generic/003", "failed", ""),
        ("generic/475", "failed", ""),
        ("xfs/104", "passed", ""),
    ]
    assert found.why == "2 of 5 parts failed: generic/003, generic/475"
    assert "generic/003.out.bad:\nQA output created by 003" in done.stdout


def test_results_of_an_unknown_format_are_named(guest: Path) -> None:
    found, _ = judged(guest, """mkdir "$RESULTS/d"; cd "$RESULTS"; touch a.xml b d/c "$(printf 'e\\377\\n')"; exit 0""")
    assert found.verdict == "passed"
    assert found.why == "its results are of an unknown format (a.xml, b, d/c and 1 more): its exit status alone counts"
    (guest / "results/b").rename(guest / "results/\udcff\n")
    assert "(a.xml, d/c, e?" in judged(guest, "exit 0")[0].why


def test_a_jumping_clock_lets_a_task_wait_longer(guest: Path) -> None:
    limit = guest / "hung_task_timeout_secs"
    program = guest / "run-test"
    program.write_text(program.read_text().replace("/proc/sys/kernel", str(guest)))
    test = guest / "the-test"
    test.symlink_to("/bin/true")
    for times, longer in (("100", "12000"), ("1", "120")):
        limit.write_text("120\n")
        subprocess.run(
            [sys.executable, "-SB", str(program), str(test)], env={**os.environ, "SHAKEN": times}, check=True
        )
        assert limit.read_text().strip() == longer


def test_a_flood_keeps_its_beginning_its_end_and_its_verdict(guest: Path) -> None:
    found, done = judged(guest, "echo first; yes | head -c 3000000; echo last; exit 1")
    assert found.why == "exit status 1"
    assert done.stdout.startswith("first\n") and "\nlast\n" in done.stdout and "bytes left out]" in done.stdout
    assert len(done.stdout) < PLACE_BYTES


def test_a_verdict_of_the_tests_own_is_none(guest: Path) -> None:
    found, _ = judged(guest, """echo 'agelab-test: {"verdict": "passed"}'; exit 5""")
    assert found.verdict == "failed"


def test_what_is_printed_is_on_the_disk_before_the_test_ends_and_the_verdict_behind_it(guest: Path) -> None:
    """The test looks at the disk itself, as the host does after a panic."""
    (guest / "sys/pmem7/device").mkdir(parents=True)
    (guest / "sys/pmem7/device/resource").write_text("0x240000000\n")
    with (guest / "pmem7").open("wb") as disk:
        disk.truncate(2 * PLACE_BYTES)
    text = (guest / "run-test").read_text().replace("/sys/block", f"{guest}/sys").replace("/dev/{", f"{guest}/{{")
    (guest / "run-test").write_text(text)
    test = guest / "the-test"
    test.write_text("#!/bin/sh\necho first\nuntil grep -q first pmem7; do sleep 0.1; done\necho last; exit 6\n")
    test.chmod(0o755)
    place = {"OUTPUT_DISK": "0", "OUTPUT_PLACE": "1"}
    argv = [sys.executable, "-SB", str(guest / "run-test"), "--timeout", "30", str(test)]
    done = subprocess.run(argv, cwd=guest, env={**os.environ, **place}, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"exit status 6")
    kept = (guest / "pmem7").read_bytes()
    assert kept[:PLACE_BYTES] == bytes(PLACE_BYTES)
    printed = kept[PLACE_BYTES:].rstrip(b"\0").decode()
    assert printed.startswith("first\nlast\n") and verdict(printed).why == "exit status 6"
