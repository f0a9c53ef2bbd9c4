"""Small charts of one line, in characters."""

from collections.abc import Sequence

BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
"""From the lowest to the highest, for a terminal that has them and for one that has letters alone."""


def letters(encoding: str) -> bool:
    """Whether an encoding has no blocks."""
    return not encoding.lower().startswith("utf")


def bar(value: float, most: float, width: int, encoding: str) -> str:
    """A bar from zero, as long as the value is of the most; that has ``width`` characters."""
    halves = round(2 * width * value / most) if most > 0 else 0
    if letters(encoding):
        return "#" * (halves // 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def row(values: Sequence[float | None], encoding: str) -> str:
    """A character for each value, the lowest of them to the highest; a blank where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    steps = ASCII if letters(encoding) else BLOCKS
    return "".join(
        " "
        if value is None
        else steps[round((len(steps) - 1) * (value - low) / (high - low)) if high > low else 0]
        for value in values
    )
