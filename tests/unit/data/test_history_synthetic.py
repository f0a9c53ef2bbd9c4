"""A seeded history of a source tree: it grows, is rewritten as often as asked, and is the same every time."""

import hashlib
from pathlib import Path

from agelab.data.history.operations import check_log
from agelab.data.history.synthetic import versions
from agelab.data.history.tree import operations

MB = 1_000_000
FULL, BUDGET = 30 * MB, 150 * MB


def made(path: Path, seed: int) -> str:
    points = [BUDGET * number // 4 for number in range(1, 5)]
    path.write_bytes(b"".join(operations(versions(FULL, BUDGET, seed), points)))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_grows_is_rewritten_and_repeatable(tmp_path: Path) -> None:
    assert made(tmp_path / "one", 1) == made(tmp_path / "two", 1) != made(tmp_path / "other", 2)
    found = check_log(tmp_path / "one")
    assert BUDGET <= found.bytes_written < 1.02 * BUDGET
    assert 0.96 * FULL < found.space <= 1.01 * FULL
    assert len(found.points) == 4 and found.points[-1] <= found.operations
    assert found.counts["unlink"] > found.files


def test_a_version_touches_few_files_and_few_are_never_touched() -> None:
    _, *later = versions(FULL, BUDGET, 1)
    touched = sorted(len(version) for version in later)
    assert touched[0] >= 1 and touched[len(touched) // 2] <= 3 and touched[-1] <= 14
    assert len({change.path for version in later for change in version}) > 1000
