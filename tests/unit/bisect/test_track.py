"""agelab track: points, lines, nights and pages; what cells measure is drawn."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import log
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.base.errors import HostError, InputError, silent
from agelab.base.sanitize import escape_controls
from agelab.bisect import answer, search
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.track import points as track_points
from agelab.bisect.track import question, runs
from agelab.bisect.track.journal import Followed, Journal, LineId, Measured, PassedOver, Row
from agelab.bisect.track.lines import Known
from agelab.bisect.track.night import Night, passed_over_lines
from agelab.bisect.track.points import Point, Rank, next_point, points_of
from agelab.bisect.track.question import Track, Watch
from agelab.capsule.pack import pack
from agelab.cli.bisect import parse_question
from agelab.debian import Archive, PackagesVanished, snapshot
from agelab.kernel import build
from agelab.kernel.debian_kernel import AvailableKernel
from agelab.present.track import page_name, write_site
from agelab.stats import segments
from agelab.store.artefacts import Store
from tests.build import capsule_builder
from tests.build import simulated_bisect as simulated
from tests.build.cli import Cli
from tests.build.killed_nights import KILLS, RAN
from tests.build.scenario_builder import PROJECT
from validation import track as planted

WATCHED = {"scenario": "aging-ext4", "metrics": ["copy:elapsed"], "run": {"scale": "quick"}}
SEPARATORS = "\x0b\x1c\x1f\x85\u2028"
"""What a subject may have, and Python calls the end of a line or agelab's that of a field."""
HOSTILE = '</title><script>alert("x")</script>'

# ---- segments ----


def change_points(values: Sequence[float], deviation: float) -> list[int]:
    return segments.change_points([[value] for value in values], deviation)


def cheapest(values: Sequence[float], deviation: float) -> list[int]:
    """The same by trying every set of places."""

    def cost(part: Sequence[float]) -> float:
        mean = sum(part) / len(part)
        return sum(((value - mean) / deviation) ** 2 for value in part)

    n, penalty = len(values), segments.PENALTY * log(len(values))
    best: tuple[float, list[int]] = (cost(values), [])
    for count in range(1, n // segments.SHORTEST):
        for places in combinations(range(1, n), count):
            ends = [0, *places, n]
            if all(after - before >= segments.SHORTEST for before, after in pairwise(ends)):
                total = sum(cost(values[slice(*pair)]) for pair in pairwise(ends)) + count * penalty
                best = min(best, (total, [*places]))
    return best[1]


def test_segments_are_the_cheapest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "REACH", 100.0)  # values as they are
    drawn = random.Random(1)
    found = 0
    for _ in range(60):
        step = drawn.choice([0, 3, 6])
        values = [drawn.gauss(step * (at > 5), 1) for at in range(11)]
        assert change_points(values, 1.0) == cheapest(values, 1.0)
        found += bool(cheapest(values, 1.0))
    assert 10 < found < 50


def test_outliers_are_no_level_in_the_middle_of_a_line_and_a_step_at_its_end_is_one() -> None:
    assert change_points([0.0, 0.1] * 5 + [9.0, 9.0] + [0.0, 0.1] * 5, 1.0) == []
    assert change_points([0.0, 0.1] * 5 + [9.0, 9.0], 1.0) == [10]
    assert change_points([9.0, 9.0] + [0.0, 0.1] * 5, 1.0) == [2]
    assert change_points([0.0, 0.1] * 5 + [9.0, 9.0, 9.0] + [0.0, 0.1] * 5, 1.0) == [10, 13]


def test_more_run_seeds_of_a_point_weigh_more() -> None:
    single = [[value] for value in (0.0, 0.1, 0.0, 1.2, 1.1, 1.2)]
    assert segments.change_points(single, 1.0) == []
    assert segments.change_points([seeds * 9 for seeds in single], 1.0) == [3]


def test_a_line_without_any_noise_has_a_step_where_its_value_changes() -> None:
    assert change_points([1.0] * 5 + [1.0001] * 4, 0.0) == [5]
    assert change_points([1.0] * 9, 0.0) == []
    assert change_points([1.0, 2.0, 2.0], 0.0) == []


def test_noise_is_the_larger_of_what_run_seeds_and_neighbours_say() -> None:
    assert segments.noise([1, 1, 5, 5, 5, 5], [[1, 3], [4, 6]]) == pytest.approx(2**0.5)
    assert segments.noise([0, 1, 0, 1, 0], [[1, 1], [1, 1]]) > 1
    assert segments.noise([0.0], []) == 0


# ---- the file ----

FILE = """name = "planted-work"
minutes = 120
page = "site"
[program]
path = "tree"
since = "base"
build = "gcc -static -o work work.c"
makes = "work"
[[watch]]
scenario = "./planted-work.toml"
metrics = ["work:elapsed", "work:work_latency"]
"""


@pytest.fixture(scope="module")
def planted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("once") / "planted"
    planted.plant(place)
    return place


@pytest.fixture
def place(planted_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The planted tree with its track's file, in the current directory."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "store"))
    shutil.copytree(planted_once, tmp_path / "planted")
    monkeypatch.chdir(tmp_path / "planted")
    return tmp_path / "planted"


def said_of(place: Path, text: str) -> str:
    """What is said against a file."""
    (place / "track.toml").write_text(text)
    with pytest.raises(InputError) as error:
        question.read(place / "track.toml")
    return str(error.value)


def test_the_planted_file_is_read(place: Path) -> None:
    track = question.read(place / "track.toml")
    assert track.program and track.program.since == "base" and track.watch[0].metrics[0] == "work:elapsed"


def test_all_mistakes_of_a_file_are_told_with_their_places(place: Path) -> None:
    said = said_of(place, FILE.replace("minutes = 120", "minutes = 0\nstrange = 1").replace("work:elapsed", "work"))
    for word in ("minutes: ", "strange: is not a known key", "watch[0].metrics[0]: ", "like copy:elapsed"):
        assert word in said
    assert len(said.splitlines()) == 3


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("[program]", '[debian]\nsince = "6.1"\n[program]', "there are debian and program"),
        ("work:elapsed", "wrk:elapsed", "no step 'wrk'"),
        ("work:elapsed", "work:elapse", "did you mean elapsed"),
        ("./planted-work.toml", "./nosuch.toml", "cannot be read"),
        ("[[watch]]", '[[watch]]\nrun = { kernel = "6.1" }', "run.kernel: the track decides it"),
        ("[[watch]]", '[[watch]]\nrun = { clock = "wall" }', "the wall clock is this host's"),
        ("[[watch]]", '[[watch]]\nrun = { nosuch = 1 }', "nosuch"),
        ('makes = "work"', 'makes = "other"', 'bring = ["./other"]'),
        ('makes = "work"', 'makes = "../work"', "program.makes: '../work' is not below the tree"),
        ('"work:elapsed"', '"work:work_latency"', "work:work_latency is there twice"),
    ],
)  # fmt: skip
def test_what_no_night_could_measure_is_one_line(place: Path, old: str, new: str, word: str) -> None:
    said = said_of(place, FILE.replace(old, new))
    assert word in said and len(said.splitlines()) == 1


# ---- points ----


def test_points_are_the_branch_s_own_commits_with_tags_and_what_touches_the_paths(place: Path) -> None:
    tree = place / "tree"
    planted.git_in(tree, "tag", "v2\u2003\u2028x", "HEAD~10")
    planted.git_in(tree, "tag", "-am", "annotated", "v3", "HEAD~11")
    planted.git_in(tree, "checkout", "--quiet", "-b", "topic")
    (tree / "doc.txt").write_text("words")
    planted.git_in(tree, "add", "doc.txt")
    planted.git_in(tree, "commit", "--quiet", "-m", f"doc: words {HOSTILE}")
    planted.git_in(tree, "checkout", "--quiet", "-")
    planted.git_in(tree, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    (tree / "work.c").write_text("int main(void) { return 0; }\n")
    planted.git_in(tree, "commit", "--quiet", "-am", f"work: {SEPARATORS}nothing", when=planted.FIRST)
    points = points_of(planted.planted_track(), Store(place), silent)
    assert [point.subject for point in points[-2:]] == ["Merge topic", f"work: {escape_controls(SEPARATORS)}nothing"]
    assert len(points) == planted.COMMITS + 3
    assert points[0].rank is points[-1].rank is Rank.END and points[0].name == "base"
    annotated, tagged = [point for point in points if point.rank is Rank.TAG]
    assert (annotated.name, tagged.name, tagged.date) == ("v3", escape_controls("v2\u2003\u2028x"), "2023-11-17")
    program = {**planted.planted_track().model_dump()["program"], "paths": ["work.c"]}
    points = points_of(planted.planted_track(program=program), Store(place), silent)
    assert points[-2].rank is Rank.OTHER and points[5].rank is Rank.TOUCHES


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"since": "nosuch"}, "since nosuch: no such version"),
        ({"since": "HEAD", "branch": "HEAD~1"}, "is not in the history of HEAD~1"),
        ({"path": "nosuch"}, "not the top directory of a git tree"),
        ({"paths": ["fs/ext5"]}, "there is no fs/ext5"),
    ],
)
def test_a_tree_that_has_not_what_is_named_is_one_line(place: Path, change: dict[str, object], word: str) -> None:
    program = {**planted.planted_track().model_dump()["program"], **change}
    with pytest.raises(InputError, match=re.escape(word)):
        points_of(planted.planted_track(program=program), Store(place), silent)


DEBIAN: dict[str, Any] = {"name": "t", "minutes": 9, "page": "site", "watch": [WATCHED]}


@pytest.mark.parametrize(
    ("debian", "word"),
    [
        ({"since": "bookworm"}, "'bookworm' is no version like 6.1"),
        ({"kernels": ["6.1", "bookwurm"]}, "no kernel 'bookwurm'"),
        ({"dates": ["20260101T000000Z", "2026-04-01"]}, "2026-04-01: it is no date like"),
    ],
)
def test_packages_that_there_cannot_be_are_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debian: dict[str, object], word: str
) -> None:
    monkeypatch.setattr(snapshot, "_of_date", lambda *_: None)
    monkeypatch.setattr(search, "release_of", lambda name, *_, **__: f"{name}.0-1-amd64")
    with pytest.raises((InputError, ValidationError), match=word):
        points_of(Track.model_validate({**DEBIAN, "debian": debian}), Store(tmp_path), silent)


def test_kernels_that_the_mirror_has_no_more_stay_on_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[bool]()

    def of_mirror(_: Store, *, refresh: bool = False, progress: object) -> list[AvailableKernel]:
        asked.append(refresh)
        if refresh:
            raise HostError("cannot fetch the package lists\nof any")
        names = {"6.1.0-9-amd64": "6.1.90-1", "6.12.9+deb13-amd64": "6.12.9-1", "5.10.0-8-amd64": "5.10.8-1"}
        return [
            AvailableKernel(release=name, version=version, suite="s", headers=True) for name, version in names.items()
        ]

    monkeypatch.setattr(track_points, "available", of_mirror)
    track = Track.model_validate({**DEBIAN, "debian": {"since": "6.1.50"}})
    measured = [*(f"debian:{name}-amd64" for name in ("6.1.0-8", "6.1.0-9", "5.10.0-7")), "tree:/linux@1234"]
    said = list[str]()
    points = points_of(track, Store(tmp_path), said.append, measured, refresh=True)
    assert [point.name for point in points] == ["6.1.0-8", "6.1.0-9", "6.12.9+deb13"]
    assert points[0].rank is Rank.END and asked == [True, False]
    assert said == ["no new kernels: cannot fetch the package lists"]


def test_a_date_whose_packages_cannot_be_had_waits_and_leaves_the_environment_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(snapshot.VARIABLE, "mine")
    track = Track.model_validate({**DEBIAN, "debian": {"dates": ["20260101T000000Z"]}})
    [point] = [Point(date, date) for date in track.debian.dates] if track.debian else []

    def update(_: Archive, *, refresh: bool) -> None:
        assert os.environ[snapshot.VARIABLE] == point.id
        raise InputError(f"the snapshot {point.id} has no Debian suite 'bookworm'")

    monkeypatch.setattr(snapshot, "chosen", lambda: None)
    monkeypatch.setattr(Archive, "update", update)
    cells = runs.TrackRuns(track, [point], Store(tmp_path), planted.NO_DOORS, silent)
    said = list[str]()
    Night(track, [point], Journal(tmp_path), cells, said.append).work()
    assert said[-1] == f"  not this night: the snapshot {point.id} has no Debian suite 'bookworm'"
    assert os.environ[snapshot.VARIABLE] == "mine"


def test_the_ends_come_first_then_tags_then_the_middles_of_gaps_of_what_touches_the_paths() -> None:
    ranks = {0: Rank.END, 16: Rank.END, 5: Rank.TAG, 3: Rank.TOUCHES, 9: Rank.TOUCHES, 12: Rank.TOUCHES}
    points = [Point(str(at), str(at), rank=ranks.get(at, Rank.OTHER)) for at in range(17)]
    done: list[str] = []
    while point := next_point(points, done):
        done.append(point.id)
    assert done[:3] == ["16", "0", "5"] and done[3] in ("9", "12") and set(done[3:6]) == {"3", "9", "12"}
    assert len(done) == 17 and done[6] in ("14", "7")
    assert next_point([], []) is None


# ---- nights ----


@dataclass
class Trial:
    """Nights over a planted tree in a store of its own."""

    home: Path
    track: Track = field(default_factory=planted.planted_track)
    chance: float = 0.005
    said: list[str] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    instead: Callable[[Point], str | None] = lambda point: None
    now: float = 0.0

    def __post_init__(self) -> None:
        middle = range(1, planted.COMMITS)
        names = dict.fromkeys(middle, Rank.TOUCHES)
        self.points = [Point(f"c{at}", f"c{at}", rank=names.get(at, Rank.END)) for at in range(planted.COMMITS + 1)]
        self.runs = Drawn(self)

    def night(self) -> Night:
        self.runs = Drawn(self)
        return Night(
            self.track, self.points, Journal(self.home), self.runs, self.said.append, tell=self.said.append,
            clock=lambda: self.now,
        )  # fmt: skip

    def worked(self) -> Known:
        night = self.night()
        night.work()
        return night.known


class Drawn(planted.DrawnRuns):
    """Cells that take ten seconds, and of some points none."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.track, trial.points, 1, trial.chance)
        self._trial = trial

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        self._trial.now += 10 * len(seeds)
        if why := self._trial.instead(point):
            lacking = why.startswith("is unsupported")
            return [PassedOver(point=point.id, watch=watch.key, why=why, unsupported=lacking)]
        return [row.model_copy(update={"seconds": 10}) for row in super().measure(point, watch, seeds)]


def test_three_guilty_commits_of_72_are_found_in_a_third_of_the_cells(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    known = trial.worked()
    assert {row.culprit for row in known.followed if row.culprit} == {f"c{at}" for at in planted.GUILTY}
    assert 3 * len(trial.runs.cells) <= planted.SEEDS * len(trial.points)
    told = [line for line in trial.said if "since c" in line]
    assert len(told) == 3 and any(re.search(r"since c47", line) and "slower, 1.099 times" in line for line in told)


def test_what_cannot_run_is_passed_over_and_named_once(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    reasons = {
        "c30": "does not build: work.c:1: error",
        "c31": "does not build: work.c:1: error",
        "c33": "does not build: work.c:1: error",
        "c60": "panics",
    }
    trial.instead = lambda point: (
        reasons.get(point.id) or ("is unsupported: needs 6.1" if int(point.id[1:]) < 10 else None)
    )
    known = trial.worked()
    lines = [*passed_over_lines(known)]
    assert lines[0].startswith("./planted-work.toml: runs from c") and "needs 6.1" in lines[0]
    assert "c30 to c31 (2): ./planted-work.toml left out: does not build: work.c:1: error" in lines
    assert "c33: ./planted-work.toml left out: does not build: work.c:1: error" in lines, "c32 lies between"
    assert "c60: ./planted-work.toml left out: panics" in lines and len(lines) == 4
    tried = {row.point for row in known.passed_over if row.unsupported}
    assert len(tried) < 6, "older points than one that is too old are not tried"
    measured = len(trial.runs.cells)
    assert not trial.worked().open_steps and not trial.runs.cells and measured > 60


def test_a_point_whose_packages_cannot_be_had_waits_for_another_night(tmp_path: Path) -> None:
    trial = Trial(tmp_path)

    def gone(point: Point) -> str | None:
        if point.id == "c40":
            raise PackagesVanished("cannot download 3 packages: 404 Not Found")
        return None

    trial.instead = gone
    assert {row.culprit for row in trial.worked().followed if row.culprit} == {"c23", "c47", "c61"}
    assert trial.said.count("  not this night: cannot download 3 packages: 404 Not Found") == 1
    trial.instead = lambda point: None
    trial.worked()
    assert {point for point, _ in trial.runs.cells} == {"c40"}


def test_a_step_at_a_point_whose_packages_are_gone_meanwhile_waits_for_another_night(tmp_path: Path) -> None:
    trial, measured = Trial(tmp_path), set[str]()

    def gone(point: Point) -> str | None:
        if point.id == "c23" and point.id in measured:
            raise PackagesVanished("cannot download 3 packages: 404 Not Found")
        measured.add(point.id)
        return None

    trial.instead = gone
    assert {row.culprit for row in trial.worked().followed if row.differs} == {"c47", "c61"}
    assert trial.said.count("  not this night: cannot download 3 packages: 404 Not Found") == 1
    trial.instead = lambda point: None
    assert {row.culprit for row in trial.worked().followed if row.differs} == {"c23", "c47", "c61"}


def test_what_made_a_step_is_looked_for_in_another_night_where_packages_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(tmp_path)

    def gone(*_: object) -> Followed:
        raise PackagesVanished("cannot download 3 packages: 404 Not Found")

    with monkeypatch.context() as patched:
        patched.setattr(Drawn, "find", gone)
        assert all(not row.ended for row in trial.worked().followed if row.differs)
    assert "  not this night: cannot download 3 packages: 404 Not Found" in trial.said
    assert {row.culprit for row in trial.worked().followed if row.differs} == {"c23", "c47", "c61"}


def test_a_filesystem_that_newer_kernels_have_no_more_is_measured_on_the_older_ones(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.instead = lambda point: "is unsupported: it is gone" if int(point.id[1:]) > 50 else None
    known = trial.worked()
    assert [*passed_over_lines(known)] == ["./planted-work.toml: runs up to c50: is unsupported: it is gone"]
    assert {row.culprit for row in known.followed if row.culprit} == {"c23", "c47"}
    assert len(known.passed_over) < 8


def test_a_night_ends_with_its_minutes_and_the_next_goes_on(tmp_path: Path) -> None:
    trial = Trial(tmp_path, planted.planted_track(minutes=4))
    nights = 0
    while not nights or trial.runs.cells:
        trial.worked()
        nights += 1
        assert nights < 20
    assert nights > 4 and any(line.startswith("the night is over: next is ") for line in trial.said)
    known = Known(trial.track, trial.points, Journal(tmp_path).rows)
    assert {row.culprit for row in known.followed} >= {f"c{at}" for at in planted.GUILTY}


def test_a_budget_below_one_cell_is_one_line(tmp_path: Path) -> None:
    trial = Trial(tmp_path, planted.planted_track(minutes=0.1))
    trial.worked()  # what a cell takes is not known before one has run
    assert len(trial.runs.cells) == planted.SEEDS
    trial.said.clear()
    trial.worked()
    assert not trial.runs.cells
    assert trial.said == ["minutes = 0.1 is too little: one cell takes about 0.2 minutes"]


def test_a_history_that_was_rewritten_is_told_and_what_is_there_goes_on(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.worked()
    trial.points[50:] = [Point(f"new{at}", f"new{at}", rank=Rank.TOUCHES) for at in range(50, 73)]
    trial.said.clear()
    known = trial.worked()
    said = "23 of {} measured points left out: of a history that was rewritten, or of another file of this name"
    assert trial.said[0] == said.format(73) and [*passed_over_lines(known)] == [said.format(96)]
    assert known.points[-1].id in {row.point for row in known.measured}
    assert {"c23", "c47"} <= {row.culprit for row in known.followed}


def test_values_of_other_conditions_are_on_no_line(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    known = trial.worked()
    [first, *_] = [row for row in known.rows if isinstance(row, Measured)]
    Journal(tmp_path).add([first.model_copy(update={"under": "another harness", "point": "c5", "seed": 1})])
    known = Known(trial.track, trial.points, Journal(tmp_path).rows)
    assert [len(line.values) for line in known.lines] == [1, 1]
    assert len(trial.worked().lines[0].values) == len(trial.points)


def test_points_whose_conditions_differ_are_measured_once_a_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, asked = Trial(tmp_path), list[tuple[str, int]]()
    drawn = Drawn.measure

    def measure(runs: Drawn, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        asked.extend((point.id, seed) for seed in seeds)
        return [row.model_copy(update={"under": point.id}) for row in drawn(runs, point, watch, seeds)]

    monkeypatch.setattr(Drawn, "measure", measure)
    trial.worked()
    assert len(asked) == len({*asked}) and {point for point, _ in asked} == {p.id for p in trial.points}


# ---- pages and the command line ----


def test_the_pages_show_lines_and_steps_and_say_nothing_as_markup(tmp_path: Path) -> None:
    trial = Trial(tmp_path / "store")
    trial.home.mkdir()
    trial.points[47] = Point("c47", "c47", "2026-02-03", f"work: {HOSTILE}", Rank.TOUCHES)
    known, site = trial.worked(), tmp_path / "site"
    write_site(known, site, "")
    pages = {path.name: path.read_text() for path in site.glob("*.html")}
    assert len(pages) == 3 and all(HOSTILE not in text for text in pages.values())
    links = re.findall(r'<td><a href="([^"#]+)">|<th scope=row><a href="([^"#]+)">', pages["index.html"])
    assert {one or other for one, other in links} == pages.keys() - {"index.html"}
    elapsed = next(text for name, text in pages.items() if "elapsed" in name)
    titles = re.findall("<title>([^<]*): [0-9.]+ s</title>", elapsed)
    assert len(titles) == len(trial.points) and titles[47].startswith("c47 2026-02-03 ")
    content = json.loads((site / "index.json").read_text())
    assert [step["culprit"] for step in content["steps"] if step["differs"]]
    values = json.loads(next(site.glob("*elapsed*.json")).read_text())
    assert len(values["values"]) == len(trial.points) and len(values["levels"]) == 3


def test_a_site_of_500_points_and_20_metrics_is_small_and_soon_made(tmp_path: Path) -> None:
    metrics = [f"copy:{'work_' * n}elapsed" for n in range(20)]
    watch = {"scenario": "aging-ext4", "metrics": metrics}
    track = Track.model_validate({**DEBIAN, "debian": {}, "watch": [watch]})
    points = [Point(f"{at:07x}", f"{at:07x}", "2026-02-03", f"ext4: {'a usual subject ' * 3}{at}") for at in range(500)]
    key, drawn = track.watch[0].key, random.Random(1)
    rows: list[Row] = [
        Measured(
            point=point.id, watch=key, label="ext4", seed=1, run="run", under="", seconds=60,
            values={metric: drawn.gauss(12, 0.1) for metric in metrics}, units=dict.fromkeys(metrics, "s"),
        )
        for point in points
    ]  # fmt: skip
    step = Followed(line=LineId(watch=key, label="ext4", metric=metrics[0]), before=points[9].id, after=points[10].id,
                    differs=True, said="slower", ended=True, capsule="capsules/run.capsule")  # fmt: skip
    began = time.process_time()
    known = Known(track, points, [*rows, step])
    write_site(known, tmp_path, "")
    assert time.process_time() - began < 10
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000
    assert all(json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    page = tmp_path / f"{page_name(known, step.line)}.html"
    assert "1 step on 20 lines." in (tmp_path / "index.html").read_text() and "1 step." in page.read_text()
    assert 'href="capsules' not in page.read_text(), "there is none"
    (tmp_path / "capsules").mkdir()
    (tmp_path / step.capsule).touch()
    write_site(known, tmp_path, "")
    assert 'href="capsules/run.capsule"' in page.read_text()


def test_a_site_without_a_value_says_so(tmp_path: Path) -> None:
    write_site(Known(planted.planted_track(), [Point("c1", "c1")], []), tmp_path, "c1, aging-ext4")
    assert "No point has a value yet." in (tmp_path / "index.html").read_text()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are drawn in place of guests that run."""

    class Both(planted.DrawnRuns):
        def __init__(self, track: Track, points: Sequence[Point], *_: object) -> None:
            super().__init__(track, points, 1, 0.005)

    monkeypatch.setattr(runs, "TrackRuns", Both)


@pytest.mark.usefixtures("drawn")
def test_the_verb_tells_each_step_to_the_hook_and_ends_with_one(
    place: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place / "track.toml"
    file.write_text(f'hook = "cat >> {place}/told"\n{file.read_text()}')
    told = cli.out("track", file, "--junit", place / "junit.xml", code=1).splitlines()
    assert len(told) == 3 and all("since" in line and "2023-11-1" in line for line in told)
    assert (place / "told").read_text().splitlines() == told
    assert (place / "junit.xml").read_text().count('<failure message="work:') == 3
    assert cli.out("track", file) == ""
    (place / "site" / "index.html").unlink()
    monkeypatch.chdir("/")
    assert cli.run("track", file, "--pages")[1].startswith(f"{place}/site/index.html: ")
    assert "3 steps on 2 lines." in (place / "site" / "index.html").read_text()


def test_a_night_that_is_killed_at_ten_moments_loses_what_ran_alone(place: Path) -> None:
    words = [sys.executable, "-m", "tests.build.killed_nights", str(place / "track.toml"), str(place / "asked")]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    ran = [line.removeprefix(RAN) for line in done.stdout.splitlines() if line.startswith(RAN)]
    told = {step["culprit"] for step in json.loads((place / "site/index.json").read_text())["steps"] if step["differs"]}
    assert len(told) == 3 and len(ran) == KILLS
    asked = Counter((place / "asked").read_text().splitlines())
    twice = asked - Counter({*asked})
    packed = {f"{culprit} 1" for culprit in told}  # the run that its capsule is of
    assert twice and {*(twice - Counter(ran))} <= packed, "what had ended is known, and not measured again"


@pytest.mark.usefixtures("drawn")
def test_a_hook_that_cannot_be_run_says_so_and_the_night_goes_on(place: Path, cli: Cli) -> None:
    file = place / "track.toml"
    file.write_text(f'hook = "/nosuch/mail"\n{file.read_text()}')
    said = [line for line in cli.err("track", file, code=1).splitlines() if line.startswith("hook")]
    assert len(said) == 3 and all("(exit 127): " in line and "/nosuch/mail: not found" in line for line in said)


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("page", ["track.toml", "track.toml/site", "/proc/site"])
def test_a_page_s_directory_that_there_cannot_be_is_one_line(place: Path, cli: Cli, page: str) -> None:
    file = place / "track.toml"
    file.write_text(file.read_text().replace('page = "site"', f'page = "{page}"'))
    said = cli.err("track", file)
    assert f"{place / page} cannot be made a directory: " in said and len(said.splitlines()) == 1


@pytest.mark.usefixtures("drawn")
def test_a_page_of_somebody_else_s_is_not_written_over(place: Path, cli: Cli) -> None:
    (place / "site").mkdir()
    (place / "site" / "index.html").write_text("mine")
    assert "is there already, and no page of agelab" in cli.err("track", place / "track.toml")
    cli.run("track", place / "nosuch.toml", code=2)


@pytest.mark.usefixtures("drawn")
def test_a_damaged_state_is_one_line_with_what_to_do(place: Path, cli: Cli) -> None:
    state = place.parent / "store/tracks/planted-work/journal.jsonl"
    state.parent.mkdir(parents=True)
    state.write_text('{"kind": "measured"}\n')
    said = cli.err("track", place / "track.toml").splitlines()
    assert said[0].startswith(f"agelab: {state} is damaged: ") and "remove it" in said[1] and len(said) == 2


def test_results_over_time_are_asked_of_a_track(cli: Cli) -> None:
    assert "agelab track FILE.toml follows them" in cli.err("history", "latest")


def test_a_step_is_not_followed_up_twice(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.worked()
    rows = [row for row in Journal(tmp_path).rows if isinstance(row, Followed)]
    ended = [row for row in rows if row.ended]
    assert len(ended) == len({(row.line, row.before, row.after) for row in ended})


# ---- what made a step of a kernel's tree ----


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    """A tree of kernels: 0 to 8, a merge of t1, t2 and t3, and an end."""
    path = tmp_path / "linux"
    simulated.history(path, 9)

    def run(*argv: str) -> None:
        subprocess.run(["git", "-C", str(path), *argv], check=True, env=simulated.ENV, stdout=subprocess.DEVNULL)

    run("checkout", "-q", "-b", "topic")
    for name in ("t1", "t2", "t3"):
        (path / "fs" / "a.c").write_text(name)
        run("commit", "-qam", name, f"--author=a{SEPARATORS} <a@b>")
    run("checkout", "-q", "main")
    run("merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    (path / "kernel" / "a.c").write_text("end")
    run("commit", "-qam", "end")
    return path


SLOW = {"t2": 1.2, "t3": 1.2, "Merge topic": 1.2, "end": 1.2}


class KernelCells(runs.TrackRuns):
    """Makes up what a kernel's cells measure, of its commit's subject."""

    def measure(self, point: Point, watch: Watch, seeds: Sequence[int]) -> list[Measured | PassedOver]:
        value = SLOW.get(point.subject, 1.0)
        return [
            Measured(
                point=point.id, watch=watch.key, label="ext4", seed=seed, run="made-up", under="", seconds=1,
                values={"copy:elapsed": value + seed / 1000}, units={"copy:elapsed": "s"},
            )
            for seed in seeds
        ]  # fmt: skip

    def _pack(self, run: str) -> str:
        return f"{run}.capsule" if run else ""


def test_a_step_that_a_merge_brought_is_bisected_within_it(
    linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "check_configuration", lambda *_, **__: None)
    create = BisectDirectory.create
    behaviour = {**dict.fromkeys([*map(str, range(9)), "t1"], 1.0), **SLOW}
    values = {name: [value + seed / 1000 for seed in range(1, 6)] for name, value in behaviour.items()}

    def created(store: Store, asked: BisectQuestion) -> BisectDirectory:
        directory = create(store, asked)
        (directory.path / simulated.BEHAVIOUR).write_text(json.dumps(values))
        return directory

    def not_profiled(*_: object) -> None:
        raise InputError("no stacks")

    monkeypatch.setattr(BisectDirectory, "create", created)
    monkeypatch.setattr(runs, "KernelRuns", lambda directory, store: simulated.Toy(directory))
    monkeypatch.setattr(answer, "take_profiles", not_profiled)
    tree = {"path": str(linux), "since": "v6.0", "paths": ["fs"]}
    track = Track.model_validate({"name": "t", "minutes": 9, "page": "site", "tree": tree, "watch": [WATCHED]})
    store, said = Store(tmp_path / "store"), list[str]()
    points = points_of(track, store, silent)
    assert [point.subject for point in points if point.rank is Rank.TOUCHES] == ["Merge topic"]
    cells = KernelCells(track, points, store, runs.Doors(parse_question, lambda *_: None), silent)
    night = Night(track, points, Journal.of(store, "t"), cells, said.append, tell=said.append)
    night.work()
    [row] = [row for row in night.known.followed if row.differs]
    assert night.known.points[night.known.places[row.culprit]].subject == "Merge topic"
    assert re.search(r'^[0-9a-f]{7,} "t2", \d{4}-\d\d-\d\d, a\S+ <a@b>$', row.culprit_words), row
    assert row.bisect and row.command.startswith("sh /") and row.capsule.startswith("run-t2-")
    [told] = [line for line in said if line.startswith("copy:elapsed, ext4: slower, 1.199 times")]
    assert '"t2"' in told and escape_controls(SEPARATORS) in told
    assert not night.known.open_steps


def test_a_step_s_run_is_packed_beside_the_pages(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made = capsule_builder.made_run(store)
    page = str(tmp_path / "site")
    track = Track.model_validate({"name": "t", "minutes": 9, "page": page, "debian": {}, "watch": [WATCHED]})
    said: list[str] = []
    packed = runs.TrackRuns(track, [], store, runs.Doors(parse_question, pack), said.append)._pack(made.name)
    assert (packed, said) == (f"capsules/{made.name}.capsule", []) and (tmp_path / "site" / packed).stat().st_size
