"""The planted faults of ``validation.crash_faults``: each is a patch that git takes."""

import subprocess
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.scenario import selection, toml_files
from validation import crash_faults
from validation.crash_faults import Fault, Faults

KNOWN = toml_files.read(Path(crash_faults.__file__).with_suffix(".toml"), Faults)
AROUND = "".join(f"line {number}\n" for number in range(20))


def source(fault: Fault) -> str:
    return AROUND + AROUND.join(f"\t{before}\n" for before, _ in fault.changes) + AROUND


@pytest.mark.parametrize("fault", [*KNOWN.faults, *KNOWN.mends], ids=lambda fault: fault.name)
def test_git_applies_each_patch_and_what_was_there_is_gone(fault: Fault, tmp_path: Path) -> None:
    file = tmp_path / fault.file
    file.parent.mkdir(parents=True)
    file.write_text(source(fault))
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=fault.patch(source(fault)).encode(), check=True)
    changed = file.read_text()
    for before, after in fault.changes:
        assert before not in changed and after in changed


def test_there_are_ten_by_ten_names_on_four_filesystems() -> None:
    assert len({fault.name for fault in KNOWN.faults}) == 10
    filesystems = {fault.filesystem for fault in KNOWN.faults}
    assert filesystems == {"ext4", "xfs", "btrfs", "f2fs"}
    assert {selection.filesystem(name).name for name in filesystems} == filesystems


@pytest.mark.parametrize("times", [0, 2])
def test_a_tree_that_has_not_what_is_to_be_dropped_is_an_error_that_names_the_file(times: int) -> None:
    fault = KNOWN.faults[0]
    with pytest.raises(InputError, match=f"ext4-fdatasync: fs/ext4/fsync.c has {times} places like"):
        fault.patch(source(fault) * times)
