"""Units as benchmarks print them, and whether a time of the guest's clock is in them.

A list of words, no library: pint takes ``us/op`` apart, but knows neither IOPS nor that ``ops`` may be a rate.
"""

import re

TIMES = frozenset(
    (
        *("s", "sec", "secs", "second", "seconds"),
        *("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
        *("us", "usec", "usecs", "micros", "microsecond", "microseconds"),
        *("ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"),
        *("min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days"),
    )
)
"""Words for a time, in lower case."""
RATES = re.compile(r"(k|m|g)?(iops|tps|qps|rps|tpmc?|bps|bit/s)|[kmgt]i?bps", re.IGNORECASE)
"""Words for something in a unit of time."""
OPEN = re.compile(r"[kmg]?ops", re.IGNORECASE)
"""Words that some programs print for a count, and others for a rate."""
LIKE_TIME = re.compile(r"sec|min|hour|day|time|jiff|^[munp]?s$|hz$", re.IGNORECASE)
"""What an unknown word has that may stand for a time."""
LIKE_RATE = re.compile(r"p[sm]$", re.IGNORECASE)
"""What an unknown word has that may stand for a rate; with a time below it, as in ``lookups/s``, it is a count."""
COUNTS = re.compile(r"op|steps?|maps?|b|byte|bytes|[kmgt]i?b|bits?|percent", re.IGNORECASE)
"""Words without a time that look as if there were one in them."""
PER = re.compile(r"[_.-]?per[_.-]")


def time_power(unit: str) -> int:
    """Return 1 for a time, -1 for something in a unit of time, 0 for anything else.

    Raises ValueError for a unit that may have a time in it and is not known.
    """
    above, *below = PER.sub("/", unit).split("/")
    times = sum(_power(word, unit) for word in below)
    power = _power(above, unit, may_be_rate=not times) - times
    if abs(power) > 1:
        raise ValueError(f"{unit!r} is a time twice")
    return power


def _power(word: str, unit: str, *, may_be_rate: bool = True) -> int:
    if word.lower() in TIMES:
        return 1
    if RATES.fullmatch(word):
        return -1
    if OPEN.fullmatch(word) and word == unit:
        raise ValueError(f"{unit!r} may be a count or a rate: write 1 for a count, ops/s for a rate")
    in_pieces = any(piece.lower() in TIMES for piece in re.split(r"[_.-]", word))
    like = in_pieces or LIKE_TIME.search(word) or (may_be_rate and LIKE_RATE.search(word))
    if OPEN.fullmatch(word) or COUNTS.fullmatch(word) or not like:
        return 0
    raise ValueError(
        f"{word!r} in the unit {unit!r} may be a time, and is not known: write s, ms, us, ns, min or h; "
        "a rate as in ops/s, a time for each as in us/op, and 1 for a count"
    )
