"""The how-tos: what they show is what works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agelab.scenario import selection
from tests.build.scenario_builder import HOWTO, PROJECT

SEEDS = (1, 2, 3, 4, 5)


def block(page: str, language: str) -> str:
    """The one block of a page in that language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", (HOWTO / page).read_text(), re.M | re.S)
    return str(found)


def test_the_page_shows_the_scenario_in_ten_lines_and_it_is_one() -> None:
    path = HOWTO / "ten-lines.toml"
    assert block("own-scenario.md", "toml") == path.read_text()
    assert len(path.read_text().splitlines()) == 10
    chosen = selection.select(str(path))
    assert [variant.name for variant in chosen.variants] == ["ext4", "xfs"]
    assert [step.name for step in chosen.scenario.actions()] == ["copy", "read", "remove"]
    assert {name: scale.shrink for name, scale in chosen.scenario.scales.items()} == {"quick": 1, "paper": 1}
    assert chosen.scenario.at_scale("quick") == chosen.scenario.at_scale("paper") == chosen.scenario


def test_the_page_of_workloads_shows_its_example_whole() -> None:
    text = (HOWTO / "fio-aged.toml").read_text()
    assert f"```toml\n{text}```" in (HOWTO / "workloads.md").read_text()
    chosen = selection.select(str(HOWTO / "fio-aged.toml"))
    assert [test.program for test in chosen.scenario.tests] == ["fio"] and chosen.scenario.control


STUB = """#!{python}
import os, sys
sys.path[:0] = [{project!r}]
if sys.argv[1] == "run":
    from tests.build import aging_runs
    from pathlib import Path
    kernel, seeds = sys.argv[sys.argv.index("--kernel") + 1], sys.argv[sys.argv.index("--seeds") + 1]
    if kernel == "broken":
        sys.exit(2)
    from agelab.results.result import Status
    ends = {{"ext4": Status.PANICKED}} if kernel == "panics" else {{}}
    slowdowns = {{"ext4": 2.2 if kernel == "slow" else 1.5}}
    home, drawn = Path(os.environ["AGELAB_HOME"]), [int(seed) for seed in seeds.split(",")]
    run = aging_runs.make(home, slowdowns, seeds=drawn, statuses=ends)
    if kernel == "beside":  # another job's run ends in the same store, and is its latest
        aging_runs.make(home, slowdowns, seeds=drawn, statuses={{"ext4": Status.PANICKED}})
    from types import SimpleNamespace
    from agelab.cli.run import print_report_command
    print_report_command([SimpleNamespace(name=run)])
    sys.exit(kernel == "panics")
from agelab.cli import main
sys.exit(main())
"""
"""agelab, but that no guest runs: what a run measures is made up."""


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """A CI job's directory, with such an agelab and the script of the page."""
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin/agelab"
    stub.write_text(STUB.format(python=sys.executable, project=str(PROJECT)))
    stub.chmod(0o755)
    return tmp_path


def job(ci: Path, kernel: str, **more: str) -> tuple[int, str]:
    environment = {
        **os.environ,
        "PATH": f"{ci / 'bin'}:{os.environ['PATH']}",
        "AGELAB_HOME": str(ci / "store"),
        "BASE": "good",
        "KERNEL": kernel,
        "OUTPUT": str(ci / "out"),
        **more,
    }
    return ended(["sh", str(HOWTO / "gate.sh")], ci, environment)


def ended(command: list[str], place: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_gate_stops_what_failed_with_its_cells_for_ci(ci: Path) -> None:
    assert job(ci, "panics")[0] != 0
    assert (ci / "out/cells.xml").read_text().count('<failure message="this kernel has none"') == len(SEEDS)


def test_the_gate_judges_its_own_runs_beside_other_jobs_of_the_same_store(ci: Path) -> None:
    code, said = job(ci, "beside")
    assert code == 0, said
    assert "<failure" not in (ci / "out/cells.xml").read_text()


def test_the_gate_stops_where_there_is_no_run(ci: Path) -> None:
    assert job(ci, "broken")[0] == 2
    assert not (ci / "out/cells.xml").exists()


def test_the_gate_stops_where_nothing_can_be_said(ci: Path) -> None:
    code, said = job(ci, "slow", SEEDS="1,2,3")
    assert code == 1
    assert "too few seeds to judge the steps' times, so the gate lets nothing pass" in said


def lint(schema: str, file: Path) -> tuple[int, str]:
    checker = Path(sys.executable).with_name("check-jsonschema")
    return ended([str(checker), "--builtin-schema", schema, str(file)], PROJECT, dict(os.environ))


@pytest.mark.parametrize(
    ("schema", "file", "word"),
    [
        ("vendor.github-actions", "action.yml", "using: composite"),
        ("vendor.gitlab-ci", "docs/howto/gitlab-ci.yml", "script:"),
    ],
)
def test_the_files_of_ci_platforms_follow_their_schemas_which_are_strict(
    schema: str, file: str, word: str, tmp_path: Path
) -> None:
    assert lint(schema, PROJECT / file)[0] == 0, lint(schema, PROJECT / file)[1]
    wrong = tmp_path / Path(file).name
    wrong.write_text((PROJECT / file).read_text().replace(f" {word}", f" x{word}"))
    assert lint(schema, wrong)[0] == 1


def jobs_of_page() -> list[dict[str, Any]]:
    text = (HOWTO / "track.md").read_text()
    every = [yaml.safe_load(found) for found in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)]
    return [job for one in every for job in one["jobs"].values()]


def test_the_jobs_of_the_page_follow_the_schema_of_workflows(tmp_path: Path) -> None:
    workflow = tmp_path / "workflow.yml"
    jobs = jobs_of_page()
    assert len(jobs) == 3
    workflow.write_text(yaml.safe_dump({"on": "push", "jobs": {f"job-{n}": job for n, job in enumerate(jobs)}}))
    assert lint("vendor.github-workflows", workflow)[0] == 0, lint("vendor.github-workflows", workflow)[1]


@pytest.mark.parametrize("file", ["action.yml", "docs/howto/track.md"])
def test_actions_of_others_are_named_by_commit_with_their_release_beside(file: str) -> None:
    """A tag can be moved to another commit."""
    text = (PROJECT / file).read_text()
    used = re.findall(r"uses: *(.*)", text)
    others = [one for one in used if not one.startswith("<owner>/agelab@<commit>")]
    assert others and len(used) == text.count("uses:")
    for one in others:
        assert re.fullmatch(r"[a-z-]+(/[a-z-]+)+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one), one


def test_a_job_that_checks_out_a_tree_has_git_before() -> None:
    # Without git, actions/checkout downloads the files alone: there is no HEAD^.
    [steps] = [job["steps"] for job in jobs_of_page() if "fetch-depth" in str(job)]
    words = [str(step) for step in steps]
    [git] = [at for at, said in enumerate(words) if "apt-get install --yes git" in said]
    [checkout] = [at for at, said in enumerate(words) if "actions/checkout" in said]
    assert git < checkout


@pytest.mark.parametrize("there", [(), ("git", "make")])
def test_the_action_sets_up_a_container_without_git_and_make(there: tuple[str, ...], tmp_path: Path) -> None:
    action = yaml.safe_load((PROJECT / "action.yml").read_text())
    [step] = [one for one in action["runs"]["steps"] if one["name"] == "Set up"]
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cp", "id"):
        (programs / name).symlink_to(str(shutil.which(name)))
    stub = programs / "stub"
    stub.write_text(
        '#!/bin/sh\necho "${0##*/} $*" >>log\n[ "$1" != install ] || { cp bin/stub bin/git; cp bin/stub bin/make; }\n'
    )
    stub.chmod(0o755)
    for name in ("apt-get", "sudo", *there):
        shutil.copy(stub, programs / name)
    given = {"PATH": str(programs), "GITHUB_ACTION_PATH": "/action"}
    assert ended(["/bin/sh", "-e", "-c", step["run"]], tmp_path, given) == (0, "")
    log = (tmp_path / "log").read_text().splitlines()
    assert log[-1] == "make -C /action setup"
    assert any("install --yes --no-install-recommends git make" in line for line in log) == (not there)


def test_the_action_names_its_store_without_a_comma(tmp_path: Path) -> None:
    action = yaml.safe_load((PROJECT / "action.yml").read_text())
    [step] = [one for one in action["runs"]["steps"] if one.get("id") == "store"]
    kept, saved = [one for one in action["runs"]["steps"] if "cache" in one.get("uses", "")]
    assert saved["if"] == "always()", "a night that finds a step ends with 1, and must not be lost"
    assert saved["with"] == {"path": kept["with"]["path"], "key": "${{ steps.kept.outputs.cache-primary-key }}"}
    used = set(re.findall(r"steps\.store\.outputs\.(\w+)", str(kept["with"])))
    found = []
    for kernels in ("tree:linux@a,config=x tree:linux@b,config=x", "6.1 6.12"):
        output = tmp_path / "output"
        output.unlink(missing_ok=True)
        environment = {
            "PATH": os.environ["PATH"], "SCENARIO": "aging-ext4", "KERNELS": kernels, "GITHUB_OUTPUT": str(output),
        }  # fmt: skip
        assert ended(["sh", "-e", "-c", step["run"]], tmp_path, environment)[0] == 0
        found.append(dict(line.split("=") for line in output.read_text().splitlines()))
    one, other = found
    assert set(one) == used == set(step["env"])
    assert all(re.fullmatch("[0-9a-f]{16}", value) for value in one.values())
    assert one["SCENARIO"] == other["SCENARIO"] and one["KERNELS"] != other["KERNELS"]


def test_the_job_for_gitlab_lets_what_is_as_quick_pass_and_hands_over_what_it_made(ci: Path) -> None:
    job = yaml.safe_load((HOWTO / "gitlab-ci.yml").read_text())["agelab"]
    (ci / "agelab/.venv").mkdir(parents=True)
    (ci / "agelab/.venv/bin").symlink_to(ci / "bin")
    (ci / "agelab/docs").symlink_to(PROJECT / "docs")
    given = {name: value.replace("$CI_PROJECT_DIR", str(ci)) for name, value in job["variables"].items()}
    given |= {"PATH": os.environ["PATH"], "BASE": "good", "KERNEL": "good"}
    [line] = job["script"]
    code, said = ended(["sh", "-e", "-c", line], ci, given)
    assert code == 0 and "slower:" not in said
    [kept] = job["artifacts"]["paths"]
    made = {path.name: path for path in (ci / kept).iterdir()}
    assert set(made) == {"summary.md", "gate.xml", "cells.xml", "report.html"}
    assert made["summary.md"].read_text().startswith("## ext4")
    assert made["report.html"].stat().st_size > 10_000
    reported = [str(path.relative_to(ci)) for path in ci.glob(job["artifacts"]["reports"]["junit"])]
    assert sorted(reported) == ["agelab-output/cells.xml", "agelab-output/gate.xml"]


def test_the_action_stops_what_is_slower_says_by_how_much_and_posts_its_tables(ci: Path) -> None:
    action = yaml.safe_load((PROJECT / "action.yml").read_text())
    [step] = [one for one in action["runs"]["steps"] if one["name"] == "Run and judge"]
    assert set(step["env"]) == {"AGELAB_HOME", "OUTPUT", "SCENARIO", "BASE", "KERNEL", "SEEDS", "PERCENT"}
    given = {
        "AGELAB_HOME": str(ci / "store"), "OUTPUT": str(ci / "out"), "SCENARIO": "aging-ext4", "BASE": "good",
        "KERNEL": "slow", "SEEDS": action["inputs"]["seeds"]["default"],
        "PERCENT": action["inputs"]["percent"]["default"], "GITHUB_ACTION_PATH": str(ci / "action"),
        "GITHUB_STEP_SUMMARY": str(ci / "summary"), "PATH": os.environ["PATH"],
    }  # fmt: skip
    (ci / "action/.venv").mkdir(parents=True)
    (ci / "action/.venv/bin").symlink_to(ci / "bin")
    (ci / "action/docs").symlink_to(PROJECT / "docs")
    code, said = ended(["sh", "-e", "-c", step["run"]], ci, given)
    assert code == 1
    assert re.search(r"^slower: aged/read: 1\.4\d\d times \(1\.4\d\d to 1\.4\d\d\)$", said, re.M)
    assert "| aged/read | elapsed, s |" in (ci / "out/summary.md").read_text()
    assert (ci / "out/cells.xml").read_text().count("<testcase ") == 2 * len(SEEDS)
    stopped = re.findall('name="([^"]*)">\n *<failure message="slower: ', (ci / "out/gate.xml").read_text())
    assert "aged/read" in stopped and stopped == re.findall(r"^slower: (\S+): ", said, re.M)
    assert (ci / "summary").read_text() == (ci / "out/summary.md").read_text()
