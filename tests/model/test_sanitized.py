"""The pure C files under the compiler's sanitizers, and what they refuse."""

from pathlib import Path

import pytest

from agelab.base import process
from tests.model.native import Library, compiled
from tests.model.streams import DISKS, FLASHES, HUGE, NINETIES, SMALL, SSDS, old_scsi, settings

TEXTS = {name: settings(name) for name in [*DISKS, *FLASHES]} | {
    "small": SMALL,
    "huge": HUGE,
    "nineties": NINETIES,
    "any-order": old_scsi(any_order=1, write_back=0, read_ahead_tracks=1),
    "next-track": old_scsi(read_ahead_tracks=2, write_segments=2, bus_after_percent=100),
    **{f"ssd-{name}": text for name, text in SSDS.items()},
}


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that sends a drive random requests and stops at the first undefined behaviour."""
    source, output = Path(__file__).with_name("fuzz.c"), tmp_path_factory.mktemp("fuzz") / "fuzz"
    flags = "-O1", "-g", "-fsanitize=address,undefined,signed-integer-overflow", "-fno-sanitize-recover=all"
    return compiled(output, *flags, extra=(source,))


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_undefined(fuzz: Path, name: str) -> None:
    assert process.run([str(fuzz), "5000", *TEXTS[name].split()]).stderr == ""


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"sectors": 0}, "sectors, depth"),
        ({"max_request": 512}, "max_request"),
        ({"segments": 0}, "segments must be 1 to 32"),
        ({"segments": 33}, "segments must be 1 to 32"),
        ({"read_ahead_bytes": 16 << 20}, "hold the read-ahead"),
        ({"write_segments": 9}, "segments at most"),
        ({"cache_bytes": 4096, "segments": 2, "read_ahead_bytes": 0}, "must hold something"),
        ({"bus_after_percent": 101}, "100 at most"),
        ({"write_after_percent": 101}, "100 at most"),
        ({"seek": "2:1000"}, "must begin at 1 cylinder and rise"),
        ({"seek": "1:1000,5:999"}, "must begin at 1 cylinder and rise"),
        ({"seek": "1:1000,1:1000"}, "must begin at 1 cylinder and rise"),
        ({"cylinders": 2}, "cylinders"),
        ({"zones": "8:100"}, "start at sector 0"),
        ({"zones": "0:100,150:90"}, "whole tracks"),
        ({"zones": "0:100,0:90"}, "rise"),
    ],
)
def test_settings_that_make_no_drive(library: Library, changed: dict[str, int | str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        library.drive(settings("seagate-st380021a", **changed))
