"""The block layer: what a machine's file and ``--block`` may say, what the guest is told, and what it does with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.base.errors import InputError
from agelab.runner.plan.block_change import BlockChange
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import phases
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario import selection, toml_files
from agelab.scenario.block_layer import PARAMETERS, SCHEDULERS, BlockLayer
from agelab.scenario.machine import Machine
from harness import block_layer as guest
from harness import drives
from harness.dilation import TIMERS, Dilation
from harness.plan import BlockLayer as Wanted
from harness.plan import Drive, Fork, Layers
from tests.build.cell_builder import CORPUS, spec

PLAIN = Wanted("mq-deadline", {}, None, None, None)


def cells(name: str, block: str, **more: Any) -> list[CellSpec]:
    request = resolve(RunOptions(name=name, block=block, **more))
    return [cell.spec for cell in cell_requests(request, 1, (), None)]


def plan(cell: CellSpec) -> dict[str, Any]:
    return guest_plan(cell, CORPUS, phases(cell.scenario, CORPUS)[0])


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(InputError) as error:
        make()
    return str(error.value)


# ---- what may be said ----


@pytest.mark.parametrize("machine", toml_files.read_all("machines", Machine), ids=lambda one: one.name)
def test_a_study_s_machine_says_why_it_has_that_scheduler_and_does_not_throttle(machine: Machine) -> None:
    assert machine.block.scheduler.note
    assert machine.block.writeback_throttle_us and machine.block.writeback_throttle_us.value == 0


def test_every_error_of_a_block_layer_is_told_with_its_place() -> None:
    number = {"origin": "estimated"}
    with pytest.raises(ValidationError) as error:
        BlockLayer.model_validate(
            {
                "scheduler": {"value": "none", **number},
                "parameters": {"fifo_batch": {"value": 16, **number}},
                "requests": {"value": 3, **number},
                "read_ahead_kib": {"value": 30, **number},
                "writeback_throttle_us": {"value": 2**31, **number},
            }
        )
    [told] = error.value.errors()
    assert told["msg"].removeprefix("Value error, ").split("; ") == [
        "scheduler none has no parameter 'fifo_batch': it has none",
        "requests is 3: the kernel takes 4 to 2048",
        "read_ahead_kib is 30: it is a multiple of 4, 1048576 at most",
        "writeback_throttle_us is 2147483648: the kernel takes 2147483647 at most",
    ]


def test_every_error_of_the_option_is_told() -> None:
    said = refused(
        lambda: RunOptions(
            name="aging",
            block="scheduler=cfq,reqests=1,requests=x,read_ahead_kib=4,read_ahead_kib=8,dirty_percent=0,"
            "inode_readahead_blks=3",
        )
    )
    for part in (
        "no scheduler 'cfq'; did you mean bfq?",
        "no key 'reqests'; did you mean requests",
        "requests='x' is not a whole number from 0 to 2147483647",
        "read_ahead_kib is given twice",
        "dirty_percent is 0, and not 1 to 100",
        "inode_readahead_blks is 3: it is 0 or a power of two",
    ):
        assert part in said
    assert len(said.splitlines()) == 6


@pytest.mark.parametrize(
    ("name", "block", "more", "said"),
    [
        ("aging-ext4", "slice_idle_us=0", {}, "scheduler mq-deadline has no parameter 'slice_idle_us': it"),
        ("aging-ext4", "scheduler=none,requests=64", {}, "scheduler none holds no requests"),
        ("aging-ext4", "read_ahead_kib=30", {}, "read_ahead_kib is 30: it is a multiple of 4"),
        ("aging-ext4", "dirty_percent=5", {}, "dirty_background_percent is 5, which is not below"),
        ("aging-xfs", "inode_readahead_blks=0", {}, "a mount option of ext2, ext3 and ext4, not of xfs"),
        ("aging-ext4", "scheduler=bfq", {"disks": "model:none"}, "scheduler is of the queue before a"),
    ],
)
def test_what_no_cell_can_have_is_refused(name: str, block: str, more: dict[str, Any], said: str) -> None:
    assert said in refused(lambda: cells(name, block, **more))


def test_an_empty_word_changes_nothing() -> None:
    assert RunOptions(name="aging", block="").block is None


def test_machines_with_parameters_are_told_apart() -> None:
    own = selection.machine("pentium4-2800")
    one, same, other = (BlockChange.parse(f"fifo_batch={value}").machine(own) for value in (1, 1, 2))
    assert len({one, same, other}) == 2


def test_results_are_told_apart_by_what_is_changed_in_any_order() -> None:
    one, other = (
        RunOptions(name="tum-2005", block=block, source="scattered").changes
        for block in ("scheduler=bfq,requests=64", "requests=64, scheduler=bfq")
    )
    assert one == other == ("requests=64", "scheduler=bfq", "source=scattered")
    [cell] = cells("aging-ext4", "scheduler=bfq")
    assert cell.changes == ("scheduler=bfq",)


# ---- what the guest is told ----


def test_the_machine_s_block_layer_goes_into_the_plan_of_a_modelled_drive_alone() -> None:
    [cell] = cells("aging-ext4", "scheduler=bfq,slice_idle_us=0,read_ahead_kib=64,requests=32")
    assert plan(cell)["block"] == {
        "scheduler": "bfq",
        "parameters": {"slice_idle_us": 0},
        "requests": 32,
        "read_ahead_kib": 64,
        "writeback_throttle_us": 0,
    }
    assert plan(cell.on_drive("model:none"))["block"] is None
    assert "bfq" in cell.modules and "bfq" not in cell.on_drive("model:none").modules


def test_without_the_option_it_is_the_machine_s() -> None:
    cell = spec("aging-ext4")
    own = replace(cell, drives=())
    assert plan(own)["block"] == own.machine.block.to_json()
    assert own.machine.block.to_json()["requests"] == 128


def test_another_scheduler_begins_with_its_own_parameters_and_none_holds_nothing() -> None:
    deadline = BlockChange.parse("fifo_batch=1").machine(selection.machine("pentium4-2800"))
    assert deadline.block.to_json()["parameters"] == {"fifo_batch": 1}
    bare = BlockChange.parse("scheduler=none").machine(deadline).block.to_json()
    assert (bare["parameters"], bare["requests"], bare["writeback_throttle_us"]) == ({}, None, 0)


def test_limits_of_dirty_pages_are_the_user_s() -> None:
    [cell] = cells("aging-ext4", "dirty_percent=40,dirty_background_percent=10", disks="model:none")
    sysctl = plan(cell)["memory"]["sysctl"]
    assert (sysctl["vm/dirty_ratio"], sysctl["vm/dirty_background_ratio"]) == ("40", "10")


@pytest.mark.parametrize(
    ("name", "defaults", "block", "options"),
    [
        ("aging-ext2", "period", "requests=64", ["inode_readahead_blks=0"]),
        ("aging-ext3", "period", "requests=64", ["inode_readahead_blks=0"]),
        ("aging-ext3", "today", "requests=64", []),
        ("aging-ext4", "period", "requests=64", []),
        ("aging-ext4", "period", "inode_readahead_blks=8", ["inode_readahead_blks=8"]),
        ("aging-ext3", "period", "inode_readahead_blks=32",
         ["inode_readahead_blks=0", "inode_readahead_blks=32"]),
    ],
)  # fmt: skip
def test_the_drivers_of_ext2_and_ext3_read_no_inodes_ahead(
    name: str, defaults: Any, block: str, options: list[str]
) -> None:
    [cell] = cells(name, block, defaults=defaults)
    mount = plan(cell)["disks"][0]["mount"]
    words = mount[mount.index("-o") + 1].split(",") if "-o" in mount else []
    assert [word for word in words if word.startswith("inode_")] == options


# ---- what the guest does ----


class Kernel:
    """A queue as the kernel shows it: it has schedulers, keeps numbers in its own way, and lacks some files."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queue = directory / "drive0/queue"
        (self.queue / "iosched").mkdir(parents=True)
        self.keeps: dict[str, Callable[[str], str]] = {"scheduler": self._scheduler}
        for name, text in (
            ("scheduler", "[none] mq-deadline bfq"),
            ("nr_requests", "2"),
            ("read_ahead_kb", "128"),
            ("wbt_lat_usec", "75000"),
            ("iosched/read_expire", "500"),
            ("iosched/fifo_batch", "16"),
        ):
            (self.queue / name).write_text(text)
        write = Path.write_text

        def kept(path: Path, text: str, *rest: Any, **more: Any) -> int:
            if path.is_relative_to(self.queue):
                if not path.exists():
                    raise FileNotFoundError(path)
                text = self.keeps.get(path.name, str)(text)
            return write(path, text, *rest, **more)

        monkeypatch.setattr(Path, "write_text", kept)

    @staticmethod
    def _scheduler(text: str) -> str:
        return " ".join(f"[{one}]" if one == text else one for one in ("none", "mq-deadline", "bfq"))

    def set_up(self, wanted: Wanted, factor: float = 1.0) -> None:
        guest.set_up(self.queue, wanted, Dilation(factor))

    def has(self, name: str) -> str:
        return (self.queue / name).read_text()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_the_queue_is_as_the_plan_has_it_in_the_machine_s_time(kernel: Kernel) -> None:
    kernel.set_up(Wanted("mq-deadline", {"fifo_batch": 4}, 128, 64, 0), factor=0.5)
    assert kernel.has("scheduler") == "none [mq-deadline] bfq"
    assert (kernel.has("nr_requests"), kernel.has("read_ahead_kb"), kernel.has("wbt_lat_usec")) == ("128", "64", "0")
    assert (kernel.has("iosched/fifo_batch"), kernel.has("iosched/read_expire")) == ("4", "1000")


def test_a_parameter_that_is_a_time_is_the_machine_s(kernel: Kernel) -> None:
    kernel.set_up(replace(PLAIN, parameters={"read_expire": 100}), factor=0.5)
    assert kernel.has("iosched/read_expire") == "200"


@pytest.mark.parametrize(
    ("wanted", "factor", "latency"), [(None, 1.0, "75000"), (None, 0.5, "150000"), (2000, 0.5, "4000"), (0, 0.5, "0")]
)
def test_throttling_takes_the_machine_s_time(kernel: Kernel, wanted: int | None, factor: float, latency: str) -> None:
    kernel.set_up(replace(PLAIN, writeback_throttle_us=wanted), factor)
    assert kernel.has("wbt_lat_usec") == latency


def test_a_kernel_without_throttling_is_not_told_to_stop(kernel: Kernel) -> None:
    (kernel.queue / "wbt_lat_usec").unlink()
    kernel.set_up(replace(PLAIN, writeback_throttle_us=0))
    with pytest.raises(guest.Refused, match="drive0: this kernel has no wbt_lat_usec"):
        kernel.set_up(replace(PLAIN, writeback_throttle_us=75000))


def test_what_the_kernel_does_not_take_is_said(kernel: Kernel) -> None:
    def no(text: str) -> str:
        raise OSError(22, "Invalid argument")

    kernel.keeps |= {"nr_requests": no, "fifo_batch": lambda _: "1"}
    for wanted, said in (
        (replace(PLAIN, scheduler="kyber"), "no I/O scheduler kyber; it has: none, mq-deadline, bfq"),
        (replace(PLAIN, requests=512), "the kernel refuses nr_requests = 512: Invalid argument"),
        (replace(PLAIN, parameters={"fifo_batch": 0}), "the kernel has iosched/fifo_batch = 1, not 0"),
        (replace(PLAIN, parameters={"async_depth": 1}), "this kernel has no iosched/async_depth"),
    ):
        with pytest.raises(guest.Refused, match=f"^drive0: .*{said}"):
            kernel.set_up(wanted)


def test_a_timer_is_kept_in_ticks(kernel: Kernel) -> None:
    kernel.keeps["read_expire"] = lambda text: str(-(-int(text) // 4) * 4)
    kernel.set_up(replace(PLAIN, parameters={"read_expire": 333}))
    assert kernel.has("iosched/read_expire") == "336"


def test_every_timer_of_a_scheduler_is_scaled() -> None:
    timers = {
        name
        for scheduler in SCHEDULERS
        for name in PARAMETERS[scheduler]
        if name.endswith(("_expire", "_us", "_nsec", "_sync", "_async"))
    }
    assert timers == set(TIMERS)


@pytest.mark.parametrize(("kib", "read"), [(64, [("md0", 64)]), (None, [])])
def test_an_array_reads_ahead_as_its_drives_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kib: int | None, read: list[tuple[str, int]]
) -> None:
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(drives, "DEVICES", tmp_path)
    monkeypatch.setattr(drives, "queue", lambda device: Path("/sys/block", Path(device).name, "queue"))
    monkeypatch.setattr(guest, "read_ahead", lambda queue, size: found.append((queue.parent.name, size)))
    two = tuple(Drive(f"drive{number}", "kind=disk", None, ()) for number in (0, 1))
    names = [["drive0p1"], ["drive1p1"]]
    attached = drives.Attached(two, names, lambda *_: None, replace(PLAIN, read_ahead_kib=kib))
    layers = Layers("/dev/md{number}", (("make",),), (("open",),), (("close",),), {}, {}, False)
    attached.put_together(Fork("under-test", ((0, 0), (1, 0)), layers, (), ()), fresh=True)
    assert found == read
