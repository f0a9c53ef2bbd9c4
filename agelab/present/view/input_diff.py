"""Differences of two cells in inputs and samples, as lines and as JSON."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import click

from agelab.analysis.cell_diff import CellPair, ValueDifference
from agelab.base.verbs import as_called

MAX_PLACES = 2
"""Places to name of an input that differs in several."""
WIDTH = 60
"""Characters of a value."""
SHORT_WIDTH = 16
"""Characters of a value in the short form: both values fit a line of 80."""
NOTHING = "nothing"


def input_lines(differing: Sequence[ValueDifference], every: bool) -> list[str]:
    """Make a line for each input that differs, or with ``every`` for each place in it."""
    lines = []
    for name, those in groupby(sorted(differing, key=lambda d: d.name), lambda d: d.name):
        found = list(those)
        if every or len(found) == 1:
            width = WIDTH if every else SHORT_WIDTH
            lines += [f"{difference.place}: {_values(difference, width)}" for difference in found]
        else:
            places = ", ".join(difference.place for difference in found[:MAX_PLACES])
            more = ", ..." if len(found) > MAX_PLACES else ""
            named = f" ({places}{more})"
            lines.append(f"{name}: {len(found)} places{named if len(named) < WIDTH else ''}")
    return lines


def _values(difference: ValueDifference, width: int) -> str:
    """Format both values; of lists the items that differ."""
    if difference.list_changes is None:
        return _short(difference.left, difference.right, width)
    removed, added = (" ".join(map(_value, words)) or NOTHING for words in difference.list_changes)
    return f"only A: {_cut(removed, 0, width)} | only B: {_cut(added, 0, width)}"


def print_samples(pair: CellPair, most: int) -> None:
    """Print the samples that differ, ``most`` of them; where equal inputs broke the promise also the ends."""
    for row in pair.samples[:most]:
        click.echo(f"  sample {row.place}: {_value(row.left)} | {_value(row.right)}")
    if len(pair.samples) > most:
        click.echo(
            as_called(f"  and {len(pair.samples) - most} more samples; agelab compare --all shows them")
        )
    for row in pair.endings if pair.broken else []:
        click.echo(f"  {row.place}: {_value(row.left)} | {_value(row.right)}")


def _value(value: object) -> str:
    """Format a value as JSON, a text without quotes; ``nothing`` where one side has none."""
    if value is None or isinstance(value, str):
        return NOTHING if value is None else value
    return json.dumps(value, ensure_ascii=False)


def _short(left: object, right: object, width: int = WIDTH) -> str:
    """Format both values side by side; long ones from just before the place where they differ."""
    one, other = _value(left), _value(right)
    parted = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, parted - width // 3) if max(len(one), len(other)) > width else 0
    return f"{_cut(one, start, width)} | {_cut(other, start, width)}"


def _cut(text: str, start: int, width: int) -> str:
    """Cut a text to a width, with dots for the rest."""
    before, after = "..." if start else "", "..." if len(text) > start + width else ""
    return before + text[start : start + width] + after


def differences_json(found: Iterable[ValueDifference]) -> list[dict[str, Any]]:
    return [{"place": d.place, "left": d.left, "right": d.right} for d in found]
