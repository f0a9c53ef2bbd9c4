"""Small charts of one line, in characters."""

from collections.abc import Mapping, Sequence

Place = tuple[str, int, str]
"""Step, repetition, metric."""
DRAWN = {"throughput": (1e6, "MB/s"), "elapsed": (1, "s")}
"""What a step's curve is of, the first that it has; what a figure is divided by, and the unit."""
OFTEN = 3
"""Repetitions from which on a step has a curve."""
BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
"""From the lowest to the highest, for a terminal that has them and for one that has letters alone."""


def lacks_blocks(encoding: str) -> bool:
    """Whether an encoding has no blocks."""
    return not encoding.lower().startswith("utf")


def bar(value: float, most: float, width: int, encoding: str) -> str:
    """A bar from zero, as long as the value is of the most; that has ``width`` characters."""
    halves = round(2 * width * value / most) if most > 0 else 0
    if lacks_blocks(encoding):
        return "#" * (halves // 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def row(values: Sequence[float | None], encoding: str) -> str:
    """A character for each value, the lowest of them to the highest; a blank where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    steps = ASCII if lacks_blocks(encoding) else BLOCKS
    return "".join(
        " "
        if value is None
        else steps[round((len(steps) - 1) * (value - low) / (high - low)) if high > low else 0]
        for value in values
    )


def curves(values: Mapping[Place, float | None], encoding: str) -> dict[str, str]:
    """Each step that was repeated, with what is drawn: its throughput, where it has one, else its time.

    First and last figure, between them a character for each repetition.
    """
    found: dict[str, dict[str, dict[int, float | None]]] = {}
    for (step, repetition, metric), value in values.items():
        if metric in DRAWN:
            found.setdefault(step, {}).setdefault(metric, {})[repetition] = value
    drawn = {}
    for step, metrics in found.items():
        metric = next(name for name in DRAWN if name in metrics)
        if len(metrics[metric]) >= OFTEN:
            scale, unit = DRAWN[metric]
            drawn[f"{step} 1-{max(metrics[metric])}, {unit}"] = _curve(metrics[metric], scale, encoding)
    return drawn


def _curve(values: Mapping[int, float | None], scale: float, encoding: str) -> str:
    ordered = [values[number] for number in sorted(values)]
    first, last = (
        "?" if value is None else f"{value / scale:.{1 if value >= 10 * scale else 3}f}"
        for value in (ordered[0], ordered[-1])
    )
    return f"{first} {row(ordered, encoding)} {last}"
