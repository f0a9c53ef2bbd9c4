"""spool knows which version each of its files must have, and what became of it."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agelab.base import process
from tests.build.native_tools import compiled

OPERATIONS = 300
INTACT, DAMAGED, MISSING = 1, 2, 3
WHOLE, OLDER, SHORT, ZEROS, GARBAGE, GONE = range(5, 11)
"""Places among the eleven numbers."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("spool", tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def written(program: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A directory in which it has worked, and its safe place."""
    place = tmp_path_factory.mktemp("spool")
    safe = place / "safe"
    (place / "work").mkdir()
    child = subprocess.Popen([str(program), "write", "7", str(safe)], cwd=place / "work")
    deadline = time.monotonic() + 120
    while not safe.exists() or int(safe.read_text() or 0) < OPERATIONS:
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return place / "work", safe


def checked(program: Path, place: Path, safe: Path, seed: int = 7) -> list[int]:
    done = process.run([str(program), "check", str(seed), str(safe)], cwd=place)
    return [int(word) for word in done.stdout.split()]


def test_where_no_power_was_cut_all_is_there(program: Path, written: tuple[Path, Path]) -> None:
    numbers = checked(program, *written)
    assert len(numbers) == 11
    assert numbers[0] > 20 and numbers[4] > 20
    assert numbers[INTACT:4] == [numbers[0], 0, 0]
    # The operation that the signal came in may have left one file in part.
    assert numbers[WHOLE] >= numbers[4] - 1 and sum(numbers[WHOLE:]) == numbers[4]


def test_another_seeds_files_are_other_files(program: Path, written: tuple[Path, Path]) -> None:
    numbers = checked(program, *written, seed=8)
    assert numbers[INTACT] == 0


@pytest.mark.parametrize(
    ("harm", "promised", "changed"),
    [
        ("short", DAMAGED, SHORT), ("empty", DAMAGED, SHORT), ("zeros", DAMAGED, ZEROS),
        ("garbage", DAMAGED, GARBAGE), ("longer", DAMAGED, GARBAGE), ("gone", MISSING, GONE),
    ],
)  # fmt: skip
def test_what_has_become_of_a_file_is_told(
    program: Path, written: tuple[Path, Path], tmp_path: Path, harm: str, promised: int, changed: int
) -> None:
    place, safe = tmp_path / "work", written[1]
    process.run(["cp", "-a", str(written[0]), str(place)])
    for path in place.rglob("*"):
        if not path.is_file():
            continue
        if harm == "gone":
            path.unlink()
            continue
        size = path.stat().st_size
        if harm == "longer":
            os.truncate(path, size + 1)
        elif harm in ("short", "empty"):
            os.truncate(path, size // 2 if harm == "short" else 0)
        else:
            with path.open("r+b") as file:
                file.seek(size // 2)
                file.write(bytes(16) if harm == "zeros" else b"\2" * 16)
    numbers = checked(program, place, safe)
    assert numbers[promised] == numbers[0]
    assert numbers[changed] >= numbers[4] - 1


def test_an_earlier_version_is_told_from_the_last_one(
    program: Path, written: tuple[Path, Path], tmp_path: Path
) -> None:
    """Later operations are believed to have been done than those that the files are of."""
    later = tmp_path / "safe"
    later.write_text(f"{int(written[1].read_text()) + 2000}\n")
    numbers = checked(program, written[0], later)
    assert numbers[OLDER] > 20 and numbers[DAMAGED] > 20


def test_a_cut_before_the_first_operation_promises_nothing(program: Path, tmp_path: Path) -> None:
    (tmp_path / "safe").write_text("")
    assert checked(program, tmp_path, tmp_path / "safe") == [0] * 11
