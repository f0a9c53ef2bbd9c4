"""A trace of block requests as a history: what it becomes for the guest, and which cannot be sent."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agelab.base.errors import InputError
from agelab.base.places import HARNESS
from agelab.data.history import artefact, engines, traced
from agelab.runner.prepare.brought_files import brought
from agelab.scenario import selection
from agelab.scenario.history import History
from agelab.store.artefacts import Store
from tests.build.corpus_images import unpacked

MIB = 1 << 20
DISK = 8 * MIB
REPLAY = Path(__file__).parents[3] / "docs/howto/replay.toml"
IOLOG = [
    "fio version 3 iolog",
    "0 a add",
    "0 a read 1048576 4096",
    "250 a write 1052672 512",
    "300 a sync 0 0",
]


def wanted(path: Path, **more: Any) -> History:
    adapter: TypeAdapter[History] = TypeAdapter(History)
    return adapter.validate_python({"engine": "iolog", "name": "trace", "trace": str(path), **more})


def trace(directory: Path, lines: list[str]) -> Path:
    path = directory / "my.trace"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_its_part_has_a_line_for_each_request_from_the_disks_beginning_on(tmp_path: Path) -> None:
    kept = artefact.obtain_history(wanted(trace(tmp_path, IOLOG)), DISK, 1, Store(tmp_path / "home"))
    part = (unpacked(kept, tmp_path / "image") / "1").read_text()
    assert part == "0 R 0 4096\n250 W 4096 512\n300 F 0 0\n"
    found = artefact.read_report(kept)
    assert (
        kept.parts == 1 and found.counts == {"flush": 1, "read": 1, "write": 1} and found.bytes_written == 512
    )


def test_blkparses_forced_writes_stay_forced_and_discards_are_left_out(tmp_path: Path) -> None:
    lines = [
        "  8,0    3        1     0.000008000   697  D WFS 8 + 8 [a]",
        "  8,0    3        2     0.000009000   697  D   D 16 + 8 [a]",
    ]
    asked = wanted(trace(tmp_path, lines), before=0)
    kept = artefact.obtain_history(asked, DISK, 1, Store(tmp_path / "home"))
    assert (unpacked(kept, tmp_path / "image") / "1").read_text() == "8 W 4096 4096 fua\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["fio version 3 iolog", "0 a read 1048576 4096", "what"], "my.trace:3: "),
        (["fio version 3 iolog", "0 a read 0 4096"], "read of 4096 bytes at 0: the disk lies at 1048576"),
        (["fio version 3 iolog", "0 a read 9437184 512"], "at 9437184: the disk lies at"),
    ],
)
def test_a_trace_that_cannot_be_sent_is_told_before_any_guest(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        artefact.obtain_history(wanted(trace(tmp_path, lines)), DISK, 1, Store(tmp_path / "home"))
    with pytest.raises(InputError, match="gone: No such file"):
        artefact.obtain_history(wanted(tmp_path / "gone"), DISK, 1, Store(tmp_path))
    with pytest.raises(InputError, match="has no log"):
        engines.log_source(wanted(tmp_path / "gone"), DISK, 1)


def test_the_example_finds_its_trace_beside_it_and_its_guest_has_the_program() -> None:
    chosen = selection.select(str(REPLAY))
    [history] = chosen.scenario.histories
    assert history.engine == "iolog" and Path(history.trace) == REPLAY.parent / "copy.iolog"
    assert f"tools/{traced.PROGRAM}" in brought(chosen.workload, [traced.PROGRAM]).files
    assert f"tools/{traced.PROGRAM}" not in brought(chosen.workload).files


def test_the_guests_program_sends_each_request_where_and_as_large_as_it_is(tmp_path: Path) -> None:
    """On a file in place of a device: what is written there are zeros, and the rest stays."""
    disk, part = tmp_path / "disk", tmp_path / "1"
    disk.write_bytes(b"x" * 4 * MIB)
    argv = [sys.executable, str(HARNESS / "output" / traced.PROGRAM), str(part), str(disk)]
    for requests, ended in (
        (f"0 R 0 4096\n500 W 8192 4096\n600 F 0 0\n700 W {MIB} {MIB} fua\n", (0, "")),
        (
            f"0 R 0 4096\n0 R {4 * MIB} 4096\n",
            (1, f"replay-blocks: request 2, R {4 * MIB} 4096: 0 bytes were moved\n"),
        ),
    ):
        part.write_text(requests)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == ended
    assert disk.read_bytes() == (
        b"x" * 8192 + bytes(4096) + b"x" * (MIB - 12288) + bytes(MIB) + b"x" * 2 * MIB
    )
