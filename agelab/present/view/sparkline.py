"""Small charts of one line, in characters."""

from collections.abc import Mapping, Sequence

Place = tuple[str, int, str]
"""Step, repetition, metric."""
METRICS = {"throughput": (1e6, "MB/s"), "elapsed": (1, "s")}
"""Metrics of curves, the preferred first, with divisor and unit."""
MIN_REPETITIONS = 3
"""The fewest repetitions of a step with a curve."""
BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
"""Characters from the lowest value to the highest, in Unicode and in ASCII."""


def lacks_blocks(encoding: str) -> bool:
    """Return True if an encoding lacks block characters."""
    return not encoding.lower().startswith("utf")


def bar(value: float, most: float, width: int, encoding: str) -> str:
    """Draw a bar from zero; the ``most`` has ``width`` characters."""
    halves = round(2 * width * value / most) if most > 0 else 0
    if lacks_blocks(encoding):
        return "#" * (halves // 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def row(values: Sequence[float | None], encoding: str) -> str:
    """Draw a character for each value between the lowest and the highest; a blank where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    steps = ASCII if lacks_blocks(encoding) else BLOCKS
    return "".join(
        " " if value is None else steps[round((len(steps) - 1) * (value - low) / (high - low)) if high > low else 0]
        for value in values
    )


def curves(values: Mapping[Place, float | None], encoding: str) -> dict[str, str]:
    """Draw each repeated step by name: its throughput where it has one, else its time.

    A curve has the first and the last figure, between them a character for each repetition.
    """
    by_step: dict[str, dict[str, dict[int, float | None]]] = {}
    for (step, repetition, metric), value in values.items():
        if metric in METRICS:
            by_step.setdefault(step, {}).setdefault(metric, {})[repetition] = value
    drawn = {}
    for step, metrics in by_step.items():
        metric = next(name for name in METRICS if name in metrics)
        if len(metrics[metric]) >= MIN_REPETITIONS:
            scale, unit = METRICS[metric]
            drawn[f"{step} 1-{max(metrics[metric])}, {unit}"] = _curve(metrics[metric], scale, encoding)
    return drawn


def _curve(values: Mapping[int, float | None], scale: float, encoding: str) -> str:
    ordered = [values[number] for number in sorted(values)]
    first, last = (
        "?" if value is None else f"{value / scale:.{1 if value >= 10 * scale else 3}f}"
        for value in (ordered[0], ordered[-1])
    )
    return f"{first} {row(ordered, encoding)} {last}"
