"""Pairs of factors, where none alone brings a claim back: those first that moved it the most."""

from collections.abc import Sequence
from itertools import combinations
from math import log

from agelab.analysis.published.claim_verdict import ClaimVerdict
from agelab.bisect.why.baseline import Baseline
from agelab.bisect.why.factors import Factor, Setting
from agelab.bisect.why.trials import ClaimAnswer, Trial, comparisons_of
from agelab.scenario.unstated import reading_names


def could_be(baseline: Baseline, planned: Sequence[Trial], most: int) -> int:
    """Return how many pairs are tried at most, of these settings."""
    if baseline.judged.verdict is not ClaimVerdict.NOT:
        return 0
    tried = [trial for trial in planned if trial.to_run and trial.factor.known]
    return min(most, sum(_go_together(one, other) for one, other in combinations(tried, 2)))


def pairs_of(answer: ClaimAnswer, most: int) -> list[tuple[Factor, Setting]]:
    """Return the pairs to try: none where a setting alone says otherwise than a run that does not replicate."""
    if answer.flipped or answer.baseline.judged.verdict is not ClaimVerdict.NOT:
        return []
    moved = [(_moved(answer.baseline, trial), trial) for trial in answer.tested if trial.factor.known]
    couples = [couple for couple in combinations(moved, 2) if _go_together(couple[0][1], couple[1][1])]
    ranked = sorted(couples, key=lambda couple: -couple[0][0] - couple[1][0])
    return [_both(answer.baseline, one, other) for (_, one), (_, other) in ranked[:most]]


def _go_together(one: Trial, other: Trial) -> bool:
    return one.factor is not other.factor


def _moved(baseline: Baseline, trial: Trial) -> float:
    """Return how far a setting moved the claim: what turned round, then by what factors its figures changed."""
    both = list(zip(comparisons_of(baseline.judged), comparisons_of(trial.judged), strict=True))
    turned = sum(own.holds != now.holds for own, now in both)
    figures = [(own.figure, now.figure) for own, now in both]
    return turned + sum(abs(log(now / own)) for own, now in figures if own and now and own * now > 0)


def _both(baseline: Baseline, one: Trial, other: Trial) -> tuple[Factor, Setting]:
    first, second = one.setting, other.setting
    changes = {**first.changes, **second.changes}
    if "instead" in changes:
        own = {*reading_names(baseline.options.instead)}
        sides = [
            {*reading_names(setting.changes.get("instead", baseline.options.instead))}
            for setting in (first, second)
        ]
        changes["instead"] = ",".join(sorted(own ^ ((own ^ sides[0]) | (own ^ sides[1]))))
    names = [trial.factor.called or trial.factor.name for trial in (one, other)]
    factor = Factor(
        f"{one.factor.name} + {other.factor.name}",
        f"{one.factor.about}; {other.factor.about}",
        one.factor.settings,
        one.factor.moves | other.factor.moves,
        called=" together with the ".join(names),
    )
    setting = Setting(
        f"{first.to} + {second.to}",
        changes,
        release=first.release or second.release,
        called=f"{one.called} and {other.called}",
        remark=first.remark or second.remark,
        pair=True,
    )
    return factor, setting
