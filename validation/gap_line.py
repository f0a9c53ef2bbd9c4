"""On which line of a trace the time between two requests stands: the platters tell.

A line of the format ends with a time to an arrival. In some files it is that of the next line's request, in others
that of its own, since the request before had completed. Moments at which neighbouring sectors of one track have passed
lie whole revolutions apart, so only under the right reading do the angles of such pairs agree.
"""

import cmath
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import tau

from validation.drive_traces import Mechanics, Request

_NEAR = 0.3
"""Share of a track within which two requests are neighbours."""
_SPEEDS = [1 + step / 10_000 for step in range(-50, 51)]
"""Of the nominal one: a drive's speed is known to a few per mille, and the times between are several revolutions."""
_MOVED = 1500.0
"""Microseconds of a read's response from which on it did not come from the cache."""


def stands_before(mechanics: Mechanics, requests: Sequence[Request], *, writes_tell: bool) -> bool:
    """Return True if a line's time is the one before its own request, False if it is the one behind it.

    Writes tell it of a drive that does not cache them, else reads.
    """
    firsts = [0, *accumulate(zone.tracks(mechanics.surfaces) * zone.per_track for zone in mechanics.zones)]
    behind, before = [], []
    for one, other in pairwise(requests):
        zone = mechanics.zones[min(bisect_right(firsts, other.first), len(mechanics.zones)) - 1]
        apart = (other.first + other.sectors - one.first - one.sectors) / zone.per_track
        if one.write == other.write == writes_tell and abs(apart) < _NEAR:
            if not writes_tell and min(one.response, other.response) < _MOVED:
                continue
            behind.append((other.response + one.gap, apart))
            before.append((other.response + other.gap, apart))
    revolution = 60e6 / mechanics.rpm
    return _agreement(before, revolution) > _agreement(behind, revolution)


def _agreement(pairs: Sequence[tuple[float, float]], revolution: float) -> float:
    """Return how well the angles agree at the speed that suits them best, from 0 to the number of pairs."""
    return max(
        abs(sum(cmath.rect(1, tau * (time * speed / revolution - apart)) for time, apart in pairs))
        for speed in _SPEEDS
    )
