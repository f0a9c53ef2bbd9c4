"""What was found: each setting's verdict beside the run's own, and the sentence that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.analysis.published.outcome import ClaimComparison
from agelab.analysis.published.verdict import ClaimVerdict, JudgedClaim
from agelab.bisect.why.baseline import Baseline
from agelab.bisect.why.trials import Trial

DECIDED = (ClaimVerdict.REPLICATED, ClaimVerdict.NOT)
"""Verdicts that say yes or no."""


@dataclass(frozen=True)
class ClaimAnswer:
    """The trials of one claim."""

    baseline: Baseline
    trials: tuple[Trial, ...]

    @property
    def tested(self) -> list[Trial]:
        """The trials with which the claim could be tested."""
        return [one for one in self.trials if one.judged and one.judged.verdict is not ClaimVerdict.UNTESTED]

    @property
    def untested(self) -> list[Trial]:
        return [one for one in self.trials if one not in self.tested]

    def flips(self, trial: Trial) -> bool:
        """Return whether a trial says yes or no, and not what the run itself says; within the band, anything else."""
        verdict = trial.judged.verdict if trial.judged else ClaimVerdict.UNTESTED
        counts = verdict in DECIDED or (verdict is ClaimVerdict.UNKNOWN and not trial.factor.known)
        return counts and verdict is not self.baseline.judged.verdict

    @property
    def flipped(self) -> list[Trial]:
        return [one for one in self.trials if self.flips(one)]

    @property
    def known(self) -> bool:
        """False where the verdict changes within what is known of the machine."""
        return all(one.factor.known for one in self.flipped)

    @property
    def shown(self) -> int:
        """The comparison of the claim to show: one that a setting turns round, else one that speaks against it."""
        ours = _comparisons(self.baseline.judged)
        others = [_comparisons(one.judged) for one in self.flipped or self.tested]
        turned = (
            at
            for at, one in enumerate(ours)
            if any(other[at].holds not in (None, one.holds) for other in others if at < len(other))
        )
        against = (at for at, one in enumerate(ours) if one.holds is False)
        return next(turned, next(against, 0))

    @property
    def sentence(self) -> str:
        """Say which factor flips the verdict, or that none does alone."""
        own, flipped = self.baseline.judged.verdict, self.flipped
        if not self.tested:
            return f"{own}, and no factor could be tried"
        if not flipped:
            return self._unmoved
        beyond = [one for one in flipped if one.factor.known]
        if not self.known:
            within = ", ".join(one.name for one in flipped if not one.factor.known)
            others = f"; it flips with {_settings(beyond)}, too" if beyond else ""
            return f"not known: the verdict changes within the band of what an instruction costs ({within}){others}"
        if own is ClaimVerdict.NOT:
            return f"not replicated because of {_factors(beyond)}: it is with {_settings(beyond)}"
        if own is ClaimVerdict.REPLICATED:
            return f"replicated because of {_factors(beyond)}: it is not with {_settings(beyond)}"
        said = {one.judged.verdict for one in beyond if one.judged}
        those = (
            (word, [one for one in beyond if one.judged and one.judged.verdict is word]) for word in DECIDED
        )
        told = ", ".join(f"{word} with {_settings(found)}" for word, found in those if word in said)
        return f"{own} as it was run; {told}"

    @property
    def _unmoved(self) -> str:
        own, tested = self.baseline.judged.verdict, self.tested
        alike = [one for one in tested if one.judged and one.judged.verdict is own]
        changes = "the one change that" if len(tested) == 1 else f"each of {len(tested)} changes that"
        if len(alike) < len(tested):
            changes = f"{len(alike)} of {len(tested)} changes that"
        rest = f"; {len(self.untested)} could not" if self.untested else ""
        return f"no factor alone flips it: {own} with {changes} could be tested{rest}"


def _comparisons(judged: JudgedClaim | None) -> tuple[ClaimComparison, ...]:
    return judged.ours.comparisons if judged and judged.ours else ()


def _factors(trials: Sequence[Trial]) -> str:
    """Name the factors, each of which flips the verdict alone: ``the kernel or the defaults``."""
    return " or ".join(dict.fromkeys(f"the {one.factor.called or one.factor.name}" for one in trials))


def _settings(trials: Sequence[Trial]) -> str:
    return " or ".join(one.setting.called or one.name for one in trials)
