"""Table of what programs and a scenario's own metrics have measured: by itself, or aged beside its unaged control."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console

from agelab.base.errors import name_some
from agelab.present.view.terminal import Head, print_table
from agelab.results.result import Sample
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import AGED, CONTROL, DISKS, StepId
from agelab.stats.formatting import unit_scale

FIGURES = 6
"""Figures of a value to show; exports have all."""

Line = tuple[str, int, str]
"""Step without its disk, repetition, metric."""


def print_own_metrics(console: Console, samples: Sequence[Sample]) -> None:
    """Print a row for each metric that the registry does not have; nothing where there is none."""
    own = [one for one in samples if one.metric not in METRICS]
    if not own:
        return
    found: dict[Line, dict[str, Sample]] = {}
    for one in own:
        disk = one.step_id.disk
        step = StepId(one.step_id.name, one.step_id.within[:-1] if disk in DISKS else one.step_id.within)
        found.setdefault((str(step), one.repetition, one.metric), {})[disk] = one
    repeated = {step for step, number, _ in found if number > 1}
    plain = {line: by for line, by in found.items() if set(by) == {""}}
    aged = {line: by for line, by in found.items() if line not in plain}
    if plain:
        _print(console, ("value",), plain, repeated, ("",))
    if aged:
        _print(console, (AGED, CONTROL, f"{AGED} /\n{CONTROL}"), aged, repeated, (AGED, CONTROL))
    reasons: dict[str, list[str]] = {}
    for one in own:
        if one.not_measured:
            reasons.setdefault(one.not_measured, []).append(f"{one.step} {one.metric}")
    for reason, places in reasons.items():
        console.print(f"  not measured: {name_some(places, 1)}: {reason}", soft_wrap=True)


def _print(
    console: Console,
    names: Iterable[str],
    lines: Mapping[Line, Mapping[str, Sample]],
    repeated: set[str],
    disks: Sequence[str],
) -> None:
    heads: list[Head] = [(" step", "left"), ("metric", "left"), ("unit", "left")]
    heads += [(name, "right") for name in names]
    rows = []
    for (step, repetition, metric), by_disk in lines.items():
        label = f" {step} {repetition}" if step in repeated else f" {step}"
        scale = unit_scale(next(iter(by_disk.values())).unit)
        values = [by_disk[disk].value if disk in by_disk else None for disk in disks]
        cells = [_format(value, scale.divisor) for value in values]
        if len(disks) > 1:
            first, second = values
            cells.append(f"{first / second:.3f}" if first is not None and second else "-")
        rows.append([label, metric, scale.name, *cells])
    print_table(console, heads, rows)


def _format(value: float | None, divisor: int) -> str:
    if value is None:
        return "?"
    return f"{value / divisor:.{FIGURES}g}"
