"""Layouts are files: each is parsed, laid out and put together by its own commands; what a file gets wrong is said."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.base.places import layout_names
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_plans import ARRAY_UUID, layers
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario import selection, toml_files
from agelab.scenario.layout import Layout
from harness import drives as guest
from harness.plan import Fork, Layers
from tests.build.cell_builder import spec

WHOLE = """
name = "mine"
summary = "two of a kind"
members = [{ share = 1 }, { share = 0.5, beside = 0 }]
seeded = "nothing"
device = "/dev/mapper/{name}"
make = [["join", "{members}", "{size}"]]
open = [["join", "{member1}", "{sectors0}"]]
close = [["part", "{device}"]]
period = { size = 1 }
today = { size = 2 }
"""


def parse(text: str) -> Layout:
    return toml_files.parse(text, Path("mine.toml"), Layout)


def commands(cell: CellSpec, part: str, name: str = "making") -> list[list[str]]:
    """The commands of a layout as the guest runs them, on members that are called a, b and c."""
    told = layers(cell, name)
    assert told is not None
    lists = {word: tuple(map(tuple, told[word])) for word in ("make", "open", "close")}
    fork = Fork("under-test", (), Layers(**{**told, **lists}), (), ())
    words = guest.places(fork, ("a", "b", "c")[: len(cell.disk.members)], 0)
    return [guest.fill(command, words) for command in lists[part]]


def test_a_whole_file_is_read() -> None:
    found = parse(WHOLE)
    assert (found.drives, len(found.members)) == (1, 2)
    assert found.parameters("period") == {"size": "1"} and found.parameters("today") == {"size": "2"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("close = [", "cloze = ["), "cloze: is not a known key"),
        (('close = [["part", "{device}"]]', ""), "there is no close"),
        (("beside = 0", "beside = 1"), "members[1].beside: is 1, not a member before it"),
        (("beside = 0", 'beside = 0, drive = "model:none"'), "members[1]: its own drive, or one beside"),
        (("today = { size = 2 }", ""), "period and today have the same parameters"),
        (("{member1}", "{member2}"), "open[0]: {member2} is no placeholder of it"),
        (("{size}", "{sise}"), "make[0]: {sise} is no placeholder of it"),
        (("{device}", "{failed}"), "close[0]: {failed} is no placeholder of it"),
        (('"/dev/mapper/{name}"', '"mapper"'), "device: is no path of a device"),
        (("share = 0.5", "share = 0"), "members[1].share: Input should be greater than 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(change: tuple[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        parse(WHOLE.replace(*change))
    assert said in str(error.value)


def test_every_error_of_a_file_is_said_at_once() -> None:
    text = WHOLE.replace("{size}", "{sise}").replace("{member1}", "{member7}").replace("today = { size = 2 }", "")
    with pytest.raises(InputError) as error:
        parse(text)
    assert all(word in str(error.value) for word in ("{sise}", "{member7}", "same parameters"))


@pytest.mark.parametrize("name", layout_names())
def test_each_layout_leaves_no_place_in_its_commands(name: str) -> None:
    cell = spec(layout=name, drives=())
    if not selection.layout(name).make:
        assert layers(cell) is None
        return
    found = [word for part in ("make", "open", "close") for words in commands(cell, part) for word in words]
    assert not [word for word in found if guest.PLACE.search(word)]
    members = {f"/dev/{member}" for member in "abc"[: len(cell.disk.members)]}
    assert members <= {one for word in found for one in word.replace(",", " ").split()}


@pytest.mark.parametrize("name", layout_names())
def test_each_layout_is_as_large_as_the_scenario_says(name: str) -> None:
    cell, layout = spec(layout=name, drives=()), selection.layout(name)
    whole = cell.wanted_bytes
    assert abs(cell.disk_bytes - whole) < 4 << 20
    places = zip(cell.disk.members, layout.members, strict=True)
    sizes = [(cell.disk.drives[drive].partitions[part].bytes, member.share) for (drive, part), member in places]
    assert all(0 <= size - whole * share < 2 << 20 for size, share in sizes)
    assert len(cell.disk.drives) == layout.drives and set(layout.modules) <= set(cell.modules)


def test_the_key_follows_from_the_run_seed_and_from_that_of_a_stored_disk() -> None:
    def key(**fields: Any) -> str:
        [[*_, table, _name]] = commands(replace(spec(layout="dm-crypt"), **fields), "make")
        return table.split()[4]

    assert len(key()) == 128 and key(run_seed=1) == key() != key(run_seed=2)
    assert key(run_seed=2, key_seed=1) == key(run_seed=1)


def test_the_disk_and_its_control_have_different_identities() -> None:
    for name in ("raid1", "raid5", "lvm-linear", "lvm-striped", "lvm-snapshot"):
        cell = spec(layout=name)
        assert commands(cell, "open") != commands(cell, "open", "control")
        assert commands(cell, "open") == commands(cell, "open", "aged")


def test_a_member_beside_another_lies_behind_it_on_its_drive() -> None:
    cell = spec(layout="dm-cache", drives=())
    assert cell.disk.members == ((0, 0), (1, 0), (1, 1))
    assert str(cell.disk.drives[1].spec) == "model:samsung-860-evo-500"
    cache, tables = cell.disk.drives[1].partitions
    assert tables.first == cache.end
    bare = spec(layout="dm-cache")
    assert {str(drive.spec) for drive in bare.disk.drives} == {"model:none"}


@pytest.mark.parametrize(
    ("layout", "disks", "said"),
    [
        ("raid5", "file:/a,file:/b", "layout raid5 is made of 3 drives, and file:/a, file:/b are 2: name as"),
        ("raid1", "model:none,model:none,model:none", "layout raid1 is made of 2 drives, not 3"),
        ("dm-crypt", "model:none,model:none", "layout dm-crypt is made of one drive, not 2"),
    ],
)
def test_a_layout_of_other_drives_than_there_are_is_one_line(layout: str, disks: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        spec(layout=layout, drives=tuple(disks.split(","))).disk  # noqa: B018
    assert said in str(error.value) and "\n" not in str(error.value)


def test_only_the_images_of_its_own_runs_have_the_packages_of_a_layout() -> None:
    packages = {layout: resolve(RunOptions(name="aging-ext4", layout=layout)).packages for layout in layout_names()}
    assert packages["single"] == packages["raid0"] == packages["raid1"] == packages["dm-crypt"] == ()
    assert packages["lvm-striped"] == ("lvm2",) and packages["dm-integrity"] == ("cryptsetup-bin",)


def test_the_array_of_raid0_is_made_and_assembled_as_it_always_was() -> None:
    uuid = ARRAY_UUID["making"]
    [made] = commands(spec(layout="raid0"), "make")
    assert made == [
        *("mdadm", "--create", "/dev/md0", "--run", "--level=0", "--raid-devices=2", "--chunk=64"),
        *("--metadata=1.0", "--layout=dangerous", f"--uuid={uuid}", "--name=under-test", "--homehost=any"),
        *("/dev/a", "/dev/b"),
    ]
    [again] = commands(spec(layout="raid0"), "open")
    assert again == ["mdadm", "--assemble", "/dev/md0", f"--uuid={uuid}", "/dev/a", "/dev/b"]
    assert commands(spec(layout="raid0"), "close") == [["mdadm", "--stop", "/dev/md0"]]


def test_a_mapped_device_without_a_node_gets_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "BLOCK", tmp_path / "block")
    monkeypatch.setattr(guest, "MAPPER", tmp_path / "mapper")
    (tmp_path / "mapper").mkdir()
    for number, name in enumerate(("other", "mine")):
        (tmp_path / "block" / f"dm-{number}" / "dm").mkdir(parents=True)
        (tmp_path / "block" / f"dm-{number}" / "dm" / "name").write_text(f"{name}\n")
    guest.make_node(str(tmp_path / "mapper" / "mine"))
    guest.make_node("/dev/md0")
    assert [path.readlink() for path in (tmp_path / "mapper").iterdir()] == [Path("/dev/dm-1")]
