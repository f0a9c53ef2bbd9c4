"""A night of a track over a program's commits, in real guests."""

import re
from pathlib import Path

import pytest

from agelab.bisect.track.journal import Journal, Measured
from agelab.cli.options import open_store
from tests.vm.cells import agelab
from validation import track as planted

pytestmark = pytest.mark.vm


def test_a_night_builds_the_newest_commit_measures_it_and_the_next_knows_it(tmp_path: Path) -> None:
    planted.plant(tmp_path / "planted")
    file, name = tmp_path / "planted" / "track.toml", tmp_path.name.replace("_", "-")
    text = re.sub(r"^minutes = .*", "minutes = 0.01", file.read_text(), flags=re.MULTILINE)
    file.write_text(text.replace('name = "planted-work"', f'name = "{name}"', 1))
    done = agelab("track", str(file))
    assert done.returncode == 0, done.stderr
    journal = Journal.of(open_store(), name)
    rows = [row for row in journal.rows if isinstance(row, Measured)]
    assert [row.seed for row in rows] == [1, 2, 3, 4, 5] and len(rows) == len(journal.rows)
    assert all(row.values["work:elapsed"] > 10 * row.values["work:work_latency"] > 0 for row in rows)
    assert len({row.values["work:elapsed"] for row in rows}) == 5
    assert "minutes = 0.01 is too little: one cell takes about" in done.stderr
    assert (tmp_path / "planted" / "site" / "index.html").exists()
    done = agelab("track", str(file))
    assert done.returncode == 0 and len(Journal.of(open_store(), name).rows) == 5, done.stderr
