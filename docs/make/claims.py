"""How the studies' claims fared beside runs of ours, for docs/replication.md and docs/studies."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from agelab.analysis.published.claim_verdict import COUNTED, KINDS, ClaimVerdict, JudgedClaim
from agelab.analysis.published.phrasing import count_verdicts, describe_column, factor_text, ranking_title
from agelab.analysis.published.report import ClaimCounts, StudyReport, measured, study_reports
from agelab.cli.replicate import loaded
from agelab.present.view import markdown
from agelab.present.view.markdown import escape
from agelab.present.view.replication import reason_with_figures, results_blocks, theirs_text
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text
from docs.make.catalogue import Made, Table
from docs.make.page import grid, line

STUDY_DATA = Path("studies/data")
"""Where the figures of a study beside our runs are, from docs/."""
HEAD = (
    "study",
    "",
    *KINDS[:1],
    "if all were alike, at 2 % / 5 % noise",
    *KINDS[1:],
    "cells within 25 % / a factor of 2 / beyond",
)


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Say how the claims of all studies fared: the first table of docs/replication.md's results."""
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


def beside_study(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Count in a study's page how its claims fared and how many cells come near, table by table.

    The figures and the claims one by one, as ``agelab replicate --markdown`` shows them, are a file of data beside it.
    The heading of runs at the study's own size says so.
    """
    [report] = study_reports(map(loaded, runs))
    data = STUDY_DATA / f"{table.name.removeprefix('study-')}.txt"
    whole = markdown.lines(results_blocks(report, names=False))
    own_size = all(run.plan().scale == "paper" for run in runs)
    sides = [
        f"- **{letter}**: {describe_column(side)}: {count_verdicts(report, letter)}." for letter, side in report.sides
    ]
    rows = [
        [
            ranking_title(report, ranking),
            column.name,
            *map(str, deviation.bands),
            factor_text(deviation.typical),
        ]
        for ranking in measured(report.rankings)
        for column, deviation in zip(report.columns, ranking.deviations, strict=True)
        if deviation.bands.cells
    ]
    head = ("the study's table", "", "cells within 25 %", "within a factor of 2", "beyond", "half are off by")
    lines = [
        f"## Beside our runs{', at its own size' if own_size else ''}",
        "",
        *sides,
        "",
        *grid(head, rows),
        "",
        f"[Each figure and each claim]({data.relative_to('studies')})",
    ]
    return Made("\n".join(lines), {data: f"{chr(10).join(whole)}\n".encode()})


def readings(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Say how near each step comes to the study in other readings of it: a column for each run.

    A cell has how many filesystems are within a factor of two, of how many, and the step's part, ours over theirs. The
    last column has of how many the study's figure lies between the lowest and the highest of ours.
    """
    reports = [report for run in runs for report in study_reports([loaded(run)])]
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(lambda: ["-"] * len(reports))
    ratios: defaultdict[tuple[str, str], defaultdict[str, list[Fraction]]]
    ratios = defaultdict(lambda: defaultdict(list))
    for at, report in enumerate(reports):
        for ranking in report.rankings:
            for row in ranking.rows:
                if step := ranking.deviations[0].step(row.step):
                    near, fair, _ = step.bands
                    shown = f"{near + fair} of {step.bands.cells}, {factor_text(step.common)}"
                    rows[row.name, ranking.layout][at] = shown if step.ratios else "not counted"
                    for name, ratio in step.ratios.items():
                        ratios[row.name, ranking.layout][name].append(ratio)
    heads = [f"`INSTEAD={words['instead']}`" if "instead" in words else "as it is" for words in table.runs]
    lines = grid(
        ["step", "layout", *heads, "between"],
        ([*place, *cells, _between(ratios[place].values())] for place, cells in rows.items()),
    )
    return Made("\n".join([describe_column(reports[0].sides[0][1]), "", *lines]))


def _between(ratios: Collection[Sequence[Fraction]]) -> str:
    """Count the filesystems whose ratios lie on both sides of 1."""
    return f"{sum(min(each) <= 1 <= max(each) for each in ratios)} of {len(ratios)}" if ratios else "-"


def about(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make a row for each verdict on a claim that names the filesystem of the table's ``lines``, study by study."""
    [filesystem] = table.lines
    lines = []
    for report in study_reports(map(loaded, runs)):
        sides = (f"{letter}: {describe_column(side)}" for letter, side in report.sides)
        lines += [f"`{report.study.name}`, {'; '.join(sides)}", ""]
        lines += grid(["claim", "theirs", "ours"])
        for claim, judged in report.claims:
            if claim.test and f'"{filesystem}"' in claim.test.model_dump_json():
                verdicts = dict.fromkeys(
                    f"**{judgement.verdict}**: {escape(reason_with_figures(judgement))}" for _, judgement in judged
                )
                lines.append(line([f"{claim.says} `{claim.id}`", theirs_text(judged), "; ".join(verdicts)]))
        lines.append("")
    return Made("\n".join(lines))


def fallen(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show what brings back the claims of a study that are not replicated: a row for each run with one thing changed.

    The first run of the table is the study as it is, with several run seeds; each of the others has one, and one
    option more. A run without an option more shows what chance moves.
    Each run is judged by itself: beside the others the ends of the processor's band would make claims not known.
    """
    own, *others = map(_verdicts, runs)
    lines = [_counted(own), "", *grid(["changed", "brings back", "takes away"])]
    for words, changed in zip(table.runs[1:], others, strict=True):
        more = [f"`{name.upper()}={words[name]}`" for name in words if words[name] != table.runs[0].get(name)]
        lines.append(
            line(
                [
                    ", ".join(more) or "nothing: one run seed alone",
                    _moved(own, changed, ClaimVerdict.NOT, ClaimVerdict.REPLICATED),
                    _moved(own, changed, ClaimVerdict.REPLICATED, ClaimVerdict.NOT),
                ]
            )
        )
    back = {claim for changed in others for claim, verdict in changed.items() if verdict is ClaimVerdict.REPLICATED}
    left = [claim for claim, verdict in own.items() if verdict is ClaimVerdict.NOT and claim not in back]
    lines += ["", f"No change alone brings back {len(left)}: {_names(left)}."]
    unknown = [claim for claim, verdict in own.items() if verdict is ClaimVerdict.UNKNOWN]
    lines += ["", f"Not known {len(unknown)}: {_names(unknown)}."]
    return Made("\n".join(lines))


def _verdicts(run: RunDirectory) -> dict[str, ClaimVerdict]:
    [report] = study_reports([loaded(run)])
    return {
        claim.id: judgement.verdict
        for claim, judged in report.claims
        for _, judgement in judged
        if judgement.kind == judgement.verdict
    }


def _counted(own: Mapping[str, ClaimVerdict]) -> str:
    verdicts = [*own.values()]
    return ", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in ClaimVerdict) + "."


def _moved(
    own: Mapping[str, ClaimVerdict],
    changed: Mapping[str, ClaimVerdict],
    before: ClaimVerdict,
    after: ClaimVerdict,
) -> str:
    return _names([claim for claim in own if own[claim] is before and changed.get(claim) is after])


def _names(claims: Sequence[str]) -> str:
    return ", ".join(f"`{claim}`" for claim in claims) or "none"
