"""Verdicts of runs that differ in the end of the processor's band alone: where they differ, nothing is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.verdict import ClaimVerdict, JudgedClaim

PLACES = {"low": "at low", "": "in the middle", "high": "at high"}
"""An end of the band, or its middle, to how a sentence names it; in the order in which it does."""
Judged = Sequence[tuple[str, JudgedClaim]]
"""Verdicts on one claim, each with the letter of its side."""


def within_band(judged: Judged, sides: Mapping[str, RunColumn]) -> tuple[tuple[str, JudgedClaim], ...]:
    """Return the verdicts; those that runs at another place of the band contradict become *not known*."""
    return tuple((letter, _against_the_band(letter, one, judged, sides)) for letter, one in judged)


def _against_the_band(
    letter: str, one: JudgedClaim, judged: Judged, sides: Mapping[str, RunColumn]
) -> JudgedClaim:
    if one.verdict is ClaimVerdict.UNTESTED:
        return one
    found = {
        sides[other].machine.band_end: twin.verdict
        for other, twin in judged
        if twin.verdict is not ClaimVerdict.UNTESTED
        and twin.filesystem == one.filesystem
        and (other == letter or sides[letter].differs_in_band(sides[other]))
    }
    if len(set(found.values())) == 1:
        return one
    in_order = {place: found[place] for place in PLACES if place in found}
    return replace(
        one,
        verdict=ClaimVerdict.UNKNOWN,
        reason=f"within the processor's band it is {_spoken(in_order)}",
        in_band=in_order,
    )


def _spoken(found: Mapping[str, ClaimVerdict]) -> str:
    """Name each verdict with its places: ``replicated at low and in the middle, not replicated at high``."""
    places: dict[ClaimVerdict, list[str]] = {}
    for place, verdict in found.items():
        places.setdefault(verdict, []).append(PLACES[place])
    return ", ".join(f"{verdict} {' and '.join(named)}" for verdict, named in places.items())
