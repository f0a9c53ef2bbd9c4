"""What was found: each setting's verdict beside the run's own, and the sentence that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from agelab.published.outcome import ClaimComparison
from agelab.published.verdict import ClaimVerdict, JudgedClaim
from agelab.why.baseline import Baseline
from agelab.why.trials import Trial


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
        """Return whether a trial's verdict is another than the run's own."""
        own = self.baseline.judged.verdict
        return trial in self.tested and trial.judged is not None and trial.judged.verdict is not own

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
        others = [_comparisons(one.judged) for one in self.tested if one.judged]
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
        own, tested, flipped = self.baseline.judged.verdict, self.tested, self.flipped
        if not tested:
            return f"{own}, and no factor could be tried"
        if not flipped:
            rest = f"; {len(self.untested)} could not" if self.untested else ""
            changes = "the one change that" if len(tested) == 1 else f"each of {len(tested)} changes that"
            return f"no factor alone flips it: {own} with {changes} could be tested{rest}"
        beyond = [one for one in flipped if one.factor.known]
        others = f"; it flips with {_named(beyond)}, too" if beyond else ""
        if not self.known:
            within = [one for one in flipped if not one.factor.known]
            return (
                "not known: the verdict changes within the band of what an instruction costs "
                f"({_named(within)}){others}"
            )
        if own is ClaimVerdict.NOT:
            return f"not replicated because of {_alternatives(beyond)}"
        return f"{own}, and not with {_alternatives(beyond)}"


def _comparisons(judged: JudgedClaim | None) -> tuple[ClaimComparison, ...]:
    return judged.ours.comparisons if judged and judged.ours else ()


def _named(trials: Sequence[Trial]) -> str:
    return ", ".join(f"{one.setting.factor} {one.setting.to}" for one in trials)


def _alternatives(trials: Sequence[Trial]) -> str:
    """Name what flips the verdict, each alone: ``the defaults (today) or the kernel (5.10)``."""
    settings: dict[str, list[str]] = {}
    for one in trials:
        settings.setdefault(one.setting.factor, []).append(one.setting.to)
    return " or ".join(f"the {factor} ({', '.join(to)})" for factor, to in settings.items())
