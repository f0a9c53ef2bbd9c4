"""A study beside our runs, on a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import click

from agelab.cli.compare import seeds_of
from agelab.published.claims import Claim
from agelab.published.outcome import Comparison
from agelab.published.ranking import Ranking, Row
from agelab.published.report import Report
from agelab.published.sides import Side
from agelab.published.values import Value
from agelab.published.verdict import Judged
from agelab.scenario import selection

SHOWN = 4
"""Comparisons of a claim to print, those that speak against it first."""


def print_report(report: Report, everything: bool) -> None:
    """What ran and how many claims have which verdict, the rankings table by table, each claim; the numbers again."""
    click.secho(f"\n{report.study.name}: {report.study.claims.about}", bold=True)
    for letter, side in report.sides:
        click.echo(f"{letter}  {described(side)}")
        for line in (counts(report, letter), *rest(side)):
            click.echo(f"   {line}")
        for line in side.names:
            click.echo(f"   {line}")
        for line in side.left_out:
            click.echo(f"   left out: {line}")
        if without := floors(report, letter):
            click.echo(f"   {without}")
    for ranking in report.rankings if everything else _with_ours(report.rankings):
        _print_ranking(report, ranking)
    if not everything and (without := _without_ours(report.rankings)):
        click.echo(f"\nleft out, as no run here has a figure of them: {without}; --all shows them")
    click.secho("\nclaims", bold=True)
    for claim, judged in report.claims:
        _print_claim(report, claim, judged, everything)
    click.echo()
    for letter, _ in report.sides:
        click.echo(f"{letter}: {counts(report, letter)}")


def described(side: Side) -> str:
    """What a side is: scale, clock, defaults, kernel, machines, drives, run seeds."""
    emulated = ", EMULATED" if side.emulated else ""
    return ", ".join(
        [
            f"scale {side.plan.scale}",
            f"{side.plan.clock} clock{emulated}",
            f"{side.first.defaults} defaults",
            f"kernel {side.first.kernel}",
            *side.machines,
            *side.drives,
            seeds_of(side.seeds),
        ]
    )


def counts(report: Report, letter: str) -> str:
    """How many claims have which verdict on that side."""
    return ", ".join(f"{number} {verdict}" for verdict, number in report.counted(letter).items())


def rest(side: Side) -> Iterator[str]:
    """For each scenario of which some variants alone were run: how many, and how to run the rest, too."""
    for name in dict.fromkeys(name for name, _, _ in side.cells):
        scenario = selection.select(name).scenario
        every = {variant.name for variant in scenario.variants}
        ran = every & {variant for other, variant, _ in side.cells if other == name}
        if ran != every:
            asked = {
                "SCALE": side.plan.scale if side.plan.scale == "paper" else "",
                "DEFAULTS": side.first.defaults if side.first.defaults != scenario.defaults else "",
                "CLOCK": side.plan.clock if side.plan.clock != "virtual" else "",
            }
            words = " ".join(
                f"{option}={value}" for option, value in {"NAME": name, **asked}.items() if value
            )
            yield f"{len(ran)} of {len(every)} variants were run; for the rest: make scenario {words}"


def shown(figure: Fraction | None) -> str:
    """A ratio or count, to three figures or so."""
    if figure is None:
        return "-"
    size = abs(figure)
    if figure.denominator == 1 and size >= 10:
        return str(figure)
    return f"{float(figure):.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def exactly(value: Value | None) -> str:
    """A value with its digits; a question mark where it is not there."""
    return f"{float(value.median):.6g}" if value and value.numbers else "?"


def title(report: Report, ranking: Ranking) -> str:
    """Which table, layout and metric, and in what unit its values are."""
    about = report.study.claims.table(ranking.table).about
    unit = "times the other" if ranking.unit == "times" else ranking.unit
    return f"table {ranking.table}, {ranking.layout}, {ranking.metric} ({unit}): {about}"


def tau(value: float | None) -> str:
    """Tau-b with two decimals, a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def _print_ranking(report: Report, ranking: Ranking) -> None:
    """For each step the variants in the study's order: value, times the lowest, rank; theirs and ours."""
    click.secho(f"\n{title(report, ranking)}", bold=True)
    names = [column.name for column in report.columns]
    head = ["", *(word for name in ("theirs", *names) for word in (name, "x", "rank"))]
    lines = [line for row in ranking.rows for line in _row_lines(row)]
    overall = [
        f"{name} {tau(one.ours.tau)} ({one.ours.common} variants, {len(one.steps)} steps)"
        if one
        else f"{name} -"
        for name, one in zip(names, ranking.overall, strict=True)
    ]
    _print_columns(head, lines)
    click.echo(f" tau-b of the sums: {', '.join(overall)}")


def _measured(row: Row) -> bool:
    """Whether any side has any figure of it."""
    return any(value.numbers for column in row.ours for value in column.values.values())


def _with_ours(rankings: Iterable[Ranking]) -> Iterator[Ranking]:
    """The tables and steps of which any side has a figure."""
    for ranking in rankings:
        if rows := tuple(filter(_measured, ranking.rows)):
            yield replace(ranking, rows=rows)


def _without_ours(rankings: Sequence[Ranking]) -> str:
    """How many tables, and steps of other tables, have no figure of ours; nothing where all have."""
    left = [sum(_measured(row) for row in ranking.rows) for ranking in rankings]
    tables = left.count(0)
    steps = sum(len(one.rows) - number for one, number in zip(rankings, left, strict=True) if number)
    found = ((tables, "table"), (steps, "step"))
    return ", ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in found if number)


def _row_lines(row: Row) -> list[list[str]]:
    columns = [row.theirs[0], *row.ours]
    found = [[f" {row.step}", *("" for _ in columns for _ in range(3))]]
    order = sorted(row.theirs[0].values.items(), key=lambda item: item[1].median)
    for name, _ in order:
        cells = [f"   {name}"]
        for number, column in enumerate(columns):
            value = exactly(column.values[name])
            if number == 0 and len(row.theirs) > 1:
                value = "-".join(exactly(reading.values[name]) for reading in row.theirs)
            cells += [value, shown(column.ratio(name)), str(column.rank(name) or "-")]
        found.append(cells)
    taus = [word for column in row.ours for word in ("", tau(column.tau), "")]
    return [*found, ["   tau-b", "", "", "", *taus]]


def _print_columns(head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their cells, the first one to the left."""
    rows = [head, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        first, *rest = (
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        click.secho(" ".join([first, *rest]).rstrip(), bold=number == 0)


def _print_claim(
    report: Report, claim: Claim, judged: Sequence[tuple[str, Judged]], everything: bool
) -> None:
    click.echo(f" {claim.id}: {claim.says}")
    for line in doubts(claim):
        click.echo(f"   {line}")
    for letter, one in judged:
        click.echo(f"   {whose(letter, one)}: {one.verdict}: {said(one)}")
    lines = comparisons([one for _, one in judged], everything)
    if lines:
        names = [whose(letter, one) for letter, one in judged if one.ours]
        _print_columns(["    ", "theirs", *names], [[f"     {where}", *cells] for where, *cells in lines])
        number = max(len(one.ours.comparisons) for _, one in judged if one.ours)
        if number > len(lines):
            click.echo(f"     and {number - len(lines)} more; --all shows them")


def said(one: Judged) -> str:
    """The reason, and where no floor stands under it that there is none."""
    return one.reason + (" (no floor)" if one.no_floor else "")


def floors(report: Report, letter: str) -> str:
    """What *no floor* means where verdicts of that side have none; else nothing."""
    without = [
        one.no_floor for _, judged in report.claims for side, one in judged if side == letter and one.no_floor
    ]
    return f"{min(without)}: an order counts as it is, by however little" if without else ""


def whose(letter: str, one: Judged) -> str:
    """Whose verdict: the side's letter, and the filesystem where others stand in for the study's."""
    if not one.filesystem:
        return letter
    return f"{letter} {one.filesystem}{' (stands in)' if one.stand_in else ''}"


def doubts(claim: Claim) -> list[str]:
    """What is to be known beside a verdict."""
    found = []
    if claim.conflict:
        against = "its table" if claim.conflict.against == "table" else f"claim {claim.conflict.against}"
        found.append(f"the study contradicts itself ({against}): {claim.conflict.note}")
    if claim.unprinted:
        found.append(f"no figures to compare with: {claim.unprinted}")
    return found


def comparisons(judged: Sequence[Judged], everything: bool) -> list[list[str]]:
    """Where, theirs, and ours of each verdict; without ``everything`` a few, those that speak against it first."""
    ran = [one for one in judged if one.ours]
    theirs = next((one.theirs for one in judged if one.theirs), ())
    if not ran or not theirs:
        return []
    rows: list[tuple[int, list[str]]] = []
    for number, first in enumerate(theirs[0].comparisons):
        ours = [one.ours.comparisons[number] for one in ran if one.ours]
        readings = list(dict.fromkeys(shown(one.comparisons[number].figure) for one in theirs))
        against = sum(one.holds is False for one in ours)
        rows.append(
            (
                -against,
                [
                    first.where,
                    "-".join(readings) if readings != ["-"] else _words(first),
                    *(_figure(one) for one in ours),
                ],
            )
        )
    kept = rows if everything else sorted(rows, key=lambda row: row[0])[:SHOWN]
    return [cells for _, cells in kept]


def _figure(one: Comparison) -> str:
    """The figure, marked where it speaks against the claim."""
    return (shown(one.figure) if one.figure is not None else _words(one)) + (
        " no" if one.holds is False else ""
    )


def _words(one: Comparison) -> str:
    """What there is in place of a figure: two names, or that something is missing."""
    return "?" if one.holds is None else one.note or "-"
