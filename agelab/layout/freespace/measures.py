"""Measures of free space: amount, number and length of runs. See docs/free-space.md."""

from fractions import Fraction

from agelab.layout.model import FreeSpace, LayoutMeasure

PERCENTILES = (10, 50, 90)
USABLE = 1 << 20
"""Shortest run in bytes that a large file can use without significant fragmentation."""
DIGITS = 6
"""Decimals of a share."""

LENGTHS = (*(f"free_extent_p{percent}" for percent in PERCENTILES), "free_extent_largest")
METRICS = ("free_bytes", "free_extents", *LENGTHS, "free_usable_1mib")
"""Metrics of ``measures``, in this order."""


def measures(space: FreeSpace | None, why: str = "") -> list[LayoutMeasure]:
    """Return every measure of the free space; for None, each as not measured, with the reason ``why``."""
    if space is None:
        return [LayoutMeasure(metric, None, why) for metric in METRICS]
    ordered = sorted(length for _, length in space.runs)
    free = sum(ordered)
    amounts = [LayoutMeasure("free_bytes", free), LayoutMeasure("free_extents", len(ordered))]
    if not ordered:
        none = "there is no free space"
        return [*amounts, *(LayoutMeasure(metric, None, none) for metric in METRICS[len(amounts) :])]
    ranked = [
        LayoutMeasure(f"free_extent_p{percent}", ordered[-(-percent * len(ordered) // 100) - 1])
        for percent in PERCENTILES
    ]
    usable = round(Fraction(sum(length for length in ordered if length >= USABLE), free), DIGITS)
    share = int(usable) if usable.denominator == 1 else float(usable)
    return [
        *amounts,
        *ranked,
        LayoutMeasure("free_extent_largest", ordered[-1]),
        LayoutMeasure("free_usable_1mib", share),
    ]
