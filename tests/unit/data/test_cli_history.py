"""agelab history as a user meets it."""

import subprocess
from pathlib import Path

import pytest

from agelab.base import catalogue
from agelab.data.history.operations import check_log
from agelab.data.history.profile import load_profile
from tests.build.cli import AGELAB, Cli


def test_a_log_is_made_reported_and_checked(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "my.log"
    asked = ["profile", "--disk", "60M", "--fullness", "0.5", "--overwrites", "3", "--points", "2"]
    lines = cli.out("history", "make", *asked, "-o", path).splitlines()
    assert any(line.startswith("fullness     0.4") and line.endswith("asked 0.5") for line in lines)
    assert any("the ages have not converged" in line for line in lines) and "points       2" in lines
    facts = cli.json("history", "check", path, "--json")
    assert facts["schema"] == 1 and facts["operations"] == check_log(path).operations
    assert f"operations   {facts['operations']}\n" in cli.out("history", "check", path)
    assert "is there already" in cli.err("history", "make", "churn", "--disk", "60M", "-o", path)
    assert (
        cli.json("history", "make", "churn", "--disk", "60M", "--json", "-o", tmp_path / "other")["engine"] == "churn"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.log", "other"]


def test_a_log_on_standard_input_is_refused_where_it_is_no_file(tmp_path: Path) -> None:
    words = [*AGELAB, "history", "check", "/dev/stdin"]
    done = subprocess.run(words, input="x\n" * 9, capture_output=True, text=True, check=False)
    said = "agelab: /dev/stdin: it is a pipe, not a regular file; name a file that holds the content\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["git", "--seed", "2"], "--seed has no meaning for engine git"),
        (["git"], "engine git needs --repository"),
        (["churn", "--profile", "agrawal-2007"], "--profile has no meaning for engine churn"),
        (["history", "--freed", "0.1"], "--freed has no meaning for engine history"),
        (["profile", "--profile", "agraval-2007"], "did you mean agrawal-2007?"),
        (["profile", "--fullness", "nan"], "--fullness nan: Input should be a finite number"),
        (["profile", "--overwrites", "-1"], "--overwrites -1.0: Input should be greater than or equal to 0"),
        (["profile", "--disk", "much"], "'much' is not a size"),
    ],
)
def test_options_that_do_not_go_with_the_engine_are_refused(
    options: list[str], message: str, tmp_path: Path, cli: Cli
) -> None:
    first = cli.err("history", "make", *options, "-o", tmp_path / "log").splitlines()[0]
    assert first.startswith("agelab: ") and message in first
    assert not list(tmp_path.iterdir())


def test_every_fault_of_a_log_is_named(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "log"
    path.write_text("agelab-operations 1\nunlink a\ncreate b\nrmdir b\n")
    said = cli.err("history", "check", path)
    assert f"{path}: line 2: there is no 'a'" in said and f"{path}: line 4: 'b' is no directory" in said


def test_profiles_are_listed_with_their_studies(cli: Cli) -> None:
    said = cli.out("list", "profiles")
    for one in map(load_profile, catalogue.names("profiles")):
        assert f"{one.name} " in said and one.title in " ".join(said.split())
        assert len(one.sizes.upto) == len(one.sizes.weights) and len(one.ages.upto) == len(one.ages.weights)
        assert len(one.depths.weights) == len(one.depths.directories)
