"""Whether a difference holds for other files of the same kind: a t interval over the shifts of the corpora.

Each corpus is one draw of files, so the sample is of corpora: their shifts (logarithms of ratios), as many as there are
corpora. The interval is Student's (Biometrika 6 (1908), 1-25), the test the one that agrees with it. Run seeds need no
term of their own: what they leave of a corpus' shift is part of how far the shifts lie apart. It is exact for normal
shifts however few they are. A mixed model estimates the same variance from the same few corpora and has no exact law
for few of them. From THREE on: of two the interval would be 12.7 times as wide as they are apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt

from agelab.stats.phrasing import THREE
from agelab.stats.rank_law import LATTICE
from agelab.stats.rank_test import control_false_discoveries
from agelab.stats.shift import LEVEL, Interval, Shift

WIDEST = 700.0
"""The largest logarithm of an end of an interval."""


@dataclass(frozen=True)
class OtherFiles:
    """The shift from A to B for files of which the corpora are a sample."""

    interval: Interval
    p: float
    """Two-sided: the chance of shifts so far to one side if there is none on average."""
    corrected: float
    """p corrected for all comparisons of its family; p itself where nothing is corrected."""
    higher: bool
    """True if B is higher on average."""
    level: Fraction = LEVEL

    @property
    def shown(self) -> bool:
        """True if chance in the choice of files is excluded."""
        return self.corrected <= float(self.level) * (1 + LATTICE)


def other_files(
    shifts: Sequence[Shift | None], *, correct: bool = True, level: Fraction = LEVEL
) -> list[OtherFiles | None]:
    """Return for each pair of sides what its corpora show, as one family; None where they are fewer than three."""
    found = {at: _student(one, level) for at, one in enumerate(shifts) if one and len(one.corpora) >= THREE}
    fair = [p for _, p, _ in found.values()]
    fair = control_false_discoveries(fair) if correct else fair
    known = {
        at: OtherFiles(interval, p, corrected, higher, level)
        for (at, (interval, p, higher)), corrected in zip(found.items(), fair, strict=True)
    }
    return [known.get(at) for at in range(len(shifts))]


def _student(shift: Shift, level: Fraction) -> tuple[Interval, float, bool]:
    """Return the interval, p, and whether B is higher. All shifts alike: they are the interval."""
    from scipy.special import stdtr, stdtrit

    values = [log(one.value) if shift.is_ratio else float(one.value) for one in shift.corpora]
    count = len(values)
    mean = sum(values) / count
    error = sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = float(stdtrit(count - 1, 1 - float(level) / 2)) * error
    p = 2 * float(stdtr(count - 1, -abs(mean) / error)) if error else float(not mean)
    ends = (mean - half, mean + half)
    return Interval(*(Fraction(_exp(end) if shift.is_ratio else end) for end in ends)), p, mean > 0


def _exp(value: float) -> float:
    """Return the ratio of a logarithm, within what a float can hold."""
    return exp(max(-WIDEST, min(WIDEST, value)))
