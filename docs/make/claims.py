"""How the studies' claims fared, study by study: the first table of docs/replication.md's results."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agelab.analysis.published.report import ClaimCounts, StudyReport, study_reports
from agelab.analysis.published.verdict import COUNTED, KINDS, ClaimVerdict, JudgedClaim
from agelab.cli.replicate import loaded
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text
from docs.make.catalogue import Made, Table
from docs.make.page import grid, line

HEAD = (
    "study",
    "",
    *KINDS[:1],
    "if all were alike, at 2 % / 5 % noise",
    *KINDS[1:],
    "cells within 25 % / a factor of 2 / beyond",
)


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Say how the claims of all studies fared."""
    return Made("\n".join(summary(study_reports(map(loaded, runs)))))


def summary(reports: Sequence[StudyReport]) -> Iterator[str]:
    """Write a row of verdict counts for each study and side, and below the table the claims that replicated."""
    yield from grid(HEAD)
    total: defaultdict[str, list[JudgedClaim]] = defaultdict(list)
    for report in reports:
        for letter, side in report.sides:
            counts = report.counts(letter)
            total[side.first.defaults] += counts.judged
            conditions = f"{side.first.defaults}, {seeds_text(side.seeds)}"
            yield line([f"`{report.study.name}`", conditions, *_numbers(counts), _bands(report, letter)])
    for defaults, judged in total.items():
        yield line(["all", defaults, *_numbers(ClaimCounts(tuple(judged))), ""])
    yield ""
    for report in reports:
        yield f"**{report.study.name}**"
        yield ""
        yield from _replicated(report)
        yield ""


def _numbers(counts: ClaimCounts) -> list[str]:
    replicated, *others = map(str, counts.kinds.values())
    alike = " / ".join(f"{number:.1f}" for number in counts.alike)
    if alike and counts.rated.counted < counts.counted:
        alike += f"; here {counts.rated.replicated} of {counts.rated.counted}"
    return [replicated, alike, *others]


def _bands(report: StudyReport, letter: str) -> str:
    """Count the cells that lie within 25 % of the study's, those within a factor of 2, and those beyond."""
    bands = [
        deviation.bands
        for ranking in report.rankings
        for column, deviation in zip(report.columns, ranking.deviations, strict=True)
        if column.letter == letter and deviation.bands.cells
    ]
    return " / ".join(str(sum(numbers)) for numbers in zip(*bands, strict=True)) or "-"


def _replicated(report: StudyReport) -> Iterator[str]:
    """List the claims that replicated on every side of which it is known, and those that did on some."""
    always, sometimes = [], []
    for claim, judged in report.claims:
        verdicts = [judgement.verdict for _, judgement in judged if judgement.kind in COUNTED[:2]]
        if verdicts and all(verdict is ClaimVerdict.REPLICATED for verdict in verdicts):
            always.append(f"`{claim.id}`")
        elif ClaimVerdict.REPLICATED in verdicts:
            sometimes.append(f"`{claim.id}`")
    yield f"- replicated wherever it is known: {', '.join(always) or 'none'}"
    yield f"- replicated with one set of defaults, not with the other: {', '.join(sometimes) or 'none'}"
