"""The planted faults of ``validation.crash_faults``: a patch that git takes, and a number for each."""

import subprocess
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.scenario import selection, toml_files
from validation import crash_faults
from validation.crash_faults import SWITCH, SWITCH_FILE, Fault, Faults

KNOWN = toml_files.read(Path(crash_faults.__file__).with_suffix(".toml"), Faults)
ALL = (*KNOWN.faults, KNOWN.mend)
AROUND = "".join(f"line {number}\n" for number in range(20))


def source(file: str) -> str:
    """A file in which everything is once that is to change."""
    places = [f"\t\t{before.strip()}\n" for fault in ALL if fault.file == file for before, _ in fault.changes]
    return AROUND + AROUND.join(places) + AROUND


def test_git_applies_the_patch_and_each_change_is_there(tmp_path: Path) -> None:
    for fault in ALL:
        (tmp_path / fault.file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / fault.file).write_text(source(fault.file))
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=KNOWN.patch(source).encode(), check=True)
    for fault in ALL:
        changed = (tmp_path / fault.file).read_text()
        assert changed.startswith("extern int planted;\n")
        assert all(after in changed for _, after in fault.changes)
    assert (tmp_path / SWITCH_FILE).read_text().endswith(SWITCH)


def test_each_of_ten_faults_of_four_filesystems_has_its_number() -> None:
    for number, fault in enumerate(KNOWN.faults, 1):
        for before, after in fault.changes:
            assert "planted" not in before
            assert after.partition("planted ")[2].startswith((f"== {number}", f"!= {number}"))
    assert len({fault.name for fault in KNOWN.faults}) == 10
    names = {fault.filesystem for fault in KNOWN.faults}
    assert names == {selection.filesystem(name).name for name in ("ext4", "xfs", "btrfs", "f2fs")}


@pytest.mark.parametrize("times", [0, 2])
def test_a_tree_that_has_not_what_is_to_change_is_an_error_that_names_the_file(times: int) -> None:
    fault: Fault = KNOWN.faults[0]
    with pytest.raises(InputError, match=f"ext4-fdatasync: fs/ext4/fsync.c has {times} places like"):
        fault.planted_in(source(fault.file) * times)
