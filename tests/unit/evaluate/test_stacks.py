"""From what the guest's profiler logs to folded stacks, their differences and flame graphs."""

import io
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agelab.evaluate.stacks import flame, folded
from agelab.evaluate.stacks.folded import Folded, changes, fold, top
from agelab.evaluate.stacks.log import BLOCK, END, RECORDS, STEP, KernelSymbols, UnreadableLog
from agelab.machine.image import tools
from tests import capabilities
from tests.build import profiler_log as made

IN_CP = 0x400123


def stacks(*records: bytes) -> dict[str, int]:
    """The stacks of a step with these records, as lines, and their samples."""
    [found] = fold(made.log(made.step(*records)))
    return {";".join(stack): count for stack, count in found.stacks.stacks.items()}


def test_equal_stacks_are_counted_outermost_function_first() -> None:
    one = made.sampled(5, [made.COPY, made.READ, made.ENTRY], [IN_CP])
    other = made.sampled(5, [made.EXT4, made.READ, made.ENTRY], [IN_CP])
    assert stacks(one + other, one) == {
        "cp;[cp];entry_SYSCALL_64;ksys_read;copy_page": 2,
        "cp;[cp];entry_SYSCALL_64;ksys_read;ext4_readpage_[ext4]": 1,
    }


def test_a_call_is_before_the_place_it_returns_to() -> None:
    after_the_end_of_read = 0xFFFFFFFF81000300
    assert [*stacks(made.sampled(5, [made.EXT4, after_the_end_of_read]))] == ["cp;ksys_read;ext4_readpage_[ext4]"]
    assert [*stacks(made.sampled(5, [after_the_end_of_read]))] == ["cp;copy_page"]


def test_what_a_compiler_adds_to_a_name_and_what_a_worker_is_numbered_by_are_left_out() -> None:
    records = made.called(9, "kworker/0:1-events", runs=False) + made.sampled(9, [made.SHRINK])
    assert stacks(records) == {"kworker;shrink_slab": 1}


def test_a_task_has_the_name_and_the_programs_that_it_has_at_that_moment() -> None:
    records = made.sampled(5, program=[IN_CP]) + made.forked(6, 5) + made.sampled(6, program=[IN_CP])
    records += made.called(6, "rm") + made.sampled(6, program=[IN_CP])
    records += made.mapped(6, 0x400000, 0x1000, "/usr/bin/rm") + made.sampled(6, program=[IN_CP])
    records += made.mapped(6, 0x400000, 0x1000, "/lib/libc.so.6") + made.sampled(6, program=[IN_CP])
    assert stacks(records) == {"cp;[cp]": 2, "rm;[unknown]": 1, "rm;[rm]": 1, "rm;[libc.so.6]": 1}


def test_a_program_without_frame_pointers_ends_its_stack_where_no_program_is() -> None:
    assert stacks(made.sampled(5, program=[IN_CP, IN_CP + 9, 0x1234, IN_CP])) == {"cp;[cp]": 1}


def test_waiting_and_the_profiler_itself_are_counted_apart_and_interrupts_of_an_idle_processor_are_not() -> None:
    records = made.sampled(0, [made.IDLE]) + made.sampled(made.PROFILER, [made.READ])
    records += made.sampled(0, [made.COPY, made.IDLE]) + made.lost(3)
    [found] = fold(made.log(made.step(records, dropped=4)))
    assert (found.idle, found.profiler, found.lost) == (1, 1, 7)
    assert found.stacks.stacks == {("swapper", "default_idle", "copy_page"): 1}


def test_a_later_step_has_the_symbols_of_an_earlier_one_until_there_are_others() -> None:
    sample = made.sampled(5, [made.READ])
    moved = made.KALLSYMS.replace("ksys_read", "vfs_read")
    log = made.log(
        made.step(sample), made.step(sample, repetition=2, symbols=None), made.step(sample, name="x", symbols=moved)
    )
    assert [[*one.stacks.stacks] for one in fold(log)] == [[("cp", "ksys_read")]] * 2 + [[("cp", "vfs_read")]]


def test_a_step_that_never_ended_is_left_out() -> None:
    log = made.log(made.step(made.sampled(5, [made.READ])), made.step(name="hung", ended=False))
    assert [one.section.step for one in fold(log)] == ["copy"]


def test_more_different_stacks_than_there_is_room_for_are_counted_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "MAX_STACKS", 2)
    records = b"".join(made.sampled(5, [made.READ + n]) for n in (0, 1, 2, 0))
    [found] = fold(made.log(made.step(records)))
    assert (found.stacks.samples, found.lost) == (3, 1)


def test_tasks_and_files_beyond_a_limit_have_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "MAX_TASKS", 1)
    monkeypatch.setattr(folded, "MAX_MAPPINGS", 1)
    records = made.called(6, "new") + made.forked(7, 5) + made.mapped(5, 0x600000, 9, "/x") + made.sampled(6)
    records += made.sampled(7, program=[IN_CP]) + made.sampled(5, program=[0x600001, IN_CP])
    assert stacks(records) == {"[unknown]": 1, "[unknown];[unknown]": 1, "cp;[cp];[unknown]": 1}


BAD = {
    "cut short": (b"", "it ends at byte"),
    "no step": (made.chunk(RECORDS, b""), "begins no step"),
    "no such kind": (made.chunk(STEP, b"a 1 2 3\n") + made.chunk(9, b""), "kind 9"),
    "a step of other words": (made.chunk(STEP, b"a b c d\n"), "a step begins with"),
    "an end of other words": (made.chunk(STEP, b"a 1 2 3\n") + made.chunk(END, b"x\n"), "a step ends with"),
    "no symbols": (made.step(symbols=None), "no symbols of the kernel"),
    "hidden symbols": (made.step(symbols="0000000000000000 T _text\n"), "no symbols of the kernel"),
    "half a record": (made.step(b"\x09\0\0\0"), "cut short"),
    "a record of no size": (made.step(bytes(8)), "takes 0 bytes"),
    "a short sample": (made.step(made.record(9, b"")), "has 0 bytes"),
    "a stack that is not there": (made.step(made.record(9, bytes(8) + b"\x09" + bytes(7))), "stack of 9"),
    "a task of other words": (made.step(tasks=("who 1\n",)), "a task is described"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_damaged_log_is_refused_with_the_reason(what: str) -> None:
    data, why = BAD[what]
    log = made.log(data.ljust(BLOCK, b"\0")) if data else io.BytesIO(b"\0\1")
    with pytest.raises(UnreadableLog, match=why):
        fold(log)


def test_names_of_tasks_and_files_cannot_break_a_line() -> None:
    records = (
        made.called(5, "a;b c\nd\x1b") + made.mapped(5, 0x400000, 9, "/x;y z") + made.sampled(5, program=[0x400001])
    )
    [found] = fold(made.log(made.step(records)))
    assert found.stacks.text == "a_b_c\\nd\\x1b;[x_y_z] 1\n"
    assert Folded.parse(found.stacks.text) == found.stacks


def test_of_one_address_the_plainest_name_is_shown() -> None:
    symbols = KernelSymbols.parse(["0000000000000010 t __b", "0000000000000010 T b", "0000000000000010 T a"])
    assert symbols.name(0x11) == "a" and symbols.name(0xF) == "[unknown]"


@pytest.mark.parametrize("text", ["a;b\n", "a;b x\n", "a;b 0\n", "a;;b 1\n", "a 1", " 1\n", "a -1\n"])
def test_a_line_that_is_no_stack_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|cut short"):
        Folded.parse(text)


ONE = Folded.parse("cp;read;copy 6\ncp;read 2\ncp;read;walk;read 1\nkswapd0;shrink 1\n")
OTHER = Folded.parse("cp;read;copy 6\ncp;read 12\n")


def test_the_top_counts_a_function_itself_and_with_what_it_calls_once() -> None:
    rows = [(row.name, row.itself, row.total) for row in top(ONE)]
    assert rows == [("copy", 6, 6), ("read", 3, 9), ("shrink", 1, 1), ("walk", 0, 1)]
    assert ONE.tasks == {"cp": 9, "kswapd0": 1}


def test_changes_are_in_the_function_itself_the_largest_first() -> None:
    rows = [(row.name, row.change) for row in changes(ONE, OTHER)]
    assert rows == [("read", 9), ("shrink", -1), ("copy", 0)]
    assert Folded.sum([ONE, OTHER]).stacks["cp", "read"] == 14


def test_a_box_is_as_wide_as_its_samples_and_stands_above_its_caller() -> None:
    found = {(box.name, box.depth): (box.x, box.width) for box in flame.boxes(ONE)}
    assert found["cp", 0] == (0, 0.9 * flame.WIDTH) and found["kswapd0", 0][0] == 0.9 * flame.WIDTH
    assert found["copy", 2][1] == 0.6 * flame.WIDTH and found["read", 3][1] == pytest.approx(0.1 * flame.WIDTH)


def test_what_is_too_narrow_to_be_seen_is_not_drawn() -> None:
    names = {box.name for box in flame.boxes(Folded({("a", "wide"): 10_000, ("a", "thin", "above"): 1}))}
    assert names == {"a", "wide"}
    assert "<rect" not in flame.document(Folded({}), label="none")


def test_names_are_text_in_a_drawing_and_what_changed_has_a_colour() -> None:
    drawn = flame.document(Folded({("<b>", "&more"): 9, ("<b>", "same"): 9}), Folded({("<b>", "same"): 9}), label='"x"')
    root = ElementTree.fromstring(drawn)
    titles = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "&more: 9 samples, 50.0 %; before 0" in titles and any(one.startswith("<b>: ") for one in titles)
    fills = {(r.get("fill") or "") for r in root.iter("{http://www.w3.org/2000/svg}rect")}
    assert {"#d64b3a", "#f2f2f2"} <= fills


BUSY = "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"


@pytest.fixture(scope="module")
def profiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest's profiler by this host's compiler: without a sanitizer, whose memory cannot all be locked."""
    made_as = tmp_path_factory.mktemp("profiler") / "step-profile"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", made_as, tools.PROFILER / "step-profile.c"], check=True)
    return made_as


def test_the_profiler_samples_a_command_and_ends_as_it_does(profiler: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.touch()
    os.truncate(disk, 256 << 20)
    environment = {**os.environ, "PROFILE_STATE": str(tmp_path / "state")}
    for name in ("one", "two"):
        words = [
            str(profiler), str(disk), str(256 << 20), "500000", "0", name, "1", "sh", "-ec",
            f"{BUSY}; exit 3",
        ]  # fmt: skip
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 125 and "perf_event_open" in done.stderr:
            capabilities.skip("sampling", done.stderr.strip())
        assert done.returncode == 3, done.stderr
    with disk.open("rb") as file:
        try:
            found = fold(file)
        except UnreadableLog as error:
            capabilities.skip("sampling", f"the kernel hides its addresses: {error}")
    assert [one.section.step for one in found] == ["one", "two"]
    assert bool(found[0].section.symbols) and not found[1].section.symbols
    assert all(one.stacks.samples > 5 and not one.lost for one in found)


def test_a_full_disk_loses_samples_and_says_how_many(profiler: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.touch()
    os.truncate(disk, 256 << 20)
    environment = {**os.environ, "PROFILE_STATE": str(tmp_path / "state")}
    words = [str(profiler), str(disk), "4096", "500000", "0", "one", "1", "sh", "-ec", BUSY]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 125 and "perf_event_open" in done.stderr:
        capabilities.skip("sampling", done.stderr.strip())
    with disk.open("rb") as file:
        [found] = fold(file)
    assert found.lost > 5 and not found.stacks.samples
