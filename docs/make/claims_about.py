"""How the claims fared that name one filesystem, for docs/replication.md: ``lines`` of the table has its name."""

from collections.abc import Sequence

from agelab.analysis.published.phrasing import describe_column
from agelab.analysis.published.report import study_reports
from agelab.cli.replicate import loaded
from agelab.present.view.markdown import escape
from agelab.present.view.replication import reason_with_figures, theirs_text
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.page import grid, line


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make a row for each claim and each of its verdicts, study by study."""
    [filesystem] = table.lines
    lines = []
    for report in study_reports(map(loaded, runs)):
        sides = (f"{letter}: {describe_column(side)}" for letter, side in report.sides)
        lines += [f"`{report.study.name}`, {'; '.join(sides)}", ""]
        lines += grid(["claim", "theirs", "ours"])
        for claim, judged in report.claims:
            if claim.test and f'"{filesystem}"' in claim.test.model_dump_json():
                verdicts = dict.fromkeys(
                    f"**{judgement.verdict}**: {escape(reason_with_figures(judgement))}"
                    for _, judgement in judged
                )
                lines.append(line([f"{claim.says} `{claim.id}`", theirs_text(judged), "; ".join(verdicts)]))
        lines.append("")
    return Made("\n".join(lines))
