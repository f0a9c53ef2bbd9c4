"""A known cell starts no guest, its pictures are drawn from its maps, and a cache carries it to another store."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.cli.options import open_store
from agelab.runner.execute import guests
from tests.vm.aged import HISTORY, MEASURES, TESTS
from tests.vm.cells import agelab, newest, scenario, shown, store_of_parts

pytestmark = pytest.mark.vm


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that everybody may read: what is made of private files is not put into a cache."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="reuse-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_known_cell_starts_no_guest_here_or_elsewhere(
    tmp_path: Path, open_to_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs once; then it comes from the runs of its store, in another from the cache; checked there, it agrees."""
    one, other = store_of_parts(tmp_path / "one", "guest"), store_of_parts(tmp_path / "other")
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.delenv("AGELAB_FRESH")
    monkeypatch.setenv("AGELAB_CACHE", str(cache))
    path = scenario(open_to_all, HISTORY + TESTS, head=MEASURES, mib=8)
    results = []
    for home, words in ((one, ()), (one, ()), (other, ()), (other, ("--verify", "1"))):
        monkeypatch.setenv("AGELAB_HOME", str(home))
        done = agelab("run", str(path), *words)
        assert done.returncode == 0, done.stdout + done.stderr
        directory = newest(path)
        [cell] = shown(directory.name)
        started = bool([*directory.glob("cells/0/*domain*.xml")])
        pictures = {file.name: file.read_bytes() for file in directory.glob("cells/0/maps/*.svg")}
        results.append((cell, started, pictures))
        assert ("reused" in done.stdout) == bool(cell["reused"])
        if home == other and not words:
            assert not open_store().all(guests.KIND), "none was made to be saved, either"
            (other / "store/guest").symlink_to((one / "store/guest").readlink())
            shutil.rmtree(cache)  # from here on only its own run is known
            cache.mkdir()
    ways = [(bool(cell["reused"]), started) for cell, started, _ in results]
    assert ways == [(False, True), (True, False), (True, False), (False, True)]
    first, _, drawn = results[0]
    assert len(drawn) == 1
    for cell, _, pictures in results[1:]:
        for what in ("inputs_key", "digest", "maps", "samples", "status"):
            assert cell[what] == first[what], what
        assert pictures == drawn and not cell["disputes"]
