"""Tables of the aged disk beside its unaged control: once, or at points of its history."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from agelab.base.errors import name_some
from agelab.present.view.terminal import Head, print_table
from agelab.results.result import Sample
from agelab.scenario.step import AGED, AGED_MAP, CONTROL, CONTROL_COPY, CONTROL_MAP, IMPLICIT, StepId

NO_TESTS = (*IMPLICIT, CONTROL_COPY)
"""Steps on both disks that are none of the scenario's tests."""
MAP_ROWS: dict[str, tuple[str, float, int]] = {
    "files": ("files", 1, 0),
    "extents": ("extents", 1, 0),
    "extents_per_file": ("extents a file", 1, 4),
    "fragmented_files": ("files in several pieces, %", 0.01, 1),
    "layout_score": ("layout score", 1, 4),
    "extent_length_p50": ("median extent, KiB", 1024, 0),
    "locality_score": ("files that follow the one before, share", 1, 4),
    "locality_distance": ("distance to the file before, KiB", 1024, 0),
    "free_bytes": ("free, MB", 1e6, 1),
    "free_extents": ("free extents", 1, 0),
    "free_extent_largest": ("largest free extent, MB", 1e6, 1),
    "free_usable_1mib": ("free in runs of 1 MiB and more, %", 0.01, 1),
}
"""Metric of a map to its label, divisor and decimals."""

Column = tuple[str, str, str, float, int]
"""Heading, step, metric, divisor, decimals."""


def print_measures(console: Console, samples: Sequence[Sample]) -> None:
    """Print the tests' times on both disks with the slowdown, then the measures of both layouts."""
    values = _by_place(samples)
    tests = dict.fromkeys(
        (one.step_id.name, one.repetition)
        for one in samples
        if one.step_id.within == (AGED,) and one.metric == "elapsed" and one.step_id.name not in NO_TESTS
    )
    if tests:
        _print_tests(console, values, list(tests))
    rows = []
    for metric, (label, scale, decimals) in MAP_ROWS.items():
        both = [values.get((step, metric, 1)) for step in (AGED_MAP, CONTROL_MAP)]
        if both[0]:
            rows.append((f" {label}", *(format_sample(one, decimals, scale) for one in both)))
    if rows:
        print_table(console, [(" layout", "left"), ("aged", "right"), ("control", "right")], rows)
        for reason, places in _gaps(samples).items():
            console.print(f"  not measured: {name_some(places, 1)}: {reason}", soft_wrap=True)


def _print_tests(
    console: Console, values: Mapping[tuple[str, str, int], Sample], tests: Sequence[tuple[str, int]]
) -> None:
    """Print a row for each test: its time on the aged disk and on the control, slowdown, dynamic layout scores."""
    scores = (f"dynamic layout\nscore, {disk}" for disk in (AGED, CONTROL))
    names = ("aged\ns", "control\ns", "slowdown\n", *scores)
    heads: list[Head] = [(" test", "left"), *((name, "right") for name in names)]
    rows = []
    for test, number in tests:
        label = f" {test}" if sum(name == test for name, _ in tests) == 1 else f" {test} {number}"
        aged, control = (str(StepId.parse(test).on(disk)) for disk in (AGED, CONTROL))
        cells = (
            (aged, "elapsed", 6), (control, "elapsed", 6), (test, "slowdown", 3),
            (aged, "dynamic_layout_score", 4), (control, "dynamic_layout_score", 4),
        )  # fmt: skip
        found = ((values.get((step, metric, number)), decimals) for step, metric, decimals in cells)
        rows.append((label, *(format_sample(*one) for one in found)))
    print_table(console, heads, rows)


def drives_at_points(samples: Sequence[Sample]) -> list[str]:
    """Name the drives that were tested at points of a history; none in other scenarios."""
    return list(
        dict.fromkeys(one.step_id.label for one in samples if one.step_id.on_aged_disk and one.step_id.label)
    )


def print_points(console: Console, samples: Sequence[Sample], labels: Sequence[str]) -> None:
    """Print a row for each point: slowdowns against the point's control, layout scores, free space."""
    columns = list(_point_columns(samples, labels))
    values = _by_place(samples)
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
    for reason in _gaps(samples):
        console.print(f"  not measured: {reason}", soft_wrap=True)


def _point_columns(samples: Sequence[Sample], labels: Sequence[str]) -> Iterator[Column]:
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
    for step in dict.fromkeys(one.step for one in samples if one.metric == "refused"):
        yield f"refused\n{step}", step, "refused", 1, 0


def _tests(samples: Sequence[Sample], label: str) -> list[str]:
    found = (one.step_id for one in samples if one.metric == "slowdown")
    return list(dict.fromkeys(test.name for test in found if test.label == label))


def _by_place(samples: Sequence[Sample]) -> Mapping[tuple[str, str, int], Sample]:
    return {(one.step, one.metric, one.repetition): one for one in samples}


def format_sample(sample: Sample | None, decimals: int, scale: float = 1) -> str:
    """Format a value: a dash where there is no sample, a question mark where it was not measured."""
    if sample is None:
        return "-"
    return "?" if sample.value is None else f"{sample.value / scale:.{decimals}f}"


def _gaps(samples: Sequence[Sample]) -> dict[str, list[str]]:
    """Return the reasons for gaps in maps and slowdowns, each with the steps and metrics that it explains."""
    found: dict[str, list[str]] = {}
    for one in samples:
        if one.not_measured and (one.step_id.is_map or one.metric == "slowdown"):
            found.setdefault(one.not_measured, []).append(f"{one.step} {one.metric}")
    return found
