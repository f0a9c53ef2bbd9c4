"""agelab bisect as a command: what it refuses in one line, what it asks of a run, and what it shows."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
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
from tests.build.cli import Cli
from tests.build.profiled_runs import profiled
from tests.build.simulated_bisect import planted

SMALL = str(Path(__file__).parents[2] / "vm" / "small.toml")
RELEASES = ("5.10.0-46", "6.1.0-49", "6.1.0-50", "6.12.117+deb13", "7.2.13+deb14")
DEBIAN = [f"debian:{one}-amd64" for one in RELEASES]


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


def refused(cli: Cli, words: str) -> str:
    """Return the command's one-line error, without the hint."""
    said = cli.err("bisect", *shlex.split(words)).splitlines()
    [line] = [one for one in said if one.startswith("agelab: ")]
    assert len(said) - said.index(line) <= 2
    return line.removeprefix("agelab: ")


CELL, METRIC, ENDS = ("--scenario aging --variant ext4", "--metric aged/map:layout_score", "--good 5.10 --bad 6.1")
ALL = f"{CELL} {METRIC}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--scenario aging", "missing: --good, --bad"),
        (f"--scenario aging {ENDS}", "name the difference between good and bad: --metric"),
        (f"{ALL} --symptom hang {ENDS}", "name the difference between good and bad"),
        (f"{ALL} --good 5.10 --bad 6.13", "no kernel 'debian:6.13' in Debian's suites; the nearest are"),
        (f"{ALL} --good 5.10 --bad 5.10.0-46", "good and bad are the same kernel: debian:5.10.0-46-amd64"),
        (f"{CELL} --metric copy {ENDS}", "--metric copy: it is STEP:METRIC"),
        (f"{CELL} --metric copied:elapsed {ENDS}", "no step 'copied' in aging; did you mean copy"),
        (f"{CELL} --metric aged/reed:elapsed {ENDS}", "no step 'aged/reed' in aging; "),
        (f"{CELL} --crash on {ENDS}", "'on' is no call that agelab makes"),
        (f"{CELL} --crash one --symptom hang {ENDS}", "difference between good and bad"),
        (f"{ALL} --crash one {ENDS}", "--crash measures crash:violations"),
        (f"{CELL} --crash one --clock wall {ENDS}", "--crash goes with the virtual clock"),
        (f"{CELL} --metric copy:elapsd {ENDS}", "did you mean elapsed"),
        (f"{ALL} --threshold x {ENDS}", "--threshold x: not a number"),
        (f"{ALL} --threshold 1 --relative 2 {ENDS}", "leave one out"),
        (f"{ALL} --relative -10% {ENDS}", "-10%: name a change towards bad"),
        (f"{ALL} --relative 10% --clock wall {ENDS}", "goes with the virtual"),
        (f"{ALL} --rounds 5 --clock wall {ENDS}", "--rounds 5: --alpha"),
        (f"{ALL} --threshold 10% {ENDS}", "--threshold 10%: not a number"),
        (f"{ALL} --alpha 0.1% --clock wall {ENDS}", "--alpha 0.1%: not a number"),
        (f"{ALL} --dirty {ENDS}", "--dirty goes with --tree"),
        (f"--scenario aging {METRIC} {ENDS}", "a bisect measures one variant; aging has btrfs, ext2"),
        (f"{ALL} --good 6.1 --bad 5.10 --kernels '5.10 6.1'", "--kernels: 5.10 comes before 6.1"),
        (f"{ALL} --good image:/x --bad 6.1", "only Debian's kernels have a known order"),
        ("--continue latest --good 5.10", "--continue goes on with what was asked: leave --good out"),
        ("--continue yesterday", "no bisect 'yesterday'"),
        (f"--scenario small --variant ext4 {METRIC} {ENDS}", "no scenario 'small'; "),
        (f"{ALL} --profile {ENDS}", "--profile: aged/map:layout_score names no step that can be profiled"),
        (f"{CELL} --symptom hang --profile {ENDS}", "--profile: symptom hang names no step that can be profiled"),
    ],
)
def test_bad_input_is_one_clear_line(words: str, said: str, cli: Cli) -> None:
    assert said in refused(cli, words)


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
    linux: Path, good: str, bad: str, said: str, cli: Cli
) -> None:
    words = f"{ALL} --tree {linux} --good {good} --bad {bad.format()}"
    assert said.format(tree=linux) in refused(cli, words)


def test_trees_that_will_not_do_are_one_clear_line(
    linux: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = f"{ALL} --good v6.2 --bad v6.9 --tree "
    assert "there is no such directory" in refused(cli, f"{tree} {tmp_path}/x")
    for directory in (tmp_path, linux / "fs"):
        assert "it is not the top directory of a git tree" in refused(cli, f"{tree} {directory}")
    assert "there is no such file" in refused(cli, f"{tree} {linux} --config /nowhere")
    (linux / "fs" / "a.c").write_text("changed")
    try:
        assert refused(cli, f"{tree} {linux}").endswith("has uncommitted changes: fs/a.c")

        def lacks(spec: str, store: Store, progress: object) -> None:
            raise InputError(f"{spec[-6:]} lacks options that a guest needs: CONFIG_OVERLAY_FS")

        monkeypatch.setattr(build, "check_configuration", lacks)
        assert "lacks options that a guest needs" in refused(cli, f"{tree} {linux} --dirty")
    finally:
        (linux / "fs" / "a.c").write_text("")


def unrelated(path: Path) -> None:
    subprocess.run(["git", "-C", str(path), "checkout", "-q", "--orphan", "alone"], check=True)
    subprocess.run(["git", "-C", str(path), "commit", "-qm", "alone"], check=True, env=simulated.ENV)
    subprocess.run(["git", "-C", str(path), "checkout", "-q", "main"], check=True)


def test_ends_that_are_not_related_are_refused(tmp_path: Path, cli: Cli) -> None:
    simulated.history(tmp_path / "linux", 3)
    unrelated(tmp_path / "linux")
    words = f"{ALL} --tree {tmp_path}/linux --good v6.1 --bad alone"
    assert "bad (alone) does not descend from good (v6.1)" in refused(cli, words)


def stopped(question: BisectQuestion) -> None:
    raise HostError("no further")


Asked = Callable[[str], BisectQuestion]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, home: Path, cli: Cli) -> Asked:
    """The question that a command line comes to."""
    monkeypatch.setattr(bisect, "_same_files", stopped)

    def question(words: str) -> BisectQuestion:
        cli.run("bisect", *shlex.split(words), code=3)
        return BisectDirectory.find(Store(home), "latest").question()

    return question


def test_all_that_the_mirror_has_between_the_ends_is_searched(asked: Asked) -> None:
    found = asked(f"{ALL} --good 5.10 --bad 6.12")
    # Without headers the modelled drive cannot be had.
    assert found.kernels == (DEBIAN[0], *DEBIAN[2:4])
    assert (found.candidates, found.steps, found.clock) == (2, 1, "virtual")
    assert found.metric == ("aged/map", MEAN, "layout_score")
    found = asked(f"{ALL} --good 7.2 --bad 6.1.0-49 --disks model:none")
    # What got better, searched backwards.
    assert [one[7:12] for one in found.kernels] == ["7.2.1", "6.12.", "6.1.0", "6.1.0"]


def test_a_scenario_on_no_drive_needs_no_headers(asked: Asked) -> None:
    words = f"--scenario {ON_NO_DRIVE} --variant jfs --metric copy:elapsed"
    assert "debian:6.1.0-49-amd64" in asked(f"{words} --good 5.10 --bad 6.12").kernels


def test_a_list_of_one_s_own_is_searched_from_good_to_bad(asked: Asked) -> None:
    found = asked(f"{ALL} --good 5.10 --bad 7.2 --kernels '6.1 image:/a/bzImage 6.12'")
    assert found.kernels == (DEBIAN[0], DEBIAN[2], "image:/a/bzImage", *DEBIAN[3:])


def test_a_step_is_a_normal_run_of_one_cell(linux: Path, tmp_path: Path, asked: Asked) -> None:
    config = tmp_path / "more.config"
    config.write_text("CONFIG_PVH=y\n")
    words = f"--scenario {SMALL} --variant ext4 --symptom hang --tree {linux} --good v6.2 --bad main"
    found = asked(f"{words} --config {config} --config CONFIG_A=m --jobs 2 --defaults today")
    assert found.candidates == 14 and found.tree and found.files.keys() == {str(config)}
    kernel = found.tree.kernel_spec(found.tree.good)
    assert kernel == f"tree:{linux}@{found.tree.good},config={config},config=CONFIG_A=m"
    options = options_of(found).changed(kernel=kernel, seeds=(3, 4))
    assert (options.jobs, options.defaults) == (2, "today")
    request = resolve(options)
    assert request.kernel == kernel and len(request.seeded_variants) == 2  # one variant, two seeds


def test_other_files_than_it_was_begun_with_stop_a_bisect(home: Path, tmp_path: Path, cli: Cli) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text("")
    simulated.asked(Store(home), planted(3), files={str(patch): "0" * 64})
    assert refused(cli, "--continue latest") == f"{patch} is not what it was when the bisect was begun"


def test_a_directory_that_is_gone_stops_a_bisect(home: Path, tmp_path: Path, cli: Cli) -> None:
    simulated.asked(Store(home), planted(3), directory=str(tmp_path / "gone"))
    assert "was begun in" in refused(cli, "--continue latest")


def test_real_disks_of_a_bisect_that_goes_on_are_named_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    disk = tmp_path / "a disk.img"
    words = {"disks": f"file:{disk}", "erase": "SERIAL", "jobs": 1}
    name = simulated.asked(Store(home), planted(3), words=words).name
    monkeypatch.setattr(bisect, "_same_files", stopped)
    error, hint = cli.err("bisect", "--continue", "latest").splitlines()
    assert "the plan writes to file:" in error and "must be named on the command line" in error
    paste = shlex.split(hint.partition("may be lost: ")[2])
    assert paste == [
        *("agelab", "bisect", "--continue", name),
        *("--disks", f"file:{disk}?cache=none&aio=native", "--erase", "SERIAL"),
    ]
    cli.run(*paste[1:], code=3)  # it goes on, to where this test has it stop
    for others in (paste[4:6], [*paste[4:6], "--erase", "OTHER"]):
        assert "--erase names other disks than" in refused(cli, shlex.join(["--continue", "latest", *others]))
    assert "another" in refused(cli, "--continue latest --disks file:/b --erase SERIAL")


def test_a_line_a_kernel_has_its_value_and_the_answer_comes_last(
    home: Path, linux: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, capsys: pytest.CaptureFixture[str]
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
    assert [one.partition(" of about 4: ")[0] for one in steps] == [f"step {number}" for number in (1, 2, 3, 4)]
    assert steps[3].endswith('"11": bad: 2 s (1 seed)')
    log = BisectDirectory.find(Store(home), "latest").log.read_text()
    assert "  seed 1: 2.0 s\n" in log and set(steps) < set(log.splitlines())
    assert cli.json("bisect", "--continue", "latest", "--json")["steps"] == 4
    assert os.environ.get("GIT_DIR") is None


def test_both_sides_of_the_change_are_profiled_where_it_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
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
    out, err = cli.run("bisect", "--continue", "latest")
    assert [(one.kernel, one.seeds, one.profile) for one in ran] == [("1", (1,), True), ("2", (1,), True)]
    [row] = [line.split() for line in out.splitlines() if line.rstrip().endswith(" search")]
    assert row == ["+9", "+300.0", "0", "9", "search"]
    drawn = directory.path / "difference.svg"
    assert drawn.read_text().startswith("<svg") and str(drawn) in err


def test_an_answer_is_there_also_where_a_side_cannot_be_profiled(
    home: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    directory = simulated.asked(Store(home), planted(2, 3), profile=True)
    monkeypatch.setattr(kernel_runs, "KernelRuns", lambda directory, *_, **__: simulated.Toy(directory))
    without = profiled(home, steps=())
    monkeypatch.setattr(runner, "run", lambda *_: without)
    out, err = cli.run("bisect", "--continue", "latest", code=2)
    assert out.startswith("first bad: 2") and "has no steps" in err
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
