"""Notes below a table of ratios: why a row has no verdict, outliers, and the differences in short."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from rich.console import Console

from agelab.model.seeds import Seeds, seeds_text
from agelab.stats.formatting import format_ratio, name_some, unit_scale
from agelab.stats.noise_floor import SEEDS_NEEDED
from agelab.stats.outliers import outliers
from agelab.stats.rank_test import LEVEL, seeds_needed
from agelab.stats.series import Series
from agelab.stats.verdict import ComparedSeries, DifferenceVerdict
from agelab.view.series_table import heads
from agelab.view.terminal import print_table, print_wrapped

Line = tuple[str, str, ComparedSeries]
"""A row that a table shows: its metric with the unit, its step, and the row."""

OUTLIERS = 6
"""Outliers to name below a table."""
WORDS = ("slower", "faster", "worse", "better", "higher", "lower")
"""The words for a difference, in the order of the columns."""
NONE = "none shown"
"""The column of rows without a difference: below the floor, maybe chance, or equal."""
REASONS = 4
"""Reasons to give for rows without a floor, or without a value."""


def print_notes(
    console: Console,
    found: Sequence[Sequence[ComparedSeries]],
    seen: Sequence[Sequence[Line]],
    names: Sequence[str],
    everything: bool,
) -> None:
    """Print the notes of a table.

    ``found`` has each side's rows, ``seen`` those that the table shows, ``names`` the base's name and theirs.
    """
    every = [one for side in found for one in side]
    for line in (
        *_no_floor(found, names),
        *_not_measured(seen, names),
        *_chance(every),
        *_outliers(seen, names),
    ):
        print_wrapped(console, f"  {line}", 4)
    floored = [one for one in every if one.difference and one.difference.floor is not None]
    if floored:
        differ = sum(one.differs for one in floored)
        more = "" if everything else " (--all shows each)"
        console.print(f"  {differ} of all {len(floored)} results differ{more}: above the floor, and")
        console.print(f"  p <= {float(LEVEL)} in a rank test corrected for the comparisons of the metric")
        if len(found) == 1:
            _print_short(console, f" in short, {names[1]} is", _by_metric(seen[0]))
        else:
            metrics = (one.row.left.metric for lines in seen for _, _, one in lines if one.differs)
            _print_short(console, " in short", dict(zip(names[1:], seen, strict=True)), next(metrics, ""))


def _no_floor(found: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Name the sides with too few seeds; where only some rows have too few, those rows and why."""
    few: dict[str, None] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    floorless = [[one for one in side if one.verdict is DifferenceVerdict.NO_FLOOR] for side in found]
    for who, series in _sides(floorless, names):
        if len(series.values) < SEEDS_NEEDED:
            has = f"{who} has {seeds_text(seed for seed, _ in series.values)}"
            if series.missing:
                rows.setdefault((has, _missing(series)), []).append(f"{series.step} {series.metric}")
            else:
                few[has] = None
    if few:
        yield f"no floor: five run seeds are needed on each side; {', '.join(few)}"
    for (has, why), steps in _first(rows):
        yield f"no floor of {name_some(steps, 1)}: {has}, five are needed; {why}"


def _not_measured(seen: Sequence[Sequence[Line]], names: Sequence[str]) -> Iterator[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for who, series in _sides([[one for *_, one in lines] for lines in seen], names):
        if not series.values:
            rows.setdefault((who, _missing(series)), []).append(f"{series.step} {series.metric}")
    for (who, why), steps in _first(rows):
        yield f"not measured: {who}, {name_some(list(dict.fromkeys(steps)), 1)}: {why}"


def _sides(found: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[tuple[str, Series]]:
    """Yield both series of each row, each with the name of its side."""
    for name, rows in zip(names[1:], found, strict=True):
        for one in rows:
            yield names[0], one.row.left
            yield name, one.row.right


def _missing(series: Series) -> str:
    """Name the seeds without a value, and the first reason."""
    if not series.missing:
        return "no sample"
    _, why = series.missing[0]
    without = seeds_text(seed for seed, other in series.missing if other == why)
    return f"{without}: {' '.join(why.split())}"


def _first(rows: dict[tuple[str, str], list[str]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the first reasons, then how many rows have others."""
    yield from list(rows.items())[:REASONS]
    if rest := sum(len(steps) for steps in list(rows.values())[REASONS:]):
        yield (("some", "other reasons"), [f"{rest} more rows"])


def _chance(every: Sequence[ComparedSeries]) -> Iterator[str]:
    tests = [one.test for one in every if one.verdict is DifferenceVerdict.CHANCE and one.test]
    if tests:
        family = max(test.family for test in tests)
        least = min(test.corrected for test in tests)
        yield (
            f"maybe chance: above the floor, but p is {least:.2g} or more ({len(tests)} of all); "
            f"{seeds_needed(family)} seeds on each side can tell a single one of {family} comparisons"
        )


def _outliers(seen: Sequence[Sequence[Line]], names: Sequence[str]) -> Iterator[str]:
    named: dict[tuple[str, str, Seeds, str], str] = {}
    for who, series in _sides([[one for *_, one in lines] for lines in seen], names):
        unit = unit_scale(series.unit)
        for seed, value in outliers(series):
            text = f"{float(value / unit.divisor):.6g} {unit.name}".removesuffix(" 1")
            named[series.step, series.metric, seed, who] = text
    for (step, metric, at, who), text in list(named.items())[:OUTLIERS]:
        yield f"outlier, counted: {who}, {seeds_text([at])}: {step} {metric} {text}"
    if len(named) > OUTLIERS:
        more = len(named) - OUTLIERS
        yield f"and {more} more outlier{'s' * (more > 1)}: --json names each"


def _by_metric(lines: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line[2].row.left.metric, []).append(line)
    return found


def _print_short(console: Console, head: str, kinds: Mapping[str, Sequence[Line]], metric: str = "") -> None:
    """Print how many rows of each kind differ how, and the largest ratio, of all or of that metric."""
    said = {name: [line for line in lines if _floored(line)] for name, lines in kinds.items()}
    apart = {name: [line for line in lines if line[2].differs] for name, lines in said.items()}
    there = {line[2].reader_word for lines in apart.values() for line in lines}
    words = [word for word in WORDS if word in there]
    rows = []
    for name, lines in ((name, lines) for name, lines in apart.items() if lines):
        counts = [sum(line[2].reader_word == word for line in lines) for word in words]
        fit = [line for line in lines if metric in ("", line[2].row.left.metric)]
        _, step, one = max(fit, key=_apart, default=("", "", None))
        most = f"{step.strip()} {ratio_texts(one)[0]}" if one else ""
        rows.append([f"  {name}", *map(str, counts), str(len(said[name]) - len(lines)), most])
    if rows:
        columns = heads(head, *words, NONE, last=f"most of {metric}" if metric else "most")
        print_table(console, columns, rows, names_above=True)
    if alike := [name for name, lines in said.items() if lines and not apart[name]]:
        none = NONE if rows else "no difference is shown"
        print_wrapped(console, f"  {none}: {', '.join(alike)}", 4)


def _floored(line: Line) -> bool:
    difference = line[2].difference
    return difference is not None and difference.floor is not None


def _apart(line: Line) -> float:
    value = line[2].ratio
    return float(max(abs(value), 1 / abs(value))) if value else float("inf")


def ratio_texts(one: ComparedSeries) -> list[str]:
    """Format the ratio and the ends of its interval; empty where there are none."""
    if one.ratio is None:
        return ["-", "", ""]
    ends = (Fraction(one.interval.low), Fraction(one.interval.high)) if one.interval else ()
    return [*format_ratio(one.ratio, ends, one.differs), "", ""][:3]
