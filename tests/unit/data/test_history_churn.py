"""The cycles as a log: half of each copy goes, the disk fills up, a part is freed."""

from pathlib import Path

from agelab.data.corpus.artefact import plan_files
from agelab.data.corpus.definition import definition
from agelab.data.history.churn import ChurnRequest, operations
from agelab.data.history.operations import check_log

MB = 1_000_000


def test_copies_deletions_filling_and_freeing(tmp_path: Path) -> None:
    tree = plan_files(definition("debian-iso"), 20 * MB, 1)
    wanted = ChurnRequest(disk=300 * MB, turns=6, fullness=0.9, freed=0.3, points=7)
    lines = list(operations(tree, wanted, 1))
    assert lines == list(operations(tree, wanted, 1)) != list(operations(tree, wanted, 2))
    (tmp_path / "log").write_bytes(b"".join(lines))
    found = check_log(tmp_path / "log")
    assert len(found.points) == 7
    copied = sum(entry.size for entry in tree)
    deleted = sum(line.startswith(b"unlink copy-1/") for line in lines[: found.points[0] + 1])
    assert 0.4 < deleted / len(tree) < 0.6
    assert found.bytes_written > 6 * copied
    assert 0.85 * wanted.disk < found.peak_space <= 0.9 * wanted.disk
    assert 0.6 < found.live_bytes / found.peak_bytes < 0.8


def test_a_long_history_makes_room_and_leaves_no_empty_copies(tmp_path: Path) -> None:
    tree = plan_files(definition("debian-iso"), 10 * MB, 1)
    wanted = ChurnRequest(disk=100 * MB, turns=60, fullness=0.8, freed=0, points=1)
    (tmp_path / "log").write_bytes(b"".join(operations(tree, wanted, 1)))
    found = check_log(tmp_path / "log")
    assert 0.78 * wanted.disk < found.space <= found.peak_space <= 0.8 * wanted.disk
    copies = found.space // (5 * MB)
    assert found.directories < copies * len({entry.path.rpartition("/")[0] for entry in tree}) * 3
    assert found.counts["rmdir"] > 0.5 * found.counts["mkdir"]
