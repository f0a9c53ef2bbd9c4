"""``agelab why``: settings of factors tried by made-up runs, what they take, the answer, and wrong input."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.bisect.why.factors import choose_factors
from agelab.cli import main
from agelab.kernel import debian_kernel
from agelab.machine import qemu
from agelab.machine.image import DoesNotBoot
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.run_plan import profiles_hash, scenario_hash
from agelab.runner.plan.cell_inputs import harness_hash
from agelab.runner.prepare.parts import filesystems_made
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells, resolve
from tests.build import run_builder

CLAIM = "copy-1g-ext-same"
"""ext3 takes as long as ext2, by 5 % at most."""
STEP = "copy-1g"
Seconds = Callable[[RunOptions, str], float]
"""What the claim's step takes by a run's options, and a variant."""


class MadeUpRuns:
    """Makes runs of what was asked for, without a guest, in place of the runner."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys
        self.asked: list[RunOptions] = []
        self.seconds: Seconds = lambda options, variant: 10.0
        self.step = STEP
        self.ends: Mapping[str, Status] = {}
        self.known: Mapping[str, str] = {}
        """What their plans say beside the usual."""
        self.begun = ""
        """The run that a test made last, which is asked about."""

    def make(self, options: RunOptions, **provenance: Any) -> str:
        self.begun = self.write(options, **provenance).name
        return self.begun

    def write(self, options: RunOptions, **provenance: Any) -> RunDirectory:
        scenario = resolve(options).selection.scenario
        kernel = f"{options.kernel.removeprefix('debian:')}.0-1-amd64"
        cells = [
            run_builder.cell(
                spec.variant.name, spec.run_seed, filesystem=spec.filesystem.name, layout=spec.layout, kernel=kernel,
                machine="+".join((spec.machine.name, *spec.changes)), drives=spec.disk.drive_specs,
                defaults=spec.defaults, corpus_seed=spec.corpus_seed,
            )
            for spec in planned_cells(options)
        ]  # fmt: skip
        known = {
            "harness": harness_hash(), "qemu": "7", "scenario": scenario_hash(scenario),
            "profiles": profiles_hash(planned_cells(options)), **self.known, **provenance,
        }  # fmt: skip
        run = run_builder.begin(
            self.home, cells, scenario=scenario.name, scale=options.scale or "quick", clock=options.guest_clock,
            provenance=known, command=options.to_plan(),
        )  # fmt: skip
        for number, cell in enumerate(cells):
            inputs = {"kernel": {"release": kernel}}
            status = self.ends.get(cell.variant, Status.OK)
            taken = [run_builder.sample(self.step, self.seconds(options, cell.variant) + cell.seed / 1e6)]
            why = {} if status is Status.OK else {"reason": "so it ended"}
            run_builder.end(run, number, taken, status=status, inputs=inputs, host_seconds=100.0, **why)
        return run

    def run(self, options: RunOptions, *_: Any, **__: Any) -> RunDirectory:
        self.asked.append(options)
        return self.write(options)

    def ask(self, *words: str, claim: str = CLAIM) -> str:
        """What it prints of the run that was made last."""
        return self._say(0, claim, *words)[0]

    def told(self, *words: str, claim: str = CLAIM) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask(*words, "--json", claim=claim))
        return found

    def refused(self, *words: str, claim: str = CLAIM) -> str:
        return self._say(2, claim, *words)[1]

    def before(self, *words: str, claim: str = CLAIM) -> str:
        """What it says on standard error."""
        return self._say(0, claim, *words)[1]

    def _say(self, code: int, claim: str, *words: str) -> tuple[str, str]:
        self._capsys.readouterr()
        assert main(["why", self.begun, "--claim", claim, *words]) == code
        out, err = self._capsys.readouterr()
        return out, err


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MadeUpRuns:
    made = MadeUpRuns(tmp_path, capsys)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.setattr(runner, "run", made.run)
    monkeypatch.setattr(qemu, "obtain", lambda store: SimpleNamespace(version="7"))
    monkeypatch.setattr(debian_kernel, "release_of", lambda wanted, *_, **__: f"{wanted}.0-1-amd64")
    return made


def ext3_slow(when: Callable[[RunOptions], bool]) -> Seconds:
    """ext3 takes twice as long as ext2 in such runs."""
    return lambda options, variant: 20.0 if variant == "ext3" and when(options) else 10.0


def test_the_factor_that_flips_a_verdict_is_the_reason(runs: MadeUpRuns) -> None:
    runs.seconds = ext3_slow(lambda options: options.defaults != "today")
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told()
    assert found["baseline"]["verdict"] == "not replicated"
    assert found["answer"] == "not replicated because of the defaults: it is with defaults today"
    flips = {(one["factor"], one["changed_to"]): one["flips"] for one in found["trials"]}
    assert [name for name, flip in flips.items() if flip] == [("defaults", "today")]
    assert {name for name, _ in flips} == {"cpu", "kernel", "defaults", "block", "source", "drive"}
    shown = runs.ask()
    assert "as it was run" in shown and "replicated *" in shown and f"figure: {STEP}: ext3 / ext2" in shown
    assert shown.splitlines()[-1] == found["answer"]


def test_a_verdict_that_hangs_on_a_factor_is_told_as_such(runs: MadeUpRuns) -> None:
    runs.seconds = ext3_slow(lambda options: options.kernel in ("5.10", "7.2"))
    runs.make(RunOptions(name="piszcz-2006"))
    assert (
        runs.told("--factors", "kernel,defaults")["answer"]
        == "replicated because of the kernel: it is not with kernel 5.10 or kernel 7.2"
    )


def test_where_nothing_flips_it_that_is_the_answer(runs: MadeUpRuns) -> None:
    runs.seconds = ext3_slow(lambda options: True)
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told("--factors", "defaults,kernel", "--pairs", "0")
    assert found["answer"] == "no factor alone flips it: not replicated with each of 4 changes that could be tested"
    assert found["known"]


OPEN = "tree-last"
"""jfs copies the tree slowest on one drive, of six others."""


def jfs_slow(when: Callable[[RunOptions], bool]) -> Seconds:
    return lambda options, variant: 10.0 if variant != "jfs" else 20.0 if when(options) else 5.0


def test_what_the_study_leaves_open_is_a_factor(runs: MadeUpRuns) -> None:
    runs.step, runs.seconds = "copy-tree", jfs_slow(lambda options: options.instead == "cold")
    runs.make(RunOptions(name="fedorchuk-2008"))
    found = runs.told("--factors", "defaults,cold,few-files", claim=OPEN)
    assert [one.instead for one in runs.asked] == [None, "cold", "few-files"]
    assert found["answer"] == (
        "not replicated because of the choice of cold: it is with everything written and a cold cache before the "
        "removals"
    )
    assert all(not one["also_differ"] for one in found["trials"])
    runs.make(RunOptions(name="fedorchuk-2008", instead="cold,large-first"))
    runs.asked.clear()
    back = runs.told("--factors", "cold", claim=OPEN)
    assert [one.instead for one in runs.asked] == ["large-first"]
    assert [one["changed_to"] for one in back["trials"]] == ["as the scenario has it"]
    runs.asked.clear()
    assert "wsync xfs with a write barrier for each transaction: it changes none of the claim's cells" in " ".join(
        runs.ask("--factors", "cold,wsync", claim=OPEN).split()
    )
    assert "no factor 'warm'" in runs.refused("--factors", "warm", claim=OPEN)


def test_a_reading_does_not_take_the_name_of_a_factor() -> None:
    scenario = resolve(RunOptions(name="fedorchuk-2008")).selection.scenario
    points = tuple(
        one.model_copy(update={"name": "kernel"}) if one.name == "cold" else one for one in scenario.unstated
    )
    with pytest.raises(InputError, match="unstated 'kernel' has the name of a factor"):
        choose_factors(None, scenario.model_copy(update={"unstated": points}))


def test_where_no_factor_alone_brings_it_back_pairs_are_tried(runs: MadeUpRuns) -> None:
    runs.step = "copy-tree"
    runs.seconds = jfs_slow(lambda options: options.instead == "cold,few-files" and options.source is None)
    runs.make(RunOptions(name="fedorchuk-2008"))
    words = ("--factors", "defaults,cold,few-files")
    assert "; expected" in (said := runs.before(*words, claim=OPEN))
    assert "then, if none brings the claim back, 3 pairs at most: 21 cells; expected: about " in said
    found = runs.told(*words, claim=OPEN)
    assert [one["factor"] for one in found["trials"] if one["flips"]] == ["cold + few-files"]
    assert found["answer"] == (
        "not replicated because of the choice of cold together with the choice of few-files: it is with everything "
        "written and a cold cache before the removals and 12 thousand small files"
    )


def test_pairs_are_of_different_factors_those_first_that_moved_it_the_most_and_no_more_than_asked(
    runs: MadeUpRuns,
) -> None:
    runs.step = "copy-tree"
    runs.seconds = lambda options, variant: (
        14.0 if variant == "ext2" else 10.0 + (options.instead == "few-files") + (options.block == "scheduler=bfq") / 2
    )
    runs.make(RunOptions(name="fedorchuk-2008"))
    found = runs.told("--factors", "defaults,block,cold,few-files", "--pairs", "2", claim=OPEN)
    tried = [one["factor"] for one in found["trials"]]
    assert tried == [
        "defaults", "block", "block", "block", "cold", "few-files", "block + few-files",
        "defaults + few-files",
    ]  # fmt: skip
    assert found["answer"].startswith("no factor alone flips it, nor do 2 pairs of those that moved it most: ")
    runs.seconds = jfs_slow(lambda options: True)
    runs.make(RunOptions(name="fedorchuk-2008", seeds=(5,)))
    assert not [one for one in runs.told("--factors", "cold,defaults", claim=OPEN)["trials"] if "+" in one["factor"]]
    assert "pair" not in runs.before("--factors", "cold,defaults", claim=OPEN)


def test_a_claim_that_flips_within_the_band_is_not_known(runs: MadeUpRuns) -> None:
    runs.seconds = ext3_slow(lambda options: options.machine_band != "low")
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told()
    assert not found["known"]
    assert found["answer"].startswith("not known: the verdict changes within the band of what an instruction costs (")
    assert "cheap: " in found["answer"] and "dear" not in found["answer"]


def test_what_is_too_close_to_tell_flips_nothing_and_may_be_told_by_a_change(runs: MadeUpRuns) -> None:
    """The lead is 3 % in one run seed; with today's defaults xfs has it by far."""
    runs.step, claim = "copy-to-other", "copy-to-other-xfs-before-ext3"
    close = {"xfs": 10.3, "ext3": 10.0}
    runs.seconds = lambda options, variant: {
        **close, **({"ext3": 20.0} if options.defaults == "today" else {}),
    }.get(variant, 10.0)  # fmt: skip
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told("--factors", "cpu,defaults", claim=claim)
    assert found["baseline"]["verdict"] == "not known" and found["known"]
    assert found["answer"] == "not known as it was run; replicated with defaults today"
    runs.seconds = lambda options, variant: 20.0 if variant == "ext3" and options.defaults != "today" else 10.0
    runs.make(RunOptions(name="piszcz-2006", seeds=(7,)))
    found = runs.told("--factors", "cpu,defaults", claim=claim)
    assert [one["verdict"] for one in found["trials"]] == ["replicated", "replicated", "not known"]
    assert found["answer"] == "no factor alone flips it: replicated with 2 of 3 changes that could be tested"


def test_only_the_cells_of_the_claim_are_run_and_with_the_options_of_the_run(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006", seeds=(1, 2), corpora=(3, 4)))
    runs.ask("--factors", "cpu,defaults", "--jobs", "2")
    assert [(one.machine_band, one.defaults, one.corpora) for one in runs.asked] == [
        ("low", None, (3,)), ("low", None, (4,)), ("high", None, (3,)), ("high", None, (4,)), (None, "today", (3,)),
        (None, "today", (4,)),
    ]  # fmt: skip
    for one in runs.asked:
        asked = (one.name, one.filesystem, one.layout, one.seeds, one.jobs)
        assert asked == ("piszcz-2006", "ext2,ext3", "single", (1, 2), 2)


def test_known_cells_are_reused_also_for_a_run_that_was_made_fresh(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006", fresh=True))
    runs.ask("--factors", "defaults")
    assert [(one.fresh, one.verify) for one in runs.asked] == [(False, None)]


def test_it_says_what_it_takes_before_it_begins(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006"))
    said = runs.before("--factors", "cpu,defaults")
    assert "to run: 6 cells in 3 runs; expected, unless they are known: about 10 min\n" in said


def test_a_kernel_that_cannot_be_had_or_does_not_boot_is_told_and_the_others_are_tried(
    runs: MadeUpRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def release_of(wanted: str, *_: Any, **__: Any) -> str:
        if wanted == "5.10":
            raise InputError("no kernel 5.10 on the mirror")
        return f"{wanted}.0-1-amd64"

    def run(options: RunOptions, *_: Any, **__: Any) -> RunDirectory:
        if options.kernel == "7.2":
            raise DoesNotBoot("the guest was not heard of")
        return runs.run(options)

    monkeypatch.setattr(debian_kernel, "release_of", release_of)
    monkeypatch.setattr(runner, "run", run)
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told("--factors", "kernel")
    assert {one["changed_to"]: (one["verdict"], one["reason"]) for one in found["trials"]} == {
        "5.10": (None, "no kernel 5.10 on the mirror"),
        "6.12": ("replicated", "it is so"),
        "7.2": (None, "the guest was not heard of"),
    }
    assert (
        found["answer"] == "no factor alone flips it: replicated with the one change that could be tested; 2 could not"
    )
    assert "kernel 7.2: the guest was not heard of" in runs.ask("--factors", "kernel")


def test_an_image_for_a_new_kernel_proves_the_filesystem_beside_the_disk_too() -> None:
    cells = planned_cells(RunOptions(name="piszcz-2006", filesystem="jfs,ext2"))
    assert [one.name for one in filesystems_made(cells)] == ["ext2", "xfs", "jfs"]


def test_a_setting_with_which_the_claim_cannot_be_tested_is_not_run(runs: MadeUpRuns) -> None:
    claim, runs.step = "split-1000-ext-ten-times", "split-1000"
    runs.make(RunOptions(name="piszcz-2006", scale="paper"))
    found = runs.told("--factors", "defaults", claim=claim)
    assert [(one["verdict"], one["reason"]) for one in found["trials"]] == [(None, "it takes period defaults")]
    assert not runs.asked and found["answer"] == "not replicated, and no factor could be tried"


def test_a_filesystem_that_a_setting_lacks_leaves_the_claim_untested(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006"))
    runs.ends = {"ext3": Status.UNSUPPORTED}
    found = runs.told("--factors", "defaults")
    assert [(one["verdict"], one["flips"]) for one in found["trials"]] == [("could not be tested", False)]


def test_an_input_that_differs_without_being_the_factor_is_told(runs: MadeUpRuns) -> None:
    runs.known = {"image": "one"}
    runs.make(RunOptions(name="piszcz-2006"))
    runs.known = {"image": "another"}
    found = runs.told("--factors", "defaults,kernel")
    also = {one["factor"]: one["also_differ"] for one in found["trials"]}
    assert also == {"defaults": ["image"], "kernel": []}
    assert "defaults today: not alone: what also differs: image one | another" in runs.ask("--factors", "defaults")


def test_drives_to_try_are_the_nearest_slower_and_faster_ones(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006"))
    runs.ask("--factors", "drive")
    tried = [str(one.disks[0]) for one in runs.asked]
    assert len(tried) == 2 and "model:seagate-st3400832a" not in tried and "samsung-860" not in " ".join(tried)
    runs.make(RunOptions(name="piszcz-2006", disks="model:none"))  # type: ignore[arg-type]
    found = runs.told("--factors", "drive")
    assert [one["reason"] for one in found["trials"]] == ["none: no platters to exchange"]


def test_the_block_layer_and_the_source_are_the_other_ones(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006", block="scheduler=bfq"))
    found = runs.told("--factors", "block,source")
    tried = [(one["factor"], one["changed_to"]) for one in found["trials"]]
    assert tried[-1] == ("source", "scattered") and ("block", "scheduler=bfq") not in tried and len(tried) == 3
    assert [(one.block, one.source) for one in runs.asked] == [
        ("scheduler=bfq,read_ahead_kib=64", None),
        ("scheduler=bfq,read_ahead_kib=256", None),
        ("scheduler=bfq", "scattered"),
    ]


def test_the_answer_names_the_block_layer_and_the_source_in_words(runs: MadeUpRuns) -> None:
    runs.seconds = ext3_slow(lambda options: options.block == "scheduler=bfq" or bool(options.source))
    runs.make(RunOptions(name="piszcz-2006"))
    found = runs.told("--factors", "block,source")
    assert found["answer"] == (
        "replicated because of the block layer or the source: it is not with the scheduler bfq or a scattered source"
    )


def test_a_claim_whose_steps_leave_the_source_alone_has_a_remark(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006"))
    unread = "no step of the claim reads or writes the source: what differs is how the steps before have laid their"
    assert f"source: {unread}" in " ".join(runs.ask("--factors", "source,defaults").split())
    runs.step = "copy-from-other"
    runs.make(RunOptions(name="piszcz-2006"))
    assert [one["remark"] for one in runs.told("--factors", "source", claim="copy-from-other-xfs-first")["trials"]] == [
        None
    ]


def test_at_an_end_of_the_band_too_close_to_tell_leaves_the_claim_open(runs: MadeUpRuns) -> None:
    runs.step, claim = "copy-to-other", "copy-to-other-xfs-before-ext3"
    runs.seconds = lambda options, variant: (
        {None: 10.3, "low": 10.3, "high": 20.0}[options.machine_band] if variant == "ext3" else 10.0
    )
    runs.make(RunOptions(name="piszcz-2006", machine_band="high"))
    found = runs.told("--factors", "cpu", claim=claim)
    assert found["baseline"]["verdict"] == "replicated" and not found["known"]
    assert found["answer"].startswith("not known: the verdict changes within the band")


def test_the_ends_of_the_band_are_tried_of_a_run_with_another_block_layer(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="piszcz-2006", block="scheduler=bfq"))
    assert [one["changed_to"].partition(":")[0] for one in runs.told("--factors", "cpu")["trials"]] == ["cheap", "dear"]


def test_each_stand_in_is_asked_about_by_itself(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="fedorchuk-2005"))
    claims = runs_claims("fedorchuk-2005")
    assert "several stand in for fedorchuk-2005's own filesystem" in runs.refused(claim=claims[0])


def runs_claims(name: str) -> list[str]:
    from agelab.analysis.published.study import read_study

    return [claim.id for claim in read_study(name).claims.claims if not claim.untestable]


@pytest.mark.parametrize(
    ("options", "claim", "words", "why"),
    [
        ({}, "copy-1g", [], "no claim of piszcz-2006 'copy-1g'; did you mean copy-1g-ext"),
        ({}, "x", [], "no claim of piszcz-2006 'x'; there are: cat-ext-close, "),
        ({}, CLAIM, ["--factors", "cpu,moon"], "no factor 'moon'; there are: block, cpu, defaults, "),
        ({}, "split-1000-ext-ten-times", [], "cannot be tested by {run}: it takes scale paper"),
        ({}, "space-after-mkfs", [], "cannot be tested by {run}: a chart without figures"),
        ({"filesystem": "ext2"}, CLAIM, [], "cannot be tested by {run}: ext3, single of scenario piszcz-2006 is in"),
        ({"fail": "1@touch", "layout": "raid1"}, CLAIM, [],
         "{run} was made with --fail: agelab why takes a run of the study's"),
        ({}, CLAIM, ["--filesystem", "ext2"], "no filesystem stands in for another in {run}"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_at_once(
    runs: MadeUpRuns, options: dict[str, Any], claim: str, words: list[str], why: str
) -> None:
    run = runs.make(RunOptions(name="piszcz-2006", **options))
    assert why.format(run=run) in runs.refused(*words, claim=claim)
    assert not runs.asked


def test_a_run_with_real_disks_is_refused(runs: MadeUpRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.make(RunOptions(name="piszcz-2006"))
    monkeypatch.setattr(RunOptions, "real_disks", property(lambda self: ["file:/x"]))
    assert f"{run} has real disks: agelab why takes modelled drives" in runs.refused()


def test_of_many_comparisons_one_that_a_change_turns_round_is_shown(runs: MadeUpRuns) -> None:
    """ext2 against ext3, jfs, reiserfs and xfs: only xfs moves."""
    runs.step = "copy-10"
    runs.seconds = lambda options, variant: 20.0 if variant == "xfs" and options.defaults != "today" else 10.0
    runs.make(RunOptions(name="piszcz-2006"))
    shown = [" ".join(line.split()) for line in runs.ask("--factors", "defaults", claim="copy-10-close").splitlines()]
    assert "as it was run not replicated 0.50 3 of 4" in shown
    assert "defaults today replicated * 1.00 4 of 4" in shown
    assert any(line.startswith("figure: copy-10: ext2 / xfs; the study's: 0.8") for line in shown)


def test_a_run_of_no_study_has_no_claims(runs: MadeUpRuns) -> None:
    runs.make(RunOptions(name="recovery"))
    assert "no published data for scenario 'recovery'" in runs.refused()


def test_a_run_of_another_agelab_is_refused(runs: MadeUpRuns) -> None:
    for name, word in (("harness", "harness"), ("profiles", "data files")):
        run = runs.make(RunOptions(name="piszcz-2006"), **{name: "older"})
        assert f"{run} was made with other inputs ({word} older | " in runs.refused()
