"""Aging to a profile: what is left has its sizes, depths and, after enough overwrites, its ages."""

import hashlib
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from agelab.data.history.operations import check_log
from agelab.data.history.profile import ProducedFiles, ProfileRequest, load_profile, operations
from agelab.data.history.report import EngineRecord, report
from agelab.scenario.aging_profile import Profile

MIB = 1 << 20


@pytest.fixture(scope="module")
def agrawal() -> Profile:
    return load_profile("agrawal-2007")


def made(path: Path, what: Profile, wanted: ProfileRequest, seed: int = 1) -> ProducedFiles:
    produced = ProducedFiles()
    with path.open("wb") as log:
        log.writelines(operations(what, wanted, seed, produced))
    return produced


def largest_difference(counts: Counter[int], shares: list[float]) -> float:
    """Return the largest distance of the two cumulative distributions (Kolmogorov and Smirnov)."""
    files = sum(counts.values())
    ours = theirs = most = 0.0
    for index, share in enumerate(shares):
        ours, theirs = ours + counts[index] / files, theirs + share
        most = max(most, abs(ours - theirs))
    return most


def test_what_is_left_has_the_profile_and_the_fullness(agrawal: Profile, tmp_path: Path) -> None:
    disk = 100 * MIB
    produced = made(tmp_path / "log", agrawal, ProfileRequest(disk, 0.8, 20, 4))
    found = check_log(tmp_path / "log")
    assert found.files == produced.files == sum(produced.sizes.values())
    assert found.bytes_written == produced.written and 20 <= produced.written / disk < 20.1
    assert 0.75 < produced.live_bytes / disk <= 0.8
    assert found.live_bytes < produced.live_bytes and len(found.points) == 4
    assert largest_difference(produced.sizes, agrawal.sizes.shares()) < 0.05
    assert largest_difference(produced.depths, agrawal.depths.shares()) < 0.05
    assert largest_difference(produced.ages, agrawal.ages.shares()) < 0.06


def test_ages_converge_with_overwrites_and_the_report_says_when(agrawal: Profile, tmp_path: Path) -> None:
    disk, log = 100 * MIB, tmp_path / "log"
    distances, converged = [], []
    for overwrites in (2, 5, 10, 20):
        few = made(log, agrawal, ProfileRequest(disk, 0.8, overwrites, 1))
        record = EngineRecord(0.8, overwrites, profile=agrawal, produced=few)
        fits = report("profile", disk, 1, record, check_log(log)).fits
        assert fits and fits.ages.distance == pytest.approx(
            largest_difference(few.ages, agrawal.ages.shares()), abs=1e-6
        )
        distances.append(fits.ages.distance)
        converged.append(fits.converged)
    assert distances == sorted(distances, reverse=True) and distances[0] > 0.6
    assert converged == [False, False, False, True]


def test_it_is_the_same_log_for_the_same_seed(agrawal: Profile, tmp_path: Path) -> None:
    hashes = []
    for number, seed in enumerate((1, 1, 2)):
        made(tmp_path / str(number), agrawal, ProfileRequest(50 * MIB, 0.5, 2, 1), seed)
        hashes.append(hashlib.sha256((tmp_path / str(number)).read_bytes()).hexdigest())
    assert hashes[0] == hashes[1] != hashes[2]


def test_memory_grows_with_the_live_files_alone(agrawal: Profile) -> None:
    peaks = []
    for overwrites in (4, 12):
        tracemalloc.start()
        for _ in operations(agrawal, ProfileRequest(50 * MIB, 0.5, overwrites, 1), 1, ProducedFiles()):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
