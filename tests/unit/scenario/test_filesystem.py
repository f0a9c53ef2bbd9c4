"""Filesystem files: what they refuse, and the commands that follow from them."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.evaluate.console import filesystem_shutdown
from agelab.machine.image import tools
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.toml_files import read_all

TOOLING: dict[str, Any] = {"mkfs": ("mkfs", "{device}"), "fsck": ("fsck", "{device}")}
GIVEN: dict[str, Any] = {
    **{"name": "one", "summary": "", "packages": (), "modules": (), "mount_type": "type", "minimum_mib": 1},
    **{"extents": "fiemap", "free_space": {"format": "f", "run": ("list", "{device}")}},
    **{"period": TOOLING, "today": TOOLING},
}


def filesystem(**changed: Any) -> Filesystem:
    return Filesystem.model_validate({**GIVEN, **changed})


def test_options_of_a_mount_are_joined_in_order() -> None:
    one = filesystem(period={**TOOLING, "mount_options": ("a",), "read_only_options": ("ro", "noload")})
    assert one.mount_command("period", ("b",)) == (
        "mount", "-t", "type", "-o", "a,b", "{device}", "{mountpoint}",
    )  # fmt: skip
    assert one.mount_command("period", ("b",), read_only=True)[4] == "a,b,ro,noload"
    assert one.mount_command("today") == ("mount", "-t", "type", "{device}", "{mountpoint}")
    assert one.mount_command("today", read_only=True)[3:5] == ("-o", "ro")
    assert one.period.umount == ("umount", "{mountpoint}")


def test_a_command_of_its_own_takes_the_place_of_mount() -> None:
    own = {**TOOLING, "mount": ("run", "{options}", "{device}", "{mountpoint}"), "umount": ("end", "{mountpoint}")}
    one = filesystem(today=own)
    assert one.mount_command("today", ("a", "b")) == ("run", "a,b", "{device}", "{mountpoint}")
    assert one.mount_command("today") == ("run", "", "{device}", "{mountpoint}")
    assert one.today.umount == ("end", "{mountpoint}")


def test_a_suite_that_debian_does_not_have_is_refused() -> None:
    assert filesystem(suite="sid").suite == "sid" and filesystem().suite == ""
    with pytest.raises(ValidationError, match="no such suite of Debian; there are: bullseye, "):
        filesystem(suite="trixxie")


def test_only_whole_lines_that_it_is_known_to_say_are_refusals() -> None:
    one = filesystem(refuses=("cp: cannot create symbolic link .*: Operation not permitted",))
    assert one.refused("cp: cannot create symbolic link 'a': Operation not permitted\n")
    assert not one.refused("cp: cannot create symbolic link 'a': No space left on device")
    assert not one.refused("and cp: cannot create symbolic link 'a': Operation not permitted")
    assert not filesystem().refused("")


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"extents": "none"}, "extents_why"),
        ({"extents_why": "why"}, "extents_why"),
        ({"free_space": {"format": "f", "run": ("list",)}}, "free_space.run does not name {device}"),
        ({"today": {**TOOLING, "fsck": ("fsck",)}}, "today.fsck does not name {device}"),
        ({"today": {**TOOLING, "umount": ("umount",)}}, "today.umount does not name {mountpoint}"),
        ({"today": {**TOOLING, "mount": ("run", "{device}")}}, "today.mount does not name {mountpoint}"),
        ({"refuses": ("a(",)}, "not a regular expression"),
        ({"gone": ("a(",)}, "not a regular expression"),
    ],
)
def test_a_file_that_cannot_work_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("{", r"\{")):
        filesystem(**changed)


def test_the_device_is_the_last_word_of_mkfs() -> None:
    for one in read_all("filesystems", Filesystem):
        assert (one.period.mkfs[-1], one.today.mkfs[-1]) == ("{device}", "{device}"), one.name


def test_the_programs_that_a_filesystem_brings_are_there() -> None:
    there = set(tools.programs(tools.source_files(tools.FILESYSTEMS)))
    wanted = {name for one in read_all("filesystems", Filesystem) for name in one.tools}
    assert wanted == there
    ufs = selection.filesystem("ufs")
    for tooling in (ufs.period, ufs.today):
        assert {tooling.mkfs[0], tooling.fsck[0]} == set(ufs.tools)


VFAT_SAID = """
cp: cannot create regular file 'one/a:b': Invalid argument
cp: cannot create symbolic link 'one/link': Operation not permitted
cp: cannot create fifo 'one/fifo': Operation not permitted
cp: cannot create regular file 'one/readme': File exists
cp: cannot create directory 'one/d?r': Invalid argument
cp: cannot create special file 'one/dev': Operation not permitted
cp: cannot create directory 'one/dIR': File exists
cp: failed to preserve ownership for 'two/sub/owned': Operation not permitted
cp: cannot create hard link 'two/README' to 'two/hard': Operation not permitted
ln: failed to create symbolic link 'b': Operation not permitted
ln: failed to create hard link 'h' => 'one/README': Operation not permitted
tar: src/dev: Cannot mknod: Operation not permitted
tar: src/d?r: Cannot mkdir: Invalid argument
tar: src/README: Cannot hard link to 'src/hard': Operation not permitted
tar: src/fifo: Cannot mkfifo: Operation not permitted
tar: src/link: Cannot create symlink to 'a:b': Operation not permitted
tar: src/a\\:b: Cannot open: Invalid argument
tar: src/sub/owned: Cannot change ownership to uid 12, gid 12: Operation not permitted
tar: Exiting with failure status due to previous errors
"""
"""Output of a guest's programs on a vfat, period defaults, Linux 6.1."""


def test_vfat_is_known_to_refuse_what_a_guest_saw_it_refuse() -> None:
    [vfat] = [one for one in read_all("filesystems", Filesystem) if one.name == "vfat"]
    assert [line for line in VFAT_SAID.strip().splitlines() if not vfat.refused(line)] == []
    for line in ("cp: error writing 'a': No space left on device", "cp: cannot stat 'a': Input/output error"):
        assert not vfat.refused(line)


def test_what_is_as_large_on_every_disk_is_scaled_with_it() -> None:
    reiserfs = selection.filesystem("reiserfs")
    sizes = {shrink: reiserfs.mkfs_command("period", shrink=shrink) for shrink in (1, 10, 1000)}
    journals = [words[words.index("--journal-size") + 1] for words in sizes.values()]
    assert journals == ["8192", "819", "513"]


@pytest.mark.parametrize(
    ("shrink", "blocks", "pauses"),
    [(1, 2048, "10 5 1 60"), (14, 128, "0.625 0.3125 0.0625 3.75"), (1000, 64, "0.3125 0.15625 0.03125 1.875")],
)
def test_nilfs2_cleans_as_much_in_a_second_on_every_disk(shrink: int, blocks: int, pauses: str, tmp_path: Path) -> None:
    """mkfs.nilfs2 takes powers of two alone; the cleaner's pauses follow from the segments that mount finds."""
    conf = tmp_path / "etc/nilfs_cleanerd.conf"
    conf.parent.mkdir()
    names = ("clean_check_interval", "cleaning_interval", "mc_cleaning_interval", "retry_interval")
    conf.write_text("".join(f"{name}\t{value}\n" for name, value in zip(names, (10, 5, 1, 60), strict=True)))
    for program in ("mkfs.nilfs2", "nilfs-tune", "ln", "mount"):
        said = f"# of blocks per segment:  {blocks}" if program == "nilfs-tune" else f"{program} $*"
        (tmp_path / program).write_text(f'#!/bin/sh\necho "{said}"\n')
        (tmp_path / program).chmod(0o755)

    def run(command: tuple[str, ...]) -> str:
        """Carry out the command in a directory that stands for the guest's root."""
        words = [word.replace("cd /", f"cd {tmp_path}/") for word in command]
        return subprocess.run(
            words, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True
        ).stdout

    nilfs2 = selection.filesystem("nilfs2")
    assert f"mkfs.nilfs2 -q -f -K -B {blocks} {{device}}\n" in run(nilfs2.mkfs_command("today", shrink=shrink))
    for _ in range(2):  # a second mount finds what the first one wrote
        run(nilfs2.mount_command("today"))
        assert conf.read_text().split()[1::2] == pauses.split()


@pytest.mark.parametrize("scenario", ["today", "tum-2005"])
def test_todays_xfs_has_a_log_scaled_with_its_disk(scenario: str) -> None:
    """Its 64 MB took all memory of tum-2005 at quick scale, and made writers of today wait 27 s."""
    chosen = selection.select(f"{scenario}-xfs")
    [variant] = chosen.variants
    xfs = selection.filesystem("xfs")
    sizes = []
    for scale in (chosen.scenario.scales["paper"], chosen.scenario.scales["quick"]):
        words = xfs.mkfs_command("today", variant.mkfs_options_for("today"), shrink=scale.shrink)
        sizes.append(words[words.index("-l") + 1])
    assert sizes == ["size=65536k", "size=8192k"]
    assert "agcount=16" not in variant.mkfs_options_for("today")
    assert ("agcount=16" in variant.mkfs_options_for("period")) == (scenario == "tum-2005")


def test_a_variants_mkfs_options_come_before_the_last_word() -> None:
    words = selection.filesystem("ext4").mkfs_command("today", ["-O", "^has_journal"])
    assert words[-3:] == ("-O", "^has_journal", "{device}")


def test_an_option_of_a_variant_takes_the_place_of_the_same_one() -> None:
    ext3 = selection.filesystem("ext3")
    plain = ext3.mkfs_command("period")
    older = ext3.mkfs_command("period", ["-i", "8192", "-O", "none,has_journal"])
    assert (older.count("-i"), older.count("-O"), older.count("-U")) == (1, 1, 1)
    assert older[older.index("-i") + 1] == "8192" and older[older.index("-O") + 1] == "none,has_journal"
    assert set(plain) - set(older) == {"16384", plain[plain.index("-O") + 1]}
    assert older[-1] == "{device}" and older[0] == "mke2fs"


SAYS = {
    "ext4": "EXT4-fs error (device dm-0): trigger_test_error:126: comm sh: badness",
    "xfs": "XFS (dm-0): User initiated shutdown received.",
    "btrfs": "BTRFS: error (device dm-0) in btrfs_commit_transaction:2500: errno=-5 IO failure",
    "jfs": "ERROR: (device dm-0): dbAlloc: the hint is outside the map",
    "reiserfs": "REISERFS error (device dm-0): vs-5150 search_by_key: invalid format found in block 8211. Fsck?",
    "f2fs": "F2FS-fs (dm-0): Stopped filesystem due to reason: 0",
    "vfat": "FAT-fs (dm-0): Filesystem has been set read-only",
}


@pytest.mark.parametrize("name", SAYS)
def test_what_the_kernel_says_of_one_that_has_given_up_is_known(name: str) -> None:
    [one] = [found for found in read_all("filesystems", Filesystem) if found.name == name]
    assert filesystem_shutdown(f"[   20.1] {SAYS[name]}\r\n", one.gone) == f"the filesystem has given up: {SAYS[name]}"
    mounts = {
        "ext4": "EXT4-fs (dm-0): mounted filesystem with ordered data mode. Quota mode: none.",
        "xfs": "XFS (dm-0): Mounting V4 Filesystem\nXFS (dm-0): Ending clean mount",
        "btrfs": "BTRFS info (device dm-0): using crc32c (crc32c-intel) checksum algorithm",
        "reiserfs": 'REISERFS (device dm-0): found reiserfs format "3.6" with standard journal',
        "f2fs": "F2FS-fs (dm-0): Mounted with checkpoint version = 1a2b",
    }
    assert filesystem_shutdown(mounts.get(name, ""), one.gone) is None
