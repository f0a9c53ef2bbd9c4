"""An aging profile of a user's own: read by its path, and refused in a line where no history could follow it."""

import re
from itertools import islice
from pathlib import Path

import pytest

from agelab.base import catalogue
from agelab.base.errors import InputError
from agelab.data.history import artefact, profile
from agelab.data.history.operations import check_log
from agelab.data.history.profile import ProducedFiles, ProfileRequest, load_profile, operations
from agelab.runner.execute.run_plan import scenario_hash
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario import selection
from agelab.scenario.history import Profiled
from agelab.store.artefacts import Store
from tests.build.cli import Cli

MIB = 1 << 20
SMALL = Path(__file__).parents[2] / "vm/small-history.toml"
PROFILE = """
name = "mine"
title = "mail of a small company"

[sizes]
origin = "estimated"
why = "bytes"
upto = [0, 4096, 65536]
weights = [2, 5, 3]

[ages]
origin = "estimated"
why = "days"
upto = [1, 10, 100]
weights = [1, 3, 6]

[depths]
origin = "estimated"
why = "directories above a file"
weights = [1, 4]
directories = [2, 10]
"""


def written(directory: Path, text: str = PROFILE) -> Path:
    path = directory / "mine.toml"
    path.write_text(text)
    return path


def scenario(directory: Path, named: str = "./mine.toml") -> Path:
    path = directory / "small-history.toml"
    path.write_text(SMALL.read_text().replace('profile = "agrawal-2007"', f'profile = "{named}"'))
    return path


def history(chosen: selection.Selection) -> Profiled:
    own = chosen.scenario.histories[0]
    assert isinstance(own, Profiled)
    return own


def test_a_class_of_no_bytes_is_of_empty_files(tmp_path: Path) -> None:
    log, produced = tmp_path / "log", ProducedFiles()
    with log.open("wb") as file:
        asked = ProfileRequest(64 * MIB, 0.5, 3, 2)
        file.writelines(operations(load_profile(str(written(tmp_path))), asked, 1, produced))
    summary = check_log(log)
    assert summary.files == produced.files == sum(produced.sizes.values())
    assert produced.sizes[0] / produced.files == pytest.approx(0.2, abs=0.03)
    assert summary.counts["create"] > summary.counts["write"] and len(summary.points) == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("upto = [0, 4096, 65536]|upto = [0]", "sizes: upto must rise, and each class have a weight"),
        ("[0, 4096, 65536]\nweights = [2, 5, 3]|[0]\nweights = [2]", "every file would be empty"),
        ("weights = [2, 5, 3]|weights = [2, 0, 0]", "every file would be empty"),
        ("weights = [2, 5, 3]|weights = [0, 0, 0]", "sizes: weights: one at least must be above 0"),
        ("weights = [2, 5, 3]|weights = [2, -5, 3]", r"sizes\.weights\[1\]: Input should be greater than or equal"),
        ("upto = [0, 4096, 65536]|upto = [-1, 4096, 65536]", r"sizes\.upto\[0\]: Input should be greater"),
        ("upto = [0, 4096, 65536]|upto = [0, 4096, 1.5]", r"sizes\.upto\[2\]: Input should be a valid integer"),
        ("upto = [1, 10, 100]\nweights = [1, 3, 6]|upto = [0]\nweights = [1]", "ages: upto must end above 0"),
        ("directories = [2, 10]|directories = [0, 10]", r"depths\.directories\[0\]: Input should be greater"),
        ("directories = [2, 10]|directories = [2, 2000000]", "depths: directories: 1,000,000 together at most"),
        ("directories = [2, 10]|directories = [2]", "each depth has a weight and a number of directories"),
        ("[depths]|[depth]", "depths: is missing"),
        ('name = "mine"|name = "../mine"', "name: String should match pattern"),
        ("upto = [0, 4096, 65536]|upto = [0, 4096, 65536", "not valid TOML"),
    ],
)  # fmt: skip
def test_what_no_history_could_follow_is_refused_with_its_place(
    tmp_path: Path, change: str, problem: str, cli: Cli
) -> None:
    before, after = change.split("|")
    assert before in PROFILE
    path = written(tmp_path, PROFILE.replace(before, after))
    with pytest.raises(InputError, match=rf"mine\.toml: .*({problem})"):
        selection.select(str(scenario(tmp_path)))
    assert (
        re.search(problem, cli.err("history", "make", "profile", "--profile", path, "-o", tmp_path / "log"))
        and not (tmp_path / "log").exists()
    )


def test_a_history_of_more_files_than_anybody_waits_for_is_refused_at_once(tmp_path: Path) -> None:
    tiny = load_profile(str(written(tmp_path, PROFILE.replace("weights = [2, 5, 3]", "weights = [9000000, 1, 0]"))))
    with pytest.raises(InputError, match=r"files of 0\.0 bytes on average: to write 3,000,000,000 takes more than"):
        next(operations(tiny, ProfileRequest(1_000_000_000, 0.5, 3, 1), 1, ProducedFiles()))
    for published in map(load_profile, catalogue.names("profiles")):
        paper = ProfileRequest(4224 * MIB, 0.8, 20, 1)
        assert len(list(islice(operations(published, paper, 1, ProducedFiles()), 1000))) == 1000


def test_a_path_is_from_the_scenarios_file_on_and_its_content_is_in_the_key(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    (tmp_path / "a").mkdir()
    written(tmp_path / "a")
    first = selection.select(str(scenario(tmp_path / "a")))
    (tmp_path / "b").mkdir()
    written(tmp_path / "b", "# the same\n" + PROFILE)
    again = selection.select(str(scenario(tmp_path / "b", str(tmp_path / "b" / "mine.toml"))))
    written(tmp_path / "b", PROFILE.replace("[2, 5, 3]", "[2, 5, 4]"))
    other = selection.select(str(scenario(tmp_path / "b")))
    chosen = (first, again, other)
    keys = [artefact.obtain_history(history(selected), 64 * MIB, 1, store).key for selected in chosen]
    hashes = [scenario_hash(selected.scenario) for selected in chosen]
    assert keys[0] == keys[1] != keys[2] and hashes[0] == hashes[1] != hashes[2]


def test_a_published_profile_by_its_path_is_the_same_history(tmp_path: Path, store: Store) -> None:
    written(tmp_path, (profile.PROFILES / "agrawal-2007.toml").read_text())
    by_path = history(selection.select(str(scenario(tmp_path))))
    by_name = history(selection.select(str(SMALL)))
    assert by_path.profile != by_name.profile == "agrawal-2007"
    made = [artefact.obtain_history(profiled, 64 * MIB, 1, store) for profiled in (by_path, by_name)]
    assert made[0].key == made[1].key


def test_it_goes_with_the_run_and_nobody_reads_it_who_could_not_before(tmp_path: Path) -> None:
    path = written(tmp_path)
    asked = RunOptions(directory=str(tmp_path), name=str(scenario(tmp_path)))
    request = resolve(asked)
    assert request.selection.profiles == {"profiles/profile": PROFILE.encode()}
    path.chmod(0o600)
    assert resolve(asked).readable_by == 0o700
    text = (tmp_path / "small-history.toml").read_text()
    path.unlink()
    carried = selection.select("small-history.toml", text=text, jobs=request.selection.profiles)
    assert history(carried) == history(request.selection)
    with pytest.raises(InputError, match=r"histories\[0\]\.profile: mine\.toml is not among what was packed"):
        selection.select("small-history.toml", text=text, jobs={})
    with pytest.raises(InputError, match=r"mine\.toml: cannot be read: No such file"):
        resolve(asked)


def test_a_wrong_name_says_how_to_name_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no profile 'mine'.* \./mine\.toml"):
        load_profile("mine")
    with pytest.raises(InputError, match=r"profile: Input should be a valid string \(it is 3\)"):
        path = scenario(tmp_path)
        path.write_text(path.read_text().replace('"./mine.toml"', "3"))
        selection.select(str(path))
