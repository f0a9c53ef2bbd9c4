"""``agelab replicate`` over runs at both ends of what an instruction costs: a verdict that changes is not known."""

from pathlib import Path
from typing import Any

import pytest

from agelab.scenario.machine import MachineLabel
from tests.build.cli import Cli
from tests.build.study_runs import make, printed

CLAIM = "write-jfs-first"
"""jfs takes less than each of the others."""


pytestmark = pytest.mark.usefixtures("home")


def at(home: Path, end: str, jfs: float, **words: Any) -> str:
    """A run at a place of the band, in which jfs writes so much faster than in the study: the claim holds below 1."""
    values = printed("tum-2005")
    values["jfs"]["write"] *= jfs
    return make(home, "tum-2005", values, **{"machine": f"m{end}", **words})


def judged(cli: Cli, *runs: str, claim: str = CLAIM) -> list[dict[str, Any]]:
    [one] = cli.json("replicate", *runs, "--json")["studies"]
    [found] = [each["verdicts"] for each in one["claims"] if each["id"] == claim]
    return list(found)


def test_a_verdict_that_changes_between_the_ends_is_not_known(home: Path, cli: Cli) -> None:
    runs = [at(home, ":low", 0.9), at(home, ":high", 3)]
    why = "within the processor's band it is replicated at low, not replicated at high"
    ends = {"low": "replicated", "high": "not replicated"}
    assert [(one["verdict"], one["reason"], one["in_band"]) for one in judged(cli, *runs)] == [
        ("not known", why, ends), ("not known", why, ends),
    ]  # fmt: skip
    assert f"   A, B: not known: {why}\n" in cli.out("replicate", *runs)
    page = cli.out("replicate", *runs, "--markdown")
    assert f"\n  - **A: not known**: 1.23 ({why})\n  - **B: not known**: 0.37 ({why})\n" in page


def test_the_middle_counts_like_an_end(home: Path, cli: Cli) -> None:
    runs = [at(home, "", 3), at(home, ":high", 3), at(home, ":low", 0.9)]
    found = judged(cli, *runs)
    assert {one["reason"] for one in found} == {
        "within the processor's band it is replicated at low, not replicated in the middle and at high"
    }
    assert {one["verdict"] for one in judged(cli, *runs[:2])} == {"not replicated"}
    assert {one["verdict"] for one in judged(cli, runs[0], runs[2])} == {"not known"}
    assert found[0]["in_band"] == {"low": "replicated", "middle": "not replicated", "high": "not replicated"}


def test_a_lead_that_is_too_small_at_one_end_leaves_the_claim_open(home: Path, cli: Cli) -> None:
    """3 % ahead of xfs at the dear end, with one run seed."""
    close = printed("tum-2005")["xfs"]["write"] / printed("tum-2005")["jfs"]["write"] / 1.03
    [low, _] = judged(cli, at(home, ":low", 0.5), at(home, ":high", close))
    assert low["reason"] == "within the processor's band it is replicated at low, not known at high"


def test_without_both_places_and_where_they_agree_nothing_changes(home: Path, cli: Cli) -> None:
    for runs in ([at(home, "", 0.9)], [at(home, ":low", 0.9), at(home, ":high", 0.8), at(home, "", 0.9)]):
        for one in judged(cli, *runs):
            assert (one["verdict"], one["reason"], one["in_band"]) == ("replicated", "next is xfs", None)


def test_a_place_where_the_claim_cannot_be_tested_says_nothing(home: Path, cli: Cli) -> None:
    [middle, low] = judged(cli, at(home, "", 3), at(home, ":low", 0.9, unsupported=("xfs",)))
    assert (middle["verdict"], low["verdict"]) == ("not replicated", "could not be tested")
    assert middle["in_band"] is None is low["in_band"]


@pytest.mark.parametrize(
    "other",
    [{"kernel": "5.10.0"}, {"defaults": "today"}, {"drives": ("model:y",)}, {"machine": "n:low"},
     {"machine": "m:low+scheduler=bfq"}, {"provenance": {"harness": "older"}}],
)  # fmt: skip
def test_what_differs_in_more_than_the_band_is_not_held_against_it(home: Path, cli: Cli, other: dict[str, Any]) -> None:
    [middle, low] = judged(cli, at(home, "", 3), at(home, ":low", 0.9, **other))
    assert (middle["verdict"], low["verdict"]) == ("not replicated", "replicated")


def test_runs_with_another_block_layer_are_a_column_of_their_own(home: Path, cli: Cli) -> None:
    names = [
        make(home, "tum-2005", {variant: printed("tum-2005")[variant]}, machine=machine)
        for variant, machine in (("ext3", "m"), ("xfs", "m+instead=cold+instead=few+scheduler=bfq+source=scattered"))
    ]
    [one] = cli.json("replicate", *names, "--json")["studies"]
    assert [side["runs"] for side in one["sides"]] == [[names[0]], [names[1]]]
    assert "for the rest: agelab run tum-2005 --block scheduler=bfq --source scattered --instead cold,few\n" in cli.out(
        "replicate", names[1]
    )


def test_a_machines_label_is_read_in_its_parts() -> None:
    assert MachineLabel.parse("m") == ("m", "", ())
    assert MachineLabel.parse("m:low") == ("m", "low", ())
    assert MachineLabel.parse("m:high+read_ahead_kib=64+scheduler=bfq") == (
        "m", "high", ("read_ahead_kib=64", "scheduler=bfq"),
    )  # fmt: skip
    assert MachineLabel.parse("m+scheduler=bfq") == ("m", "", ("scheduler=bfq",))
