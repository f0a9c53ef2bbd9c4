"""Tables of the aged disk beside its unaged control."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from agelab.model.result import Sample
from agelab.model.step import CONTROL_COPY, IMPLICIT
from agelab.model.step_id import AGED, AGED_MAP, CONTROL, CONTROL_MAP, StepId
from agelab.view.terminal import Head, print_table

NO_TESTS = (*IMPLICIT, CONTROL_COPY)
"""Steps on both disks that are none of the scenario's tests."""
PERCENT = ("fragmented_files", "free_usable_1mib")
MEGABYTES = ("free_bytes", "free_extent_largest")
LABELS = {
    "files": "files",
    "extents": "extents",
    "extents_per_file": "extents a file",
    "fragmented_files": "files in several pieces, %",
    "layout_score": "layout score",
    "extent_length_p50": "median extent, KiB",
    "locality_score": "files that follow the one before, share",
    "locality_distance": "distance to the file before, KiB",
    "free_bytes": "free, MB",
    "free_extents": "free extents",
    "free_extent_largest": "largest free extent, MB",
    "free_usable_1mib": "free in runs of 1 MiB and more, %",
}
KIB = ("extent_length_p50", "locality_distance")

Values = Mapping[tuple[str, str, int], Sample]


def print_measures(console: Console, samples: Sequence[Sample]) -> None:
    """Print the tests' times on both disks with the slowdown, then the measures of both layouts."""
    values = {(one.step, one.metric, one.repetition): one for one in samples}
    tests = dict.fromkeys(
        (one.step_id.name, one.repetition)
        for one in samples
        if one.step_id.within == (AGED,) and one.metric == "elapsed"
    )
    tests = {test: None for test in tests if test[0] not in NO_TESTS}
    if tests:
        _print_tests(console, values, tests)
    if rows := [metric for metric in LABELS if (AGED_MAP, metric, 1) in values]:
        _print_layout(console, values, rows)
        for reason in _reasons(samples):
            console.print(f"  not measured: {reason}", soft_wrap=True)


def _print_tests(console: Console, values: Values, tests: Mapping[tuple[str, int], None]) -> None:
    """Print a row for each test: its time on the aged disk and on the control, slowdown, dynamic layout scores."""
    names = ("aged\ns", "control\ns", "\nslowdown", "dynamic layout\naged", "score\ncontrol")
    heads: list[Head] = [(" test", "left"), *((name, "right") for name in names)]
    rows = []
    for test, number in tests:
        label = f" {test}" if sum(name == test for name, _ in tests) == 1 else f" {test} {number}"
        steps = [str(StepId.parse(test).on(disk)) for disk in (AGED, CONTROL)]
        both = [values.get((step, "elapsed", number)) for step in steps]
        scores = [values.get((step, "dynamic_layout_score", number)) for step in steps]
        slowdown = values.get((test, "slowdown", number))
        rows.append(
            (
                label,
                *(format_sample(one, 6) for one in both),
                format_sample(slowdown, 3),
                *(format_sample(one, 4) for one in scores),
            )
        )
    print_table(console, heads, rows)


def _print_layout(console: Console, values: Values, metrics: Sequence[str]) -> None:
    """Print a row for each measure of the maps."""
    rows = []
    for metric in metrics:
        scale, decimals = _scale(metric)
        both = (values.get((step, metric, 1)) for step in (AGED_MAP, CONTROL_MAP))
        rows.append((f" {LABELS[metric]}", *(format_sample(one, decimals, scale) for one in both)))
    print_table(console, [(" layout", "left"), ("aged", "right"), ("control", "right")], rows)


def _scale(metric: str) -> tuple[float, int]:
    """Return the divisor and the decimals of a metric."""
    if metric in PERCENT:
        return 0.01, 1
    if metric in MEGABYTES:
        return 1e6, 1
    if metric in KIB:
        return 1024, 0
    return 1, 0 if metric in ("files", "extents", "free_extents") else 4


def format_sample(sample: Sample | None, decimals: int, scale: float = 1) -> str:
    """Format a value: a dash where there is no sample, a question mark where it was not measured."""
    if sample is None:
        return "-"
    return "?" if sample.value is None else f"{sample.value / scale:.{decimals}f}"


def _reasons(samples: Sequence[Sample]) -> list[str]:
    """List the reasons for gaps in maps and slowdowns, each once, with the metrics that it explains."""
    found: dict[str, list[str]] = {}
    for one in samples:
        if one.not_measured and (one.step_id.is_map or one.metric == "slowdown"):
            found.setdefault(one.not_measured, []).append(f"{one.step} {one.metric}")
    return [f"{_list(where)}: {reason}" for reason, where in found.items()]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
