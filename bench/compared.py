"""One comparison of two series of values in words: a ratio, its interval, and the verdict of the rank test."""

from collections.abc import Callable

from agelab.stats.formatting import format_ratio
from agelab.stats.verdict import ComparedSeries


def said(judged: ComparedSeries, corpus: Callable[[int], str]) -> str:
    """Return B/A with its interval (95 %) and the verdict, or a ratio for each corpus where no one ratio fits all.

    ``corpus`` names a corpus by its seed.
    """
    shift = judged.shift
    if shift is None:
        return "not measured"
    if shift.depends and shift.interval is None:
        each = (f"{corpus(one.corpus)}: {format_ratio(one.value, (), True)[0]}" for one in shift.corpora)
        return ", ".join(each)
    ends = (shift.interval.low, shift.interval.high) if shift.interval else ()
    value, *between = format_ratio(shift.value, ends, judged.differs)
    return f"{value} ({' to '.join(between)}), {judged.word}" if between else f"{value}, not known"
