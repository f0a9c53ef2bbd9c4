"""Notes below a table of ratios: why a row has no verdict, outliers, and the differences in short."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from agelab.base.errors import name_some
from agelab.present.view.series_table import heads
from agelab.present.view.terminal import print_table, print_wrapped
from agelab.scenario.seeds import Seeds, seeds_text
from agelab.stats import phrasing
from agelab.stats.formatting import format_ratio, unit_scale
from agelab.stats.rank_test import LEVEL, seeds_needed
from agelab.stats.series import Series
from agelab.stats.spread import outliers
from agelab.stats.verdict import MARGIN, POWER, ComparedSeries, DifferenceVerdict, about_files, left_out

Line = tuple[str, str, ComparedSeries]
"""A row that a table shows: its metric with the unit, its step, and the row."""

OUTLIERS = 6
"""Outliers to name below a table."""
WORDS = ("slower", "faster", "worse", "better", "higher", "lower")
"""The words for a difference, in the order of the columns."""
REASONS = 4
"""Reasons to give for rows without a verdict, or without a value."""


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
        *_too_few(found, names),
        *_left_out(found, names),
        *_depends(seen, names),
        *_not_measured(seen, names),
        *_more_seeds(seen),
        *_outliers(seen, names),
    ):
        print_wrapped(console, f"  {line}", 4)
    tested = [one for one in every if one.enough]
    if tested:
        differ, alike = sum(one.differs for one in tested), sum(one.alike for one in tested)
        more = "" if everything else " (--all shows each)"
        console.print(
            f"  {differ} of all {len(tested)} results differ{more}: p <= {float(LEVEL)} in a rank test"
        )
        same = (
            f"; {alike} {'is' if alike == 1 else 'are'} the same, within {float(100 * MARGIN):g} %"
            if alike
            else ""
        )
        console.print(f"  corrected for the comparisons of the metric{same}")
        if about := about_files(tested):
            print_wrapped(console, f"  {about}", 4)
        if len(found) == 1:
            _print_short(console, f" in short, {names[1]} is", _by_metric(seen[0]))
        else:
            metrics = (one.row.left.metric for lines in seen for _, _, one in lines if one.differs)
            _print_short(console, " in short", dict(zip(names[1:], seen, strict=True)), next(metrics, ""))


def _too_few(found: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Name the sides with too few seeds; where only some rows have too few, those rows and why."""
    few: dict[str, None] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    needed: set[int] = set()
    lacking = [[one for one in side if one.too_few] for side in found]
    for one in (one for side in lacking for one in side):
        needed.add(seeds_needed(1, len(one.row.blocks)))
    for who, series in _sides(lacking, names):
        if len(series.values) < max(needed):
            has = f"{who} has {seeds_text(seeds for seeds, _ in series.values)}"
            if series.missing:
                rows.setdefault((has, _missing(series)), []).append(f"{series.step} {series.metric}")
            else:
                few[has] = None
    if few:
        yield f"not known: {', '.join(few)}: so few {phrasing.CANNOT}"
    for (has, why), steps in _first(rows):
        yield f"not known, of {name_some(steps, 1)}: {has}: so few {phrasing.CANNOT}; {why}"


def _left_out(found: Sequence[Sequence[ComparedSeries]], names: Sequence[str]) -> Iterator[str]:
    """Name the corpora that one of two sides lacks: their values are in no verdict."""
    said: dict[str, None] = {}
    for name, rows in zip(names[1:], found, strict=True):
        if alone := sorted(
            {corpus for one in rows if one.left and one.right for corpus in left_out(one.row)}
        ):
            corpora = f"corp{'us' if len(alone) == 1 else 'ora'} {','.join(map(str, alone))}"
            said[f"in no ratio and no verdict: {corpora}, which {names[0]} and {name} do not both have"] = (
                None
            )
    yield from said


def _depends(seen: Sequence[Sequence[Line]], names: Sequence[str]) -> Iterator[str]:
    """Name the rows whose corpora contradict each other, and how far."""
    found = [
        f"{one.row.left.step} {one.row.left.metric}{f', {name}' if len(seen) > 1 else ''}: {one.reason}"
        for name, lines in zip(names[1:], seen, strict=True)
        for *_, one in lines
        if one.verdict is DifferenceVerdict.UNKNOWN and one.opposed
    ]
    yield from found[:REASONS]
    if len(found) > REASONS:
        yield f"{len(found) - REASONS} more depend on the files: --json has each"


def _more_seeds(seen: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Say what the number behind ``not known`` means."""
    more = [one.more_seeds for lines in seen for *_, one in lines if one.more_seeds and not one.too_few]
    if more:
        least = min(more)
        yield (
            f"not known, +{least}: {phrasing.needs_seeds(least)}, if the spread stays what it is, to be known with "
            f"{float(100 * POWER):.0f} %"
        )


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
    without = seeds_text(seeds for seeds, other in series.missing if other == why)
    return f"{without}: {' '.join(why.split())}"


def _first(rows: dict[tuple[str, str], list[str]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the first reasons, then how many rows have others."""
    yield from list(rows.items())[:REASONS]
    if rest := sum(len(steps) for steps in list(rows.values())[REASONS:]):
        yield (("some", "other reasons"), [f"{rest} more rows"])


def _outliers(seen: Sequence[Sequence[Line]], names: Sequence[str]) -> Iterator[str]:
    named: dict[tuple[str, str, Seeds, str], str] = {}
    for who, series in _sides([[one for *_, one in lines] for lines in seen], names):
        unit = unit_scale(series.unit)
        for seeds, value in outliers(series):
            text = f"{float(value / unit.divisor):.6g} {unit.name}".removesuffix(" 1")
            named[series.step, series.metric, seeds, who] = text
    for (step, metric, seeds, who), text in list(named.items())[:OUTLIERS]:
        yield f"outlier, counted: {who}, {seeds_text([seeds])}: {step} {metric} {text}"
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
    said = {name: [line for line in lines if line[2].enough] for name, lines in kinds.items()}
    apart = {name: [line for line in lines if line[2].differs] for name, lines in said.items()}
    there = {line[2].reader_word for lines in apart.values() for line in lines}
    words = [word for word in WORDS if word in there]
    rows = []
    for name, lines in ((name, lines) for name, lines in apart.items() if lines):
        counts = [sum(line[2].reader_word == word for line in lines) for word in words]
        alike = sum(line[2].alike for line in said[name])
        fit = [line for line in lines if metric in ("", line[2].row.left.metric)]
        _, step, one = max(fit, key=_apart, default=("", "", None))
        most = f"{step.strip()} {ratio_texts(one)[0]}" if one else ""
        rest = len(said[name]) - len(lines) - alike
        rows.append([f"  {name}", *map(str, counts), str(alike), str(rest), most])
    if rows:
        last = f"most of {metric}" if metric else "most"
        columns = heads(head, *words, "the same", "not known", last=last)
        print_table(console, columns, rows, names_above=True)
    if alone := [name for name, lines in said.items() if lines and not apart[name]]:
        print_wrapped(console, f"  no difference found: {', '.join(alone)}", 4)


def _apart(line: Line) -> float:
    value = line[2].ratio
    return float(max(value, 1 / value)) if value else 0.0


def ratio_texts(one: ComparedSeries) -> list[str]:
    """Format the ratio and the ends of its interval; empty where there are none."""
    if one.ratio is None:
        return ["-", "", ""]
    equal = one.verdict is DifferenceVerdict.EQUAL
    ends = (one.interval.low, one.interval.high) if one.interval and not equal else ()
    return [*format_ratio(one.ratio, ends, one.differs), "", ""][:3]
