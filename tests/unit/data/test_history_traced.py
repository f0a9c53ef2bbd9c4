"""A trace of block requests as a history: what it becomes for the guest, and which cannot be sent."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agelab.base.errors import InputError
from agelab.base.places import HARNESS
from agelab.data.history import artefact, engines, traced
from agelab.data.history.report import report_lines
from agelab.machine.block_trace import requests as block_trace
from agelab.machine.block_trace.requests import BlockRequest
from agelab.runner.prepare.brought_files import brought
from agelab.scenario import selection
from agelab.scenario.history import History
from agelab.store.artefacts import Store
from tests.build.corpus_images import unpacked

MIB = 1 << 20
DISK = 8 * MIB
REPLAY = Path(__file__).parents[3] / "docs/howto/replay.toml"
IOLOG = [
    "fio version 3 iolog", "0 a add", "0 a read 1048576 4096", "250 a write 1052672 512", "300 a sync 0 0",
]  # fmt: skip


def history(path: Path, **more: Any) -> History:
    adapter: TypeAdapter[History] = TypeAdapter(History)
    return adapter.validate_python({"engine": "iolog", "name": "trace", "trace": str(path), **more})


def trace(directory: Path, lines: list[str]) -> Path:
    path = directory / "my.trace"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_its_part_has_a_line_for_each_request_from_the_disks_beginning_on(tmp_path: Path) -> None:
    kept = artefact.obtain_history(history(trace(tmp_path, IOLOG)), DISK, 1, Store(tmp_path / "home"))
    part = (unpacked(kept, tmp_path / "image") / "1").read_text()
    assert part == "0 R 0 4096\n250 W 4096 512\n300 F 0 0\n"
    report = artefact.read_report(kept)
    assert (kept.parts, report.counts, report.bytes_written) == (1, {"flush": 1, "read": 1, "write": 1}, 512)
    assert report.skipped == {"add": 1, "header": 1}
    assert report_lines(report) == [
        f"disk         {DISK} bytes",
        "overwrites   0.0001",
        "operations   3: flush 1, read 1, write 1",
        "written      512 bytes",
        "skipped      2: add 1, header 1",
    ]


def test_blkparses_forced_writes_stay_forced_and_discards_are_left_out(tmp_path: Path, store: Store) -> None:
    lines = [
        "  8,0    3        1     0.000008000   697  D WFS 8 + 8 [a]",
        "  8,0    3        2     0.000009000   697  D   D 16 + 8 [a]",
    ]
    kept = artefact.obtain_history(history(trace(tmp_path, lines), before=0), DISK, 1, store)
    assert (unpacked(kept, tmp_path / "image") / "1").read_text() == "8 W 4096 4096 fua\n"
    assert artefact.read_report(kept).skipped == {"discard": 1}
    with pytest.raises(InputError, match="all of its requests are discards"):
        artefact.obtain_history(history(trace(tmp_path, lines[1:]), before=0), DISK, 1, store)


def test_the_record_of_two_drives_is_replayed_one_drive_at_a_time(tmp_path: Path, store: Store) -> None:
    """As agelab writes it of a cell with two drives (--blocks)."""
    requests = [BlockRequest(at, f"drive{at % 2}", "write", MIB + 512 * at, 512, "W") for at in range(5)]
    written = trace(tmp_path, list(block_trace.iolog(requests)))
    with pytest.raises(InputError, match=r'2 devices are in it.*: "drive0" \(3\), "drive1" \(2\)$'):
        artefact.obtain_history(history(written), DISK, 1, store)
    kept = artefact.obtain_history(history(written, device="drive1"), DISK, 1, store)
    assert (unpacked(kept, tmp_path / "image") / "1").read_text() == "1 W 512 512\n3 W 1536 512\n"


@pytest.mark.parametrize(
    ("first", "size", "hint"),
    [
        (0, 4096, "they are at 0 to 4096: say `before = 0` in the history"),
        (9 * MIB + 512, 512, f"say `before = {9 * MIB}` in the history"),
        (
            0,
            20 * MIB,
            "say `before = 0` in the history, how many bytes of the traced device lie before the disk, and take",
        ),
    ],
)
def test_requests_outside_of_the_disk_are_given_a_place_by_the_hint(
    tmp_path: Path, store: Store, first: int, size: int, hint: str
) -> None:
    written = trace(tmp_path, ["fio version 2 iolog", f"a read {first} {size}"])
    with pytest.raises(InputError, match=f"1 of 1 requests lie outside of the disk.* at {first}$") as error:
        artefact.obtain_history(history(written), DISK, 1, store)
    assert hint in error.value.hint
    before = int(re.findall(r"before = (\d+)", error.value.hint)[0])
    larger = [int(mib) * MIB for mib in re.findall(r"a disk of (\d+) MiB", error.value.hint)]
    artefact.obtain_history(history(written, before=before), max([DISK, *larger]), 1, store)


def test_a_trace_that_cannot_be_sent_is_refused_before_any_guest(tmp_path: Path) -> None:
    wrong = trace(tmp_path, ["fio version 3 iolog", "0 a read 1048576 4096", "what"])
    with pytest.raises(InputError, match=r"my\.trace:3: "):
        artefact.obtain_history(history(wrong), DISK, 1, Store(tmp_path / "home"))
    with pytest.raises(InputError, match="gone: No such file"):
        artefact.obtain_history(history(tmp_path / "gone"), DISK, 1, Store(tmp_path))
    with pytest.raises(InputError, match="has no log"):
        engines.log_source(history(tmp_path / "gone"), DISK, 1)


def test_the_example_finds_its_trace_beside_it_and_its_guest_has_the_program() -> None:
    chosen = selection.select(str(REPLAY))
    [example] = chosen.scenario.histories
    assert example.engine == "iolog" and Path(example.trace) == REPLAY.parent / "copy.iolog"
    assert f"tools/{traced.PROGRAM}" in brought(chosen.workload, [traced.PROGRAM]).files
    assert f"tools/{traced.PROGRAM}" not in brought(chosen.workload).files


def test_the_guests_program_sends_each_request_where_and_as_large_as_it_is(tmp_path: Path) -> None:
    """On a file in place of a device: what is written there are zeros, and the rest stays."""
    disk, part = tmp_path / "disk", tmp_path / "1"
    disk.write_bytes(b"x" * 4 * MIB)
    argv = [sys.executable, str(HARNESS / "output" / traced.PROGRAM), str(part), str(disk)]
    for requests, ended in (
        (f"0 R 0 4096\n500 W 8192 4096\n600 F 0 0\n700 W {MIB} {MIB} fua\n", (0, "")),
        (f"0 R 0 4096\n0 R {4 * MIB} 4096\n", (1, f"replay-blocks: request 2, R {4 * MIB} 4096: 0 bytes were moved\n")),
    ):
        part.write_text(requests)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == ended
    assert disk.read_bytes() == (b"x" * 8192 + bytes(4096) + b"x" * (MIB - 12288) + bytes(MIB) + b"x" * 2 * MIB)
