"""agelab bisect as a command: what it refuses in one line, what it asks of a run, and what it shows."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base.errors import HostError, InputError
from agelab.bisect import kernel_runs, search
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.kernel_runs import options_of
from agelab.cli import bisect, main
from agelab.kernel import build
from agelab.kernel.debian_kernel import AvailableKernel
from agelab.results.measure import ALL_STEPS, MEAN
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.store.artefacts import Store
from bench.planted import SCENARIO as ON_NO_DRIVE
from tests.build import simulated_bisect as simulated
from tests.build.profiled_runs import profiled
from tests.build.simulated_bisect import planted

SMALL = str(Path(__file__).parents[2] / "vm" / "small.toml")
RELEASES = ("5.10.0-46", "6.1.0-49", "6.1.0-50", "6.12.117+deb13", "7.2.13+deb14")
WORDS = ["--scenario", "aging", "--variant", "ext4", "--metric", "aged/map:layout_score"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, and a mirror with five kernels, one of them without headers."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))

    def release_of(wanted: str, store: Store, **_: object) -> str:
        found = [one for one in RELEASES if one == wanted or one.startswith(f"{wanted}.")]
        if not found:
            raise InputError(f"no kernel 'debian:{wanted}' in Debian's suites; the nearest are debian:6.1")
        return f"{found[-1]}-amd64"

    def available(store: Store, **_: object) -> list[AvailableKernel]:
        return [
            AvailableKernel(release=f"{one}-amd64", version="1", suite="sid", headers=one != "6.1.0-49")
            for one in RELEASES
        ]

    monkeypatch.setattr(search, "release_of", release_of)
    monkeypatch.setattr(search, "available", available)
    monkeypatch.setattr(build, "check_configuration", lambda spec, store, progress: None)
    return tmp_path / "home"


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tree") / "linux"
    simulated.history(path, 17)
    subprocess.run(["git", "-C", str(path), "branch", "other", "v6.3"], check=True)
    git = ["git", "-C", str(path)]
    subprocess.run([*git, "checkout", "-q", "other"], check=True)
    subprocess.run([*git, "rm", "-q", "Kconfig"], check=True)
    subprocess.run([*git, "commit", "-qm", "no kernel"], check=True, env=simulated.ENV)
    subprocess.run([*git, "checkout", "-q", "main"], check=True)
    return path


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """Return the command's one-line error, without the hint."""
    assert main(["bisect", *words]) == code
    said = capsys.readouterr().err.splitlines()
    [line] = [one for one in said if one.startswith("agelab: ")]
    assert len(said) - said.index(line) <= 2
    return line.removeprefix("agelab: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scenario", "aging"], "missing: --good, --bad"),
        (
            ["--scenario", "aging", "--good", "5.10", "--bad", "6.1"],
            "name the difference between good and bad: --metric",
        ),
        (
            [*WORDS, "--symptom", "hang", "--good", "5.10", "--bad", "6.1"],
            "name the difference between good and bad",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.13"],
            "no kernel 'debian:6.13' in Debian's suites; the nearest are",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "5.10.0-46"],
            "good and bad are the same kernel: debian:5.10.0-46-amd64",
        ),
        (
            [*WORDS[:4], "--metric", "copy", "--good", "5.10", "--bad", "6.1"],
            "--metric copy: it is STEP:METRIC",
        ),
        (
            [*WORDS[:4], "--metric", "copied:elapsed", "--good", "5.10", "--bad", "6.1"],
            "no step 'copied' in aging; did you mean copy",
        ),
        (
            [*WORDS[:4], "--metric", "aged/reed:elapsed", "--good", "5.10", "--bad", "6.1"],
            "no step 'aged/reed' in aging; ",
        ),
        (
            [*WORDS[:4], "--crash", "on", "--good", "5.10", "--bad", "6.1"],
            "'on' is no call that agelab makes",
        ),
        (
            [*WORDS[:4], "--crash", "one", "--symptom", "hang", "--good", "5.10", "--bad", "6.1"],
            "difference between good and bad",
        ),
        ([*WORDS, "--crash", "one", "--good", "5.10", "--bad", "6.1"], "--crash measures crash:violations"),
        (
            [*WORDS[:4], "--crash", "one", "--good", "5.10", "--bad", "6.1", "--clock", "wall"],
            "--crash goes with the virtual clock",
        ),
        ([*WORDS[:4], "--metric", "copy:elapsd", "--good", "5.10", "--bad", "6.1"], "did you mean elapsed"),
        ([*WORDS, "--good", "5.10", "--bad", "6.1", "--threshold", "x"], "--threshold x: not a number"),
        ([*WORDS, "--good", "5.10", "--bad", "6.1", "--threshold", "1", "--relative", "2"], "leave one out"),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.1", "--relative", "-10%"],
            "-10%: name a change towards bad",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.1", "--relative", "10%", "--clock", "wall"],
            "goes with the virtual",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.1", "--rounds", "5", "--clock", "wall"],
            "--rounds 5: --alpha",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.1", "--threshold", "10%"],
            "--threshold 10%: not a number",
        ),
        (
            [*WORDS, "--good", "5.10", "--bad", "6.1", "--alpha", "0.1%", "--clock", "wall"],
            "--alpha 0.1%: not a number",
        ),
        ([*WORDS, "--good", "5.10", "--bad", "6.1", "--dirty"], "--dirty goes with --tree"),
        (
            [*WORDS[:2], *WORDS[4:], "--good", "5.10", "--bad", "6.1"],
            "a bisect measures one variant; aging has btrfs, ext2",
        ),
        (
            [*WORDS, "--good", "6.1", "--bad", "5.10", "--kernels", "5.10 6.1"],
            "--kernels: 5.10 comes before 6.1",
        ),
        ([*WORDS, "--good", "image:/x", "--bad", "6.1"], "only Debian's kernels have a known order"),
        (
            ["--continue", "latest", "--good", "5.10"],
            "--continue goes on with what was asked: leave --good out",
        ),
        (["--continue", "yesterday"], "no bisect 'yesterday'"),
        (
            ["--scenario", "small", *WORDS[2:], "--good", "5.10", "--bad", "6.1"],
            "no scenario 'small'; ",
        ),
        (
            [*WORDS, "--profile", "--good", "5.10", "--bad", "6.1"],
            "--profile: aged/map:layout_score names no step that can be profiled",
        ),
        (
            [*WORDS[:4], "--symptom", "hang", "--profile", "--good", "5.10", "--bad", "6.1"],
            "--profile: symptom hang names no step that can be profiled",
        ),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("v6.2", "v6.99", "--bad v6.99: no such version in {tree}; did you mean v6.9"),
        ("v6.9", "v6.2", "good and bad are swapped: bad (v6.2) comes before good (v6.9)"),
        ("v6.9", "v6.9", "good and bad are the same commit: v6.9, v6.9 = "),
        ("v6.2", "other", "--tree {tree}: bad is not a kernel tree: it lacks Kconfig"),
        ("v6.9", "v6.3^{{commit}}", "good and bad are swapped"),
    ],
)
def test_ends_of_a_tree_that_do_not_fit_are_one_clear_line(
    linux: Path, good: str, bad: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--tree", str(linux), "--good", good, "--bad", bad.format()]
    assert said.format(tree=linux) in refused(capsys, *words)


def test_trees_that_will_not_do_are_one_clear_line(
    linux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = ["--good", "v6.2", "--bad", "v6.9"]
    assert "there is no such directory" in refused(capsys, *WORDS, *ends, "--tree", str(tmp_path / "x"))
    assert "it is not the top directory of a git tree" in refused(
        capsys, *WORDS, *ends, "--tree", str(tmp_path)
    )
    assert "it is not the top directory of a git tree" in refused(
        capsys, *WORDS, *ends, "--tree", str(linux / "fs")
    )
    assert "there is no such file" in refused(
        capsys, *WORDS, *ends, "--tree", str(linux), "--config", "/nowhere"
    )
    (linux / "fs" / "a.c").write_text("changed")
    try:
        said = refused(capsys, *WORDS, *ends, "--tree", str(linux))
        assert said.endswith("has uncommitted changes: fs/a.c")

        def lacks(spec: str, store: Store, progress: object) -> None:
            raise InputError(f"{spec[-6:]} lacks options that a guest needs: CONFIG_OVERLAY_FS")

        monkeypatch.setattr(build, "check_configuration", lacks)
        assert "lacks options that a guest needs" in refused(
            capsys, *WORDS, *ends, "--tree", str(linux), "--dirty"
        )
    finally:
        (linux / "fs" / "a.c").write_text("")


def unrelated(path: Path) -> None:
    subprocess.run(["git", "-C", str(path), "checkout", "-q", "--orphan", "alone"], check=True)
    subprocess.run(["git", "-C", str(path), "commit", "-qm", "alone"], check=True, env=simulated.ENV)
    subprocess.run(["git", "-C", str(path), "checkout", "-q", "main"], check=True)


def test_ends_that_are_not_related_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated.history(tmp_path / "linux", 3)
    unrelated(tmp_path / "linux")
    words = [*WORDS, "--tree", str(tmp_path / "linux"), "--good", "v6.1", "--bad", "alone"]
    assert "bad (alone) does not descend from good (v6.1)" in refused(capsys, *words)


def asked(monkeypatch: pytest.MonkeyPatch, home: Path, *words: str) -> BisectQuestion:
    """The question that a command line comes to."""
    monkeypatch.setattr(bisect, "_same_files", stopped)
    assert main(["bisect", *words]) == 3
    return BisectDirectory.find(Store(home), "latest").question()


def stopped(question: BisectQuestion) -> None:
    raise HostError("no further")


def test_all_that_the_mirror_has_between_the_ends_is_searched(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(monkeypatch, home, *WORDS, "--good", "5.10", "--bad", "6.12")
    # Without headers the modelled drive cannot be had.
    assert found.kernels == tuple(
        f"debian:{one}-amd64" for one in ("5.10.0-46", "6.1.0-50", "6.12.117+deb13")
    )
    assert (found.candidates, found.steps, found.clock, found.metric) == (
        2,
        1,
        "virtual",
        ("aged/map", MEAN, "layout_score"),
    )
    found = asked(monkeypatch, home, *WORDS, "--good", "7.2", "--bad", "6.1.0-49", "--disks", "model:none")
    assert [one[7:12] for one in found.kernels] == [
        "7.2.1",
        "6.12.",
        "6.1.0",
        "6.1.0",
    ]  # what got better, searched backwards


def test_a_scenario_on_no_drive_needs_no_headers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--scenario", str(ON_NO_DRIVE), "--variant", "jfs", "--metric", "copy:elapsed"]
    found = asked(monkeypatch, home, *words, "--good", "5.10", "--bad", "6.12")
    assert "debian:6.1.0-49-amd64" in found.kernels


def test_a_list_of_one_s_own_is_searched_from_good_to_bad(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*WORDS, "--good", "5.10", "--bad", "7.2", "--kernels", "6.1 image:/a/bzImage 6.12"]
    found = asked(monkeypatch, home, *words)
    assert found.kernels == (
        "debian:5.10.0-46-amd64",
        "debian:6.1.0-50-amd64",
        "image:/a/bzImage",
        "debian:6.12.117+deb13-amd64",
        "debian:7.2.13+deb14-amd64",
    )


def test_a_step_is_a_normal_run_of_one_cell(
    home: Path, linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "more.config"
    config.write_text("CONFIG_PVH=y\n")
    words = [
        "--scenario",
        SMALL,
        "--variant",
        "ext4",
        "--symptom",
        "hang",
        "--tree",
        str(linux),
        "--good",
        "v6.2",
        "--bad",
        "main",
    ]
    told = ["--config", str(config), "--config", "CONFIG_A=m", "--jobs", "2", "--defaults", "today"]
    found = asked(monkeypatch, home, *words, *told)
    assert found.candidates == 14 and found.tree and found.files.keys() == {str(config)}
    kernel = found.tree.kernel_spec(found.tree.good)
    assert kernel == f"tree:{linux}@{found.tree.good},config={config},config=CONFIG_A=m"
    options = options_of(found).changed(kernel=kernel, seeds=(3, 4))
    assert (options.jobs, options.defaults) == (2, "today")
    request = resolve(options)
    assert request.kernel == kernel and len(request.seeded_variants) == 2  # one variant, two seeds


def test_other_files_than_it_was_begun_with_stop_a_bisect(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text("")
    simulated.asked(Store(home), planted(3), files={str(patch): "0" * 64})
    assert refused(capsys, "--continue", "latest") == f"{patch} is not what it was when the bisect was begun"


def test_a_directory_that_is_gone_stops_a_bisect(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.asked(Store(home), planted(3), directory=str(tmp_path / "gone"))
    assert "was begun in" in refused(capsys, "--continue", "latest")


def test_real_disks_of_a_bisect_that_goes_on_are_named_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = tmp_path / "a disk.img"
    words = {"disks": f"file:{disk}", "erase": "SERIAL", "jobs": 1}
    name = simulated.asked(Store(home), planted(3), words=words).name
    monkeypatch.setattr(bisect, "_same_files", stopped)
    assert main(["bisect", "--continue", "latest"]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert "the plan writes to file:" in error and "must be named on the command line" in error
    paste = shlex.split(hint.partition("may be lost: ")[2])
    assert paste == [
        *("agelab", "bisect", "--continue", name),
        *("--disks", f"file:{disk}?cache=none&aio=native", "--erase", "SERIAL"),
    ]
    assert main(paste[1:]) == 3  # it goes on, to where this test has it stop
    capsys.readouterr()
    for others in (paste[4:6], [*paste[4:6], "--erase", "OTHER"]):
        assert "--erase names other disks than" in refused(capsys, "--continue", "latest", *others)
    assert "another" in refused(capsys, "--continue", "latest", "--disks", "file:/b", "--erase", "SERIAL")


def test_a_line_a_kernel_has_its_value_and_the_answer_comes_last(
    home: Path, linux: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.asked_of_tree(Store(home), linux, planted(11, 16), "v6.0", "main")
    monkeypatch.setattr(kernel_runs, "KernelRuns", lambda directory, *_, **__: simulated.Toy(directory))
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", sys.stdout)  # one screen
        assert main(["bisect", "--continue", "latest"]) == 0
    head, count, begins, ends, *steps = capsys.readouterr().out.split("first bad: ")[0].splitlines()
    assert head.startswith("bisect ") and count == "16 kernels could be the first bad one: about 4 steps"
    assert begins == "measuring both ends: small-ext4 on good G and bad B"
    assert ends.startswith("both ends: good 1.000000 s, bad 2.000000 s, ")
    assert [one.partition(" of about 4: ")[0] for one in steps] == [
        f"step {number}" for number in (1, 2, 3, 4)
    ]
    assert steps[3].endswith('"11": bad: 2 s (1 seed)')
    log = BisectDirectory.find(Store(home), "latest").log.read_text()
    assert "  seed 1: 2.0 s\n" in log and set(steps) < set(log.splitlines())
    assert main(["bisect", "--continue", "latest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    assert os.environ.get("GIT_DIR") is None


def test_both_sides_of_the_change_are_profiled_where_it_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home)
    directory = simulated.asked(store, planted(2, 3), profile=True, words={"jobs": 1, "scale": "quick"})
    monkeypatch.setattr(kernel_runs, "KernelRuns", lambda directory, *_, **__: simulated.Toy(directory))
    before = profiled(home, steps=(("copy", 1, "cp;copy 3\n"),))
    after = profiled(home, steps=(("copy", 1, "cp;copy 3\ncp;copy;search 9\n"),))
    ran: list[RunOptions] = []

    def run(options: RunOptions, *_: object) -> RunDirectory:
        ran.append(options)
        return {"1": before, "2": after}[options.kernel or ""]

    monkeypatch.setattr(runner, "run", run)
    assert main(["bisect", "--continue", "latest"]) == 0
    shown = capsys.readouterr()
    assert [(one.kernel, one.seeds, one.profile) for one in ran] == [("1", (1,), True), ("2", (1,), True)]
    [row] = [line.split() for line in shown.out.splitlines() if line.rstrip().endswith(" search")]
    assert row == ["+9", "+300.0", "0", "9", "search"]
    drawn = directory.path / "difference.svg"
    assert drawn.read_text().startswith("<svg") and str(drawn) in shown.err


def test_an_answer_is_there_also_where_a_side_cannot_be_profiled(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = simulated.asked(Store(home), planted(2, 3), profile=True)
    monkeypatch.setattr(kernel_runs, "KernelRuns", lambda directory, *_, **__: simulated.Toy(directory))
    without = profiled(home, steps=())
    monkeypatch.setattr(runner, "run", lambda *_: without)
    assert main(["bisect", "--continue", "latest"]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("first bad: 2") and "has no steps" in shown.err
    assert (directory.path / "answer.txt").exists()


@pytest.mark.parametrize(
    ("metric", "clock", "step"),
    [
        (("copy", 1, "elapsed"), "virtual", "copy"),
        (("copy", MEAN, "elapsed"), "virtual", "copy"),
        (("aged/fio.read", 1, "fio_read_iops"), "virtual", "aged/fio"),
        (("aged/map", 1, "layout_score"), "virtual", ""),
        (("then/aged/scan", 2, "elapsed"), "virtual", ""),
        (ALL_STEPS, "virtual", ""),
        (("copy", 1, "elapsed"), "wall", ""),
    ],
)
def test_the_profiled_step_is_that_of_the_metric(
    tmp_path: Path, metric: tuple[str, int, str], clock: str, step: str
) -> None:
    asked = simulated.asked(Store(tmp_path), planted(2, 3), metric=metric, clock=clock)
    assert asked.question().profiled_step == step
