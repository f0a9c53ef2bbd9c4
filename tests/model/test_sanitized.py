"""The pure C files under the compiler's sanitizers, and what they refuse."""

from pathlib import Path

import pytest

from agelab import process
from tests.model.native import Library, compiled
from tests.model.streams import DISKS, FLASHES, HUGE, SMALL, settings

TEXTS = {name: settings(name) for name in [*DISKS, *FLASHES]} | {"small": SMALL, "huge": HUGE}


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
        ({"segments": 1}, "two of the largest requests"),
        ({"cylinders": 2}, "cylinders"),
        ({"zones": "8:100"}, "start at sector 0"),
        ({"zones": "0:100,150:90"}, "whole tracks"),
        ({"zones": "0:100,0:90"}, "rise"),
    ],
)
def test_settings_that_make_no_drive(library: Library, changed: dict[str, int | str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        library.drive(settings("seagate-st380021a", **changed))
