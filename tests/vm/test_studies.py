"""Studies with more than one disk, in real guests: a second filesystem, experiments, a user's own scripts."""

from pathlib import Path

import pytest

from tests.vm.cells import agelab, run, scenario, values

pytestmark = pytest.mark.vm
BESIDE = """
[beside]
filesystem = "ext4"
mib = { value = 64, origin = "estimated" }
partition = { at = 400, origin = "estimated" }
holds = "corpus"
origin = "estimated"
"""
EXPERIMENTS = """
[[experiments]]
name = "write"
perform = 'cp -r "$SOURCE/." . && cp -r . "$BESIDE/again"'
traced = false
origin = "estimated"

[[experiments]]
name = "read"
prepare = 'cp -r "$SOURCE/." .'
perform = 'find . -type f -print0 | xargs -0 cat > /dev/null'
origin = "estimated"

[[experiments]]
name = "remove"
prepare = 'cp -r "$SOURCE/." .'
perform = 'rm -r ./* && touch removed'
traced = false
origin = "estimated"

[[traces]]
name = "strace"
options = ["-c"]
"""


def test_experiments_start_from_what_was_prepared_with_empty_caches(tmp_path: Path) -> None:
    """On the same UUID side by side: what lies beside has a name of its own."""
    [cell] = run(str(scenario(tmp_path, BESIDE + EXPERIMENTS, "ext4", mib=8)), "--trace")
    found = values(cell)
    for step in ("write", "read", "remove", "strace/read", "prepared-1/prepare"):
        assert found[step, "elapsed"] > 0
    assert ("prepared-2/prepare", "elapsed") not in found and ("strace/remove", "elapsed") not in found
    # All of the tree comes from the disk, and nobody has removed it before.
    assert found["read", "bytes_read"] > 7e6 < found["strace/read", "bytes_read"]
    assert found["strace/read/getdents64", "syscall_calls"] > 10
    assert found["strace/read/read", "syscall_seconds"] >= 0


SCRIPTS = {
    "filesystem-ext4.sh": "mke2fs -q -F -t ext4 $DEVICE && mount -o noatime /dev/sda7 /mnt",
    "filesystem-ext2-plain.sh": "#!/bin/bash\nmke2fs -q -F -t ext2 /dev/disk/under-test",
    "test-keep-prepare.sh": "cp -r /export/experiment/data . && echo here > /mnt/mark",
    "test-keep-perform.sh": '[ "$(cat mark)" = here ] && [ -f data/file ] && [ ! -L data ] && '
    'grep -q " /mnt ext4 .*noatime" /proc/mounts && bash -c : && awk "BEGIN { exit }" && python3 -c "" && '
    'perl -MList::Util=sum -MPOSIX -e "exit(sum(1, 2) - 3)" && ! perl -MTime::HiRes -e 1 2> /dev/null',
    "test-half-prepare.sh": "echo not ready >&2; exit 4",
    "test-half-perform.sh": "true",
    "test-fails-perform.sh": "echo broken >&2; exit 3",
    "test-crash-perform.sh": "echo c > /proc/sysrq-trigger",
    "test-list-perform.sh": "ls -aR . > /dev/null",
}


def test_a_control_file_is_carried_out_whatever_its_tests_do(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(bytes(200_000))
    control = tmp_path / "control.ctl"
    control.write_text("ext4 keep 1\next4 half 1\next4 fails 1\next4 crash 1\next2-plain list 1\n")
    words = f"run --control {control} --disks model:none --device /dev/sda7 --scale quick".split()
    done = agelab(*words)
    assert done.returncode == 1, done.stdout + done.stderr
    ends = [line for line in (tmp_path / "journal.log").read_text().splitlines() if " end " in line]
    assert [line.split(":")[0] for line in ends] == [
        "ext4 keep 1 end ok",
        "ext4 half 1 end failed",
        "ext4 fails 1 end failed",
        "ext4 crash 1 end panicked",
        "ext2-plain list 1 end ok",
    ]
    assert "not ready" in ends[1] and "broken" in ends[2]
    assert "ext4 half 1 perform" not in (tmp_path / "journal.log").read_text()
    results = [line.split() for line in (tmp_path / "results.log").read_text().splitlines()]
    assert [words[:2] for words in results] == [["keep", "ext4"], ["list", "ext2-plain"]]
    again = agelab(*words)
    assert again.returncode == 2 and "a run has been started here" in again.stderr
    journal = (tmp_path / "journal.log").read_text().splitlines()
    (tmp_path / "journal.log").write_text("\n".join(line for line in journal if "list" not in line) + "\n")
    assert agelab(*words, "--continue").returncode == 0
    nothing = agelab(*words, "--continue")
    assert nothing.returncode == 2 and "every test has ended" in nothing.stderr
    assert "3 of 5 were not ok" in nothing.stderr
    assert (tmp_path / "results.log").read_text().splitlines()[2].startswith("list ext2-plain ")
