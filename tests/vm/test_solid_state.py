"""A solid-state drive in a real guest: the same digits every time, discards that arrive, a map that lasts."""

from pathlib import Path

import pytest

from tests.vm.cells import COPY, READ, measured, run, scenario, step
from tests.vm.chaos import both_cores_busy

pytestmark = pytest.mark.vm
USED = "model:samsung-870-evo-500?begins=used"
DELETE = step("delete", "rm -rf copy; sync")
TRIM = step("trim", "fstrim .")
MIB = 1 << 20


def words(directory: Path) -> list[str]:
    path = scenario(directory, COPY + READ + DELETE + TRIM, mib=8)
    return [str(path), "--disks", USED, "--fresh", "--defaults", "today"]


@pytest.mark.full
def test_a_used_drive_has_the_same_digest_on_a_loaded_host(tmp_path: Path) -> None:
    [quiet] = run(*words(tmp_path))
    with both_cores_busy():
        [loaded] = run(*words(tmp_path))
    assert quiet["inputs_key"] == loaded["inputs_key"]
    assert (quiet["samples"], quiet["digest"]) == (loaded["samples"], loaded["digest"])


def test_a_used_drive_moves_pages_remembers_its_map_and_is_told_of_discards(tmp_path: Path) -> None:
    [cell] = run(*words(tmp_path))
    copied, read, trimmed = (measured(cell, name) for name in ("copy", "read", "trim"))
    assert copied["write_amplification"] > 2 and copied["flash_moved"] > 7 * MIB
    # After a reboot the drive still knows where everything lies.
    assert read["flash_reads"] * 8192 > 7 * MIB
    assert trimmed["discarded"] > 250 * MIB


@pytest.mark.full
def test_discards_of_each_filesystem_arrive(tmp_path: Path) -> None:
    """With the mount option when a file is deleted (f2fs: some time later), and with fstrim."""
    names = ("ext4", "xfs", "btrfs", "f2fs")
    path = scenario(tmp_path, COPY + DELETE + TRIM, *names, mib=8)
    text = path.read_text()
    for name in names[:-1]:
        option = "discard=sync" if name == "btrfs" else "discard"
        text = text.replace(f'filesystem = "{name}"', f'filesystem = "{name}"\nmount_options = ["{option}"]')
    path.write_text(text)
    for cell in run(str(path), "--disks", USED, "--defaults", "today"):
        deleted, trimmed = measured(cell, "delete")["discarded"], measured(cell, "trim")["discarded"]
        assert trimmed > 150 * MIB, cell["variant"]
        assert cell["variant"] == "f2fs" or deleted > 6 * MIB, cell["variant"]
