"""What filesystems that are all alike would replicate: by hand, in the file, and beside the counts of a study."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from agelab.analysis.published import study
from agelab.analysis.published.claims import Pairs
from agelab.analysis.published.study import NOISES, BaseRate, Study
from agelab.scenario import toml_files
from docs.make import base_rates
from tests.build.cli import Cli
from tests.build.small_study import small_study
from tests.build.study_runs import make, printed

CLAIMS = """
[sums]
total = ["copy", "list"]
[[uncounted]]
kind = "circle"
steps = ["list"]
why = "a size"
"""
FIGURES = {
    "single": {"copy": {"a": 8, "b": 10, "c": 60}, "list": {"a": 1, "b": 2, "c": 9}},
    "raid0": {"copy": {"a": 5, "b": 6, "c": 4}, "list": {"a": 1, "b": 2, "c": 9}},
}
BY_HAND = {
    # One of two, one of three, one of six orders: whatever the noise.
    "first-of-two": ('kind = "lowest", of = ["a"], among = ["b"]', (1 / 2, 1 / 2)),
    "first-of-three": ('kind = "lowest", of = ["a"], among = ["b", "c"]', (1 / 3, 1 / 3)),
    "in-order": ('kind = "order", groups = [["a"], ["b"], ["c"]]', (1 / 6, 1 / 6)),
    # The medians of the layouts stay: 10 and 5.
    "raid-gains": ('kind = "ratio", pairs = [["c@single", "c@raid0"]], at_least = 1.5, at_most = 2.6', (1, 1)),
    # The difference of two logarithms is normal, of 1.41 times the noise: log(1.05) is 1.725 and 0.690 of it.
    "same": ('kind = "same", of = ["a"], to = ["b"], within = 0.05', (0.9155, 0.510)),
    # A share of 0.82 to 0.85 of the sum is 4.56 to 5.67 times the other part; the medians 10 and 2 give 5.
    "sum": ('kind = "ratio", to_step = "total", of = ["a"], to = ["a"], at_least = 0.82, at_most = 0.85', (1, 0.868)),
}


def small(directory: Path, claims: dict[str, str]) -> Study:
    text = [
        f'[[claims]]\nid = "{name}"\nsays = "so"\ntest = {{ steps = ["copy"], {test} }}'
        for name, test in claims.items()
    ]
    return small_study(directory, FIGURES, "\n".join([CLAIMS, *text]))


def test_the_rates_of_a_small_study_are_those_by_hand(tmp_path: Path) -> None:
    made = small(tmp_path, {name: test for name, (test, _) in BY_HAND.items()})
    found = base_rates.rates_of(made)
    assert found == {name: pytest.approx(rates, abs=0.04) for name, (_, rates) in BY_HAND.items()}


def test_amounts_and_figures_in_a_circle_have_no_rate(tmp_path: Path) -> None:
    tests = {
        "amount": 'kind = "value", of = ["a"], at_least = 1',
        "circle": 'kind = "ratio", to_step = "list", of = ["a"], to = ["a"], at_least = 1',
    }
    assert base_rates.rates_of(small(tmp_path, tests)) == {}


def test_only_a_claim_that_is_true_at_any_noise_is_uninformative() -> None:
    assert BaseRate(0.95, 0.95).uninformative
    assert not BaseRate(1, 0.94).uninformative and not BaseRate(0.94, 1).uninformative


@pytest.mark.parametrize("name", study.study_names())
def test_the_file_is_of_the_claims_and_figures_of_today(name: str) -> None:
    """Else: make tables NAME=base-rates."""
    assert study.read_study(name).rates


@pytest.mark.parametrize("name", ["write-quicker-than-read1", "read2-small-difference"])
def test_the_file_has_what_the_simulation_gives(name: str) -> None:
    tum = study.read_study("tum-2005")
    [claim] = [claim for claim in tum.claims.claims if claim.id == name]
    again = tuple(base_rates.rate(tum, base_rates.levels(tum), claim, noise) for noise in NOISES)
    assert tum.rates[name] == again


def test_rates_of_another_table_are_not_used(tmp_path: Path) -> None:
    for path in (toml_files.SCENARIOS / "published").glob("tum-2005.*"):
        copy(path, tmp_path)
    assert study.read_study("tum-2005", tmp_path).rates
    figures = tmp_path / "tum-2005.csv"
    figures.write_text(figures.read_text().replace("132.1822", "132.1823"))
    assert study.read_study("tum-2005", tmp_path).rates == {}


def test_of_two_claims_that_differ_in_their_bounds_alone_one_is_counted() -> None:
    bounds = {"over", "at_least", "at_most", "within", "margin"}
    for one in study.all_studies():
        counted = [
            claim.test.model_dump_json(exclude=bounds)
            for claim in one.claims.claims
            if claim.test and not (claim.conflict or claim.untestable)
            if not ((rate := one.rates.get(claim.id)) and rate.uninformative)
        ]
        assert [test for test, times in Counter(counted).items() if times > 1] == []


def test_a_claim_without_figures_compares_filesystems_within_a_step() -> None:
    for one in study.all_studies():
        for claim in one.claims.claims:
            if claim.unprinted and claim.test:
                assert claim.test.kind in ("lowest", "highest", "order", "same", "ratio", "value")
                assert len(claim.test.layouts) == 1 and getattr(claim.test, "to_step", None) is None
                couples = claim.test.couples if isinstance(claim.test, Pairs) else []
                assert not any({"@", "#"} & set(ref) for couple in couples for ref in couple)


# ---- beside the counts -----------------------------------------------------------------------------


pytestmark = pytest.mark.usefixtures("home")


def replicated(cli: Cli, *words: str) -> str:
    return cli.out("replicate", *words)


def kinds(cli: Cli, *runs: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The one side, and of each claim its last verdict."""
    [one] = json.loads(replicated(cli, *runs, "--json"))["studies"]
    [side] = one["sides"]
    return side, {claim["id"]: claim["verdicts"][-1] for claim in one["claims"]}


def test_the_count_stands_beside_what_alike_filesystems_would_give(home: Path, cli: Cli) -> None:
    make(home, "tum-2005", printed("tum-2005"), seeds=5)
    rates = study.read_study("tum-2005").rates
    side, claims = kinds(cli, "latest")
    assert side["counts"] == {
        "replicated": 11, "not replicated": 0, "not known": 0,
        "denied by the study itself": 2, "uninformative": 2, "could not be tested": 7,
    }  # fmt: skip
    counted = [rates[name] for name, one in claims.items() if name in rates and one["counted_as"] == "replicated"]
    sums = [sum(at) for at in zip(*counted, strict=True)]
    given = {"noise_2_percent": pytest.approx(sums[0]), "noise_5_percent": pytest.approx(sums[1])}
    assert side["with_base_rate"] == {"claims": 11, "replicated": 11, "by_alike": given}
    text = (
        f"11 of 11 replicated; filesystems that are all alike would give {sums[0]:.1f} (2 % noise) or {sums[1]:.1f} "
        "(5 %); 0 not replicated, 0 not known; not counted: 2 denied by the study itself, 2 uninformative, 7 could not "
        "be tested"
    )
    shown = replicated(cli, "latest")
    assert f"\n   {text}\n" in shown and shown.endswith(f"\nA: {text}\n")
    assert text in replicated(cli, "latest", "--markdown")
    assert "write-quicker-than-read1: write takes less than read1.\n   base rate 1.00\n" in shown
    assert "4 of 4 are so; not counted: uninformative\n" in shown
    assert "; not counted: denied by the study itself\n" in shown
    little, more = rates["read2-small-difference"]
    assert f"\n   base rate {little:.2f} (2 % noise) or {more:.2f} (5 %)\n" in shown


def test_where_rates_are_not_known_it_says_how_to_make_them(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "tum-2005", printed("tum-2005"), seeds=5)
    without = [replace(one, rates={}) for one in study.all_studies()]
    monkeypatch.setattr(study, "all_studies", lambda: without)
    shown = replicated(cli, "latest")
    made = "(base rate not known: .venv/bin/python -m docs.make.base_rates --write makes it)"
    assert f"\n   13 of 13 replicated {made}; 0 not replicated" in shown


def test_claims_on_amounts_are_counted_and_have_no_part_in_the_base_rate(home: Path, cli: Cli) -> None:
    make(home, "aging", {"btrfs": {"fill fullness": 0.86, "copy": 1.0}, "ext3": {"copy": 1.5}})
    shown = replicated(cli, "latest")
    assert "2 of 3 replicated; 1 of the 2 with a base rate, where filesystems that are all alike would give" in shown


@pytest.mark.parametrize(("slow", "kind"), [(False, "uninformative"), (True, "replicated")])
def test_a_cure_takes_the_disease(home: Path, cli: Cli, slow: bool, kind: str) -> None:
    """On RAID-0 xfs is no order of magnitude slower: which says something where it is so on one drive."""
    single, array = printed("fedorchuk-2008"), printed("fedorchuk-2008", "raid0")
    if not slow:
        single["xfs"] = single["ext3"]
    names = [
        make(home, "fedorchuk-2008", single),
        make(home, "fedorchuk-2008", array, layout="raid0", drives=("model:x", "model:y")),
    ]
    _, claims = kinds(cli, *names)
    assert claims["xfs-raid-cured"]["verdict"] == "replicated"
    assert claims["xfs-raid-cured"]["counted_as"] == kind
    assert claims["raid-gain"]["counted_as"] == "uninformative"
    assert claims["raid-gain-every"]["counted_as"] == "denied by the study itself"


def test_of_another_system_claims_are_counted_and_seconds_are_not(home: Path, cli: Cli) -> None:
    ours = {f"ext3-{name.partition('-')[2]}": steps for name, steps in printed("fedorchuk-2005").items()}
    make(home, "fedorchuk-2005", ours, scale="paper")
    side, _ = kinds(cli, "latest")
    assert side["counts"]["replicated"] == side["with_base_rate"]["claims"] == 7
    shown = replicated(cli, "latest")
    assert "7 of 7 replicated; drives and machines that are all alike would give 1." in shown
    assert "within 25 %" not in shown
    assert "copy-file of ufs2-sata, ufs2-pata, ufs2-p4, ufs-4200: another system.\n" in shown
