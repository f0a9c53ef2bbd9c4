"""Traces are replayed through the drive's C files, and compared by their distributions."""

import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from docs.make import command
from tests.build import traced_drive
from tests.model.native import Library
from validation import demerit
from validation.drive_traces import Request, TracedDrive, read_all
from validation.traced_profile import Figures, profile


def recorded(library: Library, directory: Path, figures: Figures) -> TracedDrive:
    """A drive whose trace is the model's own answer, from an angle that is none of those of the replay."""
    [traced] = read_all(traced_drive.write(directory))
    random, requests = Random(3), []
    for _ in range(1500):
        first = random.randrange(770_000)
        for part in range(random.choice((1, 1, 3))):
            write = random.random() < 0.3
            requests.append(Request(write, first + 8 * part, 8, 1.0, random.uniform(3e3, 40e3)))
    drive = profile(traced, figures)
    took = demerit.replay(library, drive, requests, [0.0, *(request.gap for request in requests[:-1])], 0.31)
    requests = [replace(request, response=time * 1000) for request, time in zip(requests, took, strict=True)]
    return replace(traced, requests=tuple(requests))


@pytest.mark.parametrize("figures", Figures)
def test_the_model_is_near_itself(library: Library, tmp_path: Path, figures: Figures) -> None:
    """What is left is the unknown angle, and the bus, of which the trace tells the rate."""
    traced = recorded(library, tmp_path, figures)
    drive = profile(traced, figures).model_copy(update={"interface": profile_bus(tmp_path, figures)})
    [everything, reads, writes] = demerit.compare(library, traced, drive).demerits
    assert everything and reads and writes
    assert everything.percent < 1.5
    assert everything.modelled == pytest.approx(everything.measured, rel=0.01)
    assert max(reads.percent, writes.percent) < 4


def profile_bus(directory: Path, figures: Figures) -> object:
    """The bus with which the trace was made."""
    [traced] = read_all(directory)
    return profile(traced, figures).interface


def test_other_times_are_further_away(library: Library, tmp_path: Path) -> None:
    traced = recorded(library, tmp_path, Figures.MEASURED)
    slower = replace(
        traced,
        requests=tuple(replace(request, response=request.response * 1.2) for request in traced.requests),
    )
    near, far = (
        demerit.compare(library, drive, profile(drive, Figures.MEASURED)).demerits[0] for drive in (traced, slower)
    )
    assert near and far
    assert far.percent > near.percent + 10


def test_the_distance_is_between_the_distributions() -> None:
    result = demerit.demerit([3.0, 1.0, 2.0], [4.0, 2.0, 3.0, 4.0, 2.0, 3.0])
    assert (result.measured, result.modelled, result.distance) == (2.0, 3.0, 1.0)
    assert result.percent == 50


TRACK = 110
"""Sectors of the made-up drive's first tracks."""


def times(library: Library, directory: Path, mode: int, *firsts: int) -> list[float]:
    """Milliseconds of reads of four sectors, 100 ms apart, by a drive with this `Buffer continuous read`."""
    specs = traced_drive.SPECS.replace("continuous read = 3", f"continuous read = {mode}")
    [traced] = read_all(traced_drive.write(directory, diskspecs=specs))
    requests = [Request(False, first, 4, 1.0, 1e5) for first in firsts]
    drive = profile(traced, Figures.MANUAL)
    return demerit.replay(library, drive, requests, [1e5] * len(requests), 0.2)


def test_mode_4_reads_ahead_after_a_single_read_to_the_end_of_a_track(library: Library, tmp_path: Path) -> None:
    """As DiskSim's disk_buffer_get_max_readahead has it: its track's, or the next one's if the segment began before."""
    [single, ahead, last, beyond] = times(library, tmp_path, 4, 20, 60, TRACK - 8, TRACK)
    assert max(ahead, last) < 1 < min(single, beyond)
    [_, last, next_track] = times(library, tmp_path, 4, 20, TRACK - 4, TRACK + 20)
    assert max(last, next_track) < 1, "the segment began on the track before the sector that comes next"


@pytest.mark.parametrize(("mode", "crosses"), [(1, False), (3, True), (4, True)])
def test_a_drive_that_stops_at_a_track_does_not_read_on_to_the_next(
    library: Library, tmp_path: Path, mode: int, crosses: bool
) -> None:
    _, beyond = times(library, tmp_path, mode, TRACK - 4, TRACK)
    assert (beyond < 1) is crosses


def test_the_command_prints_a_drive_that_it_never_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    traced_drive.write(tmp_path, trace=traced_drive.lines(200))
    written: dict[str, str] = {}
    monkeypatch.setattr(command, "put", written.__setitem__)
    monkeypatch.setattr(sys, "argv", ["validation.demerit", str(tmp_path), "--write"])
    assert demerit.main() == 0
    printed = capsys.readouterr().out
    for figures in Figures:
        assert f"figures: {figures.value}\n" in printed
        assert f"\n| {figures.value} |" in written["demerit"]
    assert printed.count("made-up  ") == len(Figures)
    assert written["demerit"].startswith("| profile | `made-up` | mean | mean: reads | mean: writes |\n")


def test_the_command_tells_the_line_that_is_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    traced_drive.write(tmp_path, trace=traced_drive.lines(3) + "and so on\n")
    monkeypatch.setattr(sys, "argv", ["validation.demerit", str(tmp_path)])
    assert demerit.main() == 2
    assert "made-up.trace: line 4: is no request: 'and so on'" in capsys.readouterr().err
