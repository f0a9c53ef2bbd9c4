"""A history in the store: its parts, its report, and what an engine cannot do."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agelab.base.errors import HostError, InputError
from agelab.data.corpus.artefact import list_corpora
from agelab.data.history import artefact, engines
from agelab.data.history import report as history_report
from agelab.data.history.operations import HEADER, check_log
from agelab.scenario.history import History
from agelab.store.artefacts import Store
from tests.build.corpus_images import unpacked

MIB = 1 << 20
EXTRAS: dict[str, dict[str, Any]] = {"profile": {"profile": "agrawal-2007"}, "churn": {"freed": 0.2}}


def wanted(engine: str, **asked: Any) -> History:
    """A request; numbers become figures."""
    if engine in ("profile", "history", "churn"):
        asked = {"fullness": 0.5, "overwrites": 2.0} | EXTRAS.get(engine, {}) | asked
    raw = {
        key: {"value": value, "origin": "estimated"} if isinstance(value, float) else value
        for key, value in asked.items()
    }
    adapter: TypeAdapter[History] = TypeAdapter(History)
    return adapter.validate_python({"engine": engine, "name": "one", **raw})


def own(path: Path, text: str) -> History:
    path.write_text(f"{HEADER.decode()}\n{text}")
    return wanted("log", log=str(path))


def parts(history: History, directory: Path, disk: int = 100 * MIB) -> list[bytes]:
    directory.mkdir()
    _, count = artefact.write_parts(engines.log_source(history, disk, 1), directory)
    assert sorted(path.name for path in directory.iterdir()) == sorted(map(str, range(1, count + 1)))
    return [(directory / str(number)).read_bytes() for number in range(1, count + 1)]


def test_a_log_is_kept_in_parts_with_its_report(tmp_path: Path, store: Store) -> None:
    log = own(tmp_path / "my.log", "create a\nappend a 5000\npoint 1\npoint 2\n# over\nunlink a\n")
    kept = artefact.obtain_history(log, MIB, 1, store)
    assert kept.parts == kept.files == 3
    image = unpacked(kept, tmp_path / "parts")
    assert [(image / name).read_bytes() for name in "123"] == [
        HEADER + b"\ncreate a\nappend a 5000\npoint 1\n",
        HEADER + b"\npoint 2\n",
        HEADER + b"\n# over\nunlink a\n",
    ]
    report = artefact.read_report(kept)
    assert (report.operations, report.points, report.live_bytes, report.seed) == (3, (2, 2), 0, None)
    assert report.overwrites.produced == round(5000 / MIB, 6) and report.fullness.asked is None
    # The name is no part of what it is; what is in it is.
    moved = (tmp_path / "my.log").rename(tmp_path / "other.log")
    assert artefact.obtain_history(wanted("log", log=str(moved)), MIB, 2, store).key == kept.key
    assert artefact.obtain_history(own(tmp_path / "my.log", "create b\n"), MIB, 1, store).key != kept.key
    assert [one.parts for one in list_corpora(store)] == [3, 1]


def test_an_engine_s_history_is_made_once_whatever_it_is_called(tmp_path: Path) -> None:
    store = Store(tmp_path)
    asked = wanted("profile", points=3)
    kept = artefact.obtain_history(asked, 64 * MIB, 1, store)
    assert artefact.obtain_history(asked.model_copy(update={"name": "two", "note": "why"}), 64 * MIB, 1, store) == kept
    others = [
        artefact.obtain_history(asked, 64 * MIB, 2, store).key,
        artefact.obtain_history(asked, 65 * MIB, 1, store).key,
        artefact.obtain_history(asked.model_copy(update={"points": 2}), 64 * MIB, 1, store).key,
    ]
    assert kept.parts == 3 and len({kept.key, *others}) == 4
    report = artefact.read_report(kept)
    assert report.fits and report.fits.profile == "agrawal-2007" and report.fullness.asked == 0.5
    kept.image.with_name(history_report.REPORT).write_text("{}")
    with pytest.raises(HostError, match="is damaged"):
        artefact.read_report(kept)


@pytest.mark.parametrize("engine", ["profile", "history", "churn"])
def test_parts_in_turn_are_the_whole_log_and_points_are_as_many_as_asked(engine: str, tmp_path: Path) -> None:
    asked = wanted(engine, points=4)
    pieces = parts(asked, tmp_path / "parts")
    report = engines.write_log(engines.log_source(asked, 100 * MIB, 1), tmp_path / "whole")
    head = HEADER + b"\n"
    assert all(piece.startswith(head) for piece in pieces)
    assert head + b"".join(piece.removeprefix(head) for piece in pieces) == (tmp_path / "whole").read_bytes()
    assert len(pieces) == len(report.points) == 4 and report.points[-1] == report.operations
    assert check_log(tmp_path / "whole").points == report.points
    assert report.fullness.produced == pytest.approx(0.5, abs=0.03)
    assert report.overwrites.produced == pytest.approx(2, abs=0.1)
    gaps = [after - before for before, after in zip((0, *report.points), report.points, strict=False)]
    assert max(gaps[1:3]) < 1.5 * min(gaps[1:3])


def test_points_of_a_repository_come_after_equal_parts_of_its_bytes(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(8):
        (tmp_path / "file").write_bytes(b"%d" % number * 1000)
        subprocess.run([*git, "add", "file"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "m"], check=True)
    subprocess.run([*git, "rm", "-q", "file"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "gone"], check=True)
    asked = wanted("git", repository=str(tmp_path), points=2)
    first, second = parts(asked, tmp_path / "parts")
    assert (first.count(b"write file 0 1000"), second.count(b"write file 0 1000")) == (4, 4)
    assert second.endswith(b"unlink file\npoint 2\n")
    report = engines.write_log(engines.log_source(asked, MIB, 1), tmp_path / "whole")
    assert (report.versions, report.files, report.bytes_written) == (9, 0, 8000)
    with pytest.raises(InputError, match="has 9 versions up to HEAD: 10 points are too many"):
        parts(wanted("git", repository=str(tmp_path), points=10), tmp_path / "none")


@pytest.mark.parametrize(
    ("history", "disk", "reason"),
    [
        (wanted("profile", fullness=1.2), 100 * MIB, "it must be above 0 and at most 1"),
        (wanted("profile", overwrites=0.2), 100 * MIB, "fewer than fullness"),
        (wanted("history", overwrites=0.2), 100 * MIB, "fewer than fullness"),
        (wanted("profile"), 10 * MIB, "has files of 8,388,864 bytes: 5,242,880 have no room for them"),
        (wanted("profile", profile="agrawal-2008"), MIB, "did you mean agrawal-2007"),
        (wanted("churn", points=30), 100 * MIB, "30 points are too many: there are 20 turns"),
        (wanted("profile"), 0, "a disk of 0 bytes is too small"),
        (wanted("history"), 3 * MIB, "1,572,864 bytes are too few for a source tree"),
        (wanted("churn"), 1 * MIB, "have no room for it"),
        (wanted("log", log="/no/such"), MIB, "/no/such: No such file or directory"),
        (wanted("git", repository="/no/such"), MIB, "it is no git repository"),
    ],
)
def test_what_an_engine_cannot_do_is_said(history: History, disk: int, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        parts(history, tmp_path / "parts", disk)


def test_a_fault_of_the_user_s_is_the_user_s_and_one_of_ours_a_bug(tmp_path: Path) -> None:
    log = own(tmp_path / "log", "create a\npoint 1\nunlink b\n")
    with pytest.raises(InputError, match=r"log: line 4: there is no 'b'"):
        parts(log, tmp_path / "parts")
    source = engines.log_source(wanted("profile"), 100 * MIB, 1)
    source.lines = iter([b"nothing\n"])
    with pytest.raises(AssertionError, match="engine profile writes what is no log"):
        engines.write_log(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for number, text in enumerate(("create a\npoint 1\n# the end\n\n", "create a\n# no point\n")):
        assert len(parts(own(tmp_path / "log", text), tmp_path / str(number))) == 1  # no part of remarks alone


def test_a_report_is_versioned_json(tmp_path: Path) -> None:
    report = engines.write_log(engines.log_source(wanted("churn"), 100 * MIB, 1), tmp_path / "out")
    raw = json.loads(report.model_dump_json(by_alias=True))
    assert raw["schema"] == 1 and raw["turns"] == 20 and raw["fits"] is None
    assert type(report).model_validate(raw) == report
