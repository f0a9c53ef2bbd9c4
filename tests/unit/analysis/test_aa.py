"""A/A in the wall clock: what is recorded of a host, and what is read of it again."""

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest

from agelab.analysis import calibration
from agelab.analysis.calibration import MeasuredHost, aa_coverage
from agelab.analysis.cells import load, run_sets, seed_groups
from agelab.analysis.step_floors import step_floors
from agelab.base.errors import InputError
from agelab.cli import calibrate as verb
from agelab.machine.disk import DriveClaim
from agelab.present.report import provenance, tables
from agelab.present.report.answer.headline import answers
from agelab.results.result import RunKernel, RunPlan, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.scenario.jobs import Jobs
from agelab.store.artefacts import Store
from tests.build import study_runs
from tests.build.cli import Cli
from tests.build.compared_runs import Values, make, seeds
from tests.build.report_tables import cells

A, AGAIN = seeds(1.0, 1.1, 1.2, 1.3, 1.4), seeds(1.2, 1.3, 1.25, 1.4, 1.6)
FLOOR = Fraction("0.6") / Fraction("1.275")
"""1.6 - 1.0, of the median of all ten."""
SLOWER: Values = {seed: (value or 0) + 0.5 for seed, value in A.items()}
"""Told from A by the rank test, and below what the host of ``Guests`` shows by chance."""
HOST = {
    "host": "Linux 6.1.0 x86_64, 2 x AMD EPYC, clocksource tsc",
    "qemu": "QEMU 7.2",
    "accelerator": "tcg",
    "vcpus": 1,
}
COPY = {"plan": {"steps": [{"name": "copy", "run": "cp -r a b"}]}}


def ran(home: Path, values: Values, *, jobs: Jobs = 1, inputs: dict[str, Any] = COPY, **more: Any) -> RunDirectory:
    """A run of the wall clock on HOST, or on one that differs from it by ``more``."""
    return made(home, {"ext4": values}, jobs=jobs, inputs=inputs, **more)


def made(
    home: Path, values: dict[str, Values], *, jobs: Jobs = 1, inputs: dict[str, Any] = COPY, **more: Any
) -> RunDirectory:
    """The same of several variants."""
    ends = more.pop("ends", None)
    run = RunDirectory(home / "runs" / make(home, values, clock="wall", inputs=inputs, ends=ends))
    command = {"options": {"jobs": jobs}}
    run.write_plan(run.plan().model_copy(update={"provenance": {**HOST, **more}, "command": command}))
    return run


class Guests:
    """Stand in for A and A'."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.values = [A, AGAIN]
        self.more: list[dict[str, Any]] = [{}, {}]
        self.asked: list[RunOptions] = []
        self.claims: list[tuple[DriveClaim, ...] | None] = []

    def execute(self, options: RunOptions, claims: tuple[DriveClaim, ...] | None = None) -> RunDirectory:
        number = len(self.asked) % 2
        self.asked.append(options)
        self.claims.append(claims)
        return ran(self.home, self.values[number], jobs=options.jobs, **self.more[number])


@pytest.fixture
def guests(home: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    found = Guests(home)
    monkeypatch.setattr(verb, "execute", found.execute)
    return found


def wall(cli: Cli, *more: str, code: int = 0) -> str:
    return cli.out("calibrate", "aging-ext4", "--clock", "wall", *more, code=code)


def record(home: Path) -> Path:
    [path] = (home / "floors").iterdir()
    return path


def test_all_seeds_run_twice_and_what_they_differ_by_is_recorded(guests: Guests, cli: Cli, home: Path) -> None:
    shown = wall(cli)
    first, second = guests.asked
    assert first == second and first.seeds == (1, 2, 3, 4, 5)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[lines.index("elapsed") + 1] == "copy 1 7.84 47.06 ext4"
    assert "2 x AMD EPYC, clocksource tsc; EMULATED" in lines
    assert "with 91.2 %" in shown and f"recorded in {record(home)}" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if str(home) not in line)
    assert "seeks" not in shown and "seeks" in wall(cli, "--all")


def test_the_floor_is_looked_up_by_step_for_runs_like_it(guests: Guests, cli: Cli, home: Path) -> None:
    wall(cli)
    floors = calibration.host_floors(home, ran(home, A).plan())
    assert floors.shares["copy", "elapsed"] == FLOOR and floors.why == ""
    assert floors.shares["copy", "seeks"] == 0, "the same seven every time"
    assert not {("read", "elapsed"), ("copy", "extents")} & floors.shares.keys()


def test_the_widest_of_several_calibrations_counts_and_the_same_one_again_replaces(
    guests: Guests, cli: Cli, home: Path
) -> None:
    plan = ran(home, A).plan()
    wall(cli)
    guests.values = [A, A]
    wall(cli)
    narrow = Fraction("0.4") / Fraction("1.2")
    assert calibration.host_floors(home, plan).shares["copy", "elapsed"] == narrow
    store, [known] = Store(home), calibration.read_records(home)
    [one] = known.calibrations
    wider = one.floors[0].widest.model_copy(update={"second": (1.0, 1.2, 1.2, 1.2, 2.4)})
    floor = one.floors[0].model_copy(update={"widest": wider})
    calibration.record_calibration(store, known.host, one.model_copy(update={"scenario": "other", "floors": (floor,)}))
    assert len(calibration.read_records(home)[0].calibrations) == 2
    assert calibration.host_floors(home, plan).shares["copy", "elapsed"] == Fraction("1.4") / Fraction("1.2")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"host": "Linux 6.9.0 x86_64, 2 x AMD EPYC, clocksource tsc"}, "is stale (kernel was Linux 6.1.0 x86_64)"),
        ({"qemu": "QEMU 10.0"}, "is stale (qemu was QEMU 7.2)"),
        ({"host": "Linux 6.1.0 x86_64, 8 x Intel, clocksource tsc"}, "no A/A of this host: agelab calibrate"),
        ({"accelerator": "kvm"}, "no A/A of this host: agelab calibrate"),
        ({"vcpus": 2}, "no A/A of this host with 2 vcpus, 1 job, model:none: agelab calibrate"),
        ({"jobs": 2}, "no A/A of this host with 1 vcpu, 2 jobs, model:none: agelab calibrate"),
    ],
)  # fmt: skip
def test_another_host_or_other_conditions_have_none(
    guests: Guests, cli: Cli, home: Path, more: dict[str, Any], why: str
) -> None:
    wall(cli)
    floors = calibration.host_floors(home, ran(home, A, **more).plan())
    assert not floors.shares
    assert why in floors.why and floors.why.endswith("--clock wall")


def test_without_a_record_it_says_how_to_make_one(home: Path, cli: Cli) -> None:
    floors = calibration.host_floors(home, ran(home, A).plan())
    assert floors.why == "no A/A of this host: agelab calibrate <scenario>-<variant> --clock wall"
    assert cli.out("calibrate", "--show") == f"no A/A of any host is recorded: {calibration.CALIBRATE}\n"


def test_what_is_recorded_is_shown(guests: Guests, cli: Cli, home: Path) -> None:
    made = wall(cli)
    shown = cli.out("calibrate", "--show")
    assert "  copy" in shown and all(line in made for line in shown.splitlines())
    found = cli.json("calibrate", "--show", "--json")
    [host] = found["hosts"]
    assert found["schema"] == 3 and host["host"]["accelerator"] == "tcg"
    elapsed = next(one for one in host["calibrations"][0]["floors"] if one["metric"] == "elapsed")
    assert elapsed["floor_relative"] == float(FLOOR) and elapsed["widest"]["second"] == [*AGAIN.values()]


def test_programs_get_what_was_recorded(guests: Guests, cli: Cli) -> None:
    found = json.loads(wall(cli, "--json"))
    assert (found["clock"], found["emulated"], len(found["cells"])) == ("wall", False, 10)
    assert [found["run"], found["again"]] == found["recorded"]["runs"]


def test_other_inputs_are_not_the_same_thing(guests: Guests, cli: Cli, home: Path) -> None:
    guests.more[1] = {"inputs": {**COPY, "kernel": "upgraded"}}
    wall(cli, code=2)
    assert not (home / "floors").exists()


def test_a_cell_that_is_not_ok_leaves_too_few(guests: Guests, cli: Cli, home: Path) -> None:
    guests.more[1] = {"ends": {4: Status.HUNG}}
    shown = wall(cli, code=1)
    assert "not ok, in no figure below: ext4, seed 4 of" in shown
    assert "nothing is recorded: no five run seeds" in shown and not (home / "floors").exists()


def test_real_drives_are_held_from_the_first_run_to_the_last(guests: Guests, cli: Cli, tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(1 << 20))
    cli.out("calibrate", "aging-ext4", "--disks", f"file:{image}")
    first, second = guests.claims
    assert first and first == second
    with image.open("r+b") as file:
        file.seek(1080)
        file.write(b"\x53\xef")  # ext2's magic number
    assert (
        "holds data: ext" in cli.err("calibrate", "aging-ext4", "--disks", f"file:{image}") and len(guests.asked) == 2
    )


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[: len(text) // 2], "is damaged"),
        (lambda text: text.replace("1.6", "1.5"), "is damaged: it is not what was written"),
        (lambda text: "[" * 100_000, "is damaged"),
        (lambda text: '{"schema": 0, "floors": []}', "is of schema 0; this agelab reads schema 2"),
        (lambda text: '{"schema": 2, "host": 7}', "is damaged"),
        (lambda text: '{"schema": NaN}', "is damaged"),
        (lambda text: "[1]", "is damaged"),
    ],
)
def test_a_bad_record_is_refused_by_name(
    guests: Guests, cli: Cli, home: Path, spoil: Callable[[str], str], why: str
) -> None:
    wall(cli)
    path = record(home)
    path.write_text(spoil(path.read_text()))
    shown = " ".join(cli.err("calibrate", "--show").split())
    assert f"{path} {why}" in shown and f"rm {path}" in shown
    cli.run("calibrate", "aging-ext4", "--clock", "wall", code=2)
    assert len(guests.asked) == 2, "no guest runs for what cannot be recorded"
    with pytest.raises(InputError, match=path.name):
        calibration.host_floors(home, ran(home, A).plan())


def test_a_record_under_another_hosts_name_is_refused(guests: Guests, cli: Cli, home: Path) -> None:
    wall(cli)
    path = record(home)
    path.rename(path.with_name(f"{MeasuredHost(kernel='x', processor='y', qemu='z', accelerator='kvm').key}.json"))
    with pytest.raises(InputError, match="it is another host's"):
        calibration.read_records(home)


def test_words_of_a_record_do_not_reach_a_terminal(guests: Guests, cli: Cli, home: Path) -> None:
    guests.more = [{"qemu": "QEMU \x1b[2J\x1b]0;owned\x07"}] * 2
    assert "\x1b" not in wall(cli) and "\x1b" not in cli.out("calibrate", "--show")


def test_a_median_of_zero_has_no_share(home: Path) -> None:
    zeros, some = seeds(0, 0, 0, 0, 0), seeds(0, 0, 0, 0.1, 0.2)
    for other, wanted in ((zeros, ["elapsed", "seeks"]), (some, ["seeks"])):
        sides = [seed_groups(load(ran(home, values)))[0] for values in (zeros, other)]
        found = step_floors([(sides[0], sides[1])])
        assert [one.metric for one in found] == wanted and not any(one.share for one in found)


def test_a_calibration_of_several_drives_covers_each_of_them(guests: Guests, cli: Cli, home: Path) -> None:
    wall(cli)
    [known] = calibration.read_records(home)
    [one] = known.calibrations
    both = one.conditions.model_copy(update={"drives": ("model:a", "model:b")})
    for drives, fits in ((("model:a",), True), (("model:a", "model:b"), True), (("model:a", "model:c"), False)):
        assert both.covers(one.conditions.model_copy(update={"drives": drives})) is fits


@pytest.mark.parametrize("command", [{"options": {"jobs": "two"}}, {"options": {"jobs": -1}}, {"options": [2]}, {}])
def test_a_plan_that_says_no_number_of_jobs_has_one(home: Path, command: dict[str, Any]) -> None:
    plan = ran(home, A, vcpus=None).plan().model_copy(update={"command": command})
    conditions = calibration.HostLoad.of(plan)
    assert (conditions.jobs, conditions.vcpus) == (1, 1)


def test_show_and_a_scenario_do_not_go_together(home: Path, cli: Cli) -> None:
    assert "leave aging-ext4 out" in cli.err("calibrate", "aging-ext4", "--show")
    assert "name a scenario" in cli.err("calibrate")


@pytest.mark.parametrize(("seen", "later"), [(4, 2), (4, 3), (6, 3), (6, 4)])
def test_the_coverage_counts_the_orders(seen: int, later: int) -> None:
    """Every place that later values can have among the seen ones, in rank order, is equally likely.

    Of an even number the upper one of the middle two must be above, or their mean cannot be.
    """
    orders = [*combinations(range(seen + later), later)]
    highest = [max(set(range(seen + later)) - set(order)) for order in orders]
    above = sum(sorted(order)[later // 2] > top for order, top in zip(orders, highest, strict=True))
    assert aa_coverage(seen, later) == max(Fraction(0), 1 - Fraction(4 * above, len(orders)))


@pytest.mark.parametrize("draw", ["random", "lognormvariate"])
def test_later_medians_keep_to_it(draw: str) -> None:
    source = Random(1)
    kept = 0
    for _ in range(2000):
        one, other, later, last = (
            [source.lognormvariate(0, 2) if draw == "lognormvariate" else source.random() for _ in range(5)]
            for _ in range(4)
        )
        kept += abs(median(later) - median(last)) <= max(*one, *other) - min(*one, *other)
    assert float(aa_coverage(10, 5)) == pytest.approx(0.912, abs=1e-3) and kept / 2000 > aa_coverage(10, 5)


def test_a_run_from_before_the_processor_was_recorded_has_no_floors(home: Path) -> None:
    old: RunPlan = ran(home, A, host="Linux 6.1.0 x86_64").plan()
    assert calibration.host_floors(home, old).why.startswith("no A/A of this host")


def test_compare_calls_nothing_slower_below_the_floor_of_the_host(guests: Guests, cli: Cli, home: Path) -> None:
    """B is 1.42 times A, every pair considered, but this host by itself makes 47 % of the larger one."""
    one, other = ran(home, A), ran(home, SLOWER)
    shown = cli.out("compare", one.name, other.name)
    assert "B slower" in shown and "  without a floor of the host: " in shown
    wall(cli)
    shown = cli.out("compare", one.name, other.name)
    assert "copy 1.20 1.70 1.42 1.15 1.73 below the floor" in [" ".join(line.split()) for line in shown.splitlines()]
    assert "without a floor of the host" not in shown
    elsewhere = ran(home, SLOWER, host="another, 1 x CPU")
    shown = cli.out("compare", one.name, elsewhere.name)
    assert "host Linux 6.1.0 x86_64, 2 x AMD EPYC, clocksource tsc | another, 1 x CPU" in shown
    assert "without a floor of the host: " in shown


def test_a_report_calls_nothing_slower_below_the_floor_of_the_host(guests: Guests, cli: Cli, home: Path) -> None:
    run = made(home, {"ext4": A, "xfs": SLOWER})

    def verdicts() -> tuple[list[str], str]:
        [group] = run_sets([load(run)])
        [table] = tables.step_tables(group, ["copy"], "part")
        return [row[-1].text for row in cells(table)], " ".join(provenance.main_doubts(group))

    words, doubts = verdicts()
    assert words == ["lowest median", "slower"]
    assert "Real time: without a floor of the host: no A/A of this host" in doubts
    wall(cli)
    words, doubts = verdicts()
    assert words == ["lowest median", "below the floor"]
    assert "no difference is named that this host shows by chance" in doubts
    [group] = run_sets([load(run)])
    [answer] = answers(group)
    assert answer.verdict.startswith("Not known: ")


def test_compare_says_of_what_no_host_floor_is_known(guests: Guests, cli: Cli, home: Path) -> None:
    """A/A of a scenario that reads says nothing of copying, which then has the rank test alone."""
    wall(cli)
    [known] = calibration.read_records(home)
    [measured] = known.calibrations
    floors = tuple(floor.model_copy(update={"step": "read"}) for floor in measured.floors)
    calibration.record_calibration(Store(home), known.host, measured.model_copy(update={"floors": floors}))
    one, other = ran(home, A), ran(home, SLOWER)
    label = "  without a floor of the host, for no A/A of it has it: elapsed of copy\n"
    shown = cli.out("compare", one.name, other.name)
    assert "B slower" in shown and label in shown
    assert "without a floor of the host" not in cli.out("compare", one.name, ran(home, A).name), (
        "nothing is called different"
    )


def on_kernel(run: RunDirectory, release: str) -> str:
    kernel = RunKernel(spec=f"debian:{release}", release=release, version=f"{release}-1")
    run.write_plan(run.plan().model_copy(update={"kernel": kernel}))
    return run.name


def test_a_sweep_marks_no_change_below_the_floor_of_the_host(guests: Guests, cli: Cli, home: Path) -> None:
    names = [on_kernel(ran(home, A), "5.10.3"), on_kernel(ran(home, SLOWER), "6.1.2")]
    asked = ["sweep", *names, "--metric", "copy:elapsed", "--metric", "all steps:elapsed"]
    shown = cli.out(*asked)
    assert shown.count("+41.7%*") == 2
    assert "without a floor of the host: no A/A of this host: agelab calibrate" in shown
    wall(cli)
    shown = cli.out(*asked)
    assert shown.count("+41.7%~") == 2, "the step, and the sum of all steps"
    assert "without a floor of the host" not in shown
    found = cli.json(*asked, "--json")
    assert found["labels"] == [] and {row["word"] for row in found["rows"]} == {None, "below the floor"}


def test_a_claim_takes_no_order_from_what_the_host_does_by_chance(guests: Guests, cli: Cli, home: Path) -> None:
    """The study has xfs ahead of ext3 in writing; here it is so by a fifth, and the host by itself makes half."""

    def verdict(seeds: int) -> tuple[str, str, str]:
        values = study_runs.printed("tum-2005")
        values["xfs"]["write"] = values["jfs"]["write"] = values["ext3"]["write"] / 1.25
        study_runs.make(home, "tum-2005", values, seeds=seeds, clock="wall", drives=("model:none",), provenance=HOST)
        shown = cli.out("replicate", "latest")
        [study] = cli.json("replicate", "latest", "--json")["studies"]
        [claim] = [one for one in study["claims"] if one["id"] == "write-xfs-and-jfs-ahead"]
        [one] = claim["verdicts"]
        return one["verdict"], one["reason"], shown

    label = "   without a floor of the host: no A/A of this host: agelab calibrate"
    for count in (5, 1):
        assert verdict(count)[:2] == ("replicated", "next is ext3")
    assert label in verdict(5)[2]
    wall(cli)
    for count in (5, 1):
        assert verdict(count)[:2] == ("not replicated", "against ext3")
    assert label not in verdict(5)[2]
