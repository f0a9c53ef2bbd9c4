"""Which drives a cell has, and where the partitions under test lie on them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from agelab.base.errors import InputError
from agelab.base.types import Defaults, LayoutName
from agelab.machine.disk import DriveClaim, parse
from agelab.machine.disk.claim import ClaimedDisk
from agelab.runner.plan.cell_drive import Partition
from agelab.runner.plan.cell_spec import MIB
from agelab.runner.plan.disk_layout import DiskLayout, lay_out
from agelab.runner.plan.disk_plans import ARRAY_UUID
from agelab.runner.request.options import RunOptions
from agelab.scenario import selection
from agelab.scenario.disk_use import DiskUse, PartitionUse
from agelab.scenario.machine import Machine
from harness import drives as guest
from harness import plan as guest_plans
from harness.dilation import Dilation
from harness.plan import Fork, Layers, Real
from tests.build.cell_builder import CORPUS, made, spec

MACHINE = selection.machine("pentium4-2800")
SWAPPING = selection.machine("pentium3-500")
OWN = f"model:{MACHINE.drives[0].drive}"
BARE = "model:none"
SECTORS = selection.drive(MACHINE.drives[0].drive).sectors.value
OUTER = {"at": "outer", "origin": "estimated"}
SIZE = 64 * MIB


def disk(*partitions: Mapping[str, object], **more: object) -> DiskUse:
    mib = {"value": 64, "origin": "estimated"}
    return DiskUse.model_validate({"mib": mib, "partitions": partitions or (OUTER,), **more})


def laid_out(
    use: DiskUse,
    layout: LayoutName = "single",
    defaults: Defaults = "period",
    *more: Any,
    size: int = SIZE,
    machine: Machine = MACHINE,
    **named: Any,
) -> DiskLayout:
    """The arrangement of a layout all of whose partitions have one size."""
    file = selection.layout(layout)
    return lay_out(use, machine, file, defaults, [size] * len(file.members), *more, **named)


def single(use: DiskUse, *wanted: str) -> DiskLayout:
    return laid_out(use, "single", "period", [parse(text) for text in wanted])


def swapping(use: DiskUse, *wanted: str, layout: LayoutName = "single") -> DiskLayout:
    """The arrangement with half as much swap as there is under test."""
    specs = [parse(text) for text in wanted]
    return laid_out(use, layout, "period", specs, machine=SWAPPING, swap=SIZE // 2)


def raid0(use: DiskUse, *wanted: str) -> DiskLayout:
    return laid_out(use, "raid0", "period", [parse(text) for text in wanted])


@pytest.mark.parametrize(("at", "first"), [("outer", 63), ("inner", SECTORS - SIZE // 512), (100, 100 * 2048)])
def test_a_partition_is_where_the_scenario_says(at: object, first: int) -> None:
    [drive] = single(disk({**OUTER, "at": at})).drives
    assert (str(drive.spec), drive.partitions) == (OWN, (Partition(first, SIZE // 512),))
    assert laid_out(disk(), "single", "today").drives[0].partitions[0].first == 2048


@pytest.mark.parametrize("layout", ["single", "raid0"])
@pytest.mark.parametrize("name", selection.scenario_names())
def test_every_scenarios_partitions_fit_on_its_machines_drives(name: str, layout: LayoutName) -> None:
    scenario = selection.select(name).scenario
    machine = selection.machine(scenario.machine)
    size = int(scenario.disk.mib.value) * MIB // (2 if layout == "raid0" else 1)
    swap = int(machine.swap.mib) * MIB if machine.swap else 0
    for defaults in get_args(Defaults):
        found = laid_out(scenario.disk, layout, defaults, size=size, machine=machine, swap=swap)
        assert len(found.members) == (2 if layout == "raid0" else 1)


def test_the_machines_controller_bounds_the_queue_of_its_own_drive_alone() -> None:
    machine = selection.machine("core2duo-3000")
    own = machine.drives[0].drive
    assert selection.drive(own).queue_depth.value == 31
    for wanted, depth in (((), 1), ((parse(f"model:{own}"),), 31)):
        found = laid_out(disk(), "raid0", "period", wanted, machine=machine)
        for told in found.to_json(run_seed=1, first_disk=2):
            assert f" depth={depth} " in told["settings"]


def test_raid0_takes_a_second_drive_of_the_same_kind_at_the_same_place() -> None:
    found = raid0(disk())
    assert found.drive_specs == (OWN, OWN)
    assert found.drives[0].partitions == found.drives[1].partitions
    assert (found.members, found.layout.name) == (((0, 0), (1, 0)), "raid0")
    assert found.parameters == {"chunk_kib": "64", "metadata": "1.0"}


def test_raid0_over_two_partitions_of_one_drive_has_one_drive() -> None:
    found = raid0(disk(OUTER, {**OUTER, "at": "inner"}))
    assert (found.drive_specs, found.members) == ((OWN,), ((0, 0), (0, 1)))
    assert found.memory_disks == (SIZE, SIZE)


def test_the_users_drives_take_the_place_of_the_scenarios() -> None:
    two = disk(OUTER, {**OUTER, "at": "inner"})
    assert single(two, "model:none").drive_specs == ("model:none",)
    assert raid0(two, "model:none").drive_specs == ("model:none",)
    assert raid0(two, "model:none", OWN).drive_specs == ("model:none", OWN)
    assert raid0(disk(), "model:none").drive_specs == ("model:none", "model:none")
    assert single(disk(drives=["model:none"])).drive_specs == ("model:none",)
    assert single(disk(drives=["model:none"]), OWN).drive_specs == (OWN,)


def test_the_scenarios_chunk_goes_before_the_defaults() -> None:
    assert raid0(disk(chunk_kib=256)).parameters == {"chunk_kib": "256", "metadata": "1.0"}
    assert laid_out(disk(), "raid0", "today").parameters == {"chunk_kib": "512", "metadata": "1.2"}
    assert "chunk_kib" not in laid_out(disk(chunk_kib=256), "raid1").parameters


@pytest.mark.parametrize(
    ("use", "wanted", "said"),
    [
        (disk({**OUTER, "drive": 7}), (), "machine pentium4-2800 has no drive 7"),
        (disk({**OUTER, "at": 10**7}), (), "takes 67108864 bytes (10000000) of model:"),
        (disk(OUTER, {**OUTER, "at": 1}), (), "the partitions overlap on model:"),
        (disk(), ("model:segate",), "no drive 'segate'; did you mean seagate-"),
        (disk(), ("model:none",) * 3, "layout raid0 is made of 2 drives, not 3"),
    ],
)
def test_what_cannot_be_had_is_said(use: DiskUse, wanted: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as error:
        raid0(use, *wanted)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("made", "wanted", "said"),
    [
        (raid0, ("file:/a", "model:none"), "file:/a, model:none: one is real and one is not"),
        (raid0, ("file:/a",), "layout raid0 is made of 2 drives, and file:/a is 1: name as many with"),
        (single, ("model:none",) * 2, "layout single is made of one drive, not 2"),
    ],
)
def test_a_layout_has_as_many_drives_as_it_is_made_of(
    made: Callable[..., DiskLayout], wanted: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        made(disk(), *wanted)


def test_a_real_drive_is_taken_from_its_start_and_found_by_its_serial() -> None:
    spec = parse("file:/a")
    claim = DriveClaim(spec, (ClaimedDisk("file:/a", 9, SIZE, None, "token", ()),))
    found = laid_out(disk(), "single", "period", [spec], [claim])
    [told] = found.to_json(run_seed=1, first_disk=2)
    assert told["partitions"] == [{"disk": None, "first": 0, "sectors": SIZE // 512}]
    assert (told["settings"], told["real"]) == (None, {"serial": "agelab-disk0"})
    assert (found.memory_disks, found.modelled) == ((), False)
    with pytest.raises(InputError, match=f"of file:/a, which has {SIZE}"):
        laid_out(disk(), "single", "period", [spec], [claim], size=SIZE + 512)


def test_two_controllers_disks_are_told_apart_by_their_place(tmp_path: Path) -> None:
    specs = [parse("pci:0000:01:00.0"), parse("pci:0000:02:00.0")]
    claims = [DriveClaim(spec, (ClaimedDisk("pci", 9, SIZE, None, "token", ()),)) for spec in specs]
    found = laid_out(disk(), "raid0", "period", specs, claims)
    told = [drive["real"] for drive in found.to_json(run_seed=1, first_disk=2)]
    assert told == [{"passthrough": [0, 2]}, {"passthrough": [1, 2]}]
    for name, where in (("sda", "0000:00:07.0"), ("nvme0n1", "0000:00:05.0"), ("pmem0", "0"), ("vda", "0000:00:04.0")):
        (tmp_path / "devices" / where / name).mkdir(parents=True)
        (tmp_path / "block").mkdir(exist_ok=True)
        (tmp_path / "block" / name).symlink_to(tmp_path / "devices" / where / name)
    (tmp_path / "block" / "vda" / "serial").write_text("agelab-disk0\n")
    for real, name in zip(told, ("nvme0n1", "sda"), strict=True):
        assert guest.find(Real(**real), tmp_path / "block") == name
    assert guest.find(Real(serial="agelab-disk0"), tmp_path / "block") == "vda"
    assert guest.find(Real(serial="agelab-disk1"), tmp_path / "block") is None
    assert guest.find(Real(passthrough=(0, 3)), tmp_path / "block") is None
    with pytest.raises(OSError, match=r"the controllers have 2 disks \(nvme0n1, sda\), not 1"):
        guest.find(Real(passthrough=(0, 1)), tmp_path / "block")


def test_a_real_drive_takes_the_wall_clock() -> None:
    def clock(disks: Any, clock: Any = None) -> str:
        return RunOptions(name="aging", disks=disks, clock=clock).guest_clock

    assert clock(None) == "virtual"
    assert clock("block:/dev/sda") == "wall"
    assert clock("model:none", "wall") == "wall"
    with pytest.raises(InputError, match="--clock virtual: file:/a runs in real time"):
        clock("file:/a", "virtual")


def test_a_clock_has_so_many_processors_and_times_of_several_in_turns_are_none() -> None:
    with pytest.raises(InputError, match="--vcpus 5: the virtual clock has 1 to 4 processors, the wall clock"):
        RunOptions(name="aging", vcpus=5)
    assert RunOptions(name="aging", vcpus=2).not_timed.startswith("not timed: the clock counts")
    assert not RunOptions(name="aging", clock="wall", vcpus=5).not_timed


def test_swap_is_at_the_inner_end_of_the_machines_drive_for_it() -> None:
    found = swapping(disk())
    assert found.drive_specs == (f"model:{SWAPPING.drives[0].drive}",)
    under_test, beside = found.drives
    assert str(beside.spec) == f"model:{SWAPPING.drives[1].drive}" and beside.profile
    assert beside.partitions == (Partition(beside.profile.sectors.value - SIZE // 1024, SIZE // 1024),)
    assert (len(under_test.partitions), found.members, found.swap) == (1, ((0, 0),), (1, 0))
    assert found.memory_disks == (SIZE, SIZE // 2)
    twins = swapping(disk(), layout="raid0")  # the second drive of raid0 is not the one for swap
    assert [str(drive.spec).removeprefix("model:") for drive in twins.drives] == [
        SWAPPING.drives[number].drive for number in (0, 0, 1)
    ]
    assert (twins.members, twins.swap) == (((0, 0), (1, 0)), (2, 0))
    with pytest.raises(InputError, match="bytes of swap do not fit on model:maxtor-96147u8 beside"):
        laid_out(disk(), machine=SWAPPING, swap=10**12)


def test_swap_shares_the_drive_with_the_partition_under_test_where_it_is_the_same() -> None:
    for at, behind in (("outer", 0), ("inner", SIZE // 512)):
        found = swapping(disk({**OUTER, "drive": 1, "at": at}))
        [drive] = found.drives
        assert drive.profile and found.swap == (0, 1)
        assert drive.partitions[1].first == drive.profile.sectors.value - behind - SIZE // 1024
    [asked] = swapping(disk({**OUTER, "drive": 1}), OWN).drives
    assert str(asked.spec) == OWN and len(asked.partitions) == 2


def test_swap_beside_bare_drives_is_bare_and_beside_real_ones_none() -> None:
    bare, shared = swapping(disk(), BARE), swapping(disk({**OUTER, "drive": 1}), BARE)
    assert (bare.swap, bare.modelled, len(bare.drives)) == ((1, 0), False, 2)
    assert (shared.swap, len(shared.drives), shared.memory_disks) == ((0, 1), 1, (SIZE, SIZE // 2))
    spec = parse("file:/a")
    claim = DriveClaim(spec, (ClaimedDisk("file:/a", 9, SIZE, None, "token", ()),))
    real = laid_out(disk(), "single", "period", [spec], [claim], machine=SWAPPING, swap=SIZE)
    assert (real.swap, len(real.drives)) == (None, 1)


def test_the_plan_names_the_swap_space_at_the_scale_of_everything() -> None:
    assert made(spec(drives=()))["swap"] is None
    cell = replace(spec(drives=()), machine=SWAPPING)
    plan = made(cell)
    assert plan["swap"] == [1, 0] and SWAPPING.swap
    [swap] = plan["drives"][1]["partitions"]
    assert swap["disk"] == 4 and swap["sectors"] % 4096 == 0
    assert 0 <= swap["sectors"] * 512 - SWAPPING.swap.mib * MIB / cell.shrink < 2 * MIB


@pytest.mark.parametrize("boot", [0, 1])
def test_the_guest_switches_swap_on_and_does_not_count_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: int
) -> None:
    monkeypatch.setattr(guest, "DEVICES", tmp_path)
    monkeypatch.setattr("harness.machine.disks", lambda: ["pmem0", "pmem1"])
    parts = [(guest_plans.Partition(disk, 0, 4096),) for disk in range(2)]
    drives = tuple(guest_plans.Drive(f"drive{n}", None, None, part) for n, part in enumerate(parts))
    done: list[list[str]] = []
    use = guest_plans.Fork("under-test", ((0, 0),), None, (), ())
    told = (drives, (1, 0), boot, lambda argv, _: done.append(argv), Dilation(), None)
    attached = guest.set_up(*told, blank=False)
    assert attached.put_together(use, fresh=False) == guest.UnderTest(("dm-0",), ())
    made = [] if boot else [["mkswap", f"--uuid={guest.SWAP_UUID}", "/dev/dm-1"]]
    assert done[2:] == [*made, ["swapon", "/dev/dm-1"]]


def test_the_guest_puts_a_disk_together_and_takes_it_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "DEVICES", tmp_path / "disks")
    monkeypatch.setattr(guest, "MODULES", tmp_path)
    setting = tmp_path / "raid0" / "parameters" / "default_layout"
    setting.parent.mkdir(parents=True)
    setting.write_text("0")
    commands = {
        "make": (("make", "{device}", "--uuid=u", "{members}"),),
        "open": (("open", "{device}", "{member1}"),),
        "close": (("close", "{name}{number}"),),
    }
    settings = {"raid0/default_layout": "2", "raid0/none": "1"}
    layers = Layers("/dev/md{number}", module_parameters=settings, files={}, fills=False, **commands)
    done: list[list[str]] = []
    attached = guest.Attached((), [["dm-0"], ["dm-1"]], lambda argv, _: done.append(argv))
    disks = [Fork(name, ((0, 0), (1, 0)), layers, (), ()) for name in ("one", "two")]
    monkeypatch.setattr(attached, "drives", (guest_plans.Drive("drive0", None, None, ()),) * 2)
    assert attached.put_together(disks[0], fresh=True).members == ("dm-0", "dm-1")
    attached.put_together(disks[1], fresh=False)
    attached.take_apart(disks[1])
    assert done == [
        ["make", "/dev/md0", "--uuid=u", "/dev/dm-0", "/dev/dm-1"],
        ["open", "/dev/md1", "/dev/dm-1"],
        ["close", "two1"],
    ]
    assert setting.read_text() == "2" and not setting.with_name("none").exists()
    assert (tmp_path / "disks" / "two").readlink() == Path("/dev/md1")


def test_the_plan_names_drives_partitions_and_members() -> None:
    plan = made(spec(layout="raid0", drives=(OWN, "model:none")))
    modelled, bare = plan["drives"]
    assert modelled["settings"].startswith("name=drive0 kind=disk ")
    assert modelled["partitions"][0]["disk"] == 3 and modelled["partitions"][0]["first"] == 63
    assert (bare["name"], bare["settings"]) == ("drive1", None)
    assert bare["partitions"] == [{"disk": 4, "first": 0, "sectors": modelled["partitions"][0]["sectors"]}]
    assert plan["disks"][0]["members"] == [[0, 0], [1, 0]]
    layers = plan["disks"][0]["layers"]
    assert layers["device"] == "/dev/md{number}" and layers["close"] == [["mdadm", "--stop", "{device}"]]
    assert {"--chunk=64", "--metadata=1.0", f"--uuid={ARRAY_UUID['making']}", "{members}"} <= {*layers["make"][0]}
    assert "/dev/disk/under-test" in plan["disks"][0]["mkfs"]


def test_raid0_shares_the_size_and_the_modules_say_so() -> None:
    one, two = spec(), spec(layout="raid0")
    assert one.disk_bytes == two.disk_bytes == 2 * two.disk.memory_disks[0]
    assert "raid0" in two.modules and "raid0" not in one.modules


def test_a_large_guest_has_more_for_its_page_descriptors() -> None:
    """A guest of 1 GiB with 128 MiB more than its steps need lacked 57 MiB of them."""
    quick, paper = spec(), spec(scale="paper")
    used = [one.scaled_bytes(one.scenario.memory.available_mib) + CORPUS.size for one in (quick, paper)]
    beyond = [one.memory_mib(CORPUS) * MIB - need for one, need in zip((quick, paper), used, strict=True)]
    assert beyond[0] < 144 * MIB
    assert beyond[1] >= 128 * MIB + (used[1] - 256 * MIB) // 8


def test_a_modelled_drives_cache_and_the_run_seed_reach_the_guest() -> None:
    bare, modelled = spec(), spec(drives=())
    assert not bare.disk.modelled and modelled.disk.modelled
    assert 0 < modelled.disk.cache_bytes < selection.drive(MACHINE.drives[0].drive).cache.kib.value << 10
    assert modelled.memory_mib(CORPUS) >= bare.memory_mib(CORPUS)
    one, other = (made(spec(run_seed=seed, drives=()))["drives"] for seed in (1, 2))
    differing = {a for a, b in zip(one[0]["settings"].split(), other[0]["settings"].split(), strict=True) if a != b}
    assert [word.split("=")[0] for word in differing] == ["phase_ns"]


SOLID = "model:samsung-870-evo-500?begins=used"


@pytest.mark.parametrize(
    ("layout", "name", "reach"),
    [("single", SOLID, True), ("single", OWN, False), ("single", BARE, False), ("raid0", SOLID, False)],
)
def test_discards_reach_a_solid_state_drive_with_nothing_above_it(layout: LayoutName, name: str, reach: bool) -> None:
    assert laid_out(disk(), layout, "today", [parse(name)]).takes_discards is reach


def test_a_solid_state_drives_map_lies_behind_its_first_partition_in_the_guest_too() -> None:
    found = laid_out(disk(), "single", "today", [parse(SOLID)])
    [told], [size] = found.to_json(run_seed=1, first_disk=2), found.memory_disks
    assert " base=2048 units=16384 " in told["settings"]
    assert found.used(1)[0].at == SIZE
    assert size == SIZE + 2 * MIB, "what is mapped takes less, and disks are of whole 2 MiB"


def test_a_companion_disk_is_not_alone_on_a_solid_state_drive() -> None:
    place = PartitionUse.model_validate({**OUTER, "drive": 1})
    with pytest.raises(InputError, match="the companion disk cannot be alone on the solid-state drive"):
        laid_out(disk(), "single", "today", (), (), 0, (place, SIZE), machine=with_two(SOLID))


def with_two(second: str) -> Machine:
    """The machine with another drive as its second."""
    name = parse(second).name
    first = MACHINE.drives[0]
    return MACHINE.model_copy(update={"drives": (first, first.model_copy(update={"drive": name}))})
