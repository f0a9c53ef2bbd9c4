"""The solid-state drive and its second implementation agree, to the nanosecond; and the laws of its map."""

from pathlib import Path
from random import Random

import pytest

from agelab.base import process
from agelab.machine.drive import geometry, translation, used
from agelab.machine.drive.translation import Mapped
from agelab.scenario import selection
from agelab.scenario.drive import SolidState
from tests.model.native import PURE, Library, Native
from tests.model.reference_ftl import ReferenceSsd
from tests.model.streams import SSDS, number, run, ssd, ssd_requests
from validation.solid_state import greedy


@pytest.mark.parametrize("name", SSDS)
def test_same_times_and_statistics(library: Library, name: str) -> None:
    text = SSDS[name]
    for seed in range(2):
        native, reference = library.drive(text), ReferenceSsd(text)
        now = 0
        for at, request in enumerate(ssd_requests(seed, text, 900)):
            done = run(native, request, now)
            assert done == run(reference, request, now), f"seed {seed}, request {at}: {request}"
            now = done + request.gap if request.gap else now + (done - now) // 3
            assert not native.broken_law(), f"seed {seed}, request {at}: {request}"
        assert native.take_written() == reference.written
        counted = native.statistics()
        assert counted == {name: reference.count[name] for name in counted}
        native.settle()
        reference.written.clear()
        reference.settle()
        assert native.take_written() == reference.written


@pytest.mark.parametrize("name", ["fresh", "fast", "map"])
def test_looking_changes_nothing(library: Library, name: str) -> None:
    text = SSDS[name]
    watched, left, now = library.drive(text), library.drive(text), 0
    for request in ssd_requests(5, text, 600):
        for part in range(4):
            watched.advance(now + request.gap * part // 4)
        now += request.gap
        done = run(watched, request, now)
        assert done == run(left, request, now)
        now = done
    assert watched.take_written() == left.take_written()
    assert watched.statistics() == left.statistics()


@pytest.mark.parametrize("name", ["fresh", "used", "fast-used"])
def test_what_it_keeps_without_power_is_whole(library: Library, name: str) -> None:
    text = SSDS[name]
    drive, now = library.drive(text), 0
    for at, request in enumerate(ssd_requests(6, text, 400)):
        now = run(drive, request, now)
        if at % 37 == 0:
            drive.reattach()
            assert not drive.broken_law()


@pytest.mark.parametrize("name", SSDS)
def test_after_a_flush_nothing_is_in_the_buffer(library: Library, name: str) -> None:
    text = SSDS[name]
    drive, now, waiting = library.drive(text), 0, set[int]()
    for request in ssd_requests(7, text, 500):
        now = run(drive, request, now + request.gap)
        units = range(request.first // 8, -(-(request.first + request.sectors) // 8))
        waiting |= set(units) if request.kind in ("write", "through") else set()
        waiting -= {first // 8 for first, _ in drive.take_written()}
        assert request.kind != "flush" or not waiting


def amplification(drive: Native, text: str, capacities: int, seed: int = 1) -> float:
    """Units programmed for each one that is written at random."""
    random, units, before, now = Random(seed), number(text, "units"), drive.statistics(), 0
    for _ in range(capacities * units):
        now = drive.write(number(text, "base") + random.randrange(units) * 8, 8, now)
    return (drive.statistics()["units_programmed"] - before["units_programmed"]) / (capacities * units)


@pytest.mark.parametrize("percent", [7, 15, 28])
def test_random_writes_cost_what_greedy_collection_is_known_to(library: Library, percent: int) -> None:
    """And a used drive is at that when it begins: it does not change any more."""
    kept, lines = number(SSDS["used"], "reserve") + 2, 800
    text = ssd(units=lines * 96, lines=lines * (100 + percent) // 100 + kept, begin=2, sectors=10**6)
    drive = library.drive(text)
    first, then = amplification(drive, text, 1), amplification(drive, text, 1, seed=2)
    assert first == pytest.approx(greedy(1 + percent / 100, 96), rel=0.05)
    assert then == pytest.approx(first, rel=0.02)


def test_the_host_makes_the_map_that_the_model_makes(library: Library, tmp_path: Path) -> None:
    program, made = tmp_path / "used", tmp_path / "map"
    process.run(["gcc", *used.FLAGS, f"-I{PURE[0].parent}", "-o", str(program), str(used.PROGRAM), *map(str, PURE)])
    for text in SSDS.values():
        words = dict(word.split("=") for word in text.split())
        begin, seed = int(words.pop("begin")), int(words.pop("seed"))
        if begin:
            drive = used.used_drive(" ".join(map("=".join, words.items())), seed, begin == 1, 0)
            process.run([str(program), str(made), *drive.arguments])
            assert made.read_bytes() == library.drive(text).map()
    refused = process.run([str(program), str(made), "7", "0", "lines=1", "pages=1"], ok=(1,))
    assert refused.stderr == "used: error: pages: no such word\n"


def test_wear_is_even(library: Library) -> None:
    """Of random writes no line takes many more than another."""
    text = ssd(begin=2)
    drive = library.drive(text)
    assert amplification(drive, text, 20) > 1
    worn = drive.wear()
    assert max(worn) - min(worn) <= max(worn) // 2


def test_discards_spare_a_used_drive_its_collection(library: Library) -> None:
    used, trimmed = library.drive(SSDS["used"]), library.drive(SSDS["trimmed"])
    assert amplification(used, SSDS["used"], 1) > 2 * amplification(trimmed, SSDS["trimmed"], 1)
    base, units = number(SSDS["used"], "base"), number(SSDS["used"], "units")
    used.discard(base, units * 8, 10**12)
    assert used.read(base, 8, 2 * 10**12) < 2 * 10**12 + 60_000


def test_fast_lines_take_a_burst_and_are_emptied_in_a_pause(library: Library) -> None:
    text = ssd(fast_lines=8, fast_program_ns=250_000, lines=60, buffer_units=48, write_back=0)
    drive, base = library.drive(text), number(text, "base")
    held = 8 * 96 // 3

    def took(begins: int) -> int:
        now = begins
        for unit in range(held):
            now = drive.write(base + unit * 8, 8, now)
        return now - begins

    burst = took(0)
    assert drive.get("units_moved") == 0
    without = took(burst)
    assert without > 1.5 * burst, "no fast line is free as long as no pause comes"
    drive.advance(10**10)
    assert took(10**10) < 0.99 * without, "an open line is filled first"
    assert took(2 * 10**10) < 1.1 * burst


def test_a_read_does_not_wait_for_a_program_longer_than_it_can_be_suspended(library: Library) -> None:
    for suspend, least, most in ((100_000, 60_000, 300_000), (10**9, 2_000_000, 10**9)):
        text = ssd(suspend_ns=suspend, begin=2)
        drive, now = library.drive(text), 0
        for unit in range(120):
            now = drive.write(number(text, "base") + unit * 8, 8, now)
        took = max(drive.read(number(text, "base") + unit * 8, 8, now) - now for unit in range(2000, 2003))
        assert least < took < most


@pytest.mark.parametrize("mib", [64, 1000])
def test_the_host_knows_how_much_memory_the_map_takes(library: Library, mib: int) -> None:
    part = Mapped(2048, 2048 + mib * 2048)
    for drive in selection.drives():
        if isinstance(drive.medium, SolidState):
            text = geometry.module_parameters(drive, name="drive0", run_seed=1, index=0, mapped=part)
            taken = library.drive(text).map_bytes()
            assert taken == translation.table_bytes(drive, drive.medium, part)
            assert taken <= 8 * part.units * (1 + drive.medium.over_provisioning_percent.value / 100) * 1.15


def test_reads_beside_what_it_maps_cost_no_flash(library: Library) -> None:
    drive = library.drive(SSDS["used"])
    assert drive.read(0, 8, 0) < 20_000
    assert drive.read(2040, 16, 10**6) < 10**6 + 20_000
    assert drive.get("flash_reads") == 0


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"channels": 0}, "channels"),
        ({"dies": 1}, "dies"),
        ({"page_units": 0}, "program_units"),
        ({"program_units": 20}, "program_units"),
        ({"line_units": 100}, "a line must be"),
        ({"reserve": 1}, "reserve"),
        ({"fast_lines": 52}, "fast_lines"),
        ({"units": 0}, "units"),
        ({"lines": 42}, "no line could be freed"),
        ({"lines": 47}, "no line could be freed"),
        ({"reserve": 8}, "no line could be freed"),
        ({"buffer_units": 47}, "buffer_units"),
        ({"map_pages": 1025}, "map_pages"),
        ({"planes": 5}, "planes"),
    ],
)
def test_settings_that_make_no_drive(library: Library, changed: dict[str, int], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        library.drive(ssd(**changed))
