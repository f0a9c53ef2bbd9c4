"""Judge a claim by our runs: replicated, not replicated, not known, or could not be tested; with the reason."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agelab.analysis.published.claims import Claim, Place
from agelab.analysis.published.outcome import ClaimOutcome, run_and_read, run_test
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import BaseRate, Study
from agelab.analysis.published.values import READINGS, OurValues, PrintedValues
from agelab.base.gathered import gathered
from agelab.stats.rank_test import can_be_distinguishable

SCALES = ("quick", "paper")
"""From the smallest on."""


class ClaimVerdict(StrEnum):
    REPLICATED = "replicated"
    NOT = "not replicated"
    UNKNOWN = "not known"
    UNTESTED = "could not be tested"


DENIED, UNINFORMATIVE = "denied by the study itself", "uninformative"
"""Why a claim that was tested is not counted."""
COUNTED = (ClaimVerdict.REPLICATED, ClaimVerdict.NOT, ClaimVerdict.UNKNOWN)
KINDS = (*COUNTED, DENIED, UNINFORMATIVE, ClaimVerdict.UNTESTED)
"""What a claim counts as."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim judged by one column."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    theirs: tuple[ClaimOutcome, ...]
    """The test on the study's own table, once for each reading of its percentages; empty without a test."""
    ours: ClaimOutcome | None
    few_seeds: int = 0
    """The fewest seeds of a value, where they are too few for a test, so that a lead counted; 0 where none are."""
    filesystem: str = ""
    """The filesystem judged, where filesystems of ours stand in for the study's."""
    stand_in: bool = False
    in_band: Mapping[str, ClaimVerdict] = field(default_factory=dict)
    """End of the processor's band (empty: its middle) to the verdict there, where these differ."""
    rate: BaseRate | None = None
    """How often it is true where filesystems are all alike; None where that is not known."""
    not_counted: str = ""
    """Why its verdict is not counted, DENIED or UNINFORMATIVE; empty where it is."""
    read: tuple[Place, ...] = ()
    """The places whose values of ours its test asked for."""

    @property
    def kind(self) -> str:
        """What it counts as, one of KINDS."""
        return self.verdict if self.verdict is ClaimVerdict.UNTESTED else self.not_counted or self.verdict


def judge_claim(study: Study, claim: Claim, column: RunColumn) -> list[JudgedClaim]:
    """Judge a claim; with stand-ins for the study's own filesystem first, then for each of them that ran."""
    stand_ins = study.claims.stand_ins
    if stand_ins is None:
        return [_judge(study, claim, column)]
    own = ", ".join(dict.fromkeys(figure.filesystem for figure in study.figures.by_place.values()))
    why, theirs = claim.untestable or stand_ins.why, printed_outcomes(study, claim)
    rate = study.rates.get(claim.id)
    first = JudgedClaim(claim, ClaimVerdict.UNTESTED, why, theirs, None, filesystem=own, rate=rate)
    if claim.untestable:
        return [first]
    return [first, *(_judge(study, claim, column, name) for name in stand_ins_run(study, column))]


def stand_ins_run(study: Study, column: RunColumn) -> list[str]:
    """List the stand-ins that the column has any cell of."""
    if study.claims.stand_ins is None:
        return []
    variants = [variant for _, variant, _ in column.groups]
    return [name for name in study.claims.stand_ins.filesystems if any(v.startswith(f"{name}-") for v in variants)]


def printed_outcomes(study: Study, claim: Claim) -> tuple[ClaimOutcome, ...]:
    """Run the claim's test on the study's own table, in each reading of its percentages; equal outcomes once."""
    if claim.test is None:
        return ()
    readings = (PrintedValues(study.figures, study.claims, reading) for reading in READINGS)
    return tuple(dict.fromkeys(run_test(claim.test, study.claims, reading) for reading in readings))


def _judge(study: Study, claim: Claim, column: RunColumn, stand_in: str = "") -> JudgedClaim:
    theirs = printed_outcomes(study, claim)
    source = OurValues(study.figures, study.claims, column, stand_in)
    ours, read = run_and_read(claim.test, study.claims, source) if claim.test else (None, ())
    verdict, reason = _verdict(claim, column, ours)
    values = [value for place in read if (value := source.value(place)).values]
    few = [len(value.values) for value in values if not can_be_distinguishable(value.seeds)]
    fewest = min(few, default=0) if verdict is not ClaimVerdict.UNTESTED else 0
    return JudgedClaim(
        claim, verdict, reason, theirs, ours, fewest, stand_in, bool(stand_in),
        rate=study.rates.get(claim.id), not_counted=_not_counted(study, claim, source), read=read,
    )  # fmt: skip


def _not_counted(study: Study, claim: Claim, source: OurValues) -> str:
    """Return why the claim's verdict is not counted; empty where it is.

    A claim about RAID-0 counts, though true of anything, where the same is false on our one drive: that is a cure.
    """
    if claim.conflict:
        return DENIED
    rate, test = study.rates.get(claim.id), claim.test
    if test is None or rate is None or not rate.uninformative:
        return ""
    on_one_drive = test.model_copy(update={"layouts": ("single",)})
    cured = test.layouts == ("raid0",) and run_test(on_one_drive, study.claims, source).holds is False
    return "" if cured else UNINFORMATIVE


def _verdict(claim: Claim, column: RunColumn, ours: ClaimOutcome | None) -> tuple[ClaimVerdict, str]:
    plan, first = column.plan, column.first
    if why := claim.untestable or out_of_reach(claim, plan.scale, first.defaults, first.kernel):
        return ClaimVerdict.UNTESTED, why
    assert ours is not None
    if ours.holds is None:
        verdict = ClaimVerdict.UNTESTED if ours.missing else ClaimVerdict.UNKNOWN
        why, *more = ours.missing or ours.close
        return verdict, why + (f" (and {len(more)} more reason{'s' if len(more) > 1 else ''})" if more else "")
    return (ClaimVerdict.REPLICATED if ours.holds else ClaimVerdict.NOT), _counted(ours)


def _counted(ours: ClaimOutcome) -> str:
    """Count the comparisons that are true among those made; for a single one say how it came out."""
    counted = ours.counted
    known = sum(comparison.holds is not None for comparison in counted)
    if len(counted) == 1:
        return counted[0].note or ("it is so" if ours.holds else "it is not so")
    needed = {"every": "", "most": ", more than half are needed", "some": ", one is needed"}[ours.over]
    close = sum(comparison.close for comparison in counted)
    left = {"could not be compared": len(counted) - known - close, "too close to tell": close}
    marks = Counter(comparison.uncounted.mark for comparison in ours.comparisons if comparison.uncounted)
    left |= {f"left out, {mark}": number for mark, number in marks.items()}
    counts = [f"{ours.true} of {known} are so{needed}", *(f"{n} {what}" for what, n in left.items() if n)]
    return "; ".join(counts)


def out_of_reach(claim: Claim, scale: str, defaults: str, kernel: str) -> str:
    """Return why no run of this kind can show the claim, whatever it measures; nothing where one can."""
    if scale not in SCALES:
        return f"scale {scale}: the data are not the study's"
    if SCALES.index(scale) < SCALES.index(claim.scale):
        return f"it takes scale {claim.scale}"
    if claim.defaults not in ("either", defaults):
        return f"it takes {claim.defaults} defaults"
    if claim.gone and _release(kernel) >= _release(claim.gone.since):
        return f"since Linux {claim.gone.since}: {claim.gone.why}"
    return ""


def _release(kernel: str) -> tuple[int, ...]:
    """Parse the numbers at the start of a kernel's name: 6.1.0-56-amd64 is (6, 1, 0)."""
    match = re.match(r"\d+(\.\d+)*", kernel)
    return tuple(int(word) for word in match.group().split(".")) if match else ()


PLACES = {"low": "at low", "": "in the middle", "high": "at high"}
"""An end of the band, or its middle, to how a sentence names it; in the order in which it does."""
Judged = Sequence[tuple[str, JudgedClaim]]
"""Verdicts on one claim, each with the letter of its side."""


def within_band(judged: Judged, sides: Mapping[str, RunColumn]) -> tuple[tuple[str, JudgedClaim], ...]:
    """Return the verdicts; those that runs at another place of the band contradict become *not known*."""
    return tuple((letter, _against_the_band(letter, claim, judged, sides)) for letter, claim in judged)


def _against_the_band(letter: str, claim: JudgedClaim, judged: Judged, sides: Mapping[str, RunColumn]) -> JudgedClaim:
    if claim.verdict is ClaimVerdict.UNTESTED:
        return claim
    verdicts = {
        sides[other].machine.band_end: twin.verdict
        for other, twin in judged
        if twin.verdict is not ClaimVerdict.UNTESTED
        and twin.filesystem == claim.filesystem
        and (other == letter or sides[letter].differs_in_band(sides[other]))
    }
    if len(set(verdicts.values())) == 1:
        return claim
    in_order = {place: verdicts[place] for place in PLACES if place in verdicts}
    return replace(
        claim,
        verdict=ClaimVerdict.UNKNOWN,
        reason=f"within the processor's band it is {_spoken(in_order)}",
        in_band=in_order,
    )


def _spoken(verdicts: Mapping[str, ClaimVerdict]) -> str:
    """Name each verdict with its places: ``replicated at low and in the middle, not replicated at high``."""
    places = gathered((verdict, PLACES[place]) for place, verdict in verdicts.items())
    return ", ".join(f"{verdict} {' and '.join(named)}" for verdict, named in places.items())
