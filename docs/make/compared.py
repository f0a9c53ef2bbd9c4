"""One comparison of two series of values in words: a ratio, its interval, and the verdict of the rank test."""

from collections.abc import Callable
from fractions import Fraction

from agelab.stats.formatting import format_ratio
from agelab.stats.shift import Interval
from agelab.stats.verdict import ComparedSeries


def depends(judged: ComparedSeries) -> bool:
    """Return whether no one ratio fits all corpora."""
    return judged.shift is not None and judged.shift.depends


def said(judged: ComparedSeries, corpus: Callable[[int], str]) -> str:
    """Return B/A with its interval (95 %) and the verdict.

    Where no one ratio fits all corpora each has its own, with its interval (99 %); ``corpus`` names one by its seed.
    """
    shift = judged.shift
    if shift is None:
        return "not measured"
    if depends(judged):
        return ", ".join(f"{corpus(one.corpus)}: {_ratio(one.value, one.interval)}" for one in shift.corpora)
    if shift.interval is None:
        return f"{_ratio(shift.value, None)}, not known"
    return f"{_ratio(shift.value, shift.interval, apart=judged.differs)}, {judged.word}"


def _ratio(value: Fraction, interval: Interval | None, *, apart: bool = True) -> str:
    ends = (interval.low, interval.high) if interval else ()
    shown, *between = format_ratio(value, ends, apart)
    return f"{shown} ({' to '.join(between)})" if between else shown
