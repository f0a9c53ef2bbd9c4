"""Texts about a study beside our runs, shared by terminal, Markdown and report."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from agelab.analysis.published.claim_verdict import DENIED, UNINFORMATIVE, ClaimVerdict, JudgedClaim
from agelab.analysis.published.outcome import ClaimComparison
from agelab.analysis.published.report import (
    Bands,
    ClaimCounts,
    RankedColumn,
    RankedRow,
    Ranking,
    StudyReport,
    TableDeviation,
)
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import NOISES
from agelab.analysis.published.values import LEAD
from agelab.base.gathered import gathered
from agelab.scenario import selection
from agelab.scenario.seeds import seeds_text
from agelab.stats.phrasing import too_few
from agelab.stats.rank_test import can_be_distinguishable
from agelab.stats.series import Series

"""What a change of the source begins with, among those of a machine's label."""
MAKE_RATES = ".venv/bin/python -m docs.make.base_rates --write"
SHOWN = 4
"""Comparisons of a claim to show, those that speak against it first."""


def describe_column(column: RunColumn) -> str:
    """Describe a column: scale, clock, defaults, kernel, machines, drives, run seeds."""
    plan, first, emulated = column.plan, column.first, ", EMULATED" if column.emulated else ""
    text = f"scale {plan.scale}, {plan.clock} clock{emulated}, {first.defaults} defaults, kernel {first.kernel}"
    text = ", ".join([text, *column.machines, *column.drives, seeds_text(column.seeds)])
    return f"{text}; apart: {column.apart}" if column.apart else text


def count_verdicts(report: StudyReport, letter: str) -> str:
    """Say how many claims of a side replicated, how many would by alike filesystems, and what is not counted."""
    counts = report.counts(letter)

    def number(*kinds: str) -> str:
        return ", ".join(f"{counts.kinds[kind]} {kind}" for kind in kinds)

    return (
        f"{counts.replicated} of {counts.counted} replicated{_alike(report, counts)}; "
        f"{number(ClaimVerdict.NOT, ClaimVerdict.UNKNOWN)}; not counted: "
        f"{number(DENIED, UNINFORMATIVE, ClaimVerdict.UNTESTED)}"
    )


def _alike(report: StudyReport, counts: ClaimCounts) -> str:
    """Say how many of the claims that replicated alike filesystems would replicate."""
    rated = counts.rated
    if not counts.counted or not rated.counted:
        return "" if report.study.rates else f" (base rate not known: {MAKE_RATES} makes it)"
    every = rated.counted == counts.counted
    of_them = "" if every else f"{rated.replicated} of the {rated.counted} with a base rate, where "
    what = "drives and machines" if report.study.claims.stand_ins else "filesystems"
    return f"; {of_them}{what} that are all alike would give {rate_text(counts.alike, 1)}"


def rate_text(rates: Sequence[float], digits: int = 2) -> str:
    """Format what the noise may change: ``0.31 (2 % noise) or 0.27 (5 %)``."""
    little, more = (f"{rate:.{digits}f}" for rate in rates)
    low, high = (f"{100 * noise:.0f} %" for noise in NOISES)
    return little if little == more else f"{little} ({low} noise) or {more} ({high})"


def figure_text(figure: Fraction | None) -> str:
    """Format a ratio or count to about three figures."""
    if figure is None:
        return "-"
    size = abs(figure)
    if figure.denominator == 1 and size >= 10:
        return str(figure)
    return f"{float(figure):.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def value_text(value: Series | None) -> str:
    """Format a value with its digits; a question mark where there is none."""
    return f"{float(value.median):.6g}" if value and value.values else "?"


def readings(row: RankedRow, variant: str) -> list[str]:
    """List the study's value, percentages in each reading; empty where it has none."""
    if variant not in row.theirs[0].values:
        return []
    return list(dict.fromkeys(value_text(column.values[variant]) for column in row.theirs))


def ranking_title(report: StudyReport, ranking: Ranking) -> str:
    """Name the table, layout and metric, and the unit of its values."""
    about = report.study.claims.table(ranking.table).about
    unit = "times the other" if ranking.unit == "times" else ranking.unit
    return f"table {ranking.table}, {ranking.layout}, {ranking.metric} ({unit}): {about}"


def unmeasured_text(rankings: Sequence[Ranking]) -> str:
    """Count the tables, and the steps of other tables, of which no run has a value; empty where all have one."""
    left = [len(ranking.measured_rows) for ranking in rankings]
    tables = left.count(0)
    steps = sum(len(ranking.rows) - number for ranking, number in zip(rankings, left, strict=True) if number)
    counts = ((tables, "table"), (steps, "step"))
    return ", ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in counts if number)


def agreement_text(column: RankedColumn) -> str:
    """Format tau-b with the chance of it, ``0.33 (chance 0.38)``, or a dash."""
    if column.tau is None or column.chance is None:
        return "-"
    return f"{column.tau:.2f} (chance {float(column.chance):.2g})"


def bands_text(bands: Bands) -> str:
    """Say how many cells lie how near to the study's."""
    return (
        f"{bands.near} of {bands.cells} {'cell' if bands.cells == 1 else 'cells'} within 25 %, "
        f"{bands.fair} more within a factor of 2, {bands.far} beyond"
    )


def factor_text(factor: float | None) -> str:
    """Format ours over theirs, or a dash."""
    return "-" if factor is None else figure_text(Fraction(factor))


def times_text(deviation: TableDeviation) -> str:
    """Name ours as it stands over theirs, and say where it is brought to the study's size."""
    if deviation.times is None or deviation.times == 1:
        return "ours / theirs"
    return f"{deviation.times} x ours / theirs, as if all grew with the size of the data"


def deviation_counts(report: StudyReport, letter: str) -> list[str]:
    """Say for each table and stand-in of a side how many of its cells lie how near to the study's."""
    lines = []
    for ranking in report.rankings:
        for column, deviation in zip(report.columns, ranking.deviations, strict=True):
            if column.letter == letter and deviation.bands.cells:
                where = f"table {ranking.table}, {ranking.layout}, {ranking.metric}"
                stand_in = f", {column.stand_in}" if column.stand_in else ""
                lines.append(f"{where}{stand_in}: {bands_text(deviation.bands)}")
    return lines


def deviation_lines(deviation: TableDeviation) -> Iterator[str]:
    """Say how near the cells are, how large the parts of steps and filesystems are, and what is left out and why."""
    if deviation.bands.cells:
        yield bands_text(deviation.bands)
    if deviation.typical_step and deviation.typical_rest:
        yield (
            f"half of the cells are off by a factor of {factor_text(deviation.typical)} or more; half of the steps, "
            f"in what all have in common, by {factor_text(deviation.typical_step)}; half of what is left, the "
            f"filesystem's own, by {factor_text(deviation.typical_rest)}"
        )
    if deviation.own:
        parts = ", ".join(f"{name} {factor_text(part)}" for name, part in deviation.own.items())
        yield f"each filesystem's own part, the median over the steps: {parts}"
    reasons = gathered((why, (name, step.step)) for step in deviation.steps for name, why in step.left_out.items())
    for why, places in reasons.items():
        alike = gathered((tuple(steps), name) for name, steps in gathered(places).items())
        cells = "; ".join(f"{', '.join(steps)} of {', '.join(those)}" for steps, those in alike.items())
        yield f"not counted: {cells}: {why}"


def reason_text(judged: JudgedClaim) -> str:
    """Return the reason, marked where no test stands behind it or it is not counted.

    A verdict that is not known says itself that the seeds are few.
    """
    few = " (few seeds)" if judged.few_seeds and judged.verdict is not ClaimVerdict.UNKNOWN else ""
    not_counted = f"; not counted: {judged.kind}" if judged.kind == judged.not_counted else ""
    return judged.reason + few + not_counted


def chance_notes(report: StudyReport, letter: str) -> list[str]:
    """Say what a side's verdicts lack: seeds enough for a test, the floor of its host in the wall clock."""
    few = [
        claim.few_seeds for _, judged in report.claims for side, claim in judged if side == letter and claim.few_seeds
    ]
    column = dict(report.sides)[letter]
    where = "claims marked (few seeds): " if can_be_distinguishable(column.seeds) else ""
    least = " and above the host's noise" if column.noise_known else ""
    lead = f"an order of times counts from a lead of {float(1 + LEAD):.2f} on{least}"
    return [*([f"{where}{too_few(min(few))}: {lead}"] if few else []), *column.labels]


def verdict_label(letter: str, judged: JudgedClaim) -> str:
    """Label a verdict: the side's letter, and the filesystem where others stand in for the study's."""
    if not judged.filesystem:
        return letter
    return f"{letter} {judged.filesystem}{' (stands in)' if judged.stand_in else ''}"


def claim_notes(judged: JudgedClaim) -> list[str]:
    """List what a reader must know beside a verdict."""
    claim, notes = judged.claim, []
    if judged.rate:
        notes.append(f"base rate {rate_text(judged.rate)}")
    if claim.conflict:
        against = "its table" if claim.conflict.against == "table" else f"claim {claim.conflict.against}"
        notes.append(f"the study contradicts itself ({against}): {claim.conflict.note}")
    if claim.unprinted:
        notes.append(f"no figures to compare with: {claim.unprinted}")
    return notes


def comparison_rows(judged: Sequence[JudgedClaim], everything: bool) -> list[list[str]]:
    """List place, their figure, and ours by verdict; a few, those against the claim first, unless ``everything``."""
    ran = [claim for claim in judged if claim.ours]
    theirs = next((claim.theirs for claim in judged if claim.theirs), ())
    if not ran or not theirs:
        return []
    rows: list[tuple[int, list[str]]] = []
    for number, first in enumerate(theirs[0].comparisons):
        ours = [claim.ours.comparisons[number] for claim in ran if claim.ours]
        readings = list(dict.fromkeys(figure_text(outcome.comparisons[number].figure) for outcome in theirs))
        against = sum(comparison.holds is False for comparison in ours)
        printed = "-".join(readings) if readings != ["-"] else _words(first)
        rows.append((-against, [first.where, printed, *map(_figure, ours)]))
    shown = rows if everything else sorted(rows, key=lambda row: row[0])[:SHOWN]
    return [cells for _, cells in shown]


def _figure(comparison: ClaimComparison) -> str:
    """Format the figure, marked where it speaks against the claim."""
    figure = _words(comparison) if comparison.figure is None else figure_text(comparison.figure)
    if comparison.uncounted:
        return f"{figure} {comparison.uncounted.kind}"
    if comparison.close:
        return f"{figure} close"
    return f"{figure} no" if comparison.holds is False else figure


def _words(comparison: ClaimComparison) -> str:
    """Format a comparison without a figure: two names, or a question mark where something is missing."""
    return "?" if comparison.holds is None and not comparison.close else comparison.note or "-"


def variants_not_run(column: RunColumn) -> Iterator[str]:
    """Say, for each scenario of which only some variants were run, how many, and how to run the rest."""
    for name in dict.fromkeys(name for name, _, _ in column.groups):
        scenario = selection.select(name).scenario
        every = {variant.name for variant in scenario.variants}
        ran = every & {variant for other, variant, _ in column.groups if other == name}
        if ran != every:
            own: dict[str, list[str]] = {"block": [], "source": [], "instead": []}
            for word in column.machine.changes:
                key, _, value = word.partition("=")
                own[key if key in own else "block"].append(value if key in own else word)
            asked = {
                "scale": column.plan.scale if column.plan.scale == "paper" else "",
                "defaults": column.first.defaults if column.first.defaults != scenario.defaults else "",
                "clock": column.plan.clock if column.plan.clock != "virtual" else "",
                "machine-band": column.machine.band_end,
                **{option: ",".join(words) for option, words in own.items()},
            }
            options = "".join(f" --{option} {value}" for option, value in asked.items() if value)
            yield f"{len(ran)} of {len(every)} variants were run; for the rest: agelab run {name}{options}"
