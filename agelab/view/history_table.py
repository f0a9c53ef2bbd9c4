"""The table of a disk that is measured at points of its history."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from agelab.model.result import Sample
from agelab.model.step_id import AGED, AGED_MAP, CONTROL, CONTROL_MAP, StepId
from agelab.view.aging_table import format_sample
from agelab.view.terminal import Head, print_table

Column = tuple[str, str, str, float, int]
"""Heading, step, metric, divisor, decimals."""


def drives_at_points(samples: Sequence[Sample]) -> list[str]:
    """Name the drives that were tested at points of a history; none in other scenarios."""
    return list(
        dict.fromkeys(one.step_id.label for one in samples if one.step_id.on_aged_disk and one.step_id.label)
    )


def print_points(console: Console, samples: Sequence[Sample], labels: Sequence[str]) -> None:
    """Print a row for each point: slowdowns against the point's control, layout scores, free space."""
    columns = list(_columns(samples, labels))
    values = {(one.step, one.metric, one.repetition): one for one in samples}
    points = sorted({one.repetition for one in samples if one.metric == "slowdown" or one.step == AGED_MAP})
    heads: list[Head] = [(" point", "left"), *((heading, "right") for heading, *_ in columns)]
    rows = []
    for point in points:
        cells = (
            format_sample(values.get((step, metric, point)), decimals, scale)
            for _, step, metric, scale, decimals in columns
        )
        rows.append((f" {point}", *cells))
    print_table(console, heads, rows)
    gaps = dict.fromkeys(
        one.not_measured
        for one in samples
        if one.not_measured and (one.step_id.is_map or one.metric == "slowdown")
    )
    for why in gaps:
        console.print(f"  not measured: {why}", soft_wrap=True)


def _columns(samples: Sequence[Sample], labels: Sequence[str]) -> Iterator[Column]:
    for label in labels:
        for test in _tests(samples, label):
            yield f"slowdown\n{label}\n{test}", str(StepId(test, (label,))), "slowdown", 1, 3
    for test in _tests(samples, labels[0])[:1]:
        step = str(StepId(test, (labels[0], AGED)))
        yield f"dynamic\n{labels[0]}\n{test}", step, "dynamic_layout_score", 1, 4
    for step, disk in ((AGED_MAP, AGED), (CONTROL_MAP, CONTROL)):
        yield f"layout\nscore\n{disk}", step, "layout_score", 1, 4
    for step, disk in ((AGED_MAP, AGED), (CONTROL_MAP, CONTROL)):
        yield f"% free in\n>= 1 MiB\n{disk}", step, "free_usable_1mib", 0.01, 1
    refused = dict.fromkeys(one.step for one in samples if one.metric == "refused")
    for step in refused:
        yield f"refused\n{step}", step, "refused", 1, 0


def _tests(samples: Sequence[Sample], label: str) -> list[str]:
    found = (one.step_id for one in samples if one.metric == "slowdown")
    return list(dict.fromkeys(test.name for test in found if test.label == label))
