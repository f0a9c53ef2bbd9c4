"""A matrix of mkfs and mount options: every combination is a variant with a name."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.runner.plan.disk_plans import mkfs, mount_and_umount
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from agelab.scenario import selection
from agelab.scenario.option_matrix import parse_choices, parse_matrix

MATRIX = "ext4:-O ^has_journal,data=writeback"


def names(name: str, options: str) -> list[str]:
    return [one.name for one in selection.select(name, options=options).variants]


def test_every_combination_is_a_variant_with_a_name() -> None:
    assert names("aging-ext4", MATRIX) == [
        "ext4", "ext4-data-writeback", "ext4-no-has_journal", "ext4-no-has_journal-data-writeback",
    ]  # fmt: skip
    three = names("aging-xfs", "xfs:-b size=1024|-b size=2048")
    assert three == ["xfs", "xfs-size-1024", "xfs-size-2048"]


def test_the_other_filesystems_variants_stay_as_they_are() -> None:
    plain, multiplied = names("aging", ""), names("aging", "ext4:noatime;xfs:noatime")
    assert [one for one in multiplied if not one.endswith("-noatime")] == plain
    assert set(multiplied) - set(plain) == {"ext4-noatime", "xfs-noatime"}


def test_a_combination_is_chosen_by_its_name() -> None:
    assert names("aging-ext4-data-writeback", MATRIX) == ["ext4-data-writeback"]
    assert names("aging-curve-xfs", "xfs:noatime") == [
        "xfs-profile", "xfs-noatime-profile", "xfs-history", "xfs-noatime-history",
    ]  # fmt: skip
    assert names("aging-curve-xfs-history", "xfs:noatime") == ["xfs-history", "xfs-noatime-history"]
    assert names("aging-curve-xfs-noatime-history", "xfs:noatime") == ["xfs-noatime-history"]


def test_mkfs_and_mount_get_the_options() -> None:
    cells = {one.variant.name: one for one in planned_cells(RunOptions(name="aging-ext4", options=MATRIX))}
    both = cells["ext4-no-has_journal-data-writeback"]
    made = mkfs(both, "making")
    features = made[made.index("-O") + 1].split(",")
    assert features[0] == "none" and features[-1] == "^has_journal" and made.count("-O") == 1
    assert "data=writeback" in " ".join(mount_and_umount(both, "under-test", "/mnt")["mount"])
    plain = cells["ext4"]
    assert "^has_journal" not in " ".join(mkfs(plain, "making"))
    assert mkfs(cells["ext4-data-writeback"], "making") == mkfs(plain, "making")


def test_ext4_without_a_journal_is_told_nothing_of_commits() -> None:
    """Its driver refuses the mount otherwise."""

    def commits(options: str) -> dict[str, bool]:
        cells = planned_cells(RunOptions(name="aging-ext4", options=options))
        mounts = {one.variant.name: mount_and_umount(one, "under-test", "/mnt")["mount"] for one in cells}
        return {name: "commit=" in " ".join(mount) for name, mount in mounts.items()}

    assert commits("ext4:-O ^has_journal,noatime") == {
        "ext4": True, "ext4-noatime": True, "ext4-no-has_journal": False, "ext4-no-has_journal-noatime": False,
    }  # fmt: skip
    assert commits("ext4:-O none\\,extent|-O has_journal") == {
        "ext4": True, "ext4-none-extent": False, "ext4-has_journal": True,
    }  # fmt: skip


def test_a_value_is_added_to_the_last_one_of_its_option_or_replaces_it() -> None:
    ext4 = selection.filesystem("ext4")
    command = ext4.mkfs_command("today", ("-E", "+stride=4", "-E", "+stripe_width=8", "-b", "1024"))
    assert command.count("-E") == 1
    assert command[command.index("-E") + 1] == "hash_seed={uuid},nodiscard,stride=4,stripe_width=8"
    assert ext4.mkfs_command("today", ("-E", "stride=4")).count("hash_seed={uuid},nodiscard") == 0
    fresh = ext4.mkfs_command("today", ("-O", "^has_journal", "-O", "^extent"))
    assert fresh[fresh.index("-O") + 1] == "^has_journal,^extent" and fresh[-1] == "{device}"


def test_a_scenario_has_a_matrix_of_its_own(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "vm" / "small.toml").read_text()
    more = '\n[[options]]\nfilesystem = "xfs"\noptions = ["noatime"]\n'
    own = tmp_path / "small.toml"
    own.write_text(text + more)
    assert [one.name for one in selection.select(str(own), "xfs").variants] == ["xfs", "xfs-noatime"]
    assert len(selection.select(str(own), "xfs", options="xfs:inode64").variants) == 4
    own.write_text(text + more.replace('"noatime"', '"no atime"'))
    with pytest.raises(InputError, match=r"options\[0\].options\[0\]: .*options of mount have commas"):
        selection.select(str(own))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("ext4", "'ext4': say FILESYSTEM:OPTION"),
        ("ext4:", "'ext4:': say FILESYSTEM:OPTION"),
        ("ext4:noatime,", "say FILESYSTEM:OPTION"),
        ("ext4:-O '^x", "No closing quotation"),
        ("ext4:no atime", "options of mount have commas between them"),
        (";", "names no option"),
    ],
)
def test_what_is_no_matrix_is_said_in_one_line(options: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        RunOptions(name="aging-ext4", options=options)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("ext5:noatime", "no variant has filesystem ext5; there are: btrfs, ext2,"),
        ("ext4:noatime,noatime", "two combinations are called 'ext4-noatime'"),
        ("ext4:a,b,c,d,e,f,g", "128 combinations of options: 64 at most"),
        (f"ext4:{'a' * 101}", "is a name of more than 100 characters"),
    ],
)
def test_a_matrix_that_does_not_fit_the_scenario_is_said(options: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        selection.select("aging", options=options)
    assert said in str(error.value)


@pytest.mark.parametrize(("name", "filesystem"), [("aging-ext4", None), ("aging", "ext4,btrfs")])
def test_options_of_a_filesystem_that_is_not_run_are_refused(name: str, filesystem: str | None) -> None:
    with pytest.raises(InputError, match="none of its variants is run; what is run has "):
        selection.select(name, filesystem, options="ext3:noatime")


def test_commas_and_alternatives() -> None:
    [matrix] = parse_matrix(r"ext4:-E +stride=4\,stripe_width=8,noatime")
    assert matrix.options == ("-E +stride=4,stripe_width=8", "noatime")
    assert [one.slug for one in parse_choices("data=writeback|-b 1024|-O ^extent|-K")] == [
        "data-writeback", "b-1024", "no-extent", "k",
    ]  # fmt: skip


def test_a_control_file_has_no_matrix() -> None:
    with pytest.raises(InputError, match="a control file names its options"):
        RunOptions(control="x", options="ext4:noatime")
